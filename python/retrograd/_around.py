"""Hooks around a model that model.compile() has compiled in place: hooks of the module itself would be compiled with it."""
from __future__ import annotations

from typing import Any, Callable

import torch


class AroundCompiled:
    """Calls `before(model, args, kwargs)` and `after(model, args, output)` around each call, until it is removed. `after` returns an output to use instead, or None."""

    def __init__(self, model: torch.nn.Module, before: Callable[..., None], after: Callable[..., Any]):
        self.model = model
        self.compiled: Any = model.__dict__["_compiled_call_impl"]

        def call(*args: Any, **kwargs: Any) -> Any:
            before(model, args, kwargs)
            output = self.compiled(*args, **kwargs)
            other = after(model, args, output)
            return output if other is None else other

        model.__dict__["_compiled_call_impl"] = call

    def remove(self) -> None:
        self.model.__dict__["_compiled_call_impl"] = self.compiled
