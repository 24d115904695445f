"""catch(): watches a training loop and writes the first step that goes wrong into a folder."""
from __future__ import annotations

import functools
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar, Union, cast

import torch

from . import _again
from ._around import AroundCompiled
from ._between import Between, Watch
from ._capture import loss_in, unwrapped
from ._checks import Failure, History, KeptWeights, Reading, bad_weights, gradients_of, judged, more, on_gpu
from ._distributed import Sharding, sharding_of
from ._export import line_of, raised_in_autograd
from ._folder import Folder, Limits, first_line, rank, ranks, readable, say, text_of
from ._lines import caller
from ._memory import ran_out, say_who_held_it
from ._rerun import Rerun
from ._state import Autocast, Generators
from ._step import Loss, Step
from ._tree import Tree, mapped, tensor_leaves
from ._write import OF_ANOTHER_RANK, write_failure, write_note


_NAN_OF_ANOMALY_MODE = "returned nan values in its"  # what torch.autograd.set_detect_anomaly raises
_writing = False  # a folder is being written: what runs then is not a step of a loop


@dataclass(eq=False)
class Waiting:
    """Calls of the model whose backward is over, and whose numbers have not been read yet."""

    steps: list[Step]
    reading: Reading
    update: int  # the update that comes next
    rates: list[Any]


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _undisturbing(method: _Method) -> _Method:
    """An error of this package must not end a training run: `catch` then stops watching, and says so."""

    @functools.wraps(method)
    def guarded(self: "Catch", *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            self._stop(error)
            return None

    return cast(_Method, guarded)


class Catch:
    """What `retrograd.catch` gives: the folders that were written, and `loss()` for losses that are computed outside of the model."""

    def __init__(self, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], path: Union[str, Path, None], limits: Limits, scaler: Any,
                 step: Optional[Callable[..., Any]] = None):
        self.model = model
        self.inner = unwrapped(model)
        self.optimizer = optimizer
        self.scaler = scaler
        self.limits = limits
        self.target = Path(path).absolute() if path is not None else Path("retrograd-catch").absolute()
        if self.target.exists() and not self.target.is_dir():
            raise NotADirectoryError(f"retrograd.catch writes folders into {self.target}, which is a file")
        self.folders: list[Folder] = []
        self._steps: list[Step] = []
        self._handles: list[Any] = []
        self._queued: list[Step] = []  # calls of the model that the running backward has reached
        self._stopped = False
        self._done_steps = 0  # of the optimizer
        self._versions: dict[int, int] = {}  # of the parameters after the last update
        self._backwards = 0
        self._microbatch = 0
        self._optimizers: dict[int, bool] = {}
        self._copy_inputs = False  # an input was written in place before
        self._sharding: Sharding = sharding_of(self.model)
        self._written_buffers: Optional[set[str]] = None
        self._failures = 0
        self._watch = Watch()
        self._waiting: list[Waiting] = []
        self._weights: Optional[KeptWeights] = None
        self._said_late = False
        self._said_transformed = False
        self._last_optimizer: Optional["weakref.ref[torch.optim.Optimizer]"] = weakref.ref(optimizer) if optimizer is not None else None
        self.history = History()
        self.snapshot: Optional[Path] = None  # of the allocator, where the GPU's memory ran out
        self._whole = step
        self._in_whole = False  # a call of `step` runs, for which all is kept that it changes
        self._found: Optional[Failure] = None  # in it
        self._rerun = Rerun.asked(self.target, model, optimizer, limits)

    # -- for the user

    @property
    def folder(self) -> Optional[Folder]:
        """The first folder that was written, or None."""
        return self.folders[0] if self.folders else None

    def loss(self, loss: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Names the loss, where it is computed outside of the model. Two forms:

        c.loss(function, output, target, ...) calls the function, which is then a part of the folder's graph.
        c.loss(value) names a loss that was computed before.

        What lies between the model's outputs and the loss is a part of the graph too.
        """
        between = self._steps[-1].between if self._steps else None
        if callable(loss) and not isinstance(loss, torch.Tensor):
            if between is None:
                loss = loss(*args, **kwargs)
            else:
                with self._watch.paused():  # the function is one call, not the calls in it
                    loss = between.call(loss, args, kwargs, caller())
        self._record_loss(loss)
        return cast(torch.Tensor, loss)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function that `catch(step=FUNCTION)` was given. Where the step goes wrong, it runs once more from the same weights, optimizer state and generators,
        and is recorded whole, from the forward to the update."""
        if self._whole is None:
            raise TypeError("c.step() calls the function that retrograd.catch(step=FUNCTION) was given, and there is none")
        kept = self._kept_now() if self._wanted() and not _writing and not self._recording_now else None
        if kept is None:
            return self._whole(*args, **kwargs)
        given, index = mapped(_copied, (args, kwargs)), self._done_steps
        self._in_whole, self._found = True, None
        try:
            return self._whole(*args, **kwargs)
        except Exception as error:
            if not ran_out(error):
                self._found = self._found or Failure("exception", text_of(error) + (f" ({line})" if (line := line_of(error)) else ""))
                error.__dict__["__retrograd_seen__"] = True
            raise
        finally:
            self._in_whole = False
            self._check_whole(kept, given, index)

    @_undisturbing
    def _kept_now(self) -> Optional["_again.Kept"]:
        size = _again.Kept.size(self.inner, self._optimizer_now())
        if size <= self.limits.weights_bytes:
            return _again.Kept(self.inner, self._optimizer_now(), self.scaler)
        if not self._said_late:
            self._said_late = True
            say(f"retrograd: weights and optimizer state ({readable(size)}) exceed Limits.weights_bytes ({readable(self.limits.weights_bytes)}): no step can run again.")
        return None

    @_undisturbing
    def _check_whole(self, kept: "_again.Kept", given: Any, index: int) -> None:
        """Looks at what a call of `step` left, and records it where something went wrong."""
        global _writing
        self._settle(wait=True)
        failure = self._found
        if failure is None and (bad := bad_weights(self.inner)):
            failure = Failure("nan_weight", f"the update made a NaN or Inf in {bad[0]}{more(bad)}", bad)
        if failure is None or not self._wanted():
            return
        _writing = True
        self._failures += 1
        after = _again.Kept(self.inner, self._optimizer_now(), self.scaler)
        args, kwargs = given
        function = cast(Callable[..., Any], self._whole)
        try:
            kept.put_back()
            with self._watch.paused():
                folder = write_note(self, index, failure, lambda path: _again.record_whole(path, self.inner, self._optimizer_now(), lambda: function(*args, **kwargs), self.limits, index))
            self._say_written(folder, f"step {index}")
        finally:
            after.put_back()
            _writing = False

    @_undisturbing
    def _record_loss(self, value: Any) -> None:
        if not self._steps or not isinstance(value, torch.Tensor) or value.numel() != 1:
            return
        step = self._steps[-1]
        loss = Loss(value.detach(), step.between.end(value) if step.between is not None else None)
        step.losses.append(loss)
        if value.grad_fn is not None and not value.is_leaf:
            value.grad_fn.register_prehook(lambda gradients: self._take(step, loss, gradients[0]))

    # -- hooks

    def __enter__(self) -> "Catch":
        # On the outermost wrapper: it sees every call, and torch.compile does not see the hooks.
        if self.model.__dict__.get("_compiled_call_impl") is not None:  # model.compile(): it would
            self._handles = [AroundCompiled(self.model, self._before, self._after)]
        else:
            self._handles = [self.model.register_forward_pre_hook(self._before, with_kwargs=True, prepend=True), self.model.register_forward_hook(self._after)]
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        if self._rerun is not None:
            self._rerun.begin()  # its hooks come first: it ends before a step of the loop is counted here
        self._handles += [register_optimizer_step_pre_hook(self._before_update), register_optimizer_step_post_hook(self._after_update)]
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._watch.stop()
        if self._rerun is not None:
            self._rerun.end(error)
        try:
            self._out_of_memory(error)
            self._look_once_more(error, trace)
        finally:
            self._steps.clear()
            self._queued.clear()
            self._waiting.clear()

    @_undisturbing
    def _out_of_memory(self, error: Optional[BaseException]) -> None:
        if error is not None and ran_out(error):
            self.snapshot = say_who_held_it(error, self.target)

    @_undisturbing
    def _look_once_more(self, error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        """When the loop is left: the step that an exception of its backward ended, or one that waits to be checked."""
        if isinstance(error, Exception) and raised_in_autograd(trace) and not ran_out(error):
            self._raised(error)
        else:
            self._check_waiting()
            self._say_what_was_not_seen(error)
        self._settle(wait=True)
        if self._wanted() and self._done_steps > 0 and not self.folders and self._sharding.kind != "fsdp2" and (bad := bad_weights(self.inner)):
            self._fail_without_step(*self._spoilt(self._done_steps, bad, {id(p): p._version for p in self.inner.parameters()}))

    @_undisturbing
    def _raised(self, error: Exception) -> None:
        """An exception that came out of a backward; the loop gets it too."""
        steps = self._queued or self._steps[-1:]
        if steps and not getattr(error, "__retrograd_seen__", False):
            error.__dict__["__retrograd_seen__"] = True
            self._settle(wait=True)
            kind = "nan_gradient" if _NAN_OF_ANOMALY_MODE in str(error) else "exception"
            self._fail(list(steps), Failure(kind, text_of(error) + (f" ({line})" if (line := line_of(error)) else "")))
            self._queued.clear()

    def _around_backward(self, step: Step, run: Callable[[], Any], ends: Sequence[torch.Tensor], gradients: Sequence[Any]) -> Any:
        self._begin_backward(step, ends, gradients)
        try:
            return run()
        except Exception as error:
            if not _writing and not ran_out(error):  # a folder would need memory that is not there
                self._raised(error)
            raise

    @_undisturbing
    def _begin_backward(self, step: Step, ends: Sequence[torch.Tensor], gradients: Sequence[Any]) -> None:
        if not _writing:
            step.begin_backward(ends, gradients, self.scaler is not None)

    @property
    def _recording_now(self) -> bool:
        """The step that this run of the script is for."""
        return self._rerun is not None and self._rerun.is_at(self._done_steps)

    def _watches(self) -> bool:
        """Whether a call of the model that begins now is one of the loop's. Others: validation, torch.compile's tracing, a checkpoint that computes a forward again
        within a backward, and the calls that write a folder."""
        recomputes = bool(self._queued) and torch._C._current_graph_task_id() != -1
        return torch.is_grad_enabled() and self._wanted() and not _writing and not self._recording_now and not torch.compiler.is_compiling() and not recomputes \
            and not self._is_transformed()

    def _is_transformed(self) -> bool:
        """Whether the model runs within torch.func.grad, vjp or vmap."""
        transformed = torch._C._functorch.peek_interpreter_stack() is not None
        if transformed and not self._said_transformed:
            self._said_transformed = True
            say("retrograd: the model runs within a transform of torch.func (grad, vjp, vmap): catch cannot follow it there, and does not watch these calls. "
                "retrograd.record records them.")
        return transformed

    @_undisturbing
    def _before(self, _: torch.nn.Module, args: Any, kwargs: Any) -> None:
        if not self._watches():
            return
        self._check_waiting()
        self._settle()
        self._watch.stop()
        if len(self._steps) > 3:  # calls whose backward has not come, as in validation with gradients
            del self._steps[0]
        tensors = tensor_leaves((args, kwargs))
        copies = {}
        for tensor in tensors:
            size = tensor.numel() * tensor.element_size()
            if size <= self.limits.copy_bytes or (self._copy_inputs and size <= self.limits.keep_bytes):
                copies[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        parameters = list(self.inner.parameters())
        devices = {p.device for p in parameters[:1]} | {tensor.device for tensor in tensors}
        index = self._done_steps if self._optimizers else self._backwards
        self._steps.append(Step(args, kwargs, [(tensor, tensor._version) for tensor in tensors], copies, self._buffers(), [(p, p._version) for p in parameters],
                                Generators.now(devices), Autocast.now(devices), caller(), index, self._microbatch))

    def _buffers(self) -> dict[str, torch.Tensor]:
        """Copies of the buffers that a forward writes (batch norm's statistics): all of them at first, then those that were written."""
        kept = {}
        for name, buffer in self.inner.named_buffers():
            small = buffer.numel() * buffer.element_size() <= self.limits.copy_bytes
            if small and (self._written_buffers is None or name in self._written_buffers):
                kept[name] = buffer.detach().clone()
        return kept

    @_undisturbing
    def _after(self, module: torch.nn.Module, args: Any, output: Any) -> Any:
        if not self._watches() or not self._steps:
            return None
        step = self._steps[-1]
        if self._written_buffers is None:
            now = dict(self.inner.named_buffers())
            self._written_buffers = {name for name, before in step.buffers.items() if name in now and not torch.equal(before, now[name])}
            step.buffers = {name: before for name, before in step.buffers.items() if name in self._written_buffers}
        own = loss_in(output)
        tree = Tree(output)
        leaves = list(tree.leaves)
        outputs: list[torch.Tensor] = []
        position = 0
        for i, leaf in enumerate(leaves):
            if not isinstance(leaf, torch.Tensor):
                continue
            if leaf is own:
                step.own_loss, step.own_loss_position = leaf.detach(), position
            if leaf.requires_grad:
                # An alias, whose gradient is what comes from outside of the model: the model itself may use an output too (logits, for its loss).
                # The hook is on the node: torch.compile would look at one of the tensor.
                if leaf.grad_fn is not None:
                    # Where the loop writes to the alias in place (loss *= 2), the alias gets another node: the output's own says that a backward came.
                    leaf.grad_fn.register_prehook(lambda _: self._reached(step))
                    leaves[i] = leaf.view_as(leaf)
                    leaves[i].grad_fn.register_prehook(self._taker(step, position))
            outputs.append(leaves[i])
            position += 1
        if not position:
            return None
        step.outputs = [weakref.ref(output) for output in outputs]
        step.between = Between(outputs, self.inner.named_parameters(), lambda run, ends, gradients: self._around_backward(step, run, ends, gradients))
        self._watch.start(step.between)
        return tree.with_leaves(leaves)

    def _taker(self, step: Step, position: int) -> Callable[[Sequence[Optional[torch.Tensor]]], None]:
        return lambda gradients: self._take(step, position, gradients[0])

    @_undisturbing
    def _take(self, step: Step, place: Union[int, Loss], gradient: Optional[torch.Tensor]) -> None:
        """Keeps what a backward gives to an output of the model, or to a loss."""
        if _writing or gradient is None or self._stopped:
            return
        if isinstance(place, Loss):
            place.gradient = gradient.detach()
        elif step.program is None:  # else the graph ends behind the outputs
            size = gradient.numel() * gradient.element_size()
            if step.kept_bytes + size <= self.limits.keep_bytes:
                step.kept_bytes += size
                step.cotangents[place] = gradient.detach()
            else:
                step.not_kept += 1
        self._reached(step)

    @_undisturbing
    def _reached(self, step: Step) -> None:
        """A backward has come to a call of the model."""
        if not _writing and not self._stopped and step not in self._queued:
            step.backwards += 1
            self._queued.append(step)
            if len(self._queued) == 1:
                torch.autograd.Variable._execution_engine.queue_callback(self._after_backward)

    @_undisturbing
    def _after_backward(self) -> None:
        if not _writing and not self._sharding.reduces:  # DDP and FSDP2 reduce gradients in callbacks of their own, which may still run
            self._check(self._queued)

    def _belongs(self, optimizer: torch.optim.Optimizer) -> bool:
        known = self._optimizers.get(id(optimizer))
        if known is None:
            if self.optimizer is not None:
                known = optimizer is self.optimizer
            else:
                own = {id(p) for p in self.inner.parameters()}
                known = any(id(p) in own for group in optimizer.param_groups for p in group["params"])
            if known:
                self._optimizers[id(optimizer)] = True
                self._last_optimizer = weakref.ref(optimizer)
        return bool(known)

    @_undisturbing
    def _before_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not _writing and self._belongs(optimizer):
            self._last_optimizer = weakref.ref(optimizer)
            self._watch.stop()
            self._check_waiting(update=True)
            self._before_weights_change()

    @_undisturbing
    def _after_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not _writing and self._belongs(optimizer):
            self._done_steps += 1
            self._microbatch = 0
            self._versions = {id(p): p._version for p in self.inner.parameters()}
            if self._rerun is not None and self._rerun.ends_at(self._done_steps):
                self._stopped = True
            self._watch.stop()
            self._steps.clear()

    # -- checks

    def _wanted(self) -> bool:
        return not self._stopped and self._failures < self.limits.folders

    def _stop(self, error: Exception) -> None:
        if not self._stopped:
            line = line_of(error)
            say(f"retrograd: catch stops watching, the loop goes on: {text_of(error)}" + (f" ({line})" if line else ""))
        self._stopped = True

    def _check_waiting(self, update: bool = False) -> None:
        """Checks a step whose backward is over where that could not be done at once, and a loss for which no backward came."""
        if self._queued:
            self._check(self._queued)
        elif update and self._sharding.reduces and self._wanted():
            self._sharding.agree(False)
        elif update and self._steps:
            self._check(self._steps)  # the outputs are of a kind whose gradients are not seen, or were differentiated by torch.autograd.grad
        elif self._steps and self._steps[-1].backwards == 0 and self._wanted():
            self._check_without_backward(self._steps[-1])

    def _check_without_backward(self, step: Step) -> None:
        """A step whose loop went on, or ended, before the backward, as where it checks the loss itself."""
        followed = "" if step.backward_began else "; no backward followed"
        if step.backward_began or step.take_last_number():
            wrong = next((loss for loss in map(float, step.loss_values) if loss - loss != 0), None)
            failure = Failure("nan_loss", f"the loss is {wrong}{followed}", loss=wrong) if wrong is not None else None
        else:
            failure = Failure("nan_output", f"an output of the model has a NaN{followed}") if step.has_nan_output() else None
        if failure is not None and self._sharding.kind == "fsdp2":  # the other ranks need not be here
            say(f"retrograd: step {step.index}, rank {rank()} of {ranks()}: {failure.message}. Nothing is written: with fully_shard the ranks write together, after a backward.")
        elif failure is not None:
            step.link()
            self._fail([step], failure)

    def _say_what_was_not_seen(self, error: Optional[BaseException]) -> None:
        """When an exception ends the loop between a call of the model and its backward, and nothing was written."""
        step = self._steps[-1] if self._steps else None
        stopped = isinstance(error, Exception) or isinstance(error, SystemExit) and error.code not in (None, 0)
        if stopped and step is not None and step.between is not None and not step.backward_began and not step.loss_values and self._wanted():
            say(f"retrograd: step {step.index}: {type(error).__name__} before a backward. catch saw no loss of this step and no NaN in the model's outputs, and writes nothing. "
                "c.loss(function, output, target) shows it the loss, where c is what `with retrograd.catch(...) as c` gives")

    def _check(self, steps: Sequence[Step]) -> None:
        """Measures what came of a backward through these calls of the model, in the order in which it reached them."""
        steps = sorted(steps, key=self._steps.index) if all(step in self._steps for step in steps) else list(steps)
        self._queued.clear()
        self._backwards += 1
        self._microbatch += 1
        if self._wanted() and steps:
            gradients = gradients_of(self.inner)
            late = self._reads_late()
            losses = [value for step in steps for value in step.loss_values]
            optimizer = self._optimizer_now()
            rates = [group["lr"].detach().clone() if isinstance(group["lr"], torch.Tensor) else float(group["lr"]) for group in optimizer.param_groups if "lr" in group] \
                if optimizer is not None else []
            waiting = Waiting(steps, Reading(list(gradients), list(gradients.values()), losses, late), self._done_steps, rates)
            if late:
                self._waiting.append(waiting)
            else:
                self._judge(waiting, gradients)
        for step in steps:
            if not any(step in waiting.steps for waiting in self._waiting):
                self._release(step)
            for tensor, version in step.versions:
                self._copy_inputs |= tensor._version != version
        self._steps = [step for step in self._steps if step not in steps]

    def _release(self, step: Step) -> None:
        step.cotangents.clear()
        step.kept_bytes = 0

    def _judge(self, waiting: Waiting, gradients: Optional[dict[str, torch.Tensor]] = None) -> None:
        failure, loss, norm = judged(waiting.reading, self.scaler, gradients)
        failure = self._with_hint(failure, waiting)
        failure = failure or self.history.spike(loss, norm, self.limits.spike)
        first = waiting.steps[0]
        self.history.add(first.index, first.microbatch, loss, norm, waiting.rates)
        if self._rerun is not None:
            self._rerun.compare(self.history.steps[-1])
        if self._sharding.agree(failure is not None):
            self._fail(waiting.steps, failure or Failure("nan_gradient", "another rank has a NaN or Inf in its gradients; this rank has none: look at the other ranks"),
                       waiting.update)

    def _with_hint(self, failure: Optional[Failure], waiting: Waiting) -> Optional[Failure]:
        """A GradScaler's first scales overflow float16 in many loops that are sound."""
        halves = any(dtype == torch.float16 for step in waiting.steps for _, dtype in step.autocast.on)
        if failure is None or failure.kind not in ("nan_gradient", "nan_norm") or self.scaler is not None or not halves:
            return failure
        return replace(failure, message=failure.message + ". If a GradScaler scales this loss, give it to catch (scaler=scaler): it then lets infinite gradients "
                                                          "pass for which the scaler lowers its scale")

    # -- numbers that are read late

    def _reads_late(self) -> bool:
        """Whether numbers are read after the update, so that nothing waits for the GPU: where the weights from before it can be kept."""
        if self._sharding.kind == "fsdp2" or not on_gpu(self.inner):
            return False
        size = KeptWeights.size(list(self.inner.parameters()))
        late = size <= self.limits.weights_bytes
        if not self._said_late:
            self._said_late = True
            say(f"retrograd: catch keeps a copy of the weights on the GPU ({readable(size)}), so that no update waits for its check. Limits(weights_bytes=0) leaves it out." if late else
                f"retrograd: each update waits for the check before it: a copy of the weights ({readable(size)}) exceeds Limits.weights_bytes ({readable(self.limits.weights_bytes)}).")
        return late

    def _settle(self, wait: bool = False) -> None:
        """Judges what has been read by now; with `wait`, all."""
        while self._waiting and (wait or self._waiting[0].reading.is_there):
            waiting = self._waiting.pop(0)
            if self._wanted():
                self._judge(waiting)
            for step in waiting.steps:
                self._release(step)

    def _before_weights_change(self) -> None:
        """Keeps the weights for what is not yet read. What waits since the update before has been computed long ago, so that this waits for no work of this step."""
        while self._waiting and self._waiting[0].update < self._done_steps:
            waiting = self._waiting.pop(0)
            if self._wanted():
                self._judge(waiting)
            for step in waiting.steps:
                self._release(step)
        if self._waiting:
            parameters = list(self.inner.parameters())
            if self._weights is None or not self._weights.fit(parameters):
                self._weights = KeptWeights(parameters)
            self._weights.keep(self._done_steps)

    def _optimizer_now(self) -> Optional[torch.optim.Optimizer]:
        return self._last_optimizer() if self._last_optimizer is not None else None

    # -- a failure

    def _fail(self, steps: Sequence[Step], failure: Failure, update: Optional[int] = None) -> None:
        """Writes a folder, with the weights from before `update` where the model has been updated since."""
        global _writing
        if _writing or not self._wanted():
            return
        if self._in_whole:
            self._found = self._found or failure
            return
        kept = self._weights if update is not None and update < self._done_steps and self._weights is not None and self._weights.update == update else None
        step = steps[0]
        if kept is not None:
            kept.exchange()
        spoilt = self._spoilt_before(step) if failure.has_root else None
        if spoilt is not None:
            if kept is not None:
                kept.exchange()
            return self._fail_without_step(*spoilt)
        _writing = True
        self._failures += 1
        try:
            with self._watch.paused():
                folder, step = write_failure(self, steps, failure, kept is not None)
            counted = step.microbatch > 0 or self.history.accumulates
            self._say_written(folder, f"step {step.index}" + (f", microbatch {step.microbatch}" if counted else ""))
        except Exception as error:  # the training loop is not disturbed
            say(f"retrograd: step {step.index}: {first_line(failure.message)}. It could not be saved: {first_line(text_of(error))}")
        finally:
            if kept is not None:
                kept.exchange()
            _writing = False

    def _spoilt_before(self, step: Step) -> Optional[tuple[int, Failure]]:
        """Whether the weights were not finite when the first forward of a step began: the step in which they became so, which is the one before where its update did it."""
        if step.index == 0 or step.microbatch or self.folders or self._sharding.kind == "fsdp2":
            return None
        bad = bad_weights(self.inner)
        return self._spoilt(step.index, bad, {id(p): version for p, version in step.parameter_versions}) if bad else None

    def _spoilt(self, index: int, bad: Sequence[str], versions: Mapping[int, int]) -> tuple[int, Failure]:
        parameters = dict(self.inner.named_parameters())
        after = self._versions
        if any(after.get(id(parameters[name])) != versions.get(id(parameters[name])) for name in bad):
            return index, Failure("nan_weight", f"before the forward, code of the loop wrote a NaN or Inf into {bad[0]}{more(bad)}", bad)
        return index - 1, Failure("nan_weight", f"the update made a NaN or Inf in {bad[0]}{more(bad)}", bad)

    def _fail_without_step(self, index: int, failure: Failure) -> None:
        """Nothing is left of what made the weights so: the script can run again and record it."""
        self._failures += 1
        self._say_written(write_note(self, index, failure), f"step {index}")

    def _say_written(self, folder: Folder, where: str) -> None:
        self.folders.append(folder)
        manifest = folder.manifest
        recording = manifest.get("recording")
        lacks = recording["lacks"] if recording is not None else manifest["cannot_replay"]
        lines = [f"retrograd: {where}{f', rank {rank()} of {ranks()}' if ranks() > 1 else ''}: {first_line(manifest['failure']['message'])}."]
        if "open" in manifest:
            lines.append(f"  Written: {folder} ({readable(sum(file.stat().st_size for file in folder.path.rglob('*') if file.is_file()))}). {manifest['inside']}")
        for line in manifest["cannot_replay"]:
            if not line.endswith(OF_ANOTHER_RANK):  # the message says it
                lines.append(f"  Cannot be replayed: {line}." if line in lacks else f"  In the recording, not in the graph: {line}.")
        if recording is not None and "export_failed" in manifest:
            lines.append(f"  Recorded, as torch.export cannot follow the step: {manifest['export_failed']}.")
        if manifest.get("outside", "open" not in manifest):
            lines.append(f"  This runs the script again and records step {manifest['step']} as it runs, with its update:\n    {_again.command(manifest['step'])}")
        if manifest["graphs"] or recording is not None:
            at_root = manifest["open"]["at"] == "root"
            lines.append(f"  Open it{' at the op that made the first NaN or Inf' if at_root else ''}:\n    {folder.command}\n  In a terminal:\n{folder.headless()}")
        say("\n".join(lines))


def _copied(leaf: Any) -> Any:
    return leaf.detach().clone().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf


def catch(model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer] = None, *, path: Union[str, Path, None] = None, limits: Limits = Limits(),
          scaler: Any = None, step: Optional[Callable[..., Any]] = None) -> Catch:
    """Watches a training loop: `with retrograd.catch(model, optimizer) as c: ...`.

    The first step with a NaN or Inf in the loss, in a gradient or in the norm of all gradients, with a spike (Limits.spike), or with an exception in backward, is
    written into a folder: graph, weights from before the step's update, inputs, gradients, random generators, numbers of the last steps. The command that opens the
    folder is printed. The loop goes on as it would without.

    optimizer: whose steps are counted (default: any that has parameters of the model).
    path: where folders are written (default: retrograd-catch); ranks write apart.
    scaler: the GradScaler of float16 training. Infinite gradients for which it lowers its scale are then not an error.
    step: a function that makes one step of the loop, which then calls c.step(...). A step that goes wrong runs once more and is recorded whole, with clipping and update;
        for that, weights and optimizer state are copied before each step (Limits.weights_bytes).

    Without it, what catch can run again is the model, the loss and the backward. Where something else made the NaN or Inf, as an update of the optimizer, it prints the
    command that runs the script again with RETROGRAD_RECORD=STEP: `catch` then records that step as it runs.
    """
    return Catch(model, optimizer, path, limits, scaler, step)

