"""record(): writes training steps as they run, op by op, so that they can be run again bit for bit."""
from __future__ import annotations

import contextlib
import json
import os
import platform
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

import torch
from torch.nn.parameter import is_lazy

from ._eager import eagerly
from ._folder import Limits, first_line, made, quoted, rank, ranks, readable, say, text_of
from ._page import embedded
from ._recorder import Recorder
from ._recorder_state import named
from ._stream import FORMAT, VERSION, Stream

NOTICE = "This recording holds the batch, weights and lines of the script. Share it only with people who may see all of them."


class Recording:
    """What `record` returns: a context manager."""

    def __init__(self, path: Path, model: Optional[torch.nn.Module], optimizer: Any, steps: Optional[Iterable[int]], limits: Limits, source: bool, update: int = 0,
                 quiet: bool = False):
        """update: number of the first update; quiet: nothing is printed."""
        self.path = path
        self.model = model
        self.optimizers: list[torch.optim.Optimizer] = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer] if optimizer is not None else []
        self.limits = limits
        self.ops = 0
        self.notes: list[str] = []
        self.straightens: set[str] = set()
        self._source = source
        self._steps = set(steps) if steps is not None else None
        self._update = update
        self._say: Callable[[str], None] = (lambda _: None) if quiet else say
        self._updates: list[int] = []
        self._without: set[str] = set()  # parameters that had no gradient at an update, and those that had one at some
        self._with: set[str] = set()
        self._handles: list[Any] = []
        self._mode: Optional[Recorder] = None
        self._stance: Any = None
        self._stream: Optional[Stream] = None
        self._raised: dict[str, Any] = {}
        self._shown: Optional[str] = None  # in a notebook

    def __enter__(self) -> "Recording":
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._handles = [register_optimizer_step_pre_hook(self._before_update), register_optimizer_step_post_hook(self._after_update)]
        if self._wanted():
            try:
                self._begin()
            except Exception as error:
                self._failed(error)
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._mode is not None:
            self._end(error)
        elif self._stream is None:
            self._say(f"retrograd: nothing was recorded: the loop made {self._update} updates" + (f", and {sorted(self._steps)} was asked for" if self._steps else ""))

    @property
    def answer(self) -> Optional[str]:
        """Why the exception that ended the recording was raised, if known."""
        return self._raised.get("answer")

    def _repr_html_(self) -> str:
        """The page of `retrograd report`, in a notebook."""
        if self._mode is not None or self._stream is None:
            return "<p>retrograd: " + ("recording" if self._mode is not None else "nothing was recorded") + "</p>"
        if self._shown is None:
            self._shown = embedded(self.path, [f"recorded {self.ops} ops in {self.path}", *self.notes])
        return self._shown

    def count(self) -> None:
        """One more op."""
        self.ops += 1
        if not self._updates or self._updates[-1] != self._update:
            self._updates.append(self._update)

    def _wanted(self) -> bool:
        return self._steps is None or self._update in self._steps

    # -- beginning and end

    def _failed(self, error: Exception) -> None:
        """Ends the recording after an error of the recorder or the disk, which must not end the training run."""
        self._steps = set()
        if self._mode is not None:
            self._mode.fail(error)
        else:
            self._say(f"retrograd: nothing can be recorded: {first_line(text_of(error))}")

    def _begin(self) -> None:
        if self._stream is None:
            self.path = _free(self.path)
            self.path.mkdir(parents=True, mode=0o700)
            os.chmod(self.path, 0o700)
            self._stream = Stream(self.path, self._source)
            size = _size_of(self.model, self.optimizers)
            self._say(f"retrograd: recording into {quoted(self.path)}: about {readable(size)} of weights and optimizer state, the batch" + (", and lines of your script" if self._source else "") + ".")
            self._mode = Recorder(self, self._stream)
        assert self._mode is not None
        self._mode.begin_step(self._update)
        self._write_manifest(False, None)
        if not self._mode.on:
            self._stance = eagerly()
            self._stance.__enter__()
            self._mode.start()

    def _pause(self) -> None:
        if self._mode is not None and self._mode.on:
            self._mode.stop()
            self._restore_stance()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What runs within is not recorded."""
        if self._mode is not None and self._mode.on:
            self._mode.stop()
            try:
                yield
            finally:
                self._mode.start()
        else:
            yield

    def _restore_stance(self) -> None:
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None

    def _end(self, error: Optional[BaseException]) -> None:
        assert self._mode is not None and self._stream is not None
        self._pause()
        try:
            if error is not None:
                self._raised = self._why(error)
            try:
                self._mode.finish(text_of(error) if error is not None else None)
            except OSError as failed:  # the disk is full: the loop goes on
                self._mode.fail(failed)
                self._write_manifest(False, error)
            else:
                self._write_manifest(True, error)
        except OSError:  # the manifest from the beginning stays
            pass
        finally:
            self._mode = None
        self._say(f"retrograd: recorded {self.ops} ops, {readable(self._stream.written)}, in {quoted(self.path)}.")
        if self.answer is not None:
            self._say(f"  It raised {self._raised['type']}: {self.answer}.")
        for note in self.notes:
            self._say(f"  {note}")

    def _why(self, error: BaseException) -> dict[str, Any]:
        assert self._mode is not None
        try:
            return self._mode.why(error, self._source)
        except Exception as own:
            return {"type": type(error).__name__, "message": text_of(error), "frames": [], "unanswered": text_of(own)}

    def _write_manifest(self, complete: bool, error: Optional[BaseException]) -> None:
        assert self._mode is not None
        links = self._mode.links
        manifest = {
            "format": FORMAT, "version": VERSION, "made": made(), "rank": rank(), "ranks": ranks(), "complete": complete, "updates": self._updates, "ops": self.ops,
            "parameters": [{"name": name, "requires_grad": p.requires_grad} for name, p in self.model.named_parameters()] if self.model is not None else [],
            "optimizers": list(self._mode.members.values()),
            "optimized": sorted({*self._mode.optimized(), *self._with, *self._without}), "without_gradient": sorted(self._without - self._with),
            "device": "cuda" if self._mode.on_gpu else "cpu", "settings": _settings(), "compiled": "functions of torch.compile ran eagerly",
            "links": {"linked": links.linked, "ambiguous": links.ambiguous, "unlinked": links.unlinked, "without": dict(sorted(links.without.items()))},
            "straightens": sorted(self.straightens), "notes": self.notes, "notice": NOTICE,
        } | ({"error": first_line(text_of(error)), "raised": self._raised} if error is not None else {})
        temporary = self.path / "retrograd.json.new"
        temporary.write_text(json.dumps(manifest, indent=1, allow_nan=False) + "\n")
        os.replace(temporary, self.path / "retrograd.json")

    # -- the loop

    def _belongs(self, optimizer: torch.optim.Optimizer) -> bool:
        return not self.optimizers or any(one is optimizer for one in self.optimizers)

    def _before_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if self._mode is not None and self._mode.on:
            self._mode.where.in_optimizer += 1
            try:
                self._mode.name_gradients(optimizer, self.model)
            except Exception as error:
                self._failed(error)

    def _after_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if self._mode is not None and self._mode.on:
            self._mode.where.in_optimizer -= 1
        try:
            self._updated(optimizer)
        except Exception as error:
            self._failed(error)

    def _updated(self, optimizer: torch.optim.Optimizer) -> None:
        if self._mode is not None and self._mode.on:
            self._mode.name_states(optimizer, self.model)
            for parameter, name in named(optimizer, self.model):
                if parameter.requires_grad:
                    (self._with if parameter.grad is not None else self._without).add(name)
        if not self._belongs(optimizer) or self.optimizers and optimizer is not self.optimizers[-1]:
            return
        self._update += 1
        if self._wanted():
            self._begin()
        else:
            self._pause()


def _size_of(model: Optional[torch.nn.Module], optimizers: Sequence[torch.optim.Optimizer]) -> int:
    """Bytes of weights, gradients and optimizer states that the recording will hold."""
    tensors: list[Any] = [*model.parameters(), *model.buffers()] if model is not None else []
    for optimizer in optimizers:
        tensors += [p for group in optimizer.param_groups for p in group["params"]]
        tensors += [value for state in optimizer.state.values() for value in state.values()]
    tensors += [tensor.grad for tensor in tensors if isinstance(tensor, torch.nn.Parameter) and not is_lazy(tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, torch.Tensor) and not is_lazy(tensor)]
    return sum({id(tensor): tensor.numel() * tensor.element_size() for tensor in there}.values())


_backends: Any = torch.backends  # parts of it have no types


def _settings() -> dict[str, Any]:
    """Settings on which results depend."""
    return {"cpu": torch.backends.cpu.get_cpu_capability(), "machine": platform.machine(), "threads": torch.get_num_threads(),
            "deterministic": torch.are_deterministic_algorithms_enabled(), "matmul_precision": torch.get_float32_matmul_precision(),
            "mkldnn": bool(_backends.mkldnn.is_available())} | ({"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": _backends.cudnn.version()}
                                                             if torch.cuda.is_available() else {})


def _free(path: Path) -> Path:
    found, n = path, 1
    while found.exists():
        n += 1
        found = path.parent / f"{path.name}-{n}"
    return found


def record(path: Union[str, Path], function: Optional[Callable[..., Any]] = None, *args: Any, model: Optional[torch.nn.Module] = None, optimizer: Any = None,
           steps: Union[int, Iterable[int], None] = None, limits: Limits = Limits(), source: bool = True, **kwargs: Any) -> Any:
    """Records training steps op by op: forward, loss, backward, clipping, optimizer, as they run.

        with retrograd.record("folder", model=model, optimizer=optimizer): ...     # any code, any number of steps
        retrograd.record("folder", function, *args, model=model)                   # one call; returns what it returns

    The loop's results stay the same, bit for bit, and its exceptions pass through. Functions of torch.compile run eagerly meanwhile.

    path: a new folder; a number is added if the name is taken. Each rank writes a folder of its own within it.
    model, optimizer: give tensors their names; steps count updates of the (last) optimizer.
    steps: the updates to record in a loop, from 0: 7, or range(7, 9). Without it, everything.
    limits: folder_bytes and ops. source=False leaves the text of code lines out.
    """
    target = Path(path).absolute()
    if ranks() > 1:
        target = target / f"rank{rank()}"
    recording = Recording(target, model, optimizer, [steps] if isinstance(steps, int) else steps, limits, source)
    if function is None:
        return recording
    with recording:
        return function(*args, **kwargs)
