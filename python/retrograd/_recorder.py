"""The mode that sees every op below autograd."""
from __future__ import annotations

import functools
import threading
from typing import Any, Callable, Mapping, Optional, Sequence

import torch
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from ._aside import Aside
from ._called import as_called
from ._folder import first_line, text_of
from ._raised import Ops, Raised
from ._recorded_op import Op
from ._recorder_state import Recorded, RecorderState
from ._stream import Stream
from ._where import function_name

_OWN_DISPATCH = torch._C._disabled_torch_dispatch_impl


class Recorder(RecorderState, TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every op below autograd and writes it."""

    supports_higher_order_operators = True

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Dynamo, which torch.cond and its like call, leaves a frame alone while a mode of another sort is on, and then branches lose gradients."""
        return True

    def __init__(self, recording: Recorded, stream: Stream):
        TorchDispatchMode.__init__(self)  # type: ignore[no-untyped-call]
        RecorderState.__init__(self, recording, stream)
        self.on = False
        self._lock = threading.RLock()
        self._hooks: list[Any] = []
        self.raised = Raised()
        self._aside = Aside(self, self)

    def start(self) -> None:
        from torch.nn.modules import module as modules

        self.on = True
        self._hooks = [modules.register_module_forward_pre_hook(self.where.enter_module), modules.register_module_forward_hook(self.where.leave_module, always_call=True)]
        self.links.begin(self.where.thread())
        self._hooks += [Watched("numpy", self._gives), Watched("contiguous", self._straightens)]
        self._aside.start()
        self.__enter__()  # type: ignore[no-untyped-call]

    def _gives(self, tensor: torch.Tensor) -> None:
        if self.on and tensor.device.type == "cpu" and tensor.layout == torch.strided:
            with self._lock:
                self.is_foreign(tensor.untyped_storage(), self.stream.stack(self.where.now().frames))

    def _straightens(self, tensor: torch.Tensor) -> None:
        """A custom Function's backward that asks for contiguous memory depends on no layout, though no op shows it where the memory is contiguous already."""
        node = torch._C._current_autograd_node() if self.on else None
        name = function_name(getattr(type(node), "_forward_cls", None))
        if name is not None:
            self.recording.straightens.add(name)

    def stop(self) -> None:
        self.on = False
        for hook in self._hooks:
            hook.remove()
        self._aside.stop()
        take_off(self)

    def why(self, error: BaseException, source: bool) -> dict[str, Any]:
        """The manifest's entry for the exception that ends the recording."""
        self.stream.flush()

        def storage(one: Any) -> Optional[int]:
            memory = self.memory_of(one)
            return memory.id if memory is not None else None

        return self.raised.manifest(error, lambda: Ops(self.stream.path), storage, lambda node: self.links.forward(node, self.recording.ops, frozenset()), self.recording.model,
                                    self.repeats.ops(), source)

    def finish(self, error: Optional[str]) -> None:
        with self._lock:
            self.end(error)

    def __torch_dispatch__(self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None) -> Any:
        kwargs = kwargs or {}
        if _is_abstract():
            return function(*args, **kwargs)
        if any(getattr(kind, "__torch_dispatch__", _OWN_DISPATCH) is not _OWN_DISPATCH for kind in types):
            return NotImplemented  # a subclass (DTensor, FakeTensor): what it does within is seen
        if not self.on or self.full or getattr(function, "namespace", "") in ("profiler", "prim"):
            return function(*args, **kwargs)
        op = self.begin(function, args, kwargs)
        if op is None:
            return function(*args, **kwargs)
        try:
            with as_called(function):
                result = function(*args, **kwargs)
        except Exception as error:
            with self._lock:
                op.raised(error)
            raise
        self.ended(op, result)
        return result

    def begin(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Optional[Op]:
        """Before an op, or a node that runs whole; None after an error of the recorder."""
        with self._lock:
            try:
                return Op(self, function, args, kwargs) if not self.full else None
            except Exception as error:
                self.fail(error)
                return None

    def ended(self, op: Op, made: Any) -> None:
        with self._lock:
            try:
                op.done(made)
            except Exception as error:
                self.fail(error)

    def fail(self, error: Exception) -> None:
        """Ends the recording after an error of the recorder, which must not end the training run."""
        self.full = True
        self.note(f"the recording ends at op {self.recording.ops}: {first_line(text_of(error))}")


class Watched:
    """Calls `seen` with each tensor of which a method of torch.Tensor is called, until it is removed."""

    def __init__(self, method: str, seen: Callable[[torch.Tensor], None]):
        self._on, self._method = True, method
        own = self._own = getattr(torch.Tensor, method)

        @functools.wraps(own)
        def called(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if self._on:
                seen(tensor)
            return own(tensor, *args, **kwargs)

        self._called = called
        setattr(torch.Tensor, method, called)

    def remove(self) -> None:
        self._on = False
        if getattr(torch.Tensor, self._method) is self._called:  # else another one calls it, and it does nothing
            setattr(torch.Tensor, self._method, self._own)


def _is_abstract() -> bool:
    """Whether ops run on shapes alone now, as when DTensor works out a layout or a graph is traced: these modes come after this one."""
    keys = torch._C._TorchDispatchModeKey
    return any(torch._C._get_dispatch_mode(key) is not None for key in (keys.FAKE, keys.PROXY, keys.FUNCTIONAL))


def take_off(mode: TorchDispatchMode) -> None:
    """Takes a mode from the stack, also from below others."""
    if _python_dispatch._get_current_dispatch_mode() is mode:
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        return
    above = []
    while (top := _python_dispatch._get_current_dispatch_mode()) is not None and top is not mode:
        above.append(_python_dispatch._pop_mode())
    if top is mode:
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
    for one in reversed(above):
        _python_dispatch._push_mode(one)
