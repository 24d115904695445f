"""Writes the stream and the data of a recording (docs/recording-format.md)."""
from __future__ import annotations

import ctypes
import json
import math
import os
import traceback
from pathlib import Path
from typing import Any, Callable, Hashable, Optional, Sequence

import torch
from torch.nn.parameter import is_lazy

from ._hash import parts_of

FORMAT, VERSION = "retrograd.recording", 1
SHARD = 64 << 20
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode  # made once: json.dumps makes one for each record


class DataFiles:
    """Writes tensors by name, in files of about 64 MiB. A file gets its name when it is complete."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(mode=0o700)
        self.written = 0
        self._waiting: dict[str, torch.Tensor] = {}
        self._size = 0
        self._count = 0

    def add(self, name: str, raw: torch.Tensor) -> None:
        """`raw`: bytes on the CPU that nobody writes any more."""
        self._waiting[name] = raw
        self._size += raw.numel()
        self.written += raw.numel()
        if self._size >= SHARD:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        header: dict[str, Any] = {}
        offset = 0
        for name, raw in self._waiting.items():
            header[name] = {"dtype": "U8", "shape": [raw.numel()], "data_offsets": [offset, offset + raw.numel()]}
            offset += raw.numel()
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        path = self.folder / f"{self._count:05d}.safetensors"
        partial = path.with_suffix(".partial")
        with open(partial, "wb") as file:
            file.write(len(text).to_bytes(8, "little"))
            file.write(text)
            for raw in self._waiting.values():
                if raw.numel():
                    file.write(memoryview((ctypes.c_char * raw.numel()).from_address(raw.data_ptr())))
        os.replace(partial, path)
        self._count += 1
        self._waiting.clear()
        self._size = 0


class Stream:
    """Writes records, one JSON object per line. What several records refer to is written once, before the first of them."""

    def __init__(self, folder: Path, source: bool):
        self.data = DataFiles(folder / "data")
        self.path = folder / "ops.jsonl"
        self._file = open(self.path, "w", buffering=1 << 16, encoding="utf-8")
        self._source = source
        self._characters = 0
        self._ids: dict[tuple[str, Hashable], int] = {}
        self._counts: dict[str, int] = {}
        self.write({"k": "begin", "format": FORMAT + ".ops", "version": VERSION})

    @property
    def written(self) -> int:
        """Bytes written so far."""
        return self._characters + self.data.written

    def write(self, record: dict[str, Any]) -> None:
        line = _encode(record)
        self._file.write(line + "\n")
        self._characters += len(line) + 1

    def new_id(self, kind: str) -> int:
        number = self._counts.get(kind, 0)
        self._counts[kind] = number + 1
        return number

    def once(self, kind: str, key: Hashable, fields: Callable[[], dict[str, Any]]) -> int:
        """The id of a record that is written at its first use."""
        found = self._ids.get((kind, key))
        if found is None:
            described = fields()  # may write records of its own
            found = self._ids[kind, key] = self.new_id(kind)
            self.write({"k": kind, "id": found, **described})
        return found

    def stack(self, frames: Sequence[tuple[Any, int]]) -> Optional[int]:
        """Of (code object, line), the innermost last."""
        return self.once("stack", tuple(frames), lambda: {"frames": [self._frame(code, line) for code, line in frames]}) if frames else None

    def _frame(self, code: Any, line: int) -> int:
        def fields() -> dict[str, Any]:
            summary = traceback.FrameSummary(code.co_filename, line, code.co_name)
            return {"file": code.co_filename, "line": line, "function": code.co_name} | ({"code": (summary.line or "")[:500]} if self._source else {})

        return self.once("frame", (code, line), fields)

    def flush(self) -> None:
        self.data.flush()
        self._file.flush()

    def close(self) -> None:
        self.flush()
        self._file.close()


# ---- Values ----------------------------------------------------------------------------------------------------------------------------------------------


def plain(value: Any, tensor: Callable[[torch.Tensor], int]) -> Any:
    """An argument or result as JSON. `tensor` gives the id of a tensor."""
    if isinstance(value, torch.Tensor):
        return {"t": tensor(value)} if describable(value) else {"opaque": kind_of(value)}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, (list, tuple)):
        return [plain(one, tensor) for one in value]
    if isinstance(value, complex):
        return {"complex": [plain(value.real, tensor), plain(value.imag, tensor)]}
    if isinstance(value, torch.SymInt):
        return int(value)
    if isinstance(value, torch.SymFloat):
        return float(value)
    if isinstance(value, torch.SymBool):
        return bool(value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return {type(value).__name__: str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.Generator):
        return {"generator": str(value.device)}
    if isinstance(value, dict):
        return {"opaque": "dict"}
    return _of_distributed(value) or {"opaque": type(value).__name__}


def _of_distributed(value: Any) -> Optional[dict[str, Any]]:
    """A process group or a reduction, also as the dispatcher passes them."""
    if not torch.distributed.is_available():
        return None
    import torch.distributed as dist

    if isinstance(value, torch.ScriptObject):
        for kind in (dist.ProcessGroup, dist.ReduceOp):
            try:
                value = kind.unbox(value)
                break
            except (RuntimeError, TypeError, AttributeError):
                continue
    if isinstance(value, dist.ProcessGroup):
        return {"group": dist.get_process_group_ranks(value)}
    if isinstance(value, dist.ReduceOp):
        return {"reduce": str(getattr(value, "op", value)).split(".")[-1].rstrip(">").split(":")[0].lower()}
    return None


def kind_of(tensor: torch.Tensor) -> str:
    return "tensor without sizes yet" if is_lazy(tensor) else "zero tensor" if tensor._is_zerotensor() else "nested tensor" if tensor.is_nested else "quantized tensor" if tensor.is_quantized else f"tensor of the layout {str(tensor.layout).removeprefix('torch.')}"


def describable(tensor: torch.Tensor) -> bool:
    """Whether storages and sizes say what a tensor is. Nested ones of the layout torch.strided, quantized ones and those of oneDNN have more to them,
    those of modules that were never called less."""
    if is_lazy(tensor) or tensor._is_zerotensor():  # zeros of forward-mode derivatives have no memory
        return False
    return not tensor.is_nested and not tensor.is_quantized and (tensor.layout == torch.strided or bool(parts_of(tensor)))


def described(tensor: torch.Tensor, storage: Callable[[torch.Tensor], int], part: Callable[[torch.Tensor], int]) -> tuple[Hashable, dict[str, Any]]:
    """The description of a tensor. Tensors with equal descriptions are one."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout != torch.strided:
        parts = {name: part(one) for name, one in parts_of(tensor).items()}
        fields: dict[str, Any] = {"layout": str(tensor.layout).removeprefix("torch."), "sizes": list(tensor.shape), "dtype": dtype, "parts": parts}
        if tensor.layout == torch.sparse_coo:
            fields["coalesced"] = tensor.is_coalesced()
        return (fields["layout"], tuple(tensor.shape), dtype, tuple(parts.items()), fields.get("coalesced")), fields
    own, key = storage(tensor), geometry(tensor)
    return (own, *key), fields_of(own, key)


def geometry(tensor: torch.Tensor) -> tuple[Any, ...]:
    """How a strided tensor lies in its storage."""
    return tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.is_conj(), tensor.is_neg()


def fields_of(storage: int, key: tuple[Any, ...]) -> dict[str, Any]:
    """The record of a tensor that lies so in a storage."""
    fields = {"storage": storage, "offset": key[0], "sizes": list(key[1]), "strides": list(key[2]), "dtype": str(key[3]).removeprefix("torch.")}
    if key[4]:
        fields["conj"] = True
    if key[5]:
        fields["neg"] = True
    return fields
