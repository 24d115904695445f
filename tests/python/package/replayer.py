"""A reader of recordings in Python, by docs/recording-format.md alone: runs the ops again and compares hashes. It shares no code with the writer."""
import json
from pathlib import Path

import numpy
import torch

MASK = (1 << 64) - 1


def key(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return (x ^ (x >> 31)) | 1


KEYS = numpy.array([key(i) for i in range(4096)], dtype=numpy.uint64)


def digest(tensor):
    """The hash of a tensor, as an integer."""
    if tensor.layout != torch.strided:
        parts = [tensor._indices(), tensor._values()] if tensor.layout == torch.sparse_coo else [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
        return sum(digest(part) * key((1 << 34) + place) for place, part in enumerate(parts)) & MASK
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu()
    raw = tensor.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    words = numpy.frombuffer(raw + b"\0" * (-len(raw) % 8), dtype="<u8").astype(numpy.uint64)
    total = len(raw) * key(1 << 33)
    with numpy.errstate(over="ignore"):
        for block in range(0, len(words), 4096):
            part = words[block:block + 4096]
            total += int((part * KEYS[:len(part)]).sum(dtype=numpy.uint64)) * key((1 << 32) + block // 4096)
    return total & MASK


def read_records(folder):
    """The records up to the first that is damaged."""
    records = []
    with open(Path(folder) / "ops.jsonl", encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                records.append(json.loads(line))
            except ValueError:
                break
    return records


def read_data(folder):
    """The data by name."""
    found = {}
    for path in sorted((Path(folder) / "data").glob("*.safetensors")):
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        for name, one in json.loads(raw[8:8 + size]).items():
            begin, end = one["data_offsets"]
            found[name] = bytearray(raw[8 + size + begin:8 + size + end])
    return found


class Replay:
    """Runs a recording. `differ` lists ops whose hash is another; `checked` counts hashes that were compared."""

    def __init__(self, folder):
        self.records, self.data = read_records(folder), read_data(folder)
        self.storages, self.tensors, self.generators = {}, {}, {}
        self.fresh = {}  # storage -> its record, until an op makes it
        self.differ, self.checked, self.ops = [], 0, 0
        self.late = {}
        for record in self.records:
            for op, hashes in record["of"] if record["k"] == "hashes" else []:
                self.late[op] = hashes
        self.grad = True

    def storage(self, number):
        if number not in self.storages:
            record = self.fresh[number]
            raw = self.data[record["data"]]
            assert len(raw) == record["bytes"], record
            self.storages[number] = torch.frombuffer(raw, dtype=torch.uint8).clone().untyped_storage() if raw else torch.UntypedStorage(0)
        return self.storages[number]

    def tensor(self, number):
        one = self.tensors[number]
        dtype = getattr(torch, one["dtype"])
        if "layout" in one:
            parts = {name: self.tensor(part) for name, part in one["parts"].items()}
            assert one["layout"] == "sparse_coo", one
            return torch.sparse_coo_tensor(parts["indices"], parts["values"], one["sizes"], is_coalesced=one["coalesced"], check_invariants=False)
        if self.fresh[one["storage"]]["device"] == "meta":
            return torch.empty_strided(one["sizes"], one["strides"], dtype=dtype, device="meta")
        storage = self.storage(one["storage"])
        size = torch.empty(0, dtype=dtype).element_size()
        reach = one["offset"] + sum((n - 1) * stride for n, stride in zip(one["sizes"], one["strides"])) + 1
        assert 0 in one["sizes"] or 0 <= one["offset"] and reach * size <= storage.nbytes(), one
        tensor = torch.empty(0, dtype=dtype).set_(storage, one["offset"], one["sizes"], one["strides"])
        tensor = torch._conj(tensor) if one.get("conj") else tensor
        return torch._neg_view(tensor) if one.get("neg") else tensor

    def value(self, value):
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if not isinstance(value, dict):
            return value
        (kind, one), = value.items()
        if kind == "t":
            return self.tensor(one)
        if kind == "float":
            return float(one)
        if kind == "complex":
            return complex(*map(self.value, one))
        if kind == "device":
            return torch.device(one)
        if kind in ("dtype", "layout", "memory_format"):
            return getattr(torch, one)
        if kind == "generator":
            return self.generators.get(one)
        return value

    def take(self, expected, results):
        """Puts the storages that an op made where the recording has them; returns the tensors in order."""
        if isinstance(expected, list):
            return [one for e, r in zip(expected, results) for one in self.take(e, r)]
        if isinstance(expected, dict) and "t" in expected:
            self.put(expected["t"], results)
            return [results]
        return []

    def put(self, number, result):
        one = self.tensors[number]
        if "layout" in one:
            parts = {"indices": result._indices(), "values": result._values()}
            for name, part in one["parts"].items():
                self.put(part, parts[name])
        elif one["storage"] not in self.storages and "data" not in self.fresh[one["storage"]]:
            self.storages[one["storage"]] = result.untyped_storage()

    def run(self):
        for record in self.records:
            self.step(record)
        return self

    def step(self, record):
        """One record. Tensors require no gradient; some kernels look at grad mode all the same."""
        with torch.set_grad_enabled(self.grad):
            getattr(self, "on_" + record["k"], lambda _: None)(record)

    def on_mode(self, record):
        self.grad = record["grad"]

    def on_storage(self, record):
        self.fresh[record["id"]] = record

    def on_tensor(self, record):
        self.tensors[record["id"]] = record

    def on_free(self, record):
        self.storages.pop(record["id"], None)

    def on_external(self, record):
        storage = self.storage(record["storage"])
        torch.empty(0, dtype=torch.uint8).set_(storage).copy_(torch.frombuffer(self.data[record["data"]], dtype=torch.uint8))

    def on_arrived(self, record):
        self.compare(record["of"], "arrived", [self.tensor(record["t"])], [record["hash"]])

    def on_op(self, record):
        self.ops += 1
        rng = record.get("rng")
        if rng is not None:
            self.draw(rng)
        results = self.opaque(record) if "opaque" in record or "higher_order" in record["op"] else self.call(record)
        tensors = self.take(record["out"], results) + [self.tensor(t) for t in record.get("writes", [])]
        hashes = record.get("hash") or self.late.get(record["n"])
        if hashes and not record.get("uninitialized"):
            self.compare(record["n"], record["op"], tensors, hashes)

    def draw(self, rng):
        name = rng["generator"]
        state = torch.frombuffer(self.data[rng["state"]], dtype=torch.uint8).clone() if "state" in rng else None
        if name == "cpu":
            if state is not None:
                torch.set_rng_state(state)
            return
        generator = self.generators.setdefault(name.split(":")[0], torch.Generator())
        if state is not None:
            generator.set_state(state)

    def call(self, record):
        return operator(record["op"])(*self.value(record["in"]), **self.value_of_keys(record.get("kw", {})))

    def value_of_keys(self, keyed):
        return {name: self.value(one) for name, one in keyed.items()}

    def opaque(self, record):
        """The recorded results of an op that no reader can run."""
        names = iter(record["values"])

        def made(out):
            if isinstance(out, list):
                return [made(one) for one in out]
            if not (isinstance(out, dict) and "t" in out):
                return out
            one, raw = self.tensors[out["t"]], self.data[next(names)]
            tensor = torch.frombuffer(raw, dtype=getattr(torch, one["dtype"])).clone() if raw else torch.empty(0, dtype=getattr(torch, one["dtype"]))
            return torch.empty_strided(one["sizes"], one["strides"], dtype=tensor.dtype).copy_(tensor.view(one["sizes"]))

        return made(record["out"])

    def compare(self, n, name, tensors, hashes):
        assert len(tensors) == len(hashes), (n, name, len(tensors), hashes)
        for tensor, expected in zip(tensors, hashes):
            if expected is not None:
                self.checked += 1
                if f"{digest(tensor):016x}" != expected:
                    self.differ.append((n, name))


def operator(name):
    namespace, rest = name.split(".", 1)
    packet, overload = rest.rsplit(".", 1)
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)
