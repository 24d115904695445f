"""catch(): watches a training loop and writes the first step that goes wrong into a folder."""
from __future__ import annotations

import functools
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar, Union, cast

import torch

from ._around import AroundCompiled
from ._capture import loss_in, unwrapped
from ._distributed import Sharding, sharding_of
from ._export import line_of, raised_in_autograd
from ._folder import Folder, Limits, rank, ranks, readable, say, text_of
from ._norms import norms, values_of
from ._state import Autocast, Generators
from ._tree import Tree, tensor_leaves
from ._write import write_failure


_writing = False  # a folder is being written: what runs then is no step of any loop that is watched


@dataclass(eq=False)
class Step:
    """What is kept of one call of the model until its backward is over."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    versions: list[tuple[torch.Tensor, int]]
    copies: dict[int, torch.Tensor]  # id of an input -> its copy
    buffers: dict[str, torch.Tensor]
    parameter_versions: list[tuple[torch.nn.Parameter, int]]
    generators: Generators
    autocast: Autocast
    index: int  # of the step, from 0
    microbatch: int
    cotangents: dict[int, torch.Tensor] = field(default_factory=dict)
    kept_bytes: int = 0
    not_kept: int = 0  # cotangents that did not fit
    backwards: int = 0
    loss: Optional[torch.Tensor] = None
    loss_call: Optional[tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]] = None
    outputs: list["weakref.ref[torch.Tensor]"] = field(default_factory=list)  # as the loop got them
    loss_position: Optional[int] = None


@dataclass(frozen=True)
class Failure:
    """What went wrong."""

    kind: str  # nan_loss, nan_gradient, nan_norm, exception
    message: str
    names: Sequence[str] = ()  # of parameters with a NaN or Inf in their gradient
    loss: Optional[float] = None
    norm: Optional[float] = None


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

    def __init__(self, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], path: Union[str, Path, None], limits: Limits, scaler: Any):
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
        self._backwards = 0
        self._microbatch = 0
        self._optimizers: dict[int, bool] = {}
        self._copy_inputs = False  # an input was written in place before
        self._sharding: Sharding = sharding_of(self.model)
        self._written_buffers: Optional[set[str]] = None
        self._failures = 0

    # -- for the user

    @property
    def folder(self) -> Optional[Folder]:
        """The first folder that was written, or None."""
        return self.folders[0] if self.folders else None

    def loss(self, loss: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Names the loss, where it is computed outside of the model. Two forms:

        c.loss(value) records and checks it; the folder's graph ends at the model's outputs, with their gradients.
        c.loss(function, output, target, ...) calls the function; the folder's graph then has the loss too.
        """
        call = None
        if callable(loss) and not isinstance(loss, torch.Tensor):
            if self._steps and self._follows(args, kwargs):
                call = (loss, args, kwargs)
            loss = loss(*args, **kwargs)
        self._record_loss(loss, call)
        return cast(torch.Tensor, loss)

    @_undisturbing
    def _record_loss(self, loss: Any, call: Any) -> None:
        if self._steps and isinstance(loss, torch.Tensor) and loss.numel() == 1:
            step = self._steps[-1]
            step.loss = loss.detach()
            step.loss_call = call
            if call is not None and loss.grad_fn is not None:
                step.cotangents.clear()
                loss.grad_fn.register_prehook(self._taker(step, -1))

    def _follows(self, args: Any, kwargs: Any) -> bool:
        """Whether each argument with a gradient is an output of the model as it came: else the graph would lack what lies between."""
        outputs = {id(one()) for one in self._steps[-1].outputs}
        return all(id(tensor) in outputs or not tensor.requires_grad for tensor in tensor_leaves((args, kwargs)))

    # -- hooks

    def __enter__(self) -> "Catch":
        # On the outermost wrapper: it sees every call, and torch.compile does not see the hooks.
        if self.model.__dict__.get("_compiled_call_impl") is not None:  # model.compile(): it would
            self._handles = [AroundCompiled(self.model, self._before, self._after)]
        else:
            self._handles = [self.model.register_forward_pre_hook(self._before, with_kwargs=True, prepend=True), self.model.register_forward_hook(self._after)]
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._handles += [register_optimizer_step_pre_hook(self._before_update), register_optimizer_step_post_hook(self._after_update)]
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        try:
            self._look_once_more(error, trace)
        finally:
            self._steps.clear()
            self._queued.clear()

    @_undisturbing
    def _look_once_more(self, error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        """When the loop is left: the step that an exception of its backward ended, or one that waits to be checked."""
        steps = self._queued or self._steps[-1:]
        if isinstance(error, Exception) and raised_in_autograd(trace) and steps:
            self._fail(steps, Failure("exception", text_of(error) + (f" ({line})" if (line := line_of(error)) else "")))
        else:
            self._check_waiting()

    def _watches(self) -> bool:
        """Whether a call of the model that begins now is one of the loop's. Others: validation, torch.compile's tracing, a checkpoint that computes a forward again
        within a backward, and the calls that write a folder."""
        recomputes = bool(self._queued) and torch._C._current_graph_task_id() != -1
        return torch.is_grad_enabled() and self._wanted() and not _writing and not torch.compiler.is_compiling() and not recomputes

    @_undisturbing
    def _before(self, _: torch.nn.Module, args: Any, kwargs: Any) -> None:
        if not self._watches():
            return
        self._check_waiting()
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
                                Generators.now(devices), Autocast.now(devices), index, self._microbatch))

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
        position = 0
        for i, leaf in enumerate(leaves):
            if not isinstance(leaf, torch.Tensor):
                continue
            if leaf is own:
                step.loss, step.loss_position = leaf.detach(), position
            if leaf.requires_grad:
                # An alias, whose gradient is what comes from outside of the model: the model itself may use an output too (logits, for its loss).
                # The hook is on the node: torch.compile would look at one of the tensor.
                if not leaf.is_leaf:
                    leaves[i] = leaf.view_as(leaf)
                    leaves[i].grad_fn.register_prehook(self._taker(step, position))
            step.outputs.append(weakref.ref(leaves[i]))
            position += 1
        return tree.with_leaves(leaves) if position else None

    def _taker(self, step: Step, position: int) -> Callable[[Sequence[Optional[torch.Tensor]]], None]:
        return lambda gradients: self._take(step, position, gradients[0])

    @_undisturbing
    def _take(self, step: Step, position: int, gradient: Optional[torch.Tensor]) -> None:
        """Keeps what a backward gives to an output of the model (position -1: to the loss of `c.loss`)."""
        if _writing or gradient is None or self._stopped:
            return
        if step.loss_call is None or position == -1:
            size = gradient.numel() * gradient.element_size()
            if step.kept_bytes + size <= self.limits.keep_bytes:
                step.kept_bytes += size
                step.cotangents[max(position, 0)] = gradient.detach()
            else:
                step.not_kept += 1
        if step not in self._queued:
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
        return bool(known)

    @_undisturbing
    def _before_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not _writing and self._belongs(optimizer):
            self._check_waiting(update=True)

    @_undisturbing
    def _after_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not _writing and self._belongs(optimizer):
            self._done_steps += 1
            self._microbatch = 0
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
        elif self._steps and self._steps[-1].backwards == 0 and self._steps[-1].loss is not None:
            loss = float(self._steps[-1].loss)
            if loss != loss or loss in (float("inf"), float("-inf")):
                self._fail(self._steps[-1:], Failure("nan_loss", f"the loss is {loss}; no backward followed", loss=loss))

    def _check(self, steps: Sequence[Step]) -> None:
        """Checks what came of a backward through these calls of the model, in the order in which it reached them."""
        steps = sorted(steps, key=self._steps.index) if all(step in self._steps for step in steps) else list(steps)
        self._queued.clear()
        self._backwards += 1
        self._microbatch += 1
        if self._wanted() and steps:
            failure = next(filter(None, map(self._failure, steps)), None)
            if self._sharding.agree(failure is not None):
                self._fail(steps, failure or Failure("nan_gradient", "another rank has a NaN or Inf in its gradients; this rank has none"))
        for step in steps:
            step.cotangents.clear()
            step.kept_bytes = 0
            for tensor, version in step.versions:
                self._copy_inputs |= tensor._version != version
        self._steps = [step for step in self._steps if step not in steps]

    def _failure(self, step: Step) -> Optional[Failure]:
        gradients = [(name, values_of(p.grad)) for name, p in self.inner.named_parameters() if p.grad is not None]
        each = norms([gradient for _, gradient in gradients])
        total = torch.linalg.vector_norm(torch.stack(each)) if each else None
        loss = step.loss.float() if step.loss is not None else None
        parts = [part for part in (total, loss.reshape(()).to(total.device if total is not None else loss.device) if loss is not None else None) if part is not None]
        if not parts or bool(torch.isfinite(torch.stack(parts)).all()):
            return None
        loss_value = float(loss) if loss is not None else None
        norm_value = float(total) if total is not None else None
        bad = [name for (name, gradient) in gradients if not bool(torch.isfinite(gradient).all())]
        if loss_value is not None and loss_value - loss_value != 0:
            return Failure("nan_loss", f"the loss is {loss_value}", bad, loss_value, norm_value)
        if self.scaler is not None and float(self.scaler.get_scale()) > 1:
            return None  # the scaler leaves this step out and takes a smaller scale: nothing is wrong
        if bad:
            return Failure("nan_gradient", f"the gradient of {bad[0]}{f' and {len(bad) - 1} more' if len(bad) > 1 else ''} has a NaN or Inf", bad, loss_value, norm_value)
        if norm_value is not None and norm_value - norm_value != 0:
            return Failure("nan_norm", f"the norm of all gradients is {norm_value}, though each element is finite", bad, loss_value, norm_value)
        return None

    # -- a failure

    def _fail(self, steps: Sequence[Step], failure: Failure) -> None:
        global _writing
        if _writing or not self._wanted():
            return
        _writing = True
        self._failures += 1
        step = steps[0]
        try:
            folder, step = write_failure(self, steps, failure)
            self.folders.append(folder)
            where = f"step {step.index}" + (f", microbatch {step.microbatch}" if step.microbatch else "") + (f", rank {rank()} of {ranks()}" if ranks() > 1 else "")
            say(f"retrograd: {where}: {failure.message}.\n"
                f"  Written: {folder} ({readable(sum(file.stat().st_size for file in folder.path.rglob('*') if file.is_file()))}). The weights and the batch are inside.")
            for line in folder.manifest["cannot_replay"]:
                say(f"  Cannot be replayed: {line}.")
            say(f"  Open it at the op that made the first NaN or Inf:\n    {folder.command}\n  In a terminal:\n{folder.headless()}")
        except Exception as error:  # the training loop is not disturbed
            say(f"retrograd: step {step.index}: {failure.message}. It could not be saved: {text_of(error)}")
        finally:
            _writing = False


def catch(model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer] = None, *, path: Union[str, Path, None] = None, limits: Limits = Limits(),
          scaler: Any = None) -> Catch:
    """Watches a training loop: `with retrograd.catch(model, optimizer) as c: ...`.

    The first step with a NaN or Inf in the loss, in a gradient or in the norm of all gradients, or with an exception in backward, is written into a folder:
    graph, weights from before the step's update, inputs, output gradients, random generators, recorded numbers. The command that opens the folder is printed.
    The loop goes on as it would without.

    optimizer: whose steps are counted (default: any that has parameters of the model).
    path: where folders are written (default: retrograd-catch); ranks write apart.
    scaler: the GradScaler of float16 training. Infinite gradients for which it lowers its scale are then not an error.
    """
    return Catch(model, optimizer, path, limits, scaler)

