"""C12: random training steps, drawn from a seed, with cuts that are meant and without: check has no fault, and lists the cuts that are there and no others.

    python opinion_programs.py --count 200 --first 0      # with RETROGRAD, the program
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.utils.checkpoint
from support import retrograd, told

F = torch.nn.functional
ROWS, WIDTH = 6, 8


class Round(torch.autograd.Function):
    """A straight-through estimator: a cut that is meant."""

    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 4) / 4

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Cube(torch.autograd.Function):
    """A custom backward that is right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x * x


def written(draw, h):
    h = h.clone()
    h[:, : draw.randrange(1, WIDTH)].mul_(draw.uniform(0.5, 1.5))
    return h


# From a matrix of ROWS x WIDTH, and one of WIDTH x WIDTH, to one of ROWS x WIDTH.
OPS = {
    "tanh": lambda draw, h, w: torch.tanh(h),
    "sigmoid": lambda draw, h, w: h * torch.sigmoid(h),
    "gelu": lambda draw, h, w: F.gelu(h),
    "softplus": lambda draw, h, w: F.softplus(h),
    "exp": lambda draw, h, w: torch.exp(-h.square()),
    "sin": lambda draw, h, w: torch.sin(h) + torch.cos(2 * h),
    "abs": lambda draw, h, w: h.abs() + 0.1,
    "relu": lambda draw, h, w: F.leaky_relu(h, 0.1),
    "clamp": lambda draw, h, w: h.clamp(-0.7, 0.9),
    "layer norm": lambda draw, h, w: F.layer_norm(h, (WIDTH,), w[0], w[1]),
    "batch norm": lambda draw, h, w: F.batch_norm(h, None, None, w[2], w[3], True),
    "softmax": lambda draw, h, w: F.softmax(h, -1) * WIDTH,
    "log softmax": lambda draw, h, w: F.log_softmax(h, 0),
    "linear": lambda draw, h, w: F.linear(h, w, w[0]),
    "matmul": lambda draw, h, w: h @ w,
    "einsum": lambda draw, h, w: torch.einsum("bi,ij,bj->bi", h, w, h),
    "attention": lambda draw, h, w: F.scaled_dot_product_attention(h[None, None], (h @ w)[None, None], h[None, None])[0, 0],
    "cat": lambda draw, h, w: torch.cat([h[:, WIDTH // 2:], h[:, : WIDTH // 2]], 1),
    "transpose": lambda draw, h, w: (h.t() * w[0][:, None]).t(),
    "gather": lambda draw, h, w: h.gather(1, torch.randint(0, WIDTH, (ROWS, WIDTH))),
    "rows": lambda draw, h, w: h[torch.randint(0, ROWS, (ROWS,))],
    "sort": lambda draw, h, w: h.sort(1).values,
    "cumsum": lambda draw, h, w: h.cumsum(1) / WIDTH,
    "largest": lambda draw, h, w: h - h.amax(1, keepdim=True),
    "mean": lambda draw, h, w: (h - h.mean(0)) / (h.var(0) + 1).sqrt(),
    "where": lambda draw, h, w: torch.where(h > 0, h, 0.5 * h),
    "masked": lambda draw, h, w: h.masked_fill(torch.rand_like(h) < 0.2, 0.0),
    "dropout": lambda draw, h, w: F.dropout(h, 0.3),
    "norm": lambda draw, h, w: h / (h.norm(dim=1, keepdim=True) + 0.5),
    "conv": lambda draw, h, w: F.conv1d(h[:, None], w[:1, :3][None], padding=1)[:, 0],
    "expand": lambda draw, h, w: (h[:, :, None] * w[None]).sum(2),
    "in place": lambda draw, h, w: written(draw, h),
    "views": lambda draw, h, w: h.reshape(2, -1, WIDTH).transpose(0, 1).reshape(ROWS, WIDTH),
    "custom, right": lambda draw, h, w: 0.3 * Cube.apply(torch.tanh(h)),
    "checkpoint": lambda draw, h, w: torch.utils.checkpoint.checkpoint(lambda one: torch.tanh(one @ w), h, use_reentrant=False),
}


def hooked(draw, h, factor):
    h = h * 1
    h.register_hook(lambda gradient: gradient * factor)
    return h


def without_gradient(draw, h):
    with torch.no_grad():
        scale = h.abs().mean()
    return h / (scale + 1)


CUTS = {  # what `check` calls them, and what makes one
    ("cut-hook", "<lambda>"): lambda draw, h: hooked(draw, h, draw.choice((0.5, 2.0, 3.0))),
    ("cut-function", "Round"): lambda draw, h: h + Round.apply(h),
    ("cut-detach", None): lambda draw, h: h + 0.5 * torch.tanh(h.detach()),
    ("cut-no-grad", None): lambda draw, h: without_gradient(draw, h),
}
OPTIMIZERS = [lambda p: torch.optim.SGD(p, 0.05, momentum=0.9), lambda p: torch.optim.AdamW(p, 0.01), lambda p: torch.optim.RMSprop(p, 0.01),
              lambda p: torch.optim.Adam(p, 0.01, foreach=False), lambda p: torch.optim.Adam(p, 0.01, fused=True), lambda p: torch.optim.Adagrad(p, 0.05)]


def record(path, seed):
    """Records a step; which cuts it has."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    names = draw.choices(sorted(OPS), k=draw.randrange(3, 9))
    weights = torch.nn.ParameterList(torch.randn(WIDTH, WIDTH) / 2 for _ in names)
    optimizer = draw.choice(OPTIMIZERS)(list(weights))
    cut = draw.choice(sorted(CUTS, key=str)) if draw.random() < 0.5 else None
    at = draw.randrange(len(names))
    backwards, clips, updates = draw.choice((1, 1, 2)), draw.random() < 0.4, draw.choice((1, 1, 2))

    def forward():
        h = torch.randn(ROWS, WIDTH) @ weights[0]
        for place, (name, w) in enumerate(zip(names, weights)):
            h = OPS[name](draw, h, w)
            if cut is not None and place == at:
                h = CUTS[cut](draw, h)
        return h.square().mean() + 1e-2 * sum(w.square().sum() for w in weights)  # each weight has a gradient

    def loop():
        for _ in range(updates):
            optimizer.zero_grad()
            for _ in range(backwards):
                (forward() / backwards).backward()
            if clips:
                torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()

    with told():
        retrograd.record(path, loop, model=weights, optimizer=optimizer)
    return names, cut


def check(path, *options):
    done = subprocess.run([os.environ["RETROGRAD"], "check", path, "--format", "json", *options], capture_output=True, text=True, timeout=300)
    return done.returncode, json.loads(done.stdout) if done.stdout else {"reason": done.stderr}


def wrong(seed):
    """What is wrong with what `check` says of a step; empty: nothing. And the gradients that were compared, and not."""
    with tempfile.TemporaryDirectory(prefix="retrograd-programs-") as folder:
        path = Path(folder, "step")
        names, cut = record(path, seed)
        code, found = check(path)
        if code != 0:
            return f"{names}, {cut}: {found.get('reason', code)}", 0, 0
        cuts = [claim for claim in found["claims"] if claim["kind"].startswith("cut-")]
        seen = {(one["kind"], one["subject"] if one["kind"] in ("cut-hook", "cut-function") else None) for one in cuts}
        if seen - {cut}:
            return f"{names}, {cut}: has cuts that are not there: {[one['sentence'] for one in cuts]}", 0, 0
        strict, _ = check(path, "--strict")
        if strict != (1 if seen else 0):
            return f"{names}, {cut}: exit code {strict} with --strict", 0, 0
        return ("" if cut is None or seen else f"not listed: {cut}, of {names}"), found["details"]["gradients"], len(found["details"]["gradients_not_compared"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts = collections.Counter()
    for seed in range(options.first, options.first + options.count):
        problem, compared, left = wrong(seed)
        counts.update(programs=1, compared=compared, left=left, missed=problem.startswith("not listed"), wrong=bool(problem) and not problem.startswith("not listed"))
        if problem:
            print(f"{seed}: {problem}", flush=True)
    print(f"{counts['programs']} programs, {counts['wrong']} wrong, {counts['missed']} with a cut that changed nothing or was not listed; {counts['compared']} gradients compared, {counts['left']} not")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
