"""Writes the folder of a step that went wrong."""
from __future__ import annotations

import json
import math
import shutil
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

import torch

from ._backend import Recording, backend
from ._distributed import gathered
from ._export import Call, GraphValues, devices_of, free_name, line_of, quietly, step_of, tensor_leaves, with_buffers, without_hooks, write_graph
from ._folder import Folder, FolderWriter, NoSpace, number, rank, ranks, text_of
from ._tree import mapped

if TYPE_CHECKING:
    from ._catch import Catch, Failure, Step


def write_failure(catch: "Catch", steps: Sequence["Step"], failure: "Failure") -> tuple[Folder, "Step"]:
    """Writes the folder of the call, among those of the failing backward, that makes the NaN or Inf; returns it too. With FSDP2 every rank has to call this."""
    sharded = catch._sharding.kind == "fsdp2"
    model = gathered(catch.inner) if sharded else catch.inner
    ordered = sorted(steps, key=_looks_sound)
    for step in ordered:
        others = [] if len(steps) == 1 else [f"{len(steps) - 1} other call(s) of the model in the same backward: this folder has call {steps.index(step) + 1} of {len(steps)}"]
        folder = _written(catch, model, step, failure, others, last=step is ordered[-1])
        if folder is not None:
            return folder, step
    raise RuntimeError("there is no call of the model to write")


def _looks_sound(step: "Step") -> bool:
    """False for a call that is known to have made or got a NaN or Inf: it is tried first."""
    return all(bool(torch.isfinite(tensor).all()) for tensor in [*step.cotangents.values(), *([step.loss] if step.loss is not None else [])])


def _written(catch: "Catch", model: torch.nn.Module, step: "Step", failure: "Failure", others: Sequence[str], last: bool) -> Optional[Folder]:
    """The folder of one call; None where all its values are finite when PyTorch runs it again, unless it is the last to try."""
    sharded = model is not catch.inner
    name = f"step{step.index}" + (f"-{step.microbatch}" if step.microbatch else "") + (f"-rank{rank()}" if ranks() > 1 else "")
    cannot = [*_left_out(catch, step), *others]
    args, kwargs = mapped(lambda leaf: _as_it_was(leaf, step, sharded), (tuple(step.args), dict(step.kwargs)))
    model_call = Call.of(model.forward, args, kwargs)
    cotangents = {position: tensor.cpu() if sharded else tensor for position, tensor in step.cotangents.items()}
    picked = _Picked(step, model_call, cotangents)
    buffers = {} if sharded else step.buffers
    if sharded and step.buffers:
        cannot.append("buffers that the forward writes: with FSDP2 they are those from after the forward")
    values = GraphValues(picked.inputs, step.generators, step.autocast, picked.cotangents, buffers, cannot)
    writer = FolderWriter(catch.target / name, catch.limits)
    try:
        contents: dict[str, Any] = {"kind": "catch", "step": step.index, "microbatch": step.microbatch,
                                    "failure": {"kind": failure.kind, "message": failure.message, "parameters": list(failure.names)[:100], "parameters_total": len(failure.names)},
                                    "numbers": {key: number(value) for key, value in (("loss", failure.loss), ("gradient_norm", failure.norm)) if value is not None}}
        module = step_of(model, model_call, picked)
        compared = True
        try:
            written = write_graph(writer, "step", module, values, describe={"module": type(model).__name__, "location": None})
            writer.graphs.append(written.entry)
            contents["source"] = written.source
            _compare(contents, written.entry, picked, failure)
            compared = written.compared
        except (NoSpace, OSError):
            raise
        except Exception as error:
            shutil.rmtree(writer.folder / "step", ignore_errors=True)
            line = line_of(error)
            contents["export_failed"] = (f"{line}: " if line else "") + text_of(error)
            contents["source"] = _in_parts(writer, catch, model, model_call, picked, values)
        if failure.kind in ("nan_loss", "nan_gradient") and compared and not any(graph.get("not_finite") for graph in writer.graphs):
            if not last:
                writer.abandon()
                return None
            writer.graphs[0]["cannot_replay"].append("the NaN or Inf: all values are finite when PyTorch runs the step again. It came from outside of the model, or from "
                                                     "something that was not kept")
        contents["open"] = {"graph": _first_bad(writer.graphs), "at": "root"}
        recorded = _recorded(writer, module, values)
        if recorded:
            contents["recorded"] = recorded
        return writer.finish(contents)
    except BaseException:
        writer.abandon()
        raise


def _left_out(catch: "Catch", step: "Step") -> list[str]:
    cannot = []
    written = [tensor for tensor, version in step.versions if tensor._version != version and id(tensor) not in step.copies]
    if written:
        cannot.append(f"{len(written)} input(s): written in place during the step, and larger than Limits.copy_bytes, so that no copy was kept")
    if any(p._version != version for p, version in step.parameter_versions) and catch._sharding.kind != "fsdp2":
        cannot.append("the weights: they were updated before the failure was seen, as by an optimizer that runs inside backward")
    if step.not_kept:
        cannot.append(f"{step.not_kept} output gradient(s): larger than Limits.keep_bytes; drawn ones take their place")
    if not step.cotangents and not step.not_kept and step.loss is None:
        cannot.append("output gradients: they were not seen; drawn ones take their place")
    if step.backwards > 1:
        cannot.append(f"{step.backwards} backwards through one forward: the output gradients are those of the last")
    if step.generators.gpus:
        cannot.append("draws on the GPU: the states of its generators are in ref.safetensors, and Retrograd draws on the CPU")
    return cannot


def _as_it_was(leaf: Any, step: "Step", to_cpu: bool) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    before = step.copies.get(id(leaf))
    tensor = (before if before is not None else leaf).detach().requires_grad_(leaf.requires_grad)
    return tensor.to("cpu").detach().requires_grad_(leaf.requires_grad) if to_cpu else tensor


class _Picked:
    """Which outputs a failing step's graph has: the loss where it is known, and the outputs that got a gradient."""

    def __init__(self, step: "Step", call: Call, cotangents: Mapping[int, torch.Tensor]):
        self.inputs = dict(call.tensors)
        self.loss_call = step.loss_call
        self.loss_at: Optional[int] = None
        self.cotangents: Optional[dict[int, torch.Tensor]] = None
        if self.loss_call is not None:
            function, args, kwargs = self.loss_call
            outputs = {id(one()): i for i, one in enumerate(step.outputs) if one() is not None}
            self.loss = Call.of(function, args, kwargs)
            self.from_output: dict[str, int] = {}
            self.extra: dict[str, str] = {}
            for name, tensor in self.loss.tensors.items():
                if id(tensor) in outputs:
                    self.from_output[name] = outputs[id(tensor)]
                else:
                    self.extra[name] = free_name(name, self.inputs)
                    self.inputs[self.extra[name]] = tensor.detach().requires_grad_(tensor.requires_grad and tensor.is_leaf)
            self.positions: Optional[list[int]] = None
            self.loss_at = 0
            self.cotangents = {0: cotangents[0]} if 0 in cotangents else None
            return
        positions = sorted({*cotangents, *([step.loss_position] if step.loss_position is not None else [])})
        self.positions = positions or None
        if positions:
            if step.loss_position is not None:
                self.loss_at = positions.index(step.loss_position)
            self.cotangents = {positions.index(position): tensor for position, tensor in cotangents.items()} or None

    def __call__(self, output: Any, inputs: Mapping[str, torch.Tensor]) -> Sequence[torch.Tensor]:
        leaves = tensor_leaves(output)
        if self.loss_call is not None:
            tensors = {name: leaves[i] for name, i in self.from_output.items()} | {name: inputs[key] for name, key in self.extra.items()}
            args, kwargs = self.loss.arguments(tensors)
            return [self.loss_call[0](*args, **kwargs)]
        return [leaves[i] for i in self.positions] if self.positions else [leaf for leaf in leaves if leaf.requires_grad] or leaves


def _compare(contents: dict[str, Any], entry: dict[str, Any], picked: _Picked, failure: "Failure") -> None:
    """Says where the step, run once more, does not have the loss that the loop had."""
    if failure.loss is None or picked.loss_at is None:
        return
    again = entry["numbers"].get(f"out.{picked.loss_at}")
    contents["numbers"]["loss_again"] = again
    value = float(again) if again is not None else math.nan
    if again is not None and value != failure.loss and not (math.isnan(value) and math.isnan(failure.loss)) and abs(value - failure.loss) > 1e-5 * abs(failure.loss):
        entry["cannot_replay"].append(f"the loss: it was {failure.loss} in the loop and is {again} when PyTorch runs the step again; it depends on something that was not kept")


def _first_bad(graphs: Sequence[Mapping[str, Any]]) -> str:
    """The first graph in the order they ran with an output that is not finite; else one with such a gradient; else the first."""
    for prefix in ("out.", "grad."):
        ordered = graphs if prefix == "out." else list(reversed(graphs))
        for graph in ordered:
            if any(name.startswith(prefix) for name in graph.get("not_finite", [])):
                return str(graph["name"])
    return str(graphs[0]["name"]) if graphs else ""


def _in_parts(writer: FolderWriter, catch: "Catch", model: torch.nn.Module, call: Call, picked: _Picked, values: GraphValues) -> list[dict[str, Any]]:
    """Where torch.export cannot follow the model: the graphs between graph breaks, each with its inputs and output gradients."""
    recording = Recording.within(writer, catch.limits)
    module = step_of(model, call, picked)

    def run(**inputs: torch.Tensor) -> Any:
        return module.forward(**inputs)

    inputs = dict(values.inputs)
    with quietly(), torch.enable_grad(), without_hooks(module), with_buffers(model, {name: tensor.clone() for name, tensor in values.original_buffers.items()}), values.generators.again():
        with values.autocast.again(devices_of(model, inputs)):
            outputs = list(torch.compile(run, backend=lambda graph, examples: backend(graph, examples, recording=recording, root=model), dynamic=False)(**inputs))
        chosen = values.cotangents if values.cotangents is not None else {i: torch.ones_like(output) for i, output in enumerate(outputs) if output.requires_grad}
        ends = [(outputs[i], chosen[i].to(outputs[i].dtype)) for i in chosen if outputs[i].requires_grad]
        sources = [p for p in model.parameters() if p.requires_grad]
        if ends and sources:
            torch.autograd.grad([end for end, _ in ends], sources, [cotangent for _, cotangent in ends], allow_unused=True)
    if not writer.graphs:
        raise RuntimeError("neither torch.export nor torch.compile can follow the model: " + "; ".join(recording.problems))
    for graph in writer.graphs:
        graph["cannot_replay"] += [line for line in values.cannot_replay if line not in graph["cannot_replay"]]
    return list(recording.source.values())


def _recorded(writer: FolderWriter, module: torch.nn.Module, values: GraphValues) -> Optional[dict[str, str]]:
    """Norms of every op's outputs, recorded by PyTorch's DebugMode while the step runs once more (PyTorch 2.15)."""
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
                outputs = list(module(**values.inputs))
                chosen = values.cotangents if values.cotangents is not None else {i: torch.ones_like(output) for i, output in enumerate(outputs) if output.requires_grad}
                ends = [(outputs[i], chosen[i].to(outputs[i].dtype)) for i in chosen if outputs[i].requires_grad]
                sources = [p for p in module.parameters() if p.requires_grad]
                if ends and sources:
                    torch.autograd.grad([end for end, _ in ends], sources, [cotangent for _, cotangent in ends], allow_unused=True)
        DebugMode.save_logs(mode.logs, str(path))
        writer.require(0, "recorded numbers")
        json.loads(path.read_text())
        return {"debug_mode": path.name}
    except Exception:
        path.unlink(missing_ok=True)
        return None
