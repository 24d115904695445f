"""Runs a step a second time under the recorder: the recording has what the step's graph lacks."""
from __future__ import annotations

import copy
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

import torch

from ._export import GraphValues, devices_of, differentiated, line_of, quietly, size_of, with_buffers
from ._folder import FolderWriter, Limits, first_line, quoted, text_of
from ._record import Recording
from ._state import Generators

NAME = "recorded"  # of the recording within a folder
VARIABLE = "RETROGRAD_RECORD"


@dataclass(frozen=True)
class Again:
    """A step that ran a second time and was recorded."""

    path: Path
    is_finite: bool  # its outputs and gradients
    error: Optional[str]  # the exception that ended it
    answer: Optional[str] = None  # why it was raised, for an error of PyTorch's own

    @property
    def shows_it(self) -> bool:
        """Whether the step went wrong again."""
        return not self.is_finite or self.error is not None


def record_again(folder: Path, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], outputs: Callable[[], Sequence[torch.Tensor]], values: GraphValues,
                 limits: Limits, update: int = 0, accumulate: bool = True) -> Again:
    """Runs forward, loss and backward of a step and records them. Afterwards gradients, buffers and generators are as they were before.

    outputs: calls the model, and returns what backward is called on.
    accumulate: gradients go into `.grad`, unless hooks wait for them there; else they are only computed."""
    own = {name: buffer.detach().clone() for name, buffer in model.named_buffers()} | {name: tensor.clone() for name, tensor in values.original_buffers.items()}
    kept = [(p, p.grad) for p in model.parameters()]
    accumulate = accumulate and not any(getattr(p, "_post_accumulate_grad_hooks", None) for p, _ in kept)  # an optimizer in the backward would run
    recording = Recording(folder, model, optimizer, None, limits, True, update=update, quiet=True)
    ends: list[torch.Tensor] = []
    found: Sequence[Optional[torch.Tensor]] = []
    error = None
    for p, _ in kept:
        p.grad = None
    try:
        with quietly(), with_buffers(model, own), torch.enable_grad(), values.generators.again(), recording:
            with values.autocast.again(devices_of(model, values.inputs)):
                ends = list(outputs())
            with recording.paused():
                tensors, parameters, cotangents = differentiated(ends, values, model)
                given = [None if _is_one(cotangent) else cotangent for cotangent in cotangents]
            if accumulate:  # a loss whose gradient is 1 says so by having none, as in the loop
                torch.autograd.backward(tensors, given)
            else:
                found = torch.autograd.grad(tensors, parameters, given, allow_unused=True)
    except Exception as raised:  # the step's own
        error = text_of(raised)
    finally:
        gradients = [p.grad for p, _ in kept] if accumulate else list(found)
        for p, gradient in kept:
            p.grad = gradient
    return Again(recording.path, _are_finite([*ends, *(one for one in gradients if one is not None)]), error, recording.answer)


def record_whole(folder: Path, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], function: Callable[[], Any], limits: Limits, update: int) -> Again:
    """Runs a whole step, update included, and records it."""
    recording = Recording(folder, model, optimizer, None, limits, True, update=update, quiet=True)
    error = None
    try:
        with quietly(), recording:
            function()
    except Exception as raised:
        error = text_of(raised)
    return Again(recording.path, are_finite(model), error, recording.answer)


def _is_one(cotangent: torch.Tensor) -> bool:
    return cotangent.numel() == 1 and float(cotangent) == 1


def _are_finite(tensors: Sequence[torch.Tensor]) -> bool:
    plain = [tensor.detach() for tensor in tensors]
    return all(bool(torch.isfinite(tensor.coalesce().values() if tensor.layout == torch.sparse_coo else tensor).all()) for tensor in plain)


def are_finite(model: torch.nn.Module) -> bool:
    """Weights and gradients."""
    return _are_finite([one for p in model.parameters() for one in (p, p.grad) if one is not None])


class Kept:
    """The current state of everything that a step changes: weights, buffers, gradients, states and settings of optimizers, a scaler, generators."""

    def __init__(self, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], scaler: Any):
        self._gradients = [(p, p.grad) for p in model.parameters()]
        self._optimizer = optimizer
        self._states = {p: dict(state) for p, state in optimizer.state.items()} if optimizer is not None else {}
        self._groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups] if optimizer is not None else []
        self._scaler = (scaler, copy.deepcopy(scaler.state_dict())) if hasattr(scaler, "load_state_dict") else None
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in self.tensors(model, optimizer)]
        self._generators = Generators.now({p.device for p, _ in self._gradients})

    @staticmethod
    def tensors(model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer]) -> list[torch.Tensor]:
        states = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)] if optimizer is not None else []
        return [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters() if p.grad is not None), *states]

    @classmethod
    def size(cls, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer]) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in cls.tensors(model, optimizer))

    def put_back(self) -> None:
        for tensor, before in self._tensors:
            tensor.data.copy_(before)
        for p, gradient in self._gradients:
            p.grad = gradient
        if self._optimizer is not None:
            self._optimizer.state.clear()
            self._optimizer.state.update({p: dict(state) for p, state in self._states.items()})
            for group, settings in zip(self._optimizer.param_groups, self._groups):
                group.update(settings)
        if self._scaler is not None:
            self._scaler[0].load_state_dict(copy.deepcopy(self._scaler[1]))
        self._generators.restore()


def export_failed(contents: dict[str, Any], values: GraphValues, error: Exception) -> None:
    """Why there is no graph. export.log has the whole message."""
    line = line_of(error)
    contents["export_failed"] = (f"{line}: " if line else "") + first_line(text_of(error))
    values.log.write(f"\n{text_of(error, 1 << 20)}\n")


def lacks_something(graphs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the graph lacks a part of the step: a custom backward, a hook, checkpointing, the loss."""
    return any(graph.get("custom_backward") or graph.get("cannot_replay") for graph in graphs)


def fits(writer: FolderWriter, model: torch.nn.Module) -> bool:
    """Whether there is room for a second copy of the weights."""
    return size_of([*model.parameters(), *model.buffers()]) < writer.room()


def recording_json(again: Again, devices: Sequence[torch.device], lacks: Sequence[str]) -> dict[str, Any]:
    """The manifest's entry for the recording in a folder. `lacks`: which parts of the step could not be kept."""
    return {"recording": {"path": again.path.name, "shows_it": again.shows_it, "lacks": list(lacks)} | ({"error": first_line(again.error)} if again.error else {}) | ({"answer": again.answer} if again.answer else {}),
            "device": "cuda" if any(device.type == "cuda" for device in devices) else "cpu"}


def asked() -> Optional[int]:
    """The step that RETROGRAD_RECORD asks to record."""
    text = os.environ.get(VARIABLE, "")
    return int(text) if text.isdigit() else None


def command(step: int) -> str:
    """The command that runs the script again and records the step."""
    words = getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv]
    if "ipykernel" in sys.modules or not sys.argv or not sys.argv[0]:
        return f'os.environ["{VARIABLE}"] = "{step}", and run the cells again'
    return f"{VARIABLE}={step} {shlex.join(words)}"


def headless(path: Path, device: str = "") -> str:
    """Commands for a recording."""
    folder = quoted(path)
    return f"    retrograd debug {folder} -c walk-nan{device}\n    retrograd run {folder} --updates{device}\n    retrograd check {folder}{device}"
