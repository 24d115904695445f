"""The hash of a tensor's elements: 64 bits that depend on position, the same on each device (docs/recording-format.md)."""
from __future__ import annotations

from typing import Optional

import torch

_MASK = (1 << 64) - 1
_BLOCK = 4096
_keys: dict[torch.device, torch.Tensor] = {}
_block_keys: dict[torch.device, torch.Tensor] = {}


def key(x: int) -> int:
    """splitmix64 of x, odd."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 31)) | 1


def signed(x: int) -> int:
    x &= _MASK
    return x - (1 << 64) if x >> 63 else x


def _table(tables: dict[torch.device, torch.Tensor], device: torch.device, begin: int, count: int) -> torch.Tensor:
    table = tables.get(device)
    if table is None or table.numel() < count:
        size = max(count, 2 * table.numel() if table is not None else _BLOCK)
        table = tables[device] = torch.tensor([signed(key(begin + i)) for i in range(size)], dtype=torch.int64).to(device)
    return table[:count]


_of_bytes = signed(key(1 << 33))
_parts = (1 << 34)


def hashed(tensor: torch.Tensor) -> Optional[torch.Tensor]:
    """The hash as an int64 without dimensions, on the tensor's device. None for memory that has no bytes to read (meta tensors)."""
    if tensor.layout != torch.strided:
        parts = parts_of(tensor)
        found = [hashed(part) for part in parts.values()]
        if not found or any(one is None for one in found):
            return None
        total = torch.zeros((), dtype=torch.int64, device=tensor.device)
        for place, one in enumerate(found):
            assert one is not None
            total = total + one * signed(key(_parts + place))
        return total
    if tensor.device.type == "meta":
        return None
    plain = tensor.detach()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    size = plain.numel() * plain.element_size()
    if size == 0:
        return torch.zeros((), dtype=torch.int64, device=tensor.device)
    if not plain.is_contiguous() or plain.untyped_storage().data_ptr() % 8 or plain.storage_offset() * plain.element_size() % 8:
        plain = plain.clone(memory_format=torch.contiguous_format)
    raw = bytes_in_order(plain)
    whole = size // 8 * 8
    words = raw[:whole].view(torch.int64)
    keys = _table(_keys, raw.device, 0, _BLOCK)
    blocks = words.numel() // _BLOCK
    count = blocks + 1
    block_keys = _table(_block_keys, raw.device, 1 << 32, count)
    total = _dot(words[blocks * _BLOCK:], keys[: words.numel() - blocks * _BLOCK])
    if whole < size:
        rest = torch.zeros(8, dtype=torch.uint8, device=raw.device)
        rest[: size - whole] = raw[whole:]
        total = total + rest.view(torch.int64)[0] * keys[words.numel() - blocks * _BLOCK]
    total = total * block_keys[blocks]
    if blocks:
        sums = torch.mv(words[: blocks * _BLOCK].view(blocks, _BLOCK), keys) if raw.device.type == "cpu" else (words[: blocks * _BLOCK].view(blocks, _BLOCK) * keys).sum(1)
        total = total + _dot(sums, block_keys[:blocks])
    return total + signed(size * _of_bytes)


def bytes_in_order(plain: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor, which they share."""
    return plain.as_strided((plain.numel(),), (1,)).view(torch.uint8)  # a dimension of size 1 has any stride


def _dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.dot(a, b) if a.device.type == "cpu" else (a * b).sum()


def parts_of(tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """The strided tensors that a sparse one is made of."""
    if tensor.layout == torch.sparse_coo:
        return {"indices": tensor._indices(), "values": tensor._values()}
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return {"crow_indices": tensor.crow_indices(), "col_indices": tensor.col_indices(), "values": tensor.values()}
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return {"ccol_indices": tensor.ccol_indices(), "row_indices": tensor.row_indices(), "values": tensor.values()}
    return {}


def text(value: int) -> str:
    return f"{value & _MASK:016x}"
