"""Where an op runs: the user's lines, the module, the phase of the step, and the forward op that a backward op belongs to."""
from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Callable, Optional

import torch

from ._lines import owner
from ._names import is_switched

_MARKS: dict[str, dict[Optional[str], str]] = {  # functions of PyTorch that say what runs, by the end of their file's path
    os.path.join("torch", "autograd", "graph.py"): {"_engine_run_backward": "engine"},
    os.path.join("torch", "autograd", "function.py"): {"apply": "function"},
    os.path.join("torch", "utils", "checkpoint.py"): {"unpack_hook": "recompute", "recompute_fn": "recompute", "backward": "recompute", "checkpoint": "region"},
    os.path.join("torch", "nn", "utils", "clip_grad.py"): {None: "clip"},
    os.path.join("torch", "distributed", "tensor", "_redistribute.py"): {None: "moves"},
    os.path.join("torch", "distributed", "fsdp", "_fully_shard", "_fsdp_state.py"): {None: "moves"}, os.path.join("torch", "distributed", "fsdp", "_fully_shard", "_fsdp_param_group.py"): {None: "moves"},
    os.path.join("torch", "_compile.py"): {None: "passed"}, os.path.join("torch", "_dynamo", "eval_frame.py"): {None: "passed"},  # around the recorder itself
}
_kinds: dict[CodeType, tuple[str, Optional[str]]] = {}
ACCUMULATE = "torch::autograd::AccumulateGrad"


def _kind(code: CodeType) -> tuple[str, Optional[str]]:
    """Whose function it is, and its mark."""
    found = _kinds.get(code)
    if found is None:
        marks = next((marks for tail, marks in _MARKS.items() if code.co_filename.endswith(tail)), {})
        found = _kinds[code] = (owner(code.co_filename), marks.get(code.co_name, marks.get(None)))
    return found


@dataclass
class Place:
    """The place where an op runs."""

    frames: list[tuple[CodeType, int]] = field(default_factory=list)  # the user's, innermost last
    phase: str = "other"
    node: Any = None  # of autograd, that runs
    function: Optional[str] = None
    hook: Optional[str] = None
    region: bool = False  # in a checkpointed region
    moves: bool = False  # moves a shard between ranks or layouts, below what autograd sees
    inside: Optional[tuple[tuple[CodeType, int], ...]] = None  # the user's frames within that region or its recomputation, innermost first
    depth: int = 0  # frames of Python around the op
    instruction: Optional[tuple[int, int]] = None  # of the innermost frame: the call that runs


def _function_of(frame: Any) -> Optional[str]:
    """The custom autograd.Function whose `forward(ctx, ...)` a frame runs. Its `apply` has no frame in every version of PyTorch."""
    context = frame.f_locals.get(frame.f_code.co_varnames[0]) if frame.f_code.co_argcount else None
    return function_name(getattr(type(context), "_forward_cls", None)) if isinstance(context, torch._C._FunctionBase) else None


def function_name(function: Any) -> Optional[str]:
    """The name of a custom Function; None for those that implement PyTorch's checkpoints."""
    return None if getattr(function, "__module__", None) == "torch.utils.checkpoint" else getattr(function, "__qualname__", None)


class Where:
    """Follows modules, optimizers and backwards of a loop."""

    def __init__(self, model: Optional[torch.nn.Module]):
        self._paths: dict[int, str] = {}
        self._roots = 0
        self.modules: list[tuple[str, str, int]] = []  # path, class and call of those that run
        self._calls: dict[str, int] = {}
        self.entered: Optional[Callable[[torch.nn.Module], None]] = None  # called with each outermost module that begins
        self.left: Optional[Callable[[torch.nn.Module], None]] = None  # called with each module that ends
        self._in_eval: dict[str, bool] = {}  # modules that were called in eval since the last backward, and whether that changes what they compute
        self.in_optimizer = 0
        self.after_forward = False  # an outermost module has returned, and no backward began since
        self._thread = threading.get_ident()
        self._threads: dict[int, int] = {self._thread: 0}
        if model is not None:
            self._name(model)

    def _name(self, root: torch.nn.Module) -> None:
        prefix = "" if self._roots == 0 else type(root).__name__ + (f"_{self._roots}" if type(root).__name__ in self._paths.values() else "")
        self._roots += 1
        for path, module in root.named_modules():
            self._paths.setdefault(id(module), ".".join(filter(None, (prefix, path))))

    def begin_step(self) -> None:
        self._calls.clear()

    def enter_module(self, module: torch.nn.Module, _: Any) -> None:
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:  # torch.cond has Dynamo follow its branches, and the hooks in them
            return
        if id(module) not in self._paths:
            self._name(module)
        if not self.modules and self.entered is not None:
            self.entered(module)
        path = self._paths[id(module)]
        if torch._C._current_autograd_node() is None:  # not a recomputation
            self._calls[path] = self._calls.get(path, -1) + 1
            if not module.training and torch.is_grad_enabled():
                self._in_eval[path] = is_switched(module)
        self.modules.append((path, type(module).__name__, self._calls.get(path, 0)))

    def leave_module(self, module: torch.nn.Module, *_: Any) -> None:
        if not torch.compiler.is_compiling() and threading.get_ident() == self._thread and self.modules:
            self.modules.pop()
            if self.left is not None:
                self.left(module)
            if not self.modules:
                self.after_forward = True

    def taken_in_eval(self) -> list[str]:
        """The modules that were called in eval mode since the last backward: those that compute something else there, or otherwise the outermost."""
        found, self._in_eval = self._in_eval, {}
        return sorted(path for path, switched in found.items() if switched) or ([""] if "" in found else [])

    def thread(self) -> int:
        return self._threads.setdefault(threading.get_ident(), len(self._threads))

    def now(self) -> Place:
        """Finds the place from the Python stack, outwards from the op."""
        place = Place()
        inner: list[CodeType] = []  # frames within the innermost backward
        marks: list[tuple[str, Any]] = []
        engine = False
        frame: Any = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            whose, mark = _kind(code)
            if whose == "user":
                place.frames.append((code, frame.f_lineno))
            if mark in ("region", "recompute") and place.inside is None:
                place.inside = tuple(place.frames)
            if place.instruction is None and whose != "package" and mark != "passed":
                place.instruction = (id(frame), frame.f_lasti)
            if not engine and whose != "package" and mark != "passed":
                if mark == "engine":
                    engine = True
                else:
                    inner.append(code)
                    if mark is not None:
                        marks.append((mark, frame))
                    if mark == "moves" and not place.frames:
                        place.moves = True
                    if mark in (None, "moves") and code.co_name == "forward" and code.co_varnames[:1] != ("self",) and place.function is None:
                        place.function = _function_of(frame)
            frame = frame.f_back
            place.depth += 1
        place.frames.reverse()
        kinds = {mark for mark, _ in marks}
        place.region = "region" in kinds
        node = torch._C._current_autograd_node()
        if node is not None and (engine or threading.get_ident() != self._thread):
            self.after_forward = False
            place.node = node
            self._within_backward(place, kinds, inner)
        elif self.in_optimizer:
            place.phase = "clip" if "clip" in kinds else "optimizer"
        elif "clip" in kinds:
            place.phase = "clip"
        elif self.modules:
            place.phase = "forward"
        elif self.after_forward and torch.is_grad_enabled():
            place.phase = "loss"
        if place.function is None and (place.node is None or place.phase == "recompute"):
            applied = next((frame for mark, frame in marks if mark == "function"), None)
            if applied is not None:
                place.function = function_name(applied.f_locals.get("cls"))
        return place

    def _within_backward(self, place: Place, kinds: set[str], inner: list[CodeType]) -> None:
        if "recompute" in kinds:
            place.phase = "recompute"
        elif "function" in kinds:
            place.phase = "backward"
            place.function = function_name(getattr(type(place.node), "_forward_cls", None))
        elif inner:
            place.phase = "hook"
            place.hook = inner[-1].co_name
        else:
            place.phase = "accumulation" if place.node.name() == ACCUMULATE else "backward"
