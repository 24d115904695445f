"""catch(): watches a training loop and writes the first step that goes wrong into a folder."""
from __future__ import annotations

import functools
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Optional, Sequence, TypeVar, Union, cast

import torch

from ._again import Kept
from ._around import AroundCompiled
from ._between import Between
from ._capture import loss_in
from ._checks import Failure, Scale, bad_weights
from ._export import line_of, raised_in_autograd
from ._failures import Failures, is_writing, spoilt_by_update
from ._folder import Folder, Limits, rank, ranks, readable, say, text_of
from ._inputs import Inputs
from ._judge import Judge
from ._lines import caller
from ._loop import Loop
from ._memory import ran_out, say_who_held_it
from ._rerun import Rerun
from ._step import Loss, Step
from ._tree import Tree, mapped

_NAN_OF_ANOMALY_MODE = "returned nan values in its"  # what torch.autograd.set_detect_anomaly raises

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
    """What `retrograd.catch` returns: the folders that were written, and `loss()` to name a loss that is computed outside of the model."""

    def __init__(self, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], path: Union[str, Path, None], limits: Limits, scaler: Any,
                 step: Optional[Callable[..., Any]] = None):
        self._loop = loop = Loop(model, optimizer, path, limits, scaler)
        self._whole = step
        self._rerun = Rerun.asked(loop.target, model, optimizer, limits)
        self._failures = Failures(loop)
        self._judge = Judge(loop, self._failures, self._rerun)
        self._scale = self._judge.scale = Scale(scaler, self._scaled) if scaler is not None and getattr(scaler, "is_enabled", lambda: True)() else None
        self._inputs = Inputs(loop)
        self._handles: list[Any] = []
        self._steps: list[Step] = []
        self._queued: list[Step] = []  # calls of the model that the running backward has reached
        self.model = model
        self.folders = loop.folders
        self.history = loop.history
        self.snapshot: Optional[Path] = None  # of the allocator, where the GPU's memory ran out

    # -- for the user

    @property
    def folder(self) -> Optional[Folder]:
        """The first folder that was written, or None."""
        return self.folders[0] if self.folders else None

    def loss(self, loss: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Names a loss that is computed outside of the model. Two forms:

        c.loss(function, output, target, ...) calls the function, which is then a part of the folder's graph.
        c.loss(value) names a loss that was computed before.

        Everything between the model's outputs and the loss is part of the graph, too.
        """
        between = self._steps[-1].between if self._steps else None
        if callable(loss) and not isinstance(loss, torch.Tensor):
            if between is None:
                loss = loss(*args, **kwargs)
            else:
                with self._loop.watch.paused():  # the function is one call, not the calls in it
                    loss = between.call(loss, args, kwargs, caller())
        self._record_loss(loss)
        return cast(torch.Tensor, loss)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function that `catch(step=FUNCTION)` was given. If the step goes wrong, it runs a second time from the same weights, optimizer state and generators,
        and is recorded whole, from the forward to the update."""
        function = self._whole
        if function is None:
            raise TypeError("c.step() calls the function that retrograd.catch(step=FUNCTION) was given, and there is none")
        kept = self._kept_now() if self._loop.wanted and not is_writing() and not self._recording_now else None
        if kept is None:
            return function(*args, **kwargs)
        (args_now, kwargs_now), index = mapped(_copied, (args, kwargs)), self._loop.updates
        found: list[Failure] = []
        try:
            with self._failures.held() as found:
                return function(*args, **kwargs)
        except Exception as error:
            if not ran_out(error):
                found.append(Failure("exception", _with_line(error)))
                error.__dict__["__retrograd_seen__"] = True
            raise
        finally:
            self._check_whole(kept, lambda: function(*args_now, **kwargs_now), index, found[0] if found else None)

    @_undisturbing
    def _kept_now(self) -> Optional[Kept]:
        loop = self._loop
        size, most = Kept.size(loop.inner, loop.optimizer), loop.limits.weights_bytes
        if size <= most:
            return Kept(loop.inner, loop.optimizer, loop.scaler)
        loop.say_once("copies", f"retrograd: weights and optimizer state ({readable(size)}) exceed Limits.weights_bytes ({readable(most)}): no step can run again.")
        return None

    @_undisturbing
    def _check_whole(self, kept: Kept, step: Callable[[], Any], index: int, failure: Optional[Failure]) -> None:
        """Checks the result of a call of `step`, and records it if something went wrong."""
        self._judge.settle(wait=True)
        if failure is None and (bad := bad_weights(self._loop.inner)):
            failure = spoilt_by_update(bad)
        if failure is not None and self._loop.wanted:
            self._failures.write_whole(failure, index, kept, step)

    @_undisturbing
    def _record_loss(self, value: Any, scaled: bool = False) -> None:
        if not self._steps or not isinstance(value, torch.Tensor) or value.numel() != 1:
            return
        step = self._steps[-1]
        loss = Loss(value.detach(), step.between.end(value) if step.between is not None else None, scaled=scaled)
        step.losses.append(loss)
        if value.grad_fn is not None and not value.is_leaf:
            value.grad_fn.register_prehook(lambda gradients: self._take(step, loss, gradients[0]))

    def _scaled(self, value: torch.Tensor) -> None:
        """Checks a loss before the scaler scales it, unless the loop has named a loss."""
        if self._loop.wanted and self._steps and all(loss.scaled for loss in self._steps[-1].losses):
            with self._loop.watch.paused():
                self._record_loss(value, scaled=True)

    # -- hooks

    def __enter__(self) -> "Catch":
        # On the outermost wrapper: it sees every call, and torch.compile does not see the hooks.
        if self.model.__dict__.get("_compiled_call_impl") is not None:  # model.compile(): it would
            self._handles = [AroundCompiled(self.model, self._before, self._after)]
        else:
            self._handles = [self.model.register_forward_pre_hook(self._before, with_kwargs=True, prepend=True), self.model.register_forward_hook(self._after)]
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        if self._scale is not None:
            self._scale.start()
        if self._rerun is not None:
            self._rerun.begin()  # its hooks come first: it ends before a step of the loop is counted here
        self._handles += [register_optimizer_step_pre_hook(self._before_update), register_optimizer_step_post_hook(self._after_update)]
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._scale is not None:
            self._scale.stop()
        self._loop.watch.stop()
        if self._rerun is not None:
            self._rerun.end(error)
        try:
            self._out_of_memory(error)
            self._look_once_more(error, trace)
        finally:
            self._steps.clear()
            self._queued.clear()
            self._judge.forget()

    @_undisturbing
    def _out_of_memory(self, error: Optional[BaseException]) -> None:
        if error is not None and ran_out(error):
            self.snapshot = say_who_held_it(error, self._loop.target)

    @_undisturbing
    def _look_once_more(self, error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        """At the end of the loop: checks a step that an exception in backward ended, or one that still waits."""
        if isinstance(error, Exception) and raised_in_autograd(trace) and not ran_out(error):
            self._raised(error)
        else:
            self._check_waiting()
            self._say_what_was_not_seen(error)
        self._judge.settle(wait=True)
        self._failures.look_at_weights()

    @_undisturbing
    def _raised(self, error: Exception) -> None:
        """Handles an exception of a backward; the loop gets it too."""
        steps = self._queued or self._steps[-1:]
        if steps and not getattr(error, "__retrograd_seen__", False):
            error.__dict__["__retrograd_seen__"] = True
            self._judge.settle(wait=True)
            kind = "nan_gradient" if _NAN_OF_ANOMALY_MODE in str(error) else "exception"
            self._failures.write(list(steps), Failure(kind, _with_line(error)))
            self._queued.clear()

    def _around_backward(self, step: Step, run: Callable[[], Any], ends: Sequence[torch.Tensor], gradients: Sequence[Any]) -> Any:
        self._begin_backward(step, ends, gradients)
        try:
            return run()
        except Exception as error:
            if not is_writing() and not ran_out(error):  # a folder would need memory that is not there
                self._raised(error)
            raise

    @_undisturbing
    def _begin_backward(self, step: Step, ends: Sequence[torch.Tensor], gradients: Sequence[Any]) -> None:
        if not is_writing():
            step.begin_backward(ends, gradients, self._scale is not None)

    @property
    def _recording_now(self) -> bool:
        """Whether this run of the script records the current step (RETROGRAD_RECORD)."""
        return self._rerun is not None and self._rerun.is_at(self._loop.updates)

    def _watches(self) -> bool:
        """Whether a call of the model that begins now is one of the loop's. Others: validation, torch.compile's tracing, a checkpoint that computes a forward again
        within a backward, and the calls that write a folder."""
        recomputes = bool(self._queued) and torch._C._current_graph_task_id() != -1
        return torch.is_grad_enabled() and self._loop.wanted and not is_writing() and not self._recording_now and not torch.compiler.is_compiling() and not recomputes \
            and not self._is_transformed()

    def _is_transformed(self) -> bool:
        """Whether the model runs within torch.func.grad, vjp or vmap."""
        transformed = torch._C._functorch.peek_interpreter_stack() is not None
        if transformed:
            self._loop.say_once("transform", "retrograd: the model runs within a transform of torch.func (grad, vjp, vmap): catch cannot follow it there, "
                                             "and does not watch these calls. retrograd.record records them.")
        return transformed

    @_undisturbing
    def _before(self, _: torch.nn.Module, args: Any, kwargs: Any) -> None:
        if not self._watches():
            return
        self._check_waiting()
        self._judge.settle()
        self._loop.watch.stop()
        if len(self._steps) > 3:  # calls whose backward has not come, as in validation with gradients
            del self._steps[0]
        self._steps.append(self._inputs.step(args, kwargs))

    @_undisturbing
    def _after(self, module: torch.nn.Module, args: Any, output: Any) -> Any:
        if not self._watches() or not self._steps:
            return None
        step = self._steps[-1]
        self._inputs.forward_ended(step)
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
                    leaves[i].grad_fn.register_prehook(lambda gradients, at=position: self._take(step, at, gradients[0]))
            outputs.append(leaves[i])
            position += 1
        if not position:
            return None
        step.outputs = [weakref.ref(output) for output in outputs]
        step.between = Between(outputs, self._loop.inner.named_parameters(), lambda run, ends, gradients: self._around_backward(step, run, ends, gradients))
        self._loop.watch.start(step.between)
        return tree.with_leaves(leaves)

    @_undisturbing
    def _take(self, step: Step, place: Union[int, Loss], gradient: Optional[torch.Tensor]) -> None:
        """Keeps the gradient that a backward gives to an output of the model, or to a loss."""
        if is_writing() or gradient is None or self._loop.stopped:
            return
        if isinstance(place, Loss):
            place.gradient = gradient.detach()
        elif step.program is None:  # else the graph ends behind the outputs
            size = gradient.numel() * gradient.element_size()
            if step.kept_bytes + size <= self._loop.limits.keep_bytes:
                step.kept_bytes += size
                step.cotangents[place] = gradient.detach()
            else:
                step.not_kept += 1
        self._reached(step)

    @_undisturbing
    def _reached(self, step: Step) -> None:
        """A backward has reached a call of the model."""
        if not is_writing() and not self._loop.stopped and step not in self._queued:
            step.backwards += 1
            self._queued.append(step)
            if len(self._queued) == 1:
                torch.autograd.Variable._execution_engine.queue_callback(self._after_backward)

    @_undisturbing
    def _after_backward(self) -> None:
        if not is_writing() and not self._loop.sharding.reduces:  # DDP and FSDP2 reduce gradients in callbacks of their own, which may still run
            self._check(self._queued)

    @_undisturbing
    def _before_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not is_writing() and self._loop.begin_update(optimizer):
            self._loop.watch.stop()
            self._check_waiting(update=True)
            self._judge.before_weights_change()

    @_undisturbing
    def _after_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not is_writing() and self._loop.end_update(optimizer):
            if self._rerun is not None and self._rerun.ends_at(self._loop.updates):
                self._loop.stopped = True
            self._loop.watch.stop()
            self._steps.clear()

    # -- checks

    def _stop(self, error: Exception) -> None:
        if not self._loop.stopped:
            say(f"retrograd: catch stops watching, the loop goes on: {_with_line(error)}")
        self._loop.stopped = True

    def _check_waiting(self, update: bool = False) -> None:
        """Checks a finished step that could not be checked at once, and a loss that had no backward."""
        if self._queued:
            self._check(self._queued)
        elif update and self._loop.sharding.reduces and self._loop.wanted:
            self._loop.sharding.agree(False)
        elif update and self._steps:
            self._check(self._steps)  # the outputs are of a kind whose gradients are not seen, or were differentiated by torch.autograd.grad
        elif self._steps and self._steps[-1].backwards == 0 and self._loop.wanted:
            self._check_without_backward(self._steps[-1])

    def _check_without_backward(self, step: Step) -> None:
        """Checks a step whose loop went on, or ended, before the backward, such as a loop that checks the loss itself."""
        failure = step.failure_without_backward()
        if failure is not None and self._loop.sharding.kind == "fsdp2":  # the other ranks need not be here
            say(f"retrograd: step {step.index}, rank {rank()} of {ranks()}: {failure.message}. Nothing is written: with fully_shard the ranks write together, after a backward.")
        elif failure is not None:
            step.link()
            self._failures.write([step], failure)

    def _say_what_was_not_seen(self, error: Optional[BaseException]) -> None:
        """Says so if an exception ends the loop between a call of the model and its backward, and nothing was written."""
        step = self._steps[-1] if self._steps else None
        stopped = isinstance(error, Exception) or isinstance(error, SystemExit) and error.code not in (None, 0)
        if stopped and step is not None and step.between is not None and not step.backward_began and not step.loss_values and self._loop.wanted:
            say(f"retrograd: step {step.index}: {type(error).__name__} before a backward. catch saw no loss of this step and no NaN in the model's outputs, and writes nothing. "
                "c.loss(function, output, target) shows it the loss, where c is what `with retrograd.catch(...) as c` gives")

    def _check(self, steps: Sequence[Step]) -> None:
        """Measures the gradients of a backward through these calls of the model, in the order in which it reached them."""
        steps = sorted(steps, key=self._steps.index) if all(step in self._steps for step in steps) else list(steps)
        self._queued.clear()
        self._loop.end_backward()
        if self._loop.wanted and steps:
            self._judge.take(steps)
        for step in steps:
            if not self._judge.waits_for(step):
                step.release()
            self._inputs.step_ended(step)
        self._steps = [step for step in self._steps if step not in steps]


def _with_line(error: Exception) -> str:
    line = line_of(error)
    return text_of(error) + (f" ({line})" if line else "")


def _copied(leaf: Any) -> Any:
    return leaf.detach().clone().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf


def catch(model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer] = None, *, path: Union[str, Path, None] = None, limits: Limits = Limits(),
          scaler: Any = None, step: Optional[Callable[..., Any]] = None) -> Catch:
    """Watches a training loop: `with retrograd.catch(model, optimizer) as c: ...`.

    Writes the first step that goes wrong into a folder: a NaN or Inf in the loss, in a gradient or in the norm of all gradients, an exception in backward, or a spike
    (Limits.spike). The folder has the graph, the weights from before the step's update, inputs, gradients, random generators, and numbers of the last steps. `catch` prints
    the command that opens it. The loop runs as it would without `catch`.

    optimizer: its steps are counted (default: any optimizer with parameters of the model).
    path: where folders are written (default: retrograd-catch), one for each rank.
    scaler: the GradScaler of float16 training. Infinite gradients that make it lower its scale are then not an error, until the scale no longer falls.
    step: a function that does one step; the loop then calls c.step(...). A step that goes wrong runs a second time and is recorded whole, with clipping and update;
        for that, weights and optimizer state are copied before each step (Limits.weights_bytes).

    Without `step`, catch can run only the model, the loss and the backward again. If something else made the NaN or Inf, such as an update of the optimizer, it prints a
    command that runs the script again with RETROGRAD_RECORD=STEP, in which `catch` records that step as it runs.
    """
    return Catch(model, optimizer, path, limits, scaler, step)

