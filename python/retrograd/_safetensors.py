"""Writes a .safetensors file: a header in JSON with the place of each tensor, then the bytes. Needs only PyTorch."""
from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Mapping

import torch

_NAMES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
          torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}


def storable(tensor: torch.Tensor) -> bool:
    """Whether the format has the tensor's dtype. Complex tensors are written as pairs of real numbers."""
    return tensor.layout == torch.strided and (tensor.dtype in _NAMES or tensor.is_complex())


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """A dense copy on the CPU, as the file holds it."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.to("cpu").contiguous()


def write(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
    """Writes `tensors` by name. Raises ValueError for a dtype that the format lacks."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    dense: list[torch.Tensor] = []
    offset = 0
    for name, tensor in tensors.items():
        if not storable(tensor):
            raise ValueError(f"{name} is {tensor.dtype}, which a .safetensors file cannot hold")
        tensor = plain(tensor)
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
        dense.append(tensor)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for tensor in dense:
            size = tensor.numel() * tensor.element_size()
            if size:
                file.write(memoryview((ctypes.c_char * size).from_address(tensor.data_ptr())))
