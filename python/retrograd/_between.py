"""What a loop computes between the model's outputs and the backward: a part of the step outside of the model."""
from __future__ import annotations

import contextlib
import traceback
import weakref
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

import torch
from torch.overrides import TorchFunctionMode

from ._custom import place_of_backward
from ._lines import called_from, caller
from ._state import Autocast
from ._tree import Tree, tensor_leaves

MOST_CALLS = 20000  # a validation that has gradients on and no backward must not fill the memory


@dataclass(frozen=True)
class Output:
    """An output of the model, by its position among the tensors that it returns."""

    position: int


@dataclass(frozen=True)
class Result:
    """A tensor that a recorded call returned: its place among the tensors of the result."""

    call: int
    place: int


@dataclass(frozen=True, eq=False)
class Given:
    """A tensor that does not come from the model: a target, a mask, a parameter of the loss."""

    tensor: torch.Tensor
    version: int


@dataclass(frozen=True)
class Weight:
    """A parameter of the model that the loss reads, such as for a penalty term."""

    name: str


Known = Union[Output, Result, Weight]
Source = Union[Known, Given]


@dataclass
class Recorded:
    """One call: a function of torch, or the function that `Catch.loss` was given."""

    function: Callable[..., Any]
    tree: Tree  # of (args, kwargs), with a Source instead of each tensor
    grad: bool
    autocast: Autocast
    line: Optional[traceback.FrameSummary]
    reads: set[int]  # storages
    writes: set[int] = field(default_factory=set)  # storages that were there before
    unseen: Optional[str] = None  # what made an argument of it, where no call of torch shows that


@dataclass(frozen=True)
class End:
    """A tensor at which a graph ends: a loss."""

    source: Source
    storage: int
    unseen: Optional[str] = None


class NotSeen(Exception):
    """A part of the loss's computation cannot be in the graph. The text names it."""


_BACKWARDS = (torch.Tensor.backward, torch.autograd.backward)


class Watch(TorchFunctionMode):
    """Passes calls of torch functions to `current`, if there is one. It is put at the bottom of the stack of modes and can be removed from any place in it, so that
    it needs no block of its own; PyTorch keeps its default device in the same way."""

    def __init__(self) -> None:
        super().__init__()
        self.current: Optional[Between] = None
        self._inside = 0  # calls that are being handled: PyTorch has taken this mode from the stack, and will put it back

    def start(self, between: "Between") -> None:
        self.current = between
        self._place(True)

    def stop(self) -> None:
        self.current = None
        self._place(False)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        between = self.current
        self.stop()
        try:
            yield
        finally:
            if between is not None:
                self.start(between)

    def _place(self, on: bool) -> None:
        if self._inside or not on and self not in _modes():
            return

        def order(modes: list[Any]) -> list[Any]:
            others = [mode for mode in modes if mode is not self]
            return [mode for mode in others if _is_default_device(mode)] + [self] * on + [mode for mode in others if not _is_default_device(mode)]

        _restack(order)

    def __torch_function__(self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_compiling() or self.current is None:
            return function(*args, **kwargs)
        self._inside += 1
        try:
            return self.current.seen(function, args, kwargs)
        finally:
            self._inside -= 1


class Between:
    """Records the calls of torch functions on the outputs of one call of a model and on its weights, without changing them. `around(run, ends, gradients)` is called
    for each backward."""

    def __init__(self, outputs: Sequence[torch.Tensor], weights: Iterable[tuple[str, torch.Tensor]], around: Callable[[Callable[[], Any], Sequence[torch.Tensor], Sequence[Any]], Any]):
        self.calls: list[Recorded] = []
        self.last_number: Optional[tuple[torch.Tensor, End]] = None  # the last single number with a gradient that came of a call: the loss, as far as one can know
        self.ended: Optional[str] = None  # why nothing more is recorded
        self._around = around
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], Known]] = {}
        self._apart: dict[int, tuple[weakref.ref[torch.Tensor], Optional[str]]] = {}  # tensors that no call of torch made of the outputs, and what did
        self._nodes: set[tuple[str, int]] = set()
        for name, weight in weights:
            self._known[id(weight)] = (weakref.ref(weight), Weight(name))
        for position, output in enumerate(outputs):
            self._known[id(output)] = (weakref.ref(output), Output(position))
            if output.grad_fn is not None:
                self._nodes.add(_identity(output.grad_fn))

    def seen(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if function in _BACKWARDS:
            ends, gradients = _ends_of(args, kwargs)
            return self._around(lambda: function(*args, **kwargs), ends, gradients)
        if not self._reads_known(args) and not self._reads_known(kwargs.values()):
            return function(*args, **kwargs)
        return self.call(function, args, kwargs, caller())

    def call(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], line: Optional[traceback.FrameSummary]) -> Any:
        """Runs a call and records it."""
        if self.ended is not None:
            return function(*args, **kwargs)
        try:
            tree = Tree((tuple(args), dict(kwargs)))
            tensors = [leaf for leaf in tree.leaves if isinstance(leaf, torch.Tensor)]
            versions = [_version(tensor) for tensor in tensors]
            unseen = next(filter(None, map(self._unseen, tensors)), None)
            recorded = Recorded(function, tree, torch.is_grad_enabled(), Autocast.now(tensor.device for tensor in tensors), line,
                                {_storage(tensor) for tensor in tensors}, unseen=unseen)
            tree.leaves = [self._source(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in tree.leaves]
        except Exception as error:  # an argument of a kind that cannot be taken apart
            self.ended = f"{_name(function)}: {type(error).__name__}"
            return function(*args, **kwargs)
        result = function(*args, **kwargs)
        recorded.writes = {_storage(tensor) for tensor, version in zip(tensors, versions) if _version(tensor) != version}
        self._keep(recorded, tensor_leaves(result))
        return result

    def _keep(self, recorded: Recorded, results: Sequence[torch.Tensor]) -> None:
        if not results and not recorded.writes:
            return
        if len(self.calls) >= MOST_CALLS:
            self.ended = f"more than {MOST_CALLS} calls came after the model"
            self.calls.clear()
            return
        for place, leaf in enumerate(results):
            if self._find(leaf) is None:
                result = Result(len(self.calls), place)
                self._known[id(leaf)] = (weakref.ref(leaf), result)
                if leaf.requires_grad and leaf.numel() == 1 and leaf.is_floating_point():
                    value = leaf.detach()
                    self.last_number = (value if leaf._base is None else value.clone(), End(result, _storage(leaf)))
        self.calls.append(recorded)

    def _reads_known(self, values: Iterable[Any]) -> bool:
        return any(self._find(value) is not None if isinstance(value, torch.Tensor) else isinstance(value, (tuple, list)) and self._reads_known(value) for value in values)

    def _find(self, tensor: torch.Tensor) -> Optional[Known]:
        found = self._known.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def _source(self, tensor: torch.Tensor) -> Source:
        found = self._find(tensor)
        return found if found is not None else Given(tensor, _version(tensor))

    def _unseen(self, tensor: torch.Tensor) -> Optional[str]:
        """What computed a tensor from the outputs without a visible call of torch: a custom autograd.Function or a kernel; None if nothing did."""
        if not tensor.requires_grad or tensor.grad_fn is None:
            return None
        found = self._find(tensor)
        if isinstance(found, Result):  # within a custom Function's forward, results have no graph; the last of them gets one
            return _name_of_node(tensor.grad_fn) if not self.calls[found.call].grad else None
        if found is not None:
            return None
        looked = self._apart.get(id(tensor))
        if looked is None or looked[0]() is not tensor:
            looked = self._apart[id(tensor)] = (weakref.ref(tensor), _name_of_node(tensor.grad_fn) if _leads_to(tensor.grad_fn, self._nodes) else None)
        return looked[1]

    # -- what led to a tensor

    def end(self, tensor: torch.Tensor) -> End:
        return End(self._source(tensor), _storage(tensor), self._unseen(tensor))

    def program(self, ends: Sequence[End], stop: Sequence[End] = ()) -> "Program":
        """The calls that `ends` need, in the order in which they ran, without those that only `stop` needs. Raises NotSeen if a call is missing."""
        if self.ended is not None:
            raise NotSeen(self.ended)
        needed: dict[int, Recorded] = {}
        outputs: set[int] = set()
        wanted: set[int] = set()
        storages = {end.storage for end in ends}
        stops = {end.source for end in stop}

        def want(source: Source) -> None:
            if isinstance(source, Output) and source not in stops:
                outputs.add(source.position)
            elif isinstance(source, Result) and source not in stops:
                wanted.add(source.call)

        for end in ends:
            if end.unseen is not None:
                raise NotSeen(end.unseen)
            want(end.source)
        for index in reversed(range(len(self.calls))):  # a call reads results of earlier ones alone
            recorded = self.calls[index]
            if index in wanted or recorded.writes & storages:
                if recorded.unseen is not None:
                    raise NotSeen(recorded.unseen)
                needed[index] = recorded
                storages |= recorded.reads
                for leaf in recorded.tree.leaves:
                    if isinstance(leaf, (Output, Result)):
                        want(leaf)
        return Program(dict(sorted(needed.items())), list(ends), outputs)


@dataclass
class Program:
    """The calls between the model's outputs and `ends`, for a second run."""

    calls: dict[int, Recorded]
    ends: list[End]
    outputs: set[int]  # positions of the model's outputs that are read

    def __post_init__(self) -> None:
        self._from = {index: called_from(recorded.line) for index, recorded in self.calls.items()}

    def given(self) -> list[Given]:
        """Tensors from elsewhere, each once."""
        found: dict[int, Given] = {}
        for recorded in self.calls.values():
            for leaf in recorded.tree.leaves:
                if isinstance(leaf, Given):
                    found.setdefault(id(leaf.tensor), leaf)
        return list(found.values())

    def run(self, model: torch.nn.Module, outputs: Sequence[torch.Tensor], given: Mapping[int, torch.Tensor], devices: Sequence[torch.device]) -> list[torch.Tensor]:
        """Computes `ends` from other outputs of the model. `given` replaces tensors, by the id of the recorded one."""
        results: dict[int, list[torch.Tensor]] = {}

        def value(leaf: Any) -> Any:
            if isinstance(leaf, Output):
                return outputs[leaf.position]
            if isinstance(leaf, Result):
                return results[leaf.call][leaf.place]
            if isinstance(leaf, Weight):
                return model.get_parameter(leaf.name)
            return given[id(leaf.tensor)] if isinstance(leaf, Given) else leaf

        for index, recorded in self.calls.items():
            args, kwargs = recorded.tree.with_leaves([value(leaf) for leaf in recorded.tree.leaves])
            with _as_it_ran(recorded, devices):
                results[index] = tensor_leaves(self._from[index](recorded.function, args, kwargs))
        return [value(end.source) for end in self.ends]


@contextlib.contextmanager
def _as_it_ran(recorded: Recorded, devices: Sequence[torch.device]) -> Iterator[None]:
    """Enters the modes of a call that differ from the current ones: torch.export would make a region of each mode."""
    with contextlib.ExitStack() as stack:
        if torch.is_grad_enabled() != recorded.grad:
            stack.enter_context(torch.set_grad_enabled(recorded.grad))
        if Autocast.now(devices) != recorded.autocast:
            stack.enter_context(recorded.autocast.again(devices))
        yield


def _ends_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[torch.Tensor], list[Any]]:
    """The tensors of backward(tensors, gradients), with their gradients (None: 1)."""
    def several(value: Any) -> list[Any]:
        return list(value) if isinstance(value, (tuple, list)) else [value]

    tensors = several(args[0] if args else kwargs.get("tensors"))
    gradients = args[1] if len(args) > 1 else kwargs.get("gradient", kwargs.get("grad_tensors"))
    each = several(gradients) if gradients is not None else [None] * len(tensors)
    pairs = [(tensor, gradient) for tensor, gradient in zip(tensors, each) if isinstance(tensor, torch.Tensor)]
    return [tensor for tensor, _ in pairs], [gradient for _, gradient in pairs]


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _name_of_node(node: Any) -> str:
    """The name of an autograd node for a message: "MyGelu (a custom autograd.Function)"."""
    name = str(node.name())
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        place = place_of_backward(node)
        return f"{name.removesuffix('Backward')} (a custom autograd.Function{', ' + place if place else ''})"
    return f"code that calls no function of torch ({name.rstrip('0123456789').removesuffix('Backward')})"


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):  # sparse tensors, tensors of functorch
        return id(tensor)


def _identity(node: Any) -> tuple[str, int]:
    """Identifies an autograd node without a reference to it, which would keep the graph alive."""
    return str(node.name()), int(node._sequence_nr())


def _leads_to(node: Any, targets: set[tuple[str, int]], most: int = 100000) -> bool:
    seen, waiting = {node}, [node]
    while waiting and len(seen) < most:
        node = waiting.pop()
        if _identity(node) in targets:
            return True
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return False


def _is_default_device(mode: Any) -> bool:
    """The mode of torch.set_default_device, which has to be at the bottom."""
    return mode is getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)


_stack: Any = torch.overrides  # its stack of modes has no public form; torch.utils._device keeps itself at the bottom with the same functions


def _modes() -> list[Any]:
    return list(_stack._get_current_function_mode_stack())


def _restack(order: Callable[[list[Any]], list[Any]]) -> None:
    """Sets the order of this thread's torch function modes."""
    modes = [_stack._pop_mode() for _ in _modes()]
    for mode in order(modes[::-1]):
        _stack._push_mode(mode)
