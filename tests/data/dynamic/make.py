#!/usr/bin/env python3
"""Makes the models of dynamic shapes beside it (PyTorch 2.15): each exported for some sizes, its reference computed by eager
autograd for others. Keys of ref.safetensors: in.NAME, cot.N, out.N, grad.in.NAME, grad.p.NAME."""
import json
import logging
import math
import pathlib
import re
import struct

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim
from torch.export.pt2_archive import _package as package

HERE = pathlib.Path(__file__).resolve().parent


class Attention(nn.Module):
    """Batch and length dynamic: views, matmul, a mask of dynamic size, softmax, flash attention, layer norm, mean."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, 2, 4).transpose(1, 2) for part in self.qkv(x).split(c, dim=2))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(4)
        mask = torch.tril(torch.ones(t, t)).view(1, 1, t, t)
        y = scores.masked_fill(mask == 0, float("-inf")).softmax(-1) @ v
        y = y + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.out(y.transpose(1, 2).contiguous().view(b, t, c))
        return self.norm(x + y), y.reshape(b * t, c).mean()


class Convolution(nn.Module):
    """Batch, height and width dynamic: strides, pooling with ceil_mode, batch norm."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(3)

    def forward(self, x):
        y = F.relu(self.norm(self.first(x)))
        y = F.max_pool2d(self.second(y), 3, stride=2, ceil_mode=True)
        return F.avg_pool2d(y, 2, padding=1), y.mean((2, 3))


class Shapes(nn.Module):
    """Two symbols: cat, slices, chunk, split, stack, expand, arange, unflatten, repeat, pad, an unused output of chunk."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(300, 6)

    def forward(self, x, y):
        n, m = x.shape[0], y.shape[0]
        both = torch.cat([x + self.embedding(torch.arange(n)), y], 0)
        a, b = both[:n], both[n:]
        c = torch.stack([a.mean(0), b.sum(0)])
        wide = x.unsqueeze(1).expand(n, 3, 6).reshape(n * 3, 6).unflatten(0, (n, 3)).sum(1)
        head, _ = F.pad(both, (0, 0, 1, 2)).chunk(2, 0)
        first, rest = y.split([2, m - 2], 0)
        return c, wide * n, (a @ b.t()) / (n * m), head.exp(), rest.cumsum(0) + first.sum(0), y.repeat(2, 1)


class Loss(nn.Module):
    """One symbol shared by two inputs, with a range; mean over a dynamic batch."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 10)

    def forward(self, x, target):
        logits = self.layer(x)
        return F.cross_entropy(logits, target) + F.mse_loss(logits.mean(1), target.float())


class Halves(nn.Module):
    """Sizes that are twice a symbol, and a number among the inputs."""

    def forward(self, x, n: int):
        half = x.shape[0] // 2
        return x.view(2, half, 4).sum(0), x.view(half, 2, 4).prod(1).narrow(0, 0, n) * n


class Statistics(nn.Module):
    """In place on a slice of dynamic length; variance: literals that are 2/(n - 1)."""

    def forward(self, x):
        y = x * 2
        y[1:].mul_(3)
        y.add_(1)
        return y.var(0), y.std()


class Selection(nn.Module):
    """Data decide a size."""

    def forward(self, x):
        y = x[x > 0]
        return y.sum() + x.mean(), y * 2


class Recurrence(nn.Module):
    """LibTorch's fused LSTM has a workspace whose size is known to it alone."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0].sum(1)



CASES = {  # model, inputs on export, dynamic dimensions, inputs of the reference, decomposed too
    "attention": (Attention, lambda: (torch.randn(3, 5, 8),), {"x": {0: Dim("b", min=2, max=64), 1: Dim("t", min=2, max=128)}},
                  lambda: (torch.randn(4, 7, 8),), False),
    "convolution": (Convolution, lambda: (torch.randn(2, 2, 20, 24),), {"x": {0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO}},
                    lambda: (torch.randn(3, 2, 27, 18),), False),
    "shapes": (Shapes, lambda: (torch.randn(5, 6), torch.randn(7, 6)), {"x": {0: Dim.DYNAMIC}, "y": {0: Dim.DYNAMIC}},
               lambda: (torch.randn(8, 6), torch.randn(4, 6)), True),
    "loss": (Loss, lambda: (torch.randn(6, 8), torch.randint(0, 10, (6,))),
             {"x": {0: Dim("n", min=2, max=512)}, "target": {0: Dim("n", min=2, max=512)}},
             lambda: (torch.randn(9, 8), torch.randint(0, 10, (9,))), False),
    "halves": (Halves, lambda: (torch.randn(12, 4), 3), {"x": {0: 2 * Dim("h", min=3, max=40)}, "n": Dim.DYNAMIC},
               lambda: (torch.randn(22, 4), 7), False),
    "statistics": (Statistics, lambda: (torch.randn(6, 4),), {"x": {0: Dim.DYNAMIC}}, lambda: (torch.randn(9, 4),), False),
    "selection": (Selection, lambda: (torch.randn(6, 4),), {"x": {0: Dim.DYNAMIC}}, lambda: (torch.randn(5, 4),), False),
    "recurrence": (Recurrence, lambda: (torch.randn(3, 5, 4),), {"x": {0: Dim.DYNAMIC}}, lambda: (torch.randn(6, 5, 4),), False),
}

DTYPES = {torch.float32: "F32", torch.int64: "I64"}


def without_folders(write):
    """Source places in an archive say which file, not where it lay on the machine that made it."""

    def written(self, name, data):
        if name.endswith("model.json"):
            data = re.sub(rb'File \\"[^"]*?/(site-packages/[^"]*|[^"/]*)\\"', rb'File \\"\1\\"', data)
        write(self, name, data)

    return written


def write_safetensors(path, tensors):
    header, blobs, offset = {"__metadata__": {"seed": "0", "complex_keys": ""}}, [], 0
    for key, tensor in tensors.items():
        blob = tensor.detach().contiguous().numpy().tobytes()
        header[key] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def reference(model, names, inputs):
    tensors, leaves = {}, {}
    for name, value in zip(names, inputs):
        tensors["in." + name] = value if isinstance(value, torch.Tensor) else torch.tensor(value)
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            leaves["in." + name] = value.requires_grad_(True)
    leaves.update(("p." + name, parameter) for name, parameter in model.named_parameters())
    outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    cotangents = [torch.randn_like(output) for output in outputs]
    gradients = torch.autograd.grad(outputs, list(leaves.values()), cotangents)
    for i, (output, cotangent) in enumerate(zip(outputs, cotangents)):
        tensors[f"out.{i}"], tensors[f"cot.{i}"] = output, cotangent
    tensors.update(("grad." + key, gradient) for key, gradient in zip(leaves, gradients))
    return tensors


def main():
    logging.disable(logging.WARNING)
    writer = package.PT2ArchiveWriter
    writer.write_bytes = without_folders(writer.write_bytes)
    for name, (make, example, dynamic, other, decomposed) in CASES.items():
        torch.manual_seed(0)
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        model = make()
        program = torch.export.export(model, example(), dynamic_shapes=dynamic)
        torch.export.save(program, folder / "model.pt2")
        if decomposed:
            torch.export.save(program.run_decompositions(), folder / "core.pt2")
        write_safetensors(folder / "ref.safetensors", reference(model, list(dynamic), other()))
        print(name, dict(program.range_constraints))


main()
