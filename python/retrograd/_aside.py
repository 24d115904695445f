"""Nodes of autograd whose formula asks whether ops are intercepted, and then computes in another way: they run with the recorder aside and are recorded whole."""
from __future__ import annotations

import functools
from typing import Any, Mapping, Optional, Protocol, Sequence

import torch
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from ._custom import nodes_behind
from ._lines import line_now
from ._raised import Raised
from ._recorded_op import WHOLE, Op
from ._recorder_state import Recorded

ASKING = frozenset((  # their formulas, or their checks, differ; scripts/check-recording finds those that are missing
    "CumprodBackward0", "LinalgDetBackward0", "LinalgEigBackward0", "LinalgEighBackward0", "MaskedFillBackward1", "OrmqrBackward0", "ProdBackward0",
    "ProdBackward1",
))


class Whole:
    """What runs in place of an op, by its name."""

    def __init__(self, node: str):
        self.node = node

    def __str__(self) -> str:
        return WHOLE + self.node


class Recording(Protocol):
    """What of the recorder is asked."""

    raised: Raised
    recording: Recorded

    def begin(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Optional[Op]: ...
    def ended(self, op: Op, made: Any) -> None: ...


class Aside:
    """Looks through the graph where a backward begins, and takes the recorder off around the nodes that ask."""

    def __init__(self, mode: TorchDispatchMode, recording: Recording):
        self._mode, self._recording = mode, recording
        self._handles: list[Any] = []
        self._own: Any = None
        self._on = False

    def start(self) -> None:
        own: Any = getattr(torch.autograd.graph, "_engine_run_backward")

        @functools.wraps(own)
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._on:
                return own(outputs, *args, **kwargs)
            self._recording.raised.backward(line_now(), self._recording.recording.ops)
            self._look(outputs)
            try:
                return own(outputs, *args, **kwargs)
            except Exception as error:
                self._recording.raised.failed(error, outputs)
                raise

        self._on, self._own, self._run = True, own, run
        _set_engine(run)

    def stop(self) -> None:
        self._on = False
        if self._own is not None and getattr(torch.autograd.graph, "_engine_run_backward") is self._run:  # else another one calls it, and it does nothing
            _set_engine(self._own)
        self._own = None
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _look(self, outputs: Any) -> None:
        for node in nodes_behind(outputs):
            if node.name() in ASKING and not node.metadata.get("retrograd"):
                node.metadata["retrograd"] = True
                self._hook(node.name(), node)

    def _hook(self, name: str, node: Any) -> None:
        running: list[tuple[_Without, Optional[Op]]] = []

        def before(given: Sequence[Any]) -> None:
            running.clear()  # an error may have ended the run before
            if not self._on or any(isinstance(one, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(one) for one in given):
                return  # the formula takes the other way by itself
            without = _Without(self._mode)
            if without.was_on:
                running.append((without, self._recording.begin(Whole(name), given, {})))

        def after(made: Sequence[Any], given: Sequence[Any]) -> None:
            if not running:
                return
            without, op = running.pop()
            if op is not None:
                self._recording.ended(op, made)
            without.back()

        self._handles += [node.register_prehook(before), node.register_hook(after)]


def _set_engine(run: Any) -> None:
    setattr(torch.autograd.graph, "_engine_run_backward", run)
    setattr(torch.autograd, "_engine_run_backward", run)


class _Without:
    """A mode of this thread is off the stack until `back`; those that were above it stay."""

    def __init__(self, mode: TorchDispatchMode):
        self._mode = mode
        stack = _python_dispatch._get_current_dispatch_mode_stack()
        self.was_on = mode in stack
        self._above = len(stack) - 1 - stack.index(mode) if self.was_on else 0
        if self.was_on:
            above = [_python_dispatch._pop_mode() for _ in range(self._above)]
            _python_dispatch._pop_mode()
            self._push(above)

    def back(self) -> None:
        above = [_python_dispatch._pop_mode() for _ in range(self._above)]
        _python_dispatch._push_mode(self._mode)
        self._push(above)

    @staticmethod
    def _push(modes: Sequence[TorchDispatchMode]) -> None:
        for one in reversed(modes):
            _python_dispatch._push_mode(one)
