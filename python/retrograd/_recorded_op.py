"""What a recording holds about one op."""
from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional, Sequence

import torch

from ._folder import first_line, text_of
from ._hash import bytes_in_order, hashed
from ._links import Repeatable
from ._recorder_state import FLUSH_EVERY, RecorderState, below
from ._stream import describable, plain
from ._where import ACCUMULATE

_SILENT_WRITES = {  # what their schemas do not say: running statistics that they write
    "aten.native_batch_norm.default": (3, 4), "aten.cudnn_batch_norm.default": (3, 4), "aten.miopen_batch_norm.default": (3, 4),
}

_COLLECTIVE_WRITES = {  # collectives whose schemas say neither what they write nor give it back: the argument that they fill
    "c10d.allgather_coalesced_.default": 0, "c10d.allgather_into_tensor_coalesced_.default": 0, "c10d.allreduce_coalesced_.default": 0, "c10d.alltoall_base_.default": 0,
    "c10d.gather_.default": 0, "c10d.recv_.default": 0, "c10d.recv_any_source_.default": 0, "c10d.reduce_.default": 0, "c10d.reduce_scatter_tensor_coalesced_.default": 0,
}
_LEAVES_UNWRITTEN = frozenset((  # ops that make memory, or more of it, and write nothing to it: as core/trace/op_traits.cpp has them
    "aten._empty_affine_quantized", "aten._empty_per_channel_affine_quantized", "aten.empty", "aten.empty_like", "aten.empty_permuted", "aten.empty_quantized",
    "aten.empty_strided", "aten.new_empty", "aten.new_empty_strided", "aten._resize_output", "aten._resize_output_", "aten.resize", "aten.resize_", "aten.resize_as", "aten.resize_as_",
))
WHOLE = "node."  # in the names of nodes of autograd that ran whole
_OWN_OPS = ("aten.", "prims.", "_c10d_functional.wait_tensor")  # that any reader with LibTorch has
_WORKSPACES = {"aten.mkldnn_rnn_layer.default": 3, "aten._cudnn_rnn.default": 3, "aten._ctc_loss.default": 1, "aten._ctc_loss.Tensor": 1}  # a result whose bytes are in part nobody's: for their own backward alone


class Op:
    """One op: its record, before and after it runs."""

    def __init__(self, mode: RecorderState, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]):
        self.mode, self.function = mode, function
        self.place = place = mode.where.now()
        stream = mode.stream
        mode.free_gone()
        mode.change_modes(place)
        self.thread = mode.where.thread()
        self.stack = stream.stack(place.frames)
        tensors = list(_tensors((args, tuple(kwargs.values()))))
        filled = args[0] if args and str(function) == "aten.copy_.default" else None  # as Gloo fills the result of its reduce_scatter in a wait: it has not arrived yet
        mode.arrived([tensor for tensor in tensors if tensor is not filled])
        mode.look_around(self.stack)
        for tensor in tensors:
            mode.look(tensor, self.stack)
        name = str(function)
        self.is_op = isinstance(function, torch._ops.OpOverload)
        self.name = name if self.is_op or name.startswith(WHOLE) else f"higher_order.{name}"
        self.record: dict[str, Any] = {"k": "op", "n": mode.recording.ops, "op": self.name}
        self.record["in"] = [plain(value, lambda one: mode.tensor(one, True)) for value in args]
        keyed = {key: plain(value, lambda one: mode.tensor(one, True)) for key, value in kwargs.items()}
        if keyed:
            self.record["kw"] = keyed
        functional = self.name.startswith("_c10d_functional.")
        self.collective = self.name.startswith("c10d.") or functional and "wait_tensor" not in self.name  # may run on after the op returns
        self.group = _group(self.name, self.record["in"])
        self.writes = list(_tensors(_written_arguments(function, self.name, args, kwargs)))
        self.reads = mode.storages_of(tensors)
        self.before = frozenset(self.reads)
        self.forward = mode.links.made(self.record["n"], self.name, self.thread, place, self.stack, self.before, bool(self.writes)) if self.is_op else None
        drawn = mode.generator(function, args, kwargs) if self.is_op else None
        if drawn is not None:
            self.record["rng"] = drawn

    def raised(self, error: Exception) -> None:
        self.mode.stream.write({"k": "error", "op": self.name, "in": self.record["in"], "kw": self.record.get("kw", {}), "message": first_line(text_of(error))})

    def done(self, result: Any) -> None:
        mode, record, stream = self.mode, self.record, self.mode.stream
        n = record["n"]
        outs = list(_tensors(result))
        if self.name.startswith("_c10d_functional.wait_tensor"):
            mode.arrived(outs, waited=True)
        if not outs and not self.writes and not list(_tensors_in(record["in"])) and not _has_opaque(record["in"]):
            return  # questions about sizes
        if outs and all(tensor.device.type == "meta" for tensor in [*outs, *self.writes]):
            return  # shapes alone: nothing was computed
        if "rng" in record:
            mode.drawn()
        known = {id(tensor) for tensor in outs}
        written = [tensor for tensor in self.writes if id(tensor) not in known]
        record["out"] = plain(result, lambda one: mode.tensor(one, False))
        if written:
            record["writes"] = [mode.tensor(tensor, True) for tensor in written]
        uninitialized = self.is_op and self.name.rpartition(".")[0] in _LEAVES_UNWRITTEN
        if uninitialized:
            record["uninitialized"] = True
        values: list[Optional[torch.Tensor]] = []
        if self.collective:
            for tensor in [*outs, *written]:
                memory = mode.memory(tensor)
                if memory is not None:
                    mode.arrives(memory, n, tensor, self.name.startswith("_c10d_functional."))
        else:
            for place, tensor in enumerate([*outs, *written]):
                memory = mode.memory(tensor)
                is_view = memory is not None and memory.id in self.before and all(tensor is not one for one in self.writes)
                value = hashed(tensor) if not is_view and _WORKSPACES.get(self.name) != place else None
                values.append(value)
                if not is_view:
                    mode.wrote(tensor, value, uninitialized)
            if any(value is not None for value in values):
                found = mode.hashes(n, values)
                if found is not None:
                    record["hash"] = found
        self._describe(outs)
        if self.group is not None:
            record["group"] = self.group
        if not self.collective and (not self.is_op or _has_opaque(record) or not self.name.startswith(_OWN_OPS)):
            self._opaque([*outs, *written])
        stream.write(record)
        mode.recording.count()
        if mode.recording.ops % FLUSH_EVERY == 0:
            stream.flush()
        if mode.recording.ops >= mode.recording.limits.ops:
            mode.full = True
            mode.note(f"the recording ends after {mode.recording.ops} ops (Limits.ops)")

    def _opaque(self, tensors: Sequence[torch.Tensor]) -> None:
        self.record["opaque"] = ("PyTorch computes it otherwise while its ops are seen, so it ran whole" if self.name.startswith(WHOLE) else "a higher-order op" if not self.is_op else "an argument that no reader can make" if self.name.startswith(_OWN_OPS)
                                 else "an op of a library, which a reader may not have")
        names = []
        for place, tensor in enumerate(tensors):
            name = f"v{self.record['n']}.{place}"
            if tensor.layout == torch.strided and not self.collective:
                self.mode.stream.data.add(name, bytes_in_order(tensor.detach().resolve_conj().resolve_neg().cpu().clone(memory_format=torch.contiguous_format)))
            names.append(name)
        self.record["values"] = names

    def _describe(self, outs: Sequence[torch.Tensor]) -> None:
        """Adds where the op ran, and what it belongs to."""
        record, place, mode = self.record, self.place, self.mode
        if self.stack is not None:
            record["stack"] = self.stack
        module = None
        if mode.where.modules and self.thread == 0:
            path, kind, call = mode.where.modules[-1]
            module = record["module"] = mode.stream.once("module", (path, kind), lambda: {"path": path, "class": kind})
            record["call"] = call
        if self.thread:
            record["thread"] = self.thread
        if self.forward is not None:
            record["seq"] = self.forward
        if self.name == "aten.detach.default":
            record["kept"] = place.instruction is not None and place.instruction == mode.instruction
        mode.instruction = place.instruction
        if place.function is not None:
            record["function"] = place.function
        if place.hook is not None:
            record["hook"] = place.hook
        if place.moves:
            record["moves"] = True
        if place.region or place.phase == "recompute":
            common = (self.name, place.inside, tuple(tuple(one.shape) for one in outs if one.layout == torch.strided))
        if place.region and place.phase != "recompute":
            mode.repeats.repeatable(common, Repeatable(record["n"], tuple(self.reads), mode.storages_of(outs), module, record.get("call")))
        if place.phase == "recompute":
            repeated = mode.repeats.repeated(common, self.reads, mode.storages_of(outs))
            if repeated is not None:
                record["repeats"] = repeated.n
                if module is None and repeated.module is not None:  # what is checkpointed can be a forward alone, which no hook of its module sees again
                    record |= {"module": repeated.module, "call": repeated.call}
        elif place.node is not None:
            name = place.node.name()
            record["node"] = name
            if name == ACCUMULATE:
                variable = below(place.node.variable) if place.phase == "accumulation" else None
                parameter = mode.parameter_names.get(id(place.node.variable))
                if variable is not None and parameter is not None and mode.memory(variable) is not None:
                    record["accumulates"] = parameter
            elif place.phase == "backward":
                origin = mode.links.of(place.node, record["n"], self.before)
                if origin is not None:
                    record["of"] = origin


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors that can be described."""
    if isinstance(value, torch.Tensor):
        if describable(value):
            yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)


def _tensors_in(value: Any) -> Iterator[int]:
    if isinstance(value, dict) and "t" in value:
        yield value["t"]
    elif isinstance(value, list):
        for one in value:
            yield from _tensors_in(one)


def _has_opaque(value: Any) -> bool:
    if isinstance(value, dict):
        return "opaque" in value or any(_has_opaque(one) for one in value.values())
    return isinstance(value, list) and any(_has_opaque(one) for one in value)


def _group(name: str, arguments: Sequence[Any]) -> Optional[list[int]]:
    """The ranks of a collective's process group, which is passed as an object or by its name."""
    if not name.startswith(("c10d.", "_c10d_functional.")):
        return None
    found = next((value["group"] for value in arguments if isinstance(value, dict) and "group" in value), None)
    if found is None and arguments and isinstance(arguments[-1], str):
        import torch.distributed.distributed_c10d as c10d

        resolve: Any = getattr(c10d, "_resolve_process_group")
        found = torch.distributed.get_process_group_ranks(resolve(arguments[-1]))
    return found


def _written_arguments(function: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments that an op writes, as its schema says."""
    schema = getattr(function, "_schema", None)
    found = [args[i] for i in _SILENT_WRITES.get(name, ()) if i < len(args) and args[i] is not None and args[5]]
    if name in _COLLECTIVE_WRITES:
        found.append(args[_COLLECTIVE_WRITES[name]])
    if schema is None or not schema.is_mutable:
        return found
    for place, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[place] if place < len(args) and not argument.kwarg_only else kwargs.get(argument.name)
            if value is not None:
                found.append(value)
    return found
