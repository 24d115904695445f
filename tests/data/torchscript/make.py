"""Makes the TorchScript files of this folder, each with a reference beside it: inputs, cotangents, and what PyTorch itself computes from
the file (outputs, gradients, mutated buffers). Needs PyTorch 2.15; run it here: python make.py"""

import json
import os
import pickle
import struct
import warnings
import zipfile
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
SITE = os.path.dirname(os.path.dirname(torch.__file__))
DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.bool: "BOOL"}


def write_safetensors(path, tensors, metadata):
    header, body = {"__metadata__": metadata}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def leaves(value, path=""):
    """Flat names as Retrograd gives them: x, xs.0, batch.ids."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = zip(getattr(value, "_fields", range(len(value))), value)
    else:
        yield path, value
        return
    for key, item in items:
        yield from leaves(item, f"{path}.{key}" if path else str(key))


def prepared(value):
    if isinstance(value, torch.Tensor):
        return value.clone().requires_grad_(value.is_floating_point())
    if isinstance(value, dict):
        return {k: prepared(v) for k, v in value.items()}
    if isinstance(value, list):
        return [prepared(v) for v in value]
    if isinstance(value, tuple):
        return tuple(prepared(v) for v in value)
    return value


def as_tensor(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def reference(file, arguments, seed):
    module = torch.jit.load(file)
    arguments = {k: prepared(v) for k, v in arguments.items()}
    tensors = {"in." + k: as_tensor(v) for k, v in leaves(arguments)}
    before = {k: b.clone() for k, b in module.named_buffers()}
    torch.manual_seed(seed)
    with torch.jit.optimized_execution(False):  # the optimiser's dropout draws other numbers
        result = module(**arguments)
    draw = torch.Generator().manual_seed(7)
    roots, cotangents = [], []
    for i, (_, value) in enumerate(leaves(result)):
        if not isinstance(value, torch.Tensor):
            continue
        tensors[f"out.{i}"] = value
        if value.requires_grad:
            roots.append(value)
            cotangents.append(torch.randn(value.shape, generator=draw))
            tensors[f"cot.{i}"] = cotangents[-1]
    torch.autograd.backward(roots, cotangents)
    inputs = [(k, v) for k, v in leaves(arguments) if isinstance(v, torch.Tensor) and v.requires_grad]
    tensors.update({"grad.in." + k: v.grad for k, v in inputs if v.grad is not None})
    tensors.update({"grad.p." + k: p.grad for k, p in module.named_parameters() if p.grad is not None})
    tensors.update({"mut.b." + k: b for k, b in module.named_buffers() if not torch.equal(b, before[k])})
    write_safetensors(file[:-3] + ".safetensors", tensors, {"seed": str(seed), "requires_grad": ",".join(k for k, _ in inputs)})


def short(value):
    """The paths in a source table without the folders of the machine that made it."""
    if isinstance(value, str):
        return value.replace(HERE + os.sep, "").replace(SITE, "site-packages")
    return type(value)(short(v) for v in value) if isinstance(value, (list, tuple)) else value


def shorten_paths(file):
    with zipfile.ZipFile(file) as archive:
        records = [(name.split("/", 1)[1], archive.read(name)) for name in archive.namelist()]
    writer = torch._C.PyTorchFileWriter(file)
    for name, content in records:
        if name in ("version", "byteorder", ".data/serialization_id"):
            continue  # the writer adds them
        if name.endswith(".debug_pkl"):
            content = pickle.dumps(short(pickle.loads(content)), protocol=2)
        writer.write_record(name, content, len(content))
    writer.write_end_of_file()


def scripted(name, module, seed=3, **arguments):
    file = os.path.join(HERE, name + ".pt")
    torch.jit.script(module).save(file)
    if arguments:
        reference(file, arguments, seed)
    shorten_paths(file)


def traced(name, module, seed=3, **arguments):
    file = os.path.join(HERE, name + ".pt")
    torch.jit.trace(module, tuple(arguments.values()), check_trace=False).save(file)
    reference(file, arguments, seed)
    shorten_paths(file)


class Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])

    def forward(self, x, rounds: int = 2, scale: float = 1.5):
        done = 0
        while done < rounds:
            for k, layer in enumerate(self.layers):
                x = torch.tanh(layer(x)) if k % 2 == 0 else layer(x)
            if x.sum() > 0:
                x = x * 2
            done += 1
        return x * scale


class Branches(nn.Module):
    """Sizes, numbers of sizes and literals, as tracing writes them."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))

    def forward(self, x):
        half = x.shape[0] // 2
        return self.body(x).reshape(half, -1) * 2 + x.size(1)


class Dropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.drop = nn.Linear(4, 4), nn.Dropout(0.4)

    def forward(self, x):
        return self.drop(torch.relu(self.drop(self.linear(x)))) + torch.rand_like(x)


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("last", torch.ones(2, 3))

    def forward(self, x):
        y = self.linear(x)
        y[:, 0] = 0.5
        y[1] += 1.0
        y.mul_(2).add_(self.total)
        self.total += y.detach().mean(0)
        self.last = self.last * 0.5
        return y * self.last


class Containers(nn.Module):
    class Pair(NamedTuple):
        first: torch.Tensor
        second: torch.Tensor

    def forward(self, xs: List[torch.Tensor], batch: Dict[str, torch.Tensor], t: Tuple[torch.Tensor, Tuple[torch.Tensor, int]], mask: Optional[torch.Tensor] = None):
        y = xs[0] * xs[1] + batch["ids"]
        if mask is not None:
            y = y * mask
        by_name: Dict[str, torch.Tensor] = {}
        for i, x in enumerate(xs):
            by_name["x" + str(i)] = x.exp()
        return Pair(y, t[0] * t[1][0] * t[1][1]), by_name, [x * 2 for x in xs], len(xs)


Pair = Containers.Pair


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(4), nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.ModuleList([Block(), Block()]), nn.Linear(4, 2)
        self.scale = torch.full((2,), 3.0)  # neither parameter nor buffer

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x) * self.scale


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, i):
        return self.out(self.embed(i))


class NoGrad(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight.requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            frozen = self.a(x) * 2
        return self.a(x) * frozen + self.b(x), x.detach() * x


class Seeding(nn.Module):
    """Does what no opened file may do: it changes the generator of the program that runs it."""

    def forward(self, x):
        torch.manual_seed(1)
        return x * 2


class Stateful(nn.Module):
    """Its state is restored by code of its own."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    @torch.jit.export
    def __getstate__(self):
        return self.weight, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[torch.Tensor, bool]):
        self.weight = state[0] * 2
        self.training = state[1]

    def forward(self, x):
        return x * self.weight


def main():
    torch.manual_seed(0)
    randn = torch.randn
    scripted("control", Control(), x=randn(2, 3), rounds=3, scale=2.5)
    traced("traced", Branches(), x=randn(4, 4))
    scripted("dropout", Dropout(), x=randn(3, 4))
    scripted("inplace", InPlace(), x=randn(2, 3))
    scripted("batchnorm", nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.ReLU(inplace=True)), input=randn(2, 2, 5))
    scripted("containers", Containers(), xs=[randn(2), randn(2)], batch={"ids": randn(2)}, t=(randn(2), (randn(2), 3)))
    scripted("nested", Nested(), x=randn(2, 4))
    scripted("tied", Tied(), i=torch.tensor([1, 4, 1]))
    scripted("nograd", NoGrad(), x=randn(2, 3))
    scripted("seeding", Seeding())
    scripted("stateful", Stateful())
    scripted("cpp_class", torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 2)), {nn.Linear}, dtype=torch.qint8))


if __name__ == "__main__":
    main()
