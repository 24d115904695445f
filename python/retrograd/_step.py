"""What is kept about one call of a model until its backward is over."""
from __future__ import annotations

import math
import weakref
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence

import torch

from ._between import Between, End, NotSeen, Output, Program
from ._checks import Failure
from ._state import Autocast, Generators


@dataclass(eq=False)
class Loss:
    """A loss that `Catch.loss` was given."""

    value: torch.Tensor  # detached
    end: Optional[End]
    gradient: Optional[torch.Tensor] = None  # that a backward gave to it
    scaled: bool = False  # it was given to a scaler, not to `Catch.loss`


@dataclass(eq=False)
class Step:
    """One call of the model."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    versions: list[tuple[torch.Tensor, int]]
    copies: dict[int, torch.Tensor]  # id of an input -> its copy
    buffers: dict[str, torch.Tensor]
    parameter_versions: list[tuple[torch.nn.Parameter, int]]
    generators: Generators
    autocast: Autocast
    line: Any  # of the user, that called the model
    index: int  # of the step, from 0
    microbatch: int
    cotangents: dict[int, torch.Tensor] = field(default_factory=dict)  # of the model's outputs, by position
    kept_bytes: int = 0
    not_kept: int = 0  # cotangents that did not fit
    backwards: int = 0
    backward_began: bool = False  # of a loss that came after this call
    outputs: list["weakref.ref[torch.Tensor]"] = field(default_factory=list)  # as the loop got them
    own_loss: Optional[torch.Tensor] = None
    own_loss_position: Optional[int] = None
    between: Optional[Between] = None
    losses: list[Loss] = field(default_factory=list)
    ends: list[tuple[End, torch.Tensor]] = field(default_factory=list)  # what backward was called on, and with which gradient
    program: Optional[Program] = None  # the calls between the outputs and the losses
    ends_are_named: bool = False  # the program ends at losses of `Catch.loss`, which all gradients passed; else at what backward was called on, too
    unseen: Optional[str] = None  # why there is no program, where a loss is known

    @property
    def loss_values(self) -> list[torch.Tensor]:
        """The losses that are known, detached."""
        return [loss.value for loss in self.losses] or ([self.own_loss] if self.own_loss is not None else [])

    def failure_without_backward(self) -> Optional[Failure]:
        """What is wrong with the loss, or with the outputs if no number was computed from them."""
        followed = "" if self.backward_began else "; no backward followed"
        if not self.backward_began and not self.loss_values and self.between is not None and self.between.last_number is not None:
            self.losses = [Loss(*self.between.last_number)]
        if self.backward_began or self.loss_values:
            wrong = next((loss for loss in map(float, self.loss_values) if not math.isfinite(loss)), None)
            return Failure("nan_loss", f"the loss is {wrong}{followed}", loss=wrong) if wrong is not None else None
        outputs = [output for kept in self.outputs if (output := kept()) is not None]  # that are still there
        has_nan = any(output.is_floating_point() and bool(output.isnan().any()) for output in outputs)
        return Failure("nan_output", f"an output of the model has a NaN{followed}") if has_nan else None

    def begin_backward(self, ends: Sequence[torch.Tensor], gradients: Sequence[Any], scaled: bool) -> None:
        """Finds the calls between the outputs and the losses that are part of the step. Without a named loss, it is what backward is called on, unless that is `scaled`."""
        self.backward_began = True
        if self.between is not None:
            self.ends = [(self.between.end(end), gradient.detach() if isinstance(gradient, torch.Tensor) else torch.ones_like(end.detach())) for end, gradient in zip(ends, gradients)]
            if not self.loss_values and not scaled:
                self.losses = [Loss(tensor.detach(), end, gradient) for tensor, (end, gradient) in zip(ends, self.ends) if tensor.numel() == 1]
            self.link()

    def link(self) -> None:
        """Finds the calls that lead to the losses. If a call is unknown, the graph ends at the model's outputs."""
        self.program, self.unseen = None, None
        if self.between is None:
            return
        named = [loss.end for loss in self.losses if loss.end is not None]
        roots = [end for end, _ in self.ends]
        try:
            if self.own_loss_position is not None and roots and not named and self.between.program(roots, self._own()).outputs == set():
                return  # the model's own loss, perhaps scaled: the graph ends there
            covered = bool(named) and (not roots or not self.between.program(roots, named).outputs)
            program = self.between.program(named if covered else [*named, *(root for root in roots if root not in named)])
        except NotSeen as reason:
            self.unseen = str(reason)
            return
        if program.outputs:
            self.program = program
            self.ends_are_named = covered

    def _own(self) -> list[End]:
        return [End(Output(self.own_loss_position), 0)] if self.own_loss_position is not None else []

    def release(self) -> None:
        """Frees what only a folder would have needed."""
        self.cotangents.clear()
        self.kept_bytes = 0

    def gradient_of(self, end: End) -> Optional[torch.Tensor]:
        """The gradient that backward gave to an end of the program, or None."""
        if self.ends_are_named:
            return next((loss.gradient for loss in self.losses if loss.end == end), None)
        return next((gradient for root, gradient in self.ends if root == end), None)
