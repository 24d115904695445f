"""Judges the numbers of each backward: at once, or on a GPU after the update, so that nothing waits for them."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Iterator, Optional

import torch

from ._checks import BUFFER, Failure, KeptWeights, Reading, Scale, gradients_of, judged, on_gpu
from ._failures import Failures
from ._folder import readable
from ._loop import Loop
from ._norms import values_of
from ._rerun import Rerun
from ._step import Step
from ._tree import named_leaves


@dataclass(eq=False)
class _Waiting:
    """Calls of the model whose backward is over, and whose numbers have not been read yet."""

    steps: list[Step]
    reading: Reading
    update: int  # the update that comes next
    rates: list[Any]


class Judge:
    def __init__(self, loop: Loop, failures: Failures, rerun: Optional[Rerun]):
        self._loop = loop
        self._failures = failures
        self._rerun = rerun
        self.scale: Optional[Scale] = None  # of the loop's scaler
        self._waiting: list[_Waiting] = []

    def take(self, steps: list[Step]) -> None:
        """The numbers of a backward through these calls of the model."""
        gradients = gradients_of(self._loop.inner)
        late = self._reads_late()
        apart = {name: tensor for step in steps for name, tensor in self._apart(step)}
        losses = [value for step in steps for value in step.loss_values]
        waiting = _Waiting(steps, Reading(gradients, apart, losses, late), self._loop.updates, self._loop.rates())
        if late:
            self._waiting.append(waiting)
        else:
            self._judge(waiting, {**gradients, **apart})

    def _apart(self, step: Step) -> Iterator[tuple[str, torch.Tensor]]:
        """Gradients of inputs, and buffers that the forward wrote."""
        for name, leaf in named_leaves(step.args, step.kwargs):
            if leaf.is_leaf and leaf.requires_grad and leaf.grad is not None:
                yield f"input {name}", values_of(leaf.grad)
        buffers = dict(self._loop.inner.named_buffers())
        for name in step.buffers:
            if name in buffers and buffers[name].is_floating_point():
                yield BUFFER + name, values_of(buffers[name])

    def waits_for(self, step: Step) -> bool:
        return any(step in waiting.steps for waiting in self._waiting)

    def settle(self, wait: bool = False) -> None:
        """Judges the numbers that have arrived; with `wait`, waits for all."""
        self._judge_while(lambda waiting: wait or waiting.reading.is_there)

    def before_weights_change(self) -> None:
        """Keeps the weights for numbers that have not arrived. Those of the step before were computed long ago, so this waits for no work of the current step."""
        self._judge_while(lambda waiting: waiting.update < self._loop.updates)
        if self._waiting:
            self._failures.keep_weights()

    def forget(self) -> None:
        self._waiting.clear()

    def _judge_while(self, ready: Callable[[_Waiting], bool]) -> None:
        while self._waiting and ready(self._waiting[0]):
            waiting = self._waiting.pop(0)
            if self._loop.wanted:
                self._judge(waiting)
            for step in waiting.steps:
                step.release()

    def _judge(self, waiting: _Waiting, looked: Optional[dict[str, torch.Tensor]] = None) -> None:
        loop = self._loop
        failure, loss, norm = judged(waiting.reading, self.scale, looked)
        failure = self._with_hint(failure, waiting)
        failure = failure or loop.history.spike(loss, norm, loop.limits.spike)
        first = waiting.steps[0]
        loop.history.add(first.index, first.microbatch, loss, norm, waiting.rates)
        if self._rerun is not None:
            self._rerun.compare(loop.history.steps[-1])
        if loop.sharding.agree(failure is not None):
            other = Failure("nan_gradient", "another rank has a NaN or Inf in its gradients; this rank has none: look at the other ranks")
            self._failures.write(waiting.steps, failure or other, waiting.update)

    def _with_hint(self, failure: Optional[Failure], waiting: _Waiting) -> Optional[Failure]:
        """Adds a hint: a GradScaler's first scales overflow float16 in many correct loops."""
        halves = any(dtype == torch.float16 for step in waiting.steps for _, dtype in step.autocast.on)
        if failure is None or failure.kind not in ("nan_gradient", "nan_norm") or self._loop.scaler is not None or not halves:
            return failure
        return replace(failure, message=failure.message + ". If a GradScaler scales this loss, give it to catch (scaler=scaler): it then lets infinite gradients "
                                                          "pass for which the scaler lowers its scale")

    def _reads_late(self) -> bool:
        """Whether numbers are read after the update, which needs a copy of the weights from before it."""
        loop = self._loop
        if loop.sharding.kind == "fsdp2" or not on_gpu(loop.inner):
            return False
        size, most = KeptWeights.size(list(loop.inner.parameters())), loop.limits.weights_bytes
        late = size <= most
        loop.say_once("copies", f"retrograd: catch keeps a copy of the weights on the GPU ({readable(size)}), so that no update waits for its check. Limits(weights_bytes=0) leaves it out." if late else
                                f"retrograd: each update waits for the check before it: a copy of the weights ({readable(size)}) exceeds Limits.weights_bytes ({readable(most)}).")
        return late
