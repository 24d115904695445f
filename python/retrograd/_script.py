"""`python -m retrograd train.py ARGS`: runs a script as Python does, and catches the first step that goes wrong, without an edit."""
from __future__ import annotations

import functools
import runpy
import sys
import weakref
from pathlib import Path
from typing import Any, Optional, Sequence

import torch

from ._catch import Catch, catch
from ._folder import say


class Finder:
    """Finds the model of a script: the first outermost module that is called with gradients and holds half of the parameters of an optimizer."""

    def __init__(self) -> None:
        self.caught: Optional[Catch] = None
        self._depth = 0
        self._trained: set[int] = set()  # parameters of optimizers
        self._scaler: Optional["weakref.ref[Any]"] = None
        self._originals: list[tuple[Any, str, Any]] = []

    def _wrap(self, owner: Any, name: str, wrapper: Any) -> None:
        """Calls of a method go to `wrapper`, which is given the original behind the object."""
        original = getattr(owner, name)
        self._originals.append((owner, name, original))

        @functools.wraps(original)
        def wrapped(this: Any, *args: Any, **kwargs: Any) -> Any:
            return wrapper(this, original, *args, **kwargs)

        setattr(owner, name, wrapped)

    def __enter__(self) -> "Finder":
        finder = self

        def call(module: torch.nn.Module, original: Any, *args: Any, **kwargs: Any) -> Any:
            if finder.caught is None and finder._depth == 0:
                finder._look_at(module)
            finder._depth += 1
            try:
                return original(module, *args, **kwargs)
            finally:
                finder._depth -= 1

        def optimize(optimizer: torch.optim.Optimizer, original: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            finder._trained.update(id(p) for group in optimizer.param_groups for p in group["params"])

        def scale(scaler: Any, original: Any, *args: Any, **kwargs: Any) -> None:
            original(scaler, *args, **kwargs)
            finder._scaler = weakref.ref(scaler)

        self._wrap(torch.nn.Module, "__call__", call)
        self._wrap(torch.optim.Optimizer, "__init__", optimize)
        self._wrap(torch.amp.GradScaler, "__init__", scale)
        return self

    def __exit__(self, *error: Any) -> None:
        for owner, name, original in self._originals:
            setattr(owner, name, original)
        if self.caught is not None:
            self.caught.__exit__(*error)
        elif error[0] is None:
            say("retrograd: the script called no module that an optimizer trains, with gradients: nothing was watched")

    def _look_at(self, module: torch.nn.Module) -> None:
        own = {id(p) for p in module.parameters() if p.requires_grad}
        if not own or not torch.is_grad_enabled() or len(own & self._trained) < len(self._trained) / 2:
            return
        self.caught = catch(module, scaler=self._scaler() if self._scaler is not None else None)
        self.caught.__enter__()


def run_script(path: Path, arguments: Sequence[str]) -> None:
    """Runs the script as `python train.py ARGS` does. Its exceptions pass through."""
    sys.argv = [str(path), *arguments]
    sys.path[0] = str(path.resolve().parent)
    with Finder():
        runpy.run_path(str(path), run_name="__main__")
