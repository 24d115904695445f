"""Compiled functions run eagerly while a step is recorded."""
from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator

import torch


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Functions of torch.compile run eagerly, but for torch.cond, while_loop and their like: these compile what they are given, and without that the weights that
    their functions close over get no gradient. `setup_compilation_env` is PyTorch's place for that; without it (a test finds its absence) the stance holds for them too."""
    import torch._higher_order_ops.utils as utils

    name = "setup_compilation_env"
    own: Any = getattr(utils, name, None)
    users = [module for module in (utils, sys.modules.get("torch.nn.attention.flex_attention")) if own is not None and getattr(module, name, None) is own]

    @contextlib.contextmanager
    def compiling() -> Iterator[Any]:
        with own() as backend, torch.compiler.set_stance("default"):
            yield backend

    with torch.compiler.set_stance("force_eager"):
        for user in users:
            setattr(user, name, compiling)
        try:
            yield
        finally:
            for user in users:
                setattr(user, name, own)
