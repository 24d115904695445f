"""What a recorder keeps between ops: memory, names, generators, modes."""
from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Mapping, Optional, Protocol, Sequence

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ._called import casting
from ._folder import Limits
from ._hash import hashed, text
from ._links import Links, Repeats
from ._names import members, parameters_of
from ._shards import shard_of
from ._stream import Stream, described, fields_of, geometry
from ._where import Place, Where

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_SMALL = 64 << 10  # bytes of memory that is looked at before each op
FLUSH_EVERY = 500  # ops: what a killed process loses at most


class Recorded(Protocol):
    """What the recorder asks of its recording."""

    model: Optional[torch.nn.Module]
    optimizers: list[torch.optim.Optimizer]
    limits: Limits
    ops: int
    notes: list[str]
    straightens: set[str]  # custom Functions whose backward asks for contiguous memory

    def count(self) -> None: ...


@dataclass
class Memory:
    """A storage that exists."""

    id: int
    bytes: int
    digest: Optional[int] = None  # hash of all its bytes, where it is known
    looked: int = -1  # the part of the step in which its bytes were last compared or written
    since: int = -1  # the op after which its bytes were last known
    given: tuple[Optional[int], int] = (None, -1)  # where others got it last, and the ops before that


class Held(weakref.ref[Any]):
    """A storage that may be freed. A function in C then puts this into a queue: a Python callback would lose an interrupt from the keyboard."""

    __slots__ = ("key", "number")
    key: int
    number: int


class RecorderState:
    """What a recorder knows, and the records that it writes about it. Each op asks it before and after it runs."""

    def __init__(self, recording: Recorded, stream: Stream):
        self.recording, self.stream = recording, stream
        self.where = Where(recording.model)
        self.links, self.repeats = Links(), Repeats()
        self.on_gpu = False
        self.full = False
        self._storages: dict[int, tuple[Held, Memory]] = {}
        self._gone: deque[Held] = deque()
        self._freed: list[int] = []  # ids of storages, until it is written
        self._roles: dict[int, tuple[weakref.ref[Any], str, str, Optional[str]]] = {}  # of storages that no op has had yet
        self._shards: dict[int, list[tuple[weakref.ref[Any], tuple[Any, ...], dict[str, Any]]]] = {}  # the same of parts of DTensors
        self._generators: dict[str, torch.Tensor] = {}
        self._modes: Optional[dict[str, Any]] = None
        self._part = 0
        self._part_kind = ""
        self._backwards = 0
        self._in_backward = False
        self._arriving: dict[int, tuple[int, int, torch.Tensor]] = {}  # storage -> op and tensor of a collective that may still run
        self._functional: set[int] = set()  # of these storages, those of functional collectives
        self._drawing: tuple[str, Optional[torch.Generator]] = ("cpu", None)
        self.instruction: Optional[tuple[int, int]] = None  # that the op before ran in
        self._foreign: dict[int, Held] = {}  # by id: memory on the CPU that others may write, as numpy does, but for weights and what belongs to them
        self._late: list[tuple[int, list[Optional[torch.Tensor]]]] = []
        self.parameter_names: dict[int, str] = {}
        self._module_names: dict[int, str] = {}
        self.members: dict[int, dict[str, Any]] = {}  # by id of an optimizer
        if recording.model is not None:
            self._name_model(recording.model)
        else:
            self.where.entered = self._adopt
        for optimizer in recording.optimizers:
            self.name_states(optimizer, recording.model)

    def begin_step(self, update: int) -> None:
        self.where.begin_step()
        self.stream.write({"k": "step", "n": update})

    def end(self, error: Optional[str]) -> None:
        self._write_late()
        if self._in_backward:
            self._name_gradients()
        self.free_gone()
        self.stream.write({"k": "end", "ops": self.recording.ops} | ({"error": error} if error else {}))
        self.stream.close()

    # -- names

    def _role(self, tensor: Any, role: str, name: str, state: Optional[str] = None) -> None:
        shard = shard_of(tensor)
        if shard is not None:
            self._shard(shard[0], {"role": role, "name": name} | ({"state": state} if state else {}) | shard[1])
        tensor = below(tensor)
        if tensor is not None and tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            if role == "gradient" and tensor.numel() * tensor.element_size() != storage.nbytes():  # as a bucket of DDP holds several
                self._shard(tensor, {"role": role, "name": name, "sizes": list(tensor.shape), "mesh": [], "placements": []})
            memory = self.memory(tensor)
            if memory is not None:
                self._write_name(memory.id, role, name, state)
            else:
                self._roles[storage._cdata] = (weakref.ref(storage), role, name, state)

    def _shard(self, local: torch.Tensor, fields: dict[str, Any]) -> None:
        """What a rank's part of a DTensor is; said once an op has its storage, as names are."""
        storage, key = local.untyped_storage(), geometry(local)
        memory = self.memory(local)
        if memory is not None:
            self._write_shard(memory.id, key, fields)
        else:
            self._shards.setdefault(storage._cdata, []).append((weakref.ref(storage), key, fields))

    def _write_shard(self, storage: int, key: tuple[Any, ...], fields: dict[str, Any]) -> None:
        number = self.stream.once("tensor", (storage, *key), lambda: fields_of(storage, key))
        self.stream.once("shard", (number, fields["role"], fields["name"], fields.get("state")), lambda: {"t": number} | fields)

    def _write_name(self, storage: int, role: str, name: str, state: Optional[str]) -> None:
        self._foreign.pop(storage, None)
        self.stream.once("name", (storage, role, name, state), lambda: {"storage": storage, "role": role, "name": name} | ({"state": state} if state else {}))

    def _name_model(self, model: torch.nn.Module) -> None:
        if any(type(p) not in _PLAIN for p in model.parameters()):
            self._module_names = {id(module): name for name, module in model.named_modules()}
            self.where.left = self._name_gathered
        for name, parameter in model.named_parameters():
            self._role(parameter, "parameter", name)
            self._role(parameter.grad, "gradient", name)
        for name, buffer in model.named_buffers():
            self._role(buffer, "buffer", name)

    def _name_gathered(self, module: torch.nn.Module) -> None:
        """After a module ran, before it is sharded again: its parameters are whole, in memory of their own."""
        path = self._module_names.get(id(module))
        for key, parameter in module._parameters.items() if path is not None else ():
            if parameter is not None and type(parameter) in _PLAIN:
                name = f"{path}.{key}" if path else key
                self.parameter_names[id(parameter)] = name
                self._role(parameter, "gathered", name)

    def _adopt(self, module: torch.nn.Module) -> None:
        """If no model was given: takes the outermost module that begins now as the model if it has parameters that an optimizer updates."""
        own = {id(p) for p in module.parameters()}
        given = [p for optimizer in self.recording.optimizers for group in optimizer.param_groups for p in group["params"]]
        if own and (not given or any(id(p) in own for p in given)):
            self.where.entered = None
            self.recording.model = module
            self._name_model(module)
            for optimizer in self.recording.optimizers:
                self.name_gradients(optimizer, module)
                self.name_states(optimizer, module)

    def name_gradients(self, optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]) -> None:
        self.members[id(optimizer)] = members(optimizer, model)
        for parameter, name in named(optimizer, model):
            self._role(parameter, "parameter", name)
            self._role(parameter.grad, "gradient", name)

    def _name_gradients(self) -> None:
        """Names gradients after a backward. The optimizer would, but a scaler that skips the step does not call it."""
        for name, parameter in self.recording.model.named_parameters() if self.recording.model is not None else ():
            self._role(parameter.grad, "gradient", name)
        for optimizer in self.recording.optimizers:
            self.name_gradients(optimizer, self.recording.model)

    def optimized(self) -> list[str]:
        """Names of the parameters that the optimizers were given and that require a gradient."""
        return [name for optimizer in self.recording.optimizers for parameter, name in named(optimizer, self.recording.model) if parameter.requires_grad]

    def name_states(self, optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]) -> None:
        self.members.setdefault(id(optimizer), members(optimizer, model))
        for parameter, name in named(optimizer, model):
            for key, value in optimizer.state.get(parameter, {}).items():
                self._role(value, "optimizer", name, str(key))

    # -- memory

    def _storage(self, tensor: torch.Tensor, is_input: bool) -> int:
        self._forget_gone()
        storage = tensor.untyped_storage()
        key = storage._cdata
        found = self._storages.get(key)
        if found is not None and found[0]() is storage:
            memory = found[1]
            if storage.nbytes() > memory.bytes:  # resize_ of a storage leaves no op
                memory.bytes = storage.nbytes()
                self.stream.write({"k": "resized", "id": memory.id, "bytes": memory.bytes})
            return memory.id
        number = self.stream.new_id("storage")
        record: dict[str, Any] = {"k": "storage", "id": number, "bytes": storage.nbytes(), "device": str(tensor.device)}
        memory = Memory(number, storage.nbytes())
        if is_input and storage.nbytes() and tensor.device.type != "meta":
            raw = bytes_of(storage, tensor.device)
            if self.stream.written + storage.nbytes() > self.recording.limits.folder_bytes:
                digest = hashed(raw)
                record |= {"missing": "Limits.folder_bytes", "digest": text(int(digest)) if digest is not None else None}
                self.note("input data is missing: it exceeds Limits.folder_bytes")
            else:
                self.stream.data.add(f"s{number}", raw.to("cpu") if raw.device.type != "cpu" else raw.clone())
                record["data"] = f"s{number}"
        self.stream.write(record)
        held = Held(storage, self._gone.append)
        held.key, held.number = key, number
        self._storages[key] = (held, memory)
        if tensor.device.type == "cpu" and not storage.resizable():
            self.is_foreign(storage)
        self.on_gpu |= tensor.device.type == "cuda"
        waiting = self._roles.pop(key, None)
        if waiting is not None and waiting[0]() is storage:  # else its storage went, as gradients from before the step do, and another has its place
            self._write_name(number, *waiting[1:])
        for reference, geometry_, fields in self._shards.pop(key, []):
            if reference() is storage:
                self._write_shard(number, geometry_, fields)
        return number

    def _forget_gone(self) -> None:
        """Forgets freed storages: another storage may have their address."""
        while self._gone:
            held = self._gone.popleft()
            found = self._storages.get(held.key)
            if found is not None and found[0] is held:
                del self._storages[held.key]
            self._foreign.pop(held.number, None)
            self._freed.append(held.number)

    def memory(self, tensor: torch.Tensor) -> Optional[Memory]:
        return self.memory_of(tensor.untyped_storage()) if tensor.layout == torch.strided else None

    def memory_of(self, storage: Any) -> Optional[Memory]:
        self._forget_gone()
        found = self._storages.get(storage._cdata)
        return found[1] if found is not None else None

    def storages_of(self, tensors: Iterable[torch.Tensor]) -> list[int]:
        """Ids of the known storages."""
        return [found.id for found in map(self.memory, tensors) if found is not None]

    def tensor(self, tensor: torch.Tensor, is_input: bool) -> int:
        key, fields = described(tensor, lambda one: self._storage(one, is_input), lambda one: self.tensor(one, is_input))
        return self.stream.once("tensor", key, lambda: fields)

    def is_foreign(self, storage: Any, stack: Optional[int] = None) -> None:
        """From here on, code outside of PyTorch may write the storage. `stack`: where that code got it."""
        found, size = self._storages.get(storage._cdata), storage.nbytes()
        if found is not None and found[0]() is storage and size:
            held, memory = found
            memory.given = (stack, self.recording.ops)
            self._foreign[memory.id] = held
            if memory.digest is None:
                memory.digest, memory.since = _digest(storage), self.recording.ops - 1

    def look(self, tensor: torch.Tensor, stack: Optional[int]) -> None:
        """Finds bytes that changed without an op: each time in memory that others may write, else once for each storage and part of the step. On a GPU that would wait for
        it, and is left out."""
        memory = self.memory(tensor)
        read_apart = memory is not None and memory.digest is None and self._modes is not None and self._modes["phase"] in ("accumulation", "hook")  # DDP's buckets, which hooks write from threads
        if memory is not None and tensor.device.type == "cpu" and (memory.looked != self._part or memory.id in self._foreign or read_apart):
            memory.looked = self._part
            self._compare(memory, tensor.untyped_storage(), stack)

    def look_around(self, stack: Optional[int]) -> None:
        """The same for small memory that others may write, also where the op that follows does not read it: its write is then found at the line where it was made."""
        for held in list(self._foreign.values()):
            storage = held()
            found = self._storages.get(held.key)
            if storage is not None and found is not None and storage.nbytes() <= _SMALL:
                self._compare(found[1], storage, stack)

    def _compare(self, memory: Memory, storage: Any, stack: Optional[int]) -> None:
        digest = _digest(storage)
        if memory.digest is not None and digest != memory.digest:
            where, ops = memory.given
            known = where is not None and ops > memory.since
            stack = where if known else stack
            name = f"x{self.stream.new_id('external')}"
            self.stream.data.add(name, bytes_of(storage, torch.device("cpu")).clone())
            external = {"k": "external", "storage": memory.id, "data": name} | ({"stack": stack} if stack is not None else {})
            self.stream.write(external | ({"since": memory.since} if memory.since >= 0 else {}) | ({"known": True} if known else {}))
        memory.digest, memory.since = digest, self.recording.ops - 1

    def wrote(self, tensor: torch.Tensor, value: Optional[torch.Tensor], fresh: bool) -> None:
        """Updates what is known of a storage after an op wrote a tensor."""
        memory = self.memory(tensor)
        if memory is None:
            return
        whole = tensor.is_contiguous() and tensor.storage_offset() == 0 and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes() and not tensor.is_conj()
        memory.digest = int(value) if whole and value is not None and tensor.device.type == "cpu" else None
        memory.looked = -1 if fresh else self._part
        memory.since = self.recording.ops

    def note(self, note: str) -> None:
        if note not in self.recording.notes:
            self.recording.notes.append(note)

    # -- around ops

    def change_modes(self, place: Place) -> None:
        """Writes a change of modes, and the begin of a backward."""
        autocast = {kind: str(torch.get_autocast_dtype(kind)).removeprefix("torch.") for kind in casting()}
        modes = {"grad": torch.is_grad_enabled(), "inference": torch.is_inference_mode_enabled(), "autocast": autocast, "phase": place.phase}
        within = place.node is not None
        if within and not self._in_backward:
            in_eval = self.where.taken_in_eval()
            self.stream.write({"k": "backward", "n": self._backwards} | ({"eval": in_eval} if in_eval else {}))
            self._backwards += 1
            if self.recording.model is not None:
                self.parameter_names.update({id(p): name for name, p in self.recording.model.named_parameters()})
        elif self._in_backward and not within:
            self._name_gradients()
        self._in_backward = within
        if modes != self._modes:
            self._modes = modes
            self.stream.write({"k": "mode", **modes})
        part = "backward" if within else "update" if place.phase in ("clip", "optimizer") else "forward"
        if part != self._part_kind:
            self._part_kind = part
            self._part += 1

    def free_gone(self) -> None:
        self._forget_gone()
        for number in self._freed:
            self.stream.write({"k": "free", "id": number, "at": self.recording.ops - 1})
        self._freed.clear()

    def generator(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Optional[dict[str, Any]]:
        """The generator that an op draws from, with its state if that is not what the last draw left."""
        tags = getattr(function, "tags", ())
        if torch.Tag.nondeterministic_seeded not in tags:
            return None
        given = next((value for value in [*args, *kwargs.values()] if isinstance(value, torch.Generator)), None)
        device = next((value.device for value in [*args, *kwargs.values()] if isinstance(value, torch.Tensor)), kwargs.get("device"))
        name = f"{given.device}:{id(given):x}" if given is not None else "cpu" if device is None or torch.device(device).type == "cpu" else str(torch.device(device))
        state = given.get_state() if given is not None else torch.get_rng_state() if name == "cpu" else torch.cuda.get_rng_state(torch.device(name))
        drawn: dict[str, Any] = {"generator": name}
        before = self._generators.get(name.split(":")[0])  # what the draw before left, of whichever generator
        if before is None or not torch.equal(before, state):
            drawn["state"] = f"g{self.stream.new_id('state')}"
            self.stream.data.add(drawn["state"], state.clone())
        self._drawing = (name, given)
        return drawn

    def drawn(self) -> None:
        name, given = self._drawing
        self._generators[name.split(":")[0]] = given.get_state() if given is not None else torch.get_rng_state() if name == "cpu" else torch.cuda.get_rng_state(torch.device(name))

    def arrived(self, tensors: Iterable[torch.Tensor], waited: bool = False) -> None:
        """A collective writes in the background until somebody waits; who reads has waited, but for functional collectives, which `wait_tensor` waits for."""
        for tensor in tensors:
            memory = self.memory(tensor) if self._arriving else None
            if memory is None or memory.id in self._functional and not waited:
                continue
            self._functional.discard(memory.id)
            waiting = self._arriving.pop(memory.id, None)
            if waiting is not None and memory is not None:
                op, number, written = waiting
                value = hashed(written)
                arrived: dict[str, Any] = {"k": "arrived", "of": op, "t": number, "hash": text(int(value)) if value is not None else None}
                raw = bytes_of(written.untyped_storage(), written.device)
                if self.stream.written + raw.numel() <= self.recording.limits.folder_bytes:  # no reader has the other ranks
                    arrived["data"] = f"c{self.stream.new_id('arrival')}"
                    self.stream.data.add(arrived["data"], raw.to("cpu") if raw.device.type != "cpu" else raw.clone())
                self.stream.write(arrived)
                self.wrote(written, value, False)

    def arrives(self, memory: Memory, op: int, tensor: torch.Tensor, functional: bool) -> None:
        if functional:
            self._functional.add(memory.id)
        self._arriving[memory.id] = (op, self.tensor(tensor, False), tensor.detach())

    def hashes(self, op: int, values: list[Optional[torch.Tensor]]) -> Optional[list[Optional[str]]]:
        """The hashes as text; None for those on a GPU, which are written later."""
        if any(value is not None and value.device.type != "cpu" for value in values):
            self._late.append((op, values))
            if len(self._late) >= FLUSH_EVERY:
                self._write_late()
            return None
        return [text(int(value)) if value is not None else None for value in values]

    def _write_late(self) -> None:
        if self._late:
            there = [value for _, values in self._late for value in values if value is not None]
            read = iter(torch.stack([value.to(there[0].device) for value in there]).tolist())
            self.stream.write({"k": "hashes", "of": [[op, [text(next(read)) if value is not None else None for value in values]] for op, values in self._late]})
            self._late.clear()


def bytes_of(storage: Any, device: torch.device) -> torch.Tensor:
    """All bytes of a storage, as a tensor that shares them."""
    return torch.empty(0, dtype=torch.uint8, device=device).set_(storage)


def below(tensor: Any) -> Optional[torch.Tensor]:
    """The plain tensor that a subclass wraps, as a shard of a DTensor; a plain one itself; None for anything else."""
    while isinstance(tensor, torch.Tensor) and type(tensor) not in _PLAIN:
        parts: list[Any] = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]] if is_traceable_wrapper_subclass(tensor) else []
        wrapped = [part for part in parts if isinstance(part, torch.Tensor)]
        tensor = wrapped[0] if len(wrapped) == 1 else None
    return tensor if isinstance(tensor, torch.Tensor) else None


def _digest(storage: Any) -> Optional[int]:
    found = hashed(bytes_of(storage, torch.device("cpu")))
    return int(found) if found is not None else None


def named(optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]) -> Iterator[tuple[torch.Tensor, str]]:
    return ((parameter, name) for parameter, name, _ in parameters_of(optimizer, model))
