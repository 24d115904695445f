#include "core/export/python_runtime.h"

namespace retrograd {

std::string_view pythonRuntime() {
  return R"(import _operator
import argparse
import contextlib
import json
import math
import mmap
import os
import struct
import types

import torch

DTYPES = {"BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "I32": torch.int32, "I64": torch.int64,
          "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64, "C64": torch.complex64}
DTYPES.update({name: getattr(torch, dtype) for name, dtype in (
    ("U16", "uint16"), ("U32", "uint32"), ("U64", "uint64"), ("F8_E4M3", "float8_e4m3fn"), ("F8_E5M2", "float8_e5m2"),
    ("F8_E8M0", "float8_e8m0fnu")) if hasattr(torch, dtype)})


def load(path):
    """Tensors of a safetensors file by name, mapped: only what is used is read."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size <= 10:
            return {}
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    begin = 8 + struct.unpack("<Q", memory[:8])[0]
    tensors = {}
    for name, entry in json.loads(memory[8:begin]).items():
        if name == "__metadata__":
            continue
        dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
        first, last = entry["data_offsets"]
        if first == last:
            tensors[name] = torch.empty(shape, dtype=dtype)
        else:
            flat = torch.frombuffer(memory, dtype=dtype, count=(last - first) // dtype.itemsize, offset=begin + first)
            if dtype.is_complex and flat.data_ptr() % 16:  # kernels rely on it
                flat = flat.clone()
            tensors[name] = flat.view(shape)
    return tensors


def save(path, tensors, seed):
    """Writes a safetensors file; complex tensors as pairs of reals, named in its metadata."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    header, data, at = {}, [], 0
    header["__metadata__"] = {"seed": str(seed), "complex_keys": ",".join(name for name, tensor in tensors.items() if tensor.is_complex())}
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        tensor = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).contiguous()
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        data.append(tensor.reshape(-1).view(torch.uint8) if size else None)
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in data:
            if tensor is not None:
                file.write(bytes(tensor.untyped_storage())[tensor.storage_offset():tensor.storage_offset() + tensor.numel()])


def strided(tensor, sizes, strides, offset=0):
    """What lies in a storage that was saved flat, with the strides that it had."""
    return tensor.as_strided(sizes, strides, offset)


draws = {}    # states of the generators before draws that are replayed
mutated = {}  # what the forward writes in place, by name


def generators():
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []


def set_generators(states):
    torch.set_rng_state(states[0])
    if states[1]:
        torch.cuda.set_rng_state_all(states[1])


def keep(draw):
    """Keeps from where a draw starts, for it will be replayed."""
    draws[draw] = generators()


@contextlib.contextmanager
def replay(draw):
    """The same draw once more; the generators go on afterwards as if nothing had been drawn."""
    states = generators()
    set_generators(draws[draw])
    yield
    set_generators(states)


def named(names, values):
    return {name: value for name, value in zip(names, values) if name and torch.is_tensor(value)}


def values(pairs):
    return [value for _, value in pairs]


)";
}

std::string_view pythonMain() {
  return R"(

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", metavar="FILE", help="write the results to this safetensors file")
    options = parser.parse_args()
    given, results = run()
    for name, tensor in results.items():
        size = torch.linalg.vector_norm(tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64)).item()
        print(f"{name}: {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}, norm {size:.9g}")
    if options.save:
        save(options.save, given | results, SEED)


if __name__ == "__main__":
    main()
)";
}

}  // namespace retrograd
