"""A drawn model that trains for two updates under `retrograd.record`, right or with one planted fault.

drawn.py SEED OUT [--fault KIND --at BLOCK] [--dtype bfloat16] [--threads N] [--recompute plain] [--dropout P] [--reorder] [--attention math] [--batch N]

A line that a fault changes ends with `# right: KIND` where it is right and with `# fault: KIND` where it is not."""
import argparse
import contextlib
import random

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch.nn.attention import SDPBackend, sdpa_kernel

import retrograd

FAULTS = ["cast", "mask", "reduction", "scale", "stale", "epsilon"]


class Norm(torch.nn.Module):
    """Root mean square, in float32 as models in bfloat16 have it."""

    def __init__(self, width, bad=False):
        super().__init__()
        self.weight, self.bad = torch.nn.Parameter(torch.ones(width)), bad

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)
        if self.bad:
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)  # fault: cast
        return self.weight * y.to(x.dtype)  # right: cast


class Cast(torch.nn.Module):
    """A gate that is computed in bfloat16: the sum before the cast, or behind it."""

    def __init__(self, width, bad):
        super().__init__()
        self.gate, self.bad = torch.nn.Linear(width, width), bad

    def forward(self, x):
        a, b = self.gate(x), x.tanh()
        if self.bad:
            y = a.bfloat16() + b.bfloat16()  # fault: cast
        else:
            y = (a + b).bfloat16()  # right: cast
        return x + torch.sigmoid(y.to(x.dtype))


class Attention(torch.nn.Module):
    def __init__(self, width, bad):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(width), torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.bad = bad

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        scores = q @ k.transpose(1, 2)
        if self.bad != "scale":
            scores = scores / x.shape[-1] ** 0.5  # right: scale
        if self.bad != "mask":
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(mask, float("-inf"))  # right: mask
        return x + self.out(torch.softmax(scores, -1) @ v)


class Fused(torch.nn.Module):
    """Attention by PyTorch's own kernel."""

    def __init__(self, width, bad):
        super().__init__()
        self.norm, self.qkv, self.out = Norm(width), torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        return x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Feed(torch.nn.Module):
    def __init__(self, width, bad):
        super().__init__()
        self.eps = random.Random(width).choice([1e-3, 1e-4, 1e-6]) if bad == "epsilon" else 1e-5
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        y = F.layer_norm(x, x.shape[-1:], eps=self.eps)  # right: epsilon  # fault: epsilon
        return x + self.down(F.gelu(self.up(y)))


class Pooled(torch.nn.Module):
    """Adds what is common to all places."""

    def __init__(self, width, bad):
        super().__init__()
        self.mix, self.bad = torch.nn.Linear(width, width), bad

    def forward(self, x):
        y = self.mix(x)
        if self.bad == "reduction":
            common = y.sum(1, keepdim=True)  # fault: reduction
        else:
            common = y.mean(1, keepdim=True)  # right: reduction
        return x + torch.tanh(common)


class Averaged(torch.nn.Module):
    """Divides by a running average of the size, which each step moves."""

    def __init__(self, width, bad):
        super().__init__()
        self.mix, self.bad = torch.nn.Linear(width, width), bad
        self.register_buffer("size", torch.ones(()))

    def forward(self, x):
        y = self.mix(x)
        z = y / self.size.clone()
        if self.bad != "stale":
            self.size.mul_(0.9).add_(0.1 * y.detach().abs().mean())  # right: stale
        return x + torch.tanh(z)


BLOCKS = {"cast": Cast, "mask": Attention, "scale": Attention, "reduction": Pooled, "stale": Averaged, "epsilon": Feed}


class Model(torch.nn.Module):
    def __init__(self, kinds, width, fault, at):
        super().__init__()
        self.embed = torch.nn.Embedding(50, width)
        self.blocks = torch.nn.ModuleList(kind(width, fault if i == at else None) for i, kind in enumerate(kinds))
        self.head = torch.nn.Linear(width, 50)
        self.recompute, self.dropout, self.reorder = None, 0, False

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            def run(x, block=block):
                return F.dropout(block(x), self.dropout) if self.dropout else block(x)

            again = self.recompute and not isinstance(block, Averaged)  # which would move its average twice
            x = torch.utils.checkpoint.checkpoint(run, x, use_reentrant=self.recompute == "reentrant") if again else run(x)
        y, z = torch.relu(x), torch.sin(x)
        return self.head(x + (y + z) if self.reorder else (x + y) + z)


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("out")
    parser.add_argument("--block-for", choices=FAULTS, help="a block that can have this fault stands at --at")
    parser.add_argument("--fault", action="store_true")
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--recompute", choices=["plain", "reentrant"])
    parser.add_argument("--dropout", type=float, default=0)
    parser.add_argument("--reorder", action="store_true")
    parser.add_argument("--attention", default="default", choices=["default", "math"])
    parser.add_argument("--batch", type=int, default=4)
    given = parser.parse_args(arguments)

    drawn = random.Random(given.seed)
    kinds = [drawn.choice([Attention, Fused, Feed, Pooled, Averaged]) for _ in range(depth_of(given.seed))]
    width = drawn.choice([16, 24, 32])
    if given.block_for:
        kinds[given.at] = BLOCKS[given.block_for]
    torch.manual_seed(given.seed)
    torch.set_num_threads(given.threads)
    model = Model(kinds, width, given.block_for if given.fault else None, given.at)
    ids = torch.randint(0, 50, (2, 8, 12))[:, : given.batch]
    model.recompute, model.dropout, model.reorder = given.recompute, given.dropout, given.reorder
    model.to(getattr(torch, given.dtype))
    optimizer = drawn.choice([torch.optim.SGD, torch.optim.AdamW])(model.parameters(), 1e-2)
    kernel = sdpa_kernel(SDPBackend.MATH) if given.attention == "math" else contextlib.nullcontext()
    with retrograd.record(given.out, model=model, optimizer=optimizer), kernel:
        for step in range(2):
            optimizer.zero_grad()
            logits = model(ids[step, :, :-1])
            F.cross_entropy(logits.flatten(0, 1).float(), ids[step, :, 1:].flatten()).backward()
            optimizer.step()


def depth_of(seed):
    return random.Random(seed + 1000003).randint(3, 8)


if __name__ == "__main__":
    main()
