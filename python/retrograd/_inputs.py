"""The state at the begin of a call of the model: generators, inputs and buffers, copied if they may be written."""
from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

import torch

from ._lines import caller
from ._loop import Loop
from ._state import Autocast, Generators
from ._step import Step
from ._tree import tensor_leaves


class Inputs:
    def __init__(self, loop: Loop):
        self._loop = loop
        self._copies_large = False  # an input was written in place before
        self._written: Optional[set[str]] = None  # buffers that a forward writes

    def step(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Step:
        """A call of the model that begins now."""
        loop = self._loop
        tensors = tensor_leaves((args, kwargs))
        copies = {}
        for tensor in tensors:
            size = tensor.numel() * tensor.element_size()
            if size <= loop.limits.copy_bytes or (self._copies_large and size <= loop.limits.keep_bytes):
                copies[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        parameters = list(loop.inner.parameters())
        devices = {p.device for p in parameters[:1]} | {tensor.device for tensor in tensors}
        return Step(args, kwargs, [(tensor, tensor._version) for tensor in tensors], copies, self._buffers(), [(p, p._version) for p in parameters],
                    Generators.now(devices), Autocast.now(devices), caller(), loop.step, loop.microbatch)

    def _buffers(self) -> dict[str, torch.Tensor]:
        """Copies of the buffers that a forward writes (batch norm's statistics): at first of all buffers, then of those that were written."""
        kept = {}
        for name, buffer in self._loop.inner.named_buffers():
            small = buffer.numel() * buffer.element_size() <= self._loop.limits.copy_bytes
            if small and (self._written is None or name in self._written):
                kept[name] = buffer.detach().clone()
        return kept

    def forward_ended(self, step: Step) -> None:
        """Finds out which buffers the first forward wrote."""
        if self._written is None:
            now = dict(self._loop.inner.named_buffers())
            self._written = {name for name, before in step.buffers.items() if name in now and not torch.equal(before, now[name])}
            step.buffers = {name: before for name, before in step.buffers.items() if name in self._written}

    def step_ended(self, step: Step) -> None:
        """Finds out whether an input was written."""
        for tensor, version in step.versions:
            self._copies_large |= tensor._version != version
