"""Steps whose gradient was made wrong on purpose, and the same steps as they are right: does `retrograd check` name the fault?

    opinion_faults.py [--seeds N] [--report FILE]      # RETROGRAD names the program

Each kind of fault is planted in a model, a place and a size that its seed draws. Faults in custom Functions are asked for with --strict, all others with --against, a recording
of the same step without the fault. Right steps must have no fault; asked without options, a fault must be among the cuts that are listed.
"""
import argparse
import contextlib
import inspect
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

import retrograd

F = torch.nn.functional
PROGRAM = os.environ.get("RETROGRAD", "")


# ---- Custom Functions: right, and wrong where `wrong` is set -------------------------------------------------------------------------------------------------


class Cube(torch.autograd.Function):
    wrong, factor = False, 0.5

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * gradient * x * x * (Cube.factor if Cube.wrong else 1)


class Swish(torch.autograd.Function):
    wrong = False

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return gradient * s if Swish.wrong else gradient * (s + x * s * (1 - s))


class Normed(torch.autograd.Function):
    wrong = False

    @staticmethod
    def forward(ctx, x):
        length = x.norm(dim=-1, keepdim=True) + 1
        ctx.save_for_backward(x, length)
        return x / length

    @staticmethod
    def backward(ctx, gradient):
        x, length = ctx.saved_tensors
        first = gradient / length
        return first if Normed.wrong else first - x * (gradient * x).sum(-1, keepdim=True) / (length * length * (length - 1))


class Product(torch.autograd.Function):
    wrong = False

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return gradient * (a if Product.wrong else b), gradient * a


class Ratio(torch.autograd.Function):
    wrong = False

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / (b * b + 1)

    @staticmethod
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        below = b * b + 1
        return gradient / below, -2 * gradient * (b if Ratio.wrong else a) * b / (below * below)


class Times(torch.autograd.Function):
    wrong = ""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        down = gradient @ (weight if Times.wrong == "input" else weight.t())
        own = gradient.t() @ x if Times.wrong == "weight" else x.t() @ gradient
        return down, own


class Scale(torch.autograd.Function):
    wrong = ""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, gradient):
        x, scale = ctx.saved_tensors
        own = gradient * x
        return gradient * scale, own[0] if Scale.wrong == "first" else own.mean(0) if Scale.wrong == "mean" else own.sum(0)


class Rounded(torch.autograd.Function):
    """Under autocast, its gradient goes through float16 where it is wrong."""

    wrong = False

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.tanh(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        if Rounded.wrong:
            gradient = (gradient * 1e-5).half().to(gradient.dtype) * 1e5
        return gradient * (1 - torch.tanh(x).square())


FUNCTIONS = (Cube, Swish, Normed, Product, Ratio, Times, Scale, Rounded)


# ---- Models ------------------------------------------------------------------------------------------------------------------------------------------------


class Model(torch.nn.Module):
    """Some layers, with one fault between two of them. `plant` changes the values there; the right model has the same ops but for the fault."""

    def __init__(self, draw, plant):
        super().__init__()
        self.width = draw.choice((5, 6, 8))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(self.width, self.width) for _ in range(draw.randint(2, 4)))
        self.norm = torch.nn.LayerNorm(self.width) if draw.random() < 0.5 else torch.nn.Identity()
        self.gate, self.last = torch.nn.Linear(self.width, self.width), torch.nn.Linear(self.width, 3)
        self.weight = torch.nn.Parameter(torch.randn(self.width, self.width) / 2)
        self.scale = torch.nn.Parameter(torch.rand(self.width) + 0.5)
        self.act = draw.choice((torch.relu, torch.tanh, F.gelu, F.silu))
        self.place = draw.randrange(len(self.layers))
        self.plant = plant

    def forward(self, x):
        for place, layer in enumerate(self.layers):
            x = self.act(layer(x))
            if place == self.place:
                x = self.plant(self, x)
            x = self.norm(x) + x
        return self.last((x * self.scale) @ self.weight * torch.sigmoid(self.gate(x)))


def behind_a_function(draw, wrong):
    """A hook on the result of a right custom Function, or a detach of it: the fault is not the Function's."""
    way = draw.randrange(2)

    def halved(gradient):
        return gradient * 0.5  # fault

    def plant(model, x):
        y = Swish.apply(model.gate(x))
        if wrong and way == 0:
            y.register_hook(halved)
        if wrong and way == 1:
            y = y.detach()  # fault
        return x + y

    return plant, plant, halved


def wrong_factor(draw, wrong):
    Cube.wrong, Cube.factor = wrong, draw.choice((0.25, 0.5, 0.59, 0.9, 1.1, 2.0, -1.0))
    return lambda model, x: Cube.apply(x), Cube


def missing_term(draw, wrong):
    kind = draw.choice((Swish, Normed))
    kind.wrong = wrong
    return lambda model, x: kind.apply(x), kind


def wrong_operand(draw, wrong):
    kind = draw.choice((Product, Ratio))
    kind.wrong = wrong
    return lambda model, x: kind.apply(x, model.gate(x)), kind


def transposed(draw, wrong):
    Times.wrong = draw.choice(("input", "weight")) if wrong else ""
    return lambda model, x: Times.apply(x, model.weight), Times


def missing_unbroadcast(draw, wrong):
    Scale.wrong = draw.choice(("first", "mean")) if wrong else ""
    return lambda model, x: Scale.apply(x, model.scale), Scale


def detached(draw, wrong):
    way = draw.randrange(3)

    def plant(model, x):
        branch = model.gate(x)
        if wrong:
            if way == 0:
                branch = branch.detach()  # fault
            elif way == 1:
                return x * torch.sigmoid(branch.detach())  # fault
            else:
                branch = branch - branch.detach().mean(0)  # fault
        elif way == 1:
            return x * torch.sigmoid(branch)
        elif way == 2:
            branch = branch - branch.mean(0)
        return x + branch

    return plant, plant


def hooked(draw, wrong):
    way = draw.randrange(4)

    def halved(gradient):
        return gradient * 0.5  # fault

    def clipped(gradient):
        return gradient.clamp(-1e-3, 1e-3)  # fault

    def cleared(gradient):
        return torch.zeros_like(gradient)  # fault

    def doubled(parameter):
        parameter.grad.mul_(2)  # fault

    def plant(model, x):
        if not wrong:
            return x
        if way == 3:
            if not model.weight.grad_fn and not getattr(model, "hooked", False):
                model.hooked = True
                model.gate.weight.register_post_accumulate_grad_hook(doubled)
            return x
        x.register_hook((halved, clipped, cleared)[way])
        return x

    return plant, plant, halved, clipped, cleared, doubled


def without_grad(draw, wrong):
    way = draw.randrange(3)

    def plant(model, x):
        if wrong and way == 0:
            with torch.no_grad():
                branch = model.gate(x)  # fault
        elif wrong and way == 1:
            with torch.no_grad():
                branch = torch.tanh(x) * 2  # fault
        elif wrong:
            with torch.set_grad_enabled(False):
                branch = x.square().mean(-1, keepdim=True)  # fault
        else:
            branch = model.gate(x) if way == 0 else torch.tanh(x) * 2 if way == 1 else x.square().mean(-1, keepdim=True)
        return x + branch

    return plant, plant


def in_place(draw, wrong):
    way, factor = draw.randrange(4), draw.choice((0.5, 2.0, 3.0))

    def plant(model, x):
        if way == 0:
            x = model.gate(x) * 1.0
            if wrong:
                x.data.mul_(factor)  # fault
            return x
        if way == 1:
            x = model.gate(x) + x
            if wrong:
                with torch.no_grad():
                    x.clamp_(-0.2, 0.2)  # fault
            return x
        if way == 2:
            y = x * model.gate(x)
            if wrong:
                x.data.add_(factor)  # fault
            return y
        y = torch.exp(model.gate(x) / 4)
        z = y + x
        if wrong:
            y.data.mul_(factor)  # fault
        return z

    return plant, plant


def autocast(draw, wrong):
    if draw.random() < 0.5:
        Rounded.wrong = wrong

        def plant(model, x):
            return Rounded.apply(x.float() / 50) * 50

        return plant, Rounded

    def plant(model, x):
        if not wrong:
            return F.linear(x, model.gate.weight, model.gate.bias)
        with torch.no_grad():
            half = model.gate.weight.to(torch.bfloat16)  # fault
        return F.linear(x, half, model.gate.bias)

    return plant, plant


@dataclass
class Kind:
    make: object
    strict: bool = False
    autocast: bool = False


KINDS = {
    "wrong factor": Kind(wrong_factor, True), "missing term": Kind(missing_term, True), "wrong operand": Kind(wrong_operand, True), "transposed": Kind(transposed, True),
    "missing unbroadcast": Kind(missing_unbroadcast, True), "detach": Kind(detached), "hook": Kind(hooked), "no_grad": Kind(without_grad), "in place": Kind(in_place),
    "autocast": Kind(autocast, autocast=True), "behind a Function": Kind(behind_a_function),
}


# ---- A step, recorded and checked ----------------------------------------------------------------------------------------------------------------------------


def record(folder, name, seed, wrong):
    """Records the step; gives the names and lines that are guilty."""
    for function in FUNCTIONS:
        function.wrong = False
    draw = random.Random(f"{name} {seed}")
    kind = KINDS[name]
    plant, *guilty = kind.make(draw, wrong)
    torch.manual_seed(seed)
    model = Model(draw, plant)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = model.width if name == "transposed" else draw.randint(3, 7)
    x, y = torch.randn(rows, model.width), torch.randint(0, 3, (rows,))

    def step():
        for _ in range(1 + draw.randrange(2)):
            with torch.autocast("cpu", torch.bfloat16) if kind.autocast else contextlib.nullcontext():
                loss = F.cross_entropy(model(x).float(), y)
            loss.backward()
        optimizer.step()

    with contextlib.redirect_stderr(io.StringIO()):
        retrograd.record(folder, step, model=model, optimizer=optimizer)
    lines = set()
    for one in guilty:
        text, begin = inspect.getsourcelines(one)
        marked = [begin + i for i, line in enumerate(text) if "# fault" in line]
        lines |= set(marked or range(begin, begin + len(text)))
    return lines


def check(folder, *options):
    began = time.monotonic()
    done = subprocess.run([PROGRAM, "check", folder, "--format", "json", *options], capture_output=True, text=True, timeout=300)
    if "{" not in done.stdout:
        raise RuntimeError(done.stderr)
    return done.returncode, json.loads(done.stdout), time.monotonic() - began


def names(cut, lines):
    """Whether a cut is at one of the guilty lines; of what was written in place, its cause is."""
    text = f"{cut['sentence']} {cut.get('line', '')} "
    return any(f"{Path(__file__).name}:{line} " in text for line in lines)


def cuts_of(found):
    return [claim for claim in found["claims"] if claim.get("kind", "").startswith("cut-")]


@dataclass
class Result:
    kind: str
    seed: int
    named: bool
    listed: bool
    right: bool
    said: str
    seconds: float


def one(name, seed):
    with tempfile.TemporaryDirectory(prefix="retrograd-opinion-") as folder:
        bad, good = Path(folder, "bad"), Path(folder, "good")
        record(good, name, seed, False)
        lines = record(bad, name, seed, True)
        strict = KINDS[name].strict
        code, found, seconds = check(bad, "--strict") if strict else check(bad, "--against", good)
        faults = [cut for cut in cuts_of(found) if cut["severity"] == "fault" or strict and cut["severity"] == "suspicion"]
        named = code == 1 and bool(faults) and names(faults[0], lines)
        _, plain, _ = check(bad)
        listed = any(names(cut, lines) for cut in cuts_of(plain))
        code, found, _ = check(good, "--strict") if strict else check(good, "--against", good)
        right = code == 0
        said = faults[0]["sentence"] if faults else "no fault"
        if not right:
            said += "; the right step: " + found.get("reason", "")
        return Result(name, seed, named, listed, right, said, seconds)


def report(results):
    named, right = sum(r.named for r in results), sum(r.right for r in results)
    yield "# The second opinion on planted faults\n"
    yield ("What `retrograd check` says of recorded steps whose gradient was made wrong on purpose, and of the same steps as they are right. "
           "`tests/python/package/opinion_faults.py` draws model, place and size of each fault from its seed; `--report` writes this page.\n")
    yield "Faults in custom Functions are asked for with `--strict`, the others with `--against` a recording of the right step.\n"
    yield f"Of {len(results)} faults, {named} were named first, with their line; {sum(r.listed for r in results)} are among the cuts without options. Of {len(results)} right steps, {len(results) - right} had a fault.\n"
    yield "| Fault | Steps | Named first | Listed without options | Right steps without a fault |\n| --- | --- | --- | --- | --- |"
    for kind in KINDS:
        of = [r for r in results if r.kind == kind]
        yield f"| {kind} | {len(of)} | {sum(r.named for r in of)} | {sum(r.listed for r in of)} | {sum(r.right for r in of)} |"
    missed = [r for r in results if not (r.named and r.listed and r.right)]
    if missed:
        yield "\n## What was not found\n"
        for r in missed:
            yield f"- {r.kind}, seed {r.seed}: {r.said}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    for name in [options.kind] if options.kind else KINDS:
        for seed in range(options.first, options.first + options.seeds):
            results.append(one(name, seed))
            r = results[-1]
            print(f"{'named' if r.named else 'MISSED'}  {'listed' if r.listed else 'NOT LISTED'}  {'right' if r.right else 'FALSE'}  {name} {seed}: {r.said}", flush=True)
    text = "\n".join(report(results)) + "\n"
    if options.report:
        before = options.report.read_text() if options.report.exists() else ""
        kept = before.find("\n## Random programs")  # and what follows, which is measured apart
        options.report.write_text(text + (before[kept:] if kept >= 0 else ""))
    print(text.split("\n\n")[3])
    return 0 if sum(r.named for r in results) >= 0.95 * len(results) and all(r.right for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
