"""Writes the folder of a step that went wrong."""
from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

import torch

from ._again import NAME, Again, export_failed, fits, lacks_something, record_again, recording_json
from ._between import Given, Program
from ._checks import Failure, optimizer_json
from ._distributed import gathered
from ._export import Call, GraphValues, differentiated, devices_of, free_name, names_of, quietly, step_of, tensor_leaves, with_buffers, without_hooks, write_graph
from ._folder import Folder, FolderWriter, NoSpace, number, rank, ranks
from ._loop import Loop
from ._step import Step
from ._tree import mapped

OF_ANOTHER_RANK = "another rank made it"


def write_failure(loop: Loop, steps: Sequence[Step], failure: Failure, weights_kept: bool = False) -> tuple[Folder, Step]:
    """Writes the folder of the call of the failing backward that makes the NaN or Inf, and returns it. With FSDP2 every rank has to call this.

    weights_kept: the model has the weights from before the step, although it was updated since."""
    sharded = loop.sharding.kind == "fsdp2"
    model = gathered(loop.inner) if sharded else loop.inner
    ordered = sorted(steps, key=_suspicion)
    for step in ordered:
        others = [] if len(steps) == 1 else [f"{len(steps) - 1} other call(s) of the model in the same backward: this folder has call {steps.index(step) + 1} of {len(steps)}"
                                             + (", and ends at its outputs, with the gradients they got: the loss is computed from several calls"
                                                if step.program is None and step.cotangents else "")]
        folder = _written(loop, model, step, failure, [*_left_out(loop, step, weights_kept), *others], last=step is ordered[-1])
        if folder is not None:
            return folder, step
    raise RuntimeError("there is no call of the model to write")


def write_folder_without_graph(loop: Loop, step: int, failure: Failure, record: Optional[Callable[[Path], Again]] = None) -> Folder:
    """Writes the folder of a step of which only numbers are kept, for the run that records it, or a step that `record` runs again."""
    writer = FolderWriter(loop.target / f"step{step}{_suffix()}", loop.limits)
    try:
        contents: dict[str, Any] = {"kind": "catch", "step": step, "microbatch": 0, **_circumstances(loop, failure)}
        if record is not None:
            again = record(writer.folder / NAME)
            contents |= recording_json(again, devices_of(loop.inner, {}), []) | {"open": {"recording": NAME, "at": "root" if again.shows_it else "start"}}
            contents["inside"] = "The weights and the batch are inside."
        return writer.finish(contents)
    except BaseException:
        writer.abandon()
        raise


def _suffix() -> str:
    return f"-rank{rank()}" if ranks() > 1 else ""


def _suspicion(step: Step) -> int:
    """The order in which calls are tried: 0 if the call's graph seems to have the ops that made the NaN or Inf, 1 if it got them from elsewhere."""
    gradients = [*step.cotangents.values(), *(loss.gradient for loss in step.losses if loss.gradient is not None), *step.loss_values]
    if _finite(gradients):
        return 2
    return 0 if step.program is not None and _finite(given.tensor for given in step.program.given()) else 1


def _finite(tensors: Iterable[torch.Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def _written(loop: Loop, model: torch.nn.Module, step: Step, failure: Failure, cannot: list[str], last: bool) -> Optional[Folder]:
    """The folder of one call; None if all its values are finite when PyTorch runs it again, unless it is the last to try."""
    sharded = model is not loop.inner
    # Ranks may see a NaN in different microbatches of an update: their folders still have the same name.
    name = f"step{step.index}" + (_suffix() or (f"-{step.microbatch}" if step.microbatch else ""))
    args, kwargs = mapped(lambda leaf: _as_it_was(leaf, step, sharded), (tuple(step.args), dict(step.kwargs)))
    picked = _Picked(step, Call.of(model.forward, args, kwargs), sharded)
    buffers = {} if sharded else step.buffers
    if sharded and step.buffers:
        cannot.append("buffers that the forward writes: with FSDP2 they are those from after the forward")
    values = GraphValues(picked.inputs, step.generators, step.autocast, picked.cotangents, buffers, cannot, step.line)
    writer = FolderWriter(loop.target / name, loop.limits)
    try:
        contents: dict[str, Any] = {"kind": "catch", "step": step.index, "microbatch": step.microbatch, "inside": "The weights and the batch are inside.",
                                    **_circumstances(loop, failure)}
        module = step_of(model, picked.call, picked)
        compared = True
        try:
            written = write_graph(writer, "step", module, values, describe={"module": type(model).__name__, "location": None})
            writer.graphs.append(written.entry)
            contents["source"] = written.source
            _compare(contents, written.entry, picked, failure)
            _say_which_backwards_are_missing(written.entry, failure)
            compared = written.compared
        except (NoSpace, OSError):
            raise
        except Exception as error:
            shutil.rmtree(writer.folder / "step", ignore_errors=True)
            export_failed(contents, values, error)
        graph_shows_it = any(graph.get("not_finite") for graph in writer.graphs)
        again = None
        if not writer.graphs or lacks_something(writer.graphs) and fits(writer, model) or failure.has_root and not graph_shows_it:
            again = record_again(writer.folder / NAME, model, loop.optimizer, picked.calling(model), values, writer.left(), step.index, not loop.sharding.reduces)
            contents |= recording_json(again, devices_of(model, values.inputs), cannot)
        shows_it = graph_shows_it or again is not None and again.shows_it
        given_bad = any(not bool(torch.isfinite(tensor).all()) for tensor in (picked.cotangents or {}).values())
        if given_bad and step.unseen is None:
            cannot.append("what made the gradient of the loss a NaN or Inf, such as a scaler")
        if failure.has_root and (compared or again is not None) and not shows_it:
            if not last:
                writer.abandon()
                return None
            cannot.append(f"the NaN or Inf, since all values are finite when PyTorch runs the step again: {_elsewhere(loop, failure)}")
        contents["failure"]["message"] += _of_which_rank(loop, failure, failure.has_root and shows_it, compared)
        contents["cannot_replay"] = list(cannot)
        contents["outside"] = failure.has_root and (given_bad or not shows_it) and not contents["failure"]["message"].endswith("look at the other ranks")
        at = "root" if failure.has_root and shows_it else "start"
        contents["open"] = {"recording": NAME, "at": at} if again is not None and (again.shows_it or not writer.graphs) else {"graph": _first_bad(writer.graphs), "at": at}
        if writer.graphs and (recorded := _recorded(writer, module, values)):
            contents["recorded"] = recorded
        if values.log.getvalue().strip():
            (writer.folder / "export.log").write_text(values.log.getvalue())
        return writer.finish(contents)
    except BaseException:
        writer.abandon()
        raise


def _circumstances(loop: Loop, failure: Failure) -> dict[str, Any]:
    """What is known about the failure and the steps before it."""
    optimizer = loop.optimizer
    return {"failure": {"kind": failure.kind, "message": failure.message, "parameters": list(failure.names)[:100], "parameters_total": len(failure.names)},
            "numbers": {key: number(value) for key, value in (("loss", failure.loss), ("gradient_norm", failure.norm)) if value is not None},
            "history": loop.history.json()} | ({"optimizer": optimizer_json(optimizer)} if optimizer is not None else {})


def _is_reduced(loop: Loop, failure: Failure) -> bool:
    """Whether a NaN of one rank is in the gradients of all."""
    return loop.sharding.reduces and ranks() > 1 and failure.kind == "nan_gradient"


def _of_which_rank(loop: Loop, failure: Failure, reproduced: bool, compared: bool) -> str:
    """For the message: which rank made the NaN in a reduced gradient, as far as this rank knows."""
    if not _is_reduced(loop, failure) or failure.loss is None:
        return ""
    if reproduced:
        return f"; it was made on this rank, whose loss is finite ({failure.loss:.6g})"
    if compared:
        return f"; it was made on another rank, since this rank's loss ({failure.loss:.6g}) and gradients are finite: look at the other ranks"
    return f"; this rank's loss is finite ({failure.loss:.6g}): look at the other ranks too"


def _elsewhere(loop: Loop, failure: Failure) -> str:
    if _is_reduced(loop, failure):
        return OF_ANOTHER_RANK
    return "it came from outside of the model, or from something that was not kept"


def _left_out(loop: Loop, step: Step, weights_kept: bool) -> list[str]:
    cannot = []
    written = [tensor for tensor, version in step.versions if tensor._version != version and id(tensor) not in step.copies]
    if written:
        cannot.append(f"{len(written)} input(s): written in place during the step, and larger than Limits.copy_bytes, so that no copy was kept")
    if not weights_kept and any(p._version != version for p, version in step.parameter_versions) and loop.sharding.kind != "fsdp2":
        cannot.append("the weights: they were updated before the failure was seen, as by an optimizer that runs inside backward")
    if step.not_kept:
        cannot.append(f"{step.not_kept} output gradient(s): larger than Limits.keep_bytes; drawn ones take their place")
    if not step.cotangents and not step.not_kept and not step.loss_values and step.program is None:
        cannot.append("output gradients: they were not seen; drawn ones take their place")
    if step.backwards > 1:
        cannot.append(f"{step.backwards} backwards through one forward: the output gradients are those of the last")
    if step.unseen is not None:
        cannot.append(f"the loss: between the model's outputs and the loss lies {step.unseen}, which cannot be part of the graph. The graph ends at the model's outputs"
                      + (", with the gradients they got" if step.cotangents else ""))
    if step.program is not None:
        changed = [given for given in step.program.given() if given.version != -1 and given.tensor._version != given.version]
        if changed:
            cannot.append(f"{len(changed)} tensor(s) that the loss reads: written in place since")
    return cannot


def _as_it_was(leaf: Any, step: Step, to_cpu: bool) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    before = step.copies.get(id(leaf))
    tensor = (before if before is not None else leaf).detach().requires_grad_(leaf.requires_grad)
    return tensor.to("cpu").detach().requires_grad_(leaf.requires_grad) if to_cpu else tensor


class _Picked:
    """The outputs of a failing step's graph: the losses if they are known, else the model's outputs that got a gradient."""

    def __init__(self, step: Step, call: Call, to_cpu: bool):
        def here(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.cpu() if to_cpu else tensor

        self.call, self.program = call, step.program
        self.inputs = dict(call.tensors)
        self.devices = devices_of(torch.nn.Module(), call.tensors)
        self.loss_at: Optional[int] = None
        self.positions: Optional[list[int]] = None
        if self.program is not None:
            self.given: dict[int, str] = {}
            same = {id(leaf): name for leaf, name in zip(tensor_leaves((step.args, step.kwargs)), call.tensors)}
            for name, given in _names_of(self.program):
                key = same.get(id(given.tensor))
                self.given[id(given.tensor)] = key = key if key is not None else free_name(name, self.inputs)
                self.inputs.setdefault(key, here(given.tensor.detach()).requires_grad_(given.tensor.requires_grad and given.tensor.is_leaf))
            gradients = {i: gradient for i, end in enumerate(self.program.ends) if (gradient := step.gradient_of(end)) is not None}
            values = {loss.end: loss.value for loss in step.losses}
            known = [i for i, end in enumerate(self.program.ends) if end in values]  # the loss that failed, else the last, as in the message
            self.loss_at = next((i for i in known if not bool(torch.isfinite(values[self.program.ends[i]]))), known[-1] if known else None)
            self.cotangents: Optional[dict[int, torch.Tensor]] = {i: here(gradient) for i, gradient in gradients.items()} or None
            return
        positions = sorted({*step.cotangents, *([step.own_loss_position] if step.own_loss_position is not None else [])})
        self.positions = positions or None
        self.cotangents = {positions.index(position): here(tensor) for position, tensor in step.cotangents.items()} or None
        if step.own_loss_position is not None:
            self.loss_at = positions.index(step.own_loss_position)

    def calling(self, model: torch.nn.Module) -> Callable[[], Sequence[torch.Tensor]]:
        """A call of the model itself, with copies of the inputs, and of what follows it."""
        given = {key: tensor.detach().clone().requires_grad_(tensor.requires_grad) for key, tensor in self.inputs.items()}
        args, kwargs = self.call.arguments({key: tensor.view_as(tensor) if tensor.requires_grad else tensor for key, tensor in given.items()})
        return lambda: self(model(*args, **kwargs), given, model)

    def __call__(self, output: Any, inputs: Mapping[str, torch.Tensor], model: torch.nn.Module) -> Sequence[torch.Tensor]:
        leaves = tensor_leaves(output)
        if self.program is not None:
            return self.program.run(model, leaves, {key: inputs[name] for key, name in self.given.items()}, self.devices)
        return [leaves[i] for i in self.positions] if self.positions else [leaf for leaf in leaves if leaf.requires_grad] or leaves


def _names_of(program: Program) -> list[tuple[str, Given]]:
    """The tensors that a loss gets from elsewhere, each once, named after the parameters that they are passed as."""
    found: dict[int, tuple[str, Given]] = {}
    for recorded in program.calls.values():
        args, kwargs = recorded.tree.with_leaves([_Leaf(leaf) if isinstance(leaf, Given) else leaf for leaf in recorded.tree.leaves])
        for name, given in names_of(recorded.function, args, kwargs):
            if isinstance(given, _Leaf) and id(given.given.tensor) not in found:
                found[id(given.given.tensor)] = (name, given.given)
    return list(found.values())


class _Leaf:
    """Stands for a tensor in arguments."""

    def __init__(self, given: Given):
        self.given = given


def _compare(contents: dict[str, Any], entry: dict[str, Any], picked: _Picked, failure: Failure) -> None:
    """Says so if the second run of the step has another loss than the loop."""
    if failure.loss is None or picked.loss_at is None:
        return
    again = entry["numbers"].get(f"out.{picked.loss_at}")
    contents["numbers"]["loss_again"] = again
    value = float(again) if again is not None else math.nan
    if again is not None and value != failure.loss and not (math.isnan(value) and math.isnan(failure.loss)) and abs(value - failure.loss) > 1e-5 * abs(failure.loss):
        entry["cannot_replay"].append(f"the loss: it was {failure.loss} in the loop and is {again} when PyTorch runs the step again; it depends on something that was not kept")


def _say_which_backwards_are_missing(entry: dict[str, Any], failure: Failure) -> None:
    """If only gradients are not finite, names the custom Functions whose backward may have made them so."""
    functions = [f"{one['name']} ({one['line']})" for one in entry.get("custom_backward", []) if one["kind"] == "function"]
    if failure.has_root and functions and entry["not_finite"] and not any(name.startswith("out.") for name in entry["not_finite"]):
        entry["cannot_replay"].append(f"the backward of {', '.join(functions)}: torch.export leaves it out. Where walk-nan finds no NaN in the graph, that backward made it")


def _first_bad(graphs: Sequence[Mapping[str, Any]]) -> str:
    """The first graph in the order they ran with an output that is not finite; else one with such a gradient; else the first."""
    for prefix in ("out.", "grad."):
        ordered = graphs if prefix == "out." else list(reversed(graphs))
        for graph in ordered:
            if any(name.startswith(prefix) for name in graph.get("not_finite", [])):
                return str(graph["name"])
    return str(graphs[0]["name"]) if graphs else ""


def _recorded(writer: FolderWriter, module: torch.nn.Module, values: GraphValues) -> Optional[dict[str, str]]:
    """Norms of every op's outputs, which PyTorch's DebugMode records during a second run of the step (PyTorch 2.15)."""
    try:
        from torch.utils._debug_mode import DebugMode

        if not hasattr(DebugMode, "save_logs"):
            return None
    except ImportError:
        return None
    path = writer.folder / "debug_mode.json"
    try:
        own = {name: buffer.detach().clone() for name, buffer in module.named_buffers()} | {name: b.clone() for name, b in values.original_buffers.items()}
        with quietly(), torch.enable_grad(), without_hooks(module), with_buffers(module, own), values.generators.again():
            with DebugMode(record_stack_trace=True, record_ids=True) as mode, DebugMode.log_tensor_hashes(hash_fn="norm"):
                torch.autograd.grad(*differentiated(list(module(**values.inputs)), values, module), allow_unused=True)
        DebugMode.save_logs(mode.logs, str(path))
        writer.require(0, "recorded numbers")
        json.loads(path.read_text())
        return {"debug_mode": path.name}
    except Exception:
        path.unlink(missing_ok=True)
        return None
