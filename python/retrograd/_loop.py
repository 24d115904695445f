"""The training loop that catch() watches: its model, its optimizers, and how far it has come."""
from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any, Optional, Union

import torch

from ._between import Watch
from ._capture import unwrapped
from ._checks import History
from ._distributed import Sharding, sharding_of
from ._folder import Folder, Limits, say


class Loop:
    def __init__(self, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], path: Union[str, Path, None], limits: Limits, scaler: Any):
        self.model = model
        self.inner = unwrapped(model)
        self.scaler = scaler
        self.limits = limits
        self.target = Path(path).absolute() if path is not None else Path("retrograd-catch").absolute()
        if self.target.exists() and not self.target.is_dir():
            raise NotADirectoryError(f"retrograd.catch writes folders into {self.target}, which is a file")
        self.sharding: Sharding = sharding_of(self.model)
        self.watch = Watch()
        self.history = History()
        self.folders: list[Folder] = []  # that were written
        self.failures = 0
        self.stopped = False
        self.updates = 0
        self.backwards = 0
        self.microbatch = 0
        self.versions: dict[int, int] = {}  # of the parameters after the last update
        self._given = optimizer
        self._optimizers: set[int] = set()  # that have parameters of the model
        self._last: Optional["weakref.ref[torch.optim.Optimizer]"] = weakref.ref(optimizer) if optimizer is not None else None
        self._said: set[str] = set()  # subjects that the user was told of

    @property
    def wanted(self) -> bool:
        """Whether another folder may be written."""
        return not self.stopped and self.failures < self.limits.folders

    @property
    def step(self) -> int:
        """The number of the current step."""
        return self.updates if self._optimizers else self.backwards

    @property
    def optimizer(self) -> Optional[torch.optim.Optimizer]:
        """The optimizer that made the last update."""
        return self._last() if self._last is not None else None

    def begin_update(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether an optimizer is one of the loop's."""
        if not self._belongs(optimizer):
            return False
        self._last = weakref.ref(optimizer)
        return True

    def end_update(self, optimizer: torch.optim.Optimizer) -> bool:
        if not self._belongs(optimizer):
            return False
        self.updates += 1
        self.microbatch = 0
        self.versions = self.versions_now()
        return True

    def _belongs(self, optimizer: torch.optim.Optimizer) -> bool:
        if id(optimizer) in self._optimizers:
            return True
        if self._given is not None:
            known = optimizer is self._given
        else:
            own = {id(p) for p in self.inner.parameters()}
            known = any(id(p) in own for group in optimizer.param_groups for p in group["params"])
        if known:
            self._optimizers.add(id(optimizer))
        return known

    def end_backward(self) -> None:
        self.backwards += 1
        self.microbatch += 1

    def versions_now(self) -> dict[int, int]:
        return {id(p): p._version for p in self.inner.parameters()}

    def rates(self) -> list[Any]:
        """The learning rates, except those on a GPU."""
        groups = self.optimizer.param_groups if self.optimizer is not None else []
        return [group["lr"].detach().clone() if isinstance(group["lr"], torch.Tensor) else float(group["lr"]) for group in groups if "lr" in group]

    def say_once(self, subject: str, text: str) -> None:
        if subject not in self._said:
            self._said.add(subject)
            say(text)
