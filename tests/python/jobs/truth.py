"""What a job's gradients are: its text under eager PyTorch, with the numbers that the compiled graphs drew.

The gradients come from autograd, which knows the cuts (detach, no_grad, Functions). Finite differences of the same text
judge autograd where a job has a derivative at all; what is cut is held at its value.
"""

import contextlib
import itertools
import math

import torch
import torch.nn.functional as F

import compiled
import rounding

UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8}


class Unpaired(Exception):
    """The graphs drew otherwise than the text does."""


class NoDerivative(Exception):
    """Finite differences say nothing of this job."""


class Replay:
    """Takes the place of what draws and cuts in a job's text.

    Draws come from `draws` in their order. Where one of them is None, which a compiler leaves out if nothing reads it,
    any number does. `asked` lists what the text draws. `held`: None for autograd; a list for finite differences: the
    first run appends the value at each cut, and later ones, which `begin` starts, read them.
    """

    def __init__(self, draws, held=None):
        self.draws, self.held, self.recording = draws, held, True
        self.begin()

    def begin(self):
        self.next = self.cuts = 0
        self.asked = []

    def names(self):
        methods = [
            "bernoulli",
            "multinomial",
            "no_grad",
            "rand",
            "rand_like",
            "randint_like",
            "randn_like",
            "randperm",
            "alpha_dropout",
            "dropout",
            "dropout1d",
            "rrelu",
            "scaled_dot_product_attention",
            "checkpoint",
            "detach",
            "data",
            "cut",
        ]
        return {name: getattr(self, name) for name in methods}

    # Draws.

    def take(self, x, *kinds):
        """The next draw, of these sizes or like this tensor."""
        shape = x.shape if isinstance(x, torch.Tensor) else x
        draw = self.draws[self.next] if self.next < len(self.draws) else None
        self.next += 1
        self.asked.append((kinds, math.prod(shape)))
        if draw is None:
            kind = kinds[0]
            value = (
                torch.arange(math.prod(shape))
                if kind == "index"
                else torch.full([math.prod(shape)], 1.0 if kind in ("mask", "bernoulli") else 0.25)
            )
            return compiled.Draw(kind, value.reshape(list(shape)))
        if not fits(draw, self.asked[-1]):
            raise Unpaired(
                f"the graph draws {draw.kind} of {draw.value.numel()}, the text {' or '.join(kinds)} of {list(shape)}"
            )
        if isinstance(x, torch.Tensor) and draw.value.shape != shape:
            return compiled.Draw(draw.kind, as_in_memory(draw.value, x))
        return compiled.Draw(draw.kind, draw.value.reshape(list(shape)))

    def kept(self, x, p):
        """The mask of a dropout: one where an element is kept."""
        draw = self.take(x, "mask", "uniform", "bernoulli")
        return (draw.value > p if draw.kind == "uniform" else draw.value != 0).to(x.dtype)

    def dropout(self, x, p, train):
        return x * self.kept(x, p) * (1 / (1 - p))

    def zeros_or_ones(self, x, p, dtype):
        draw = self.take(x, "uniform", "bernoulli")
        return (draw.value < p if draw.kind == "uniform" else draw.value).to(dtype)

    def dropout1d(self, x, p, train):
        shape = [x.shape[0], x.shape[1], *[1] * (x.dim() - 2)]
        return x * self.zeros_or_ones(shape, 1 - p, x.dtype) / (1 - p)

    def alpha_dropout(self, x, p, train):
        alpha = 1.7580993408473766
        noise = self.zeros_or_ones(x, 1 - p, x.dtype)
        a = 1 / ((alpha * alpha * p + 1) * (1 - p)) ** 0.5
        return x * (noise * a) + ((noise - 1) * (alpha * a) + alpha * a * p)

    def bernoulli(self, p):
        return self.zeros_or_ones(p, p.detach(), p.dtype)

    def rand(self, sizes, dtype):
        return self.take(sizes, "uniform").value.to(dtype)

    def rand_like(self, x):
        return self.take(x, "uniform").value.to(x.dtype)

    def randn_like(self, x):
        return self.take(x, "normal").value.to(x.dtype)

    def randint_like(self, x, low, high):
        return self.take(x, "index").value.to(x.dtype)

    def randperm(self, n):
        draw = self.take([n], "index", "uniform")
        return draw.value if draw.kind == "index" else draw.value.argsort()

    def rrelu(self, x, low, high, train):
        draw = self.take(x, "noise", "uniform")
        drawn = draw.value.to(x.dtype)  # Inductor draws in float32 and goes on in the type of x
        slope = drawn if draw.kind == "noise" else drawn * (high - low) + low
        return torch.where(x <= 0, x * slope, x)

    def multinomial(self, *_):
        raise Unpaired("multinomial")

    def scaled_dot_product_attention(self, q, k, v, dropout_p=0.0, is_causal=False):
        if dropout_p == 0:
            return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if is_causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
        weights = torch.softmax(scores, -1)
        return self.dropout(weights, dropout_p, True) @ v

    # Regions and cuts.

    def checkpoint(self, function, *args, **_):
        return function(*args)

    @contextlib.contextmanager
    def no_grad(self):
        with torch.no_grad() if self.held is None else contextlib.nullcontext():
            yield

    def cut(self, x):
        # A view that is made under no_grad says that it requires a gradient, as its base does, and hands none on.
        x = x.detach().requires_grad_(x.requires_grad)
        if self.held is None or not x.is_floating_point():
            return x
        if self.recording:
            self.held.append(x.clone())
        self.cuts += 1
        return self.held[self.cuts - 1]

    def detach(self, x):
        return self.cut(x) if self.held is not None else x.detach()

    def data(self, x):
        return self.detach(x)


def as_in_memory(value, x):
    """`value` with the sizes of `x`: compilers draw a tensor like `x` in the order in which its elements lie in memory."""
    like = torch.empty_like(x, dtype=value.dtype, requires_grad=False)
    like.as_strided([like.numel()], [1]).copy_(value.flatten())
    return like


def fits(draw, asked):
    kinds, count = asked
    return draw.kind in kinds and draw.value.numel() == count


def pairings(draws, asked):
    """Ways to give these draws, in their order, to what the text asks for; None for a draw that the graph left out."""
    if not asked:
        if not draws:
            yield []
        return
    if draws and fits(draws[0], asked[0]):
        for rest in pairings(draws[1:], asked[1:]):
            yield [draws[0], *rest]
    if len(asked) > len(draws):
        for rest in pairings(draws, asked[1:]):
            yield [None, *rest]


def paired(job, draws, outputs):
    """The draws as the text asks for them. Throws Unpaired where no way to pair them gives these outputs."""
    replay, names = replayed(job, [])
    mine = job.of(names)
    module, arguments = mine.state()
    called, args = mine.call(module, arguments)
    called(*args)
    if len(replay.asked) == len(draws) and all(map(fits, draws, replay.asked)):
        return draws
    ways = []
    for given in itertools.islice(pairings(draws, replay.asked), 16):
        found = gradients(job, given)[1]
        if same_outputs(job, found, outputs):
            ways.append((sum(map(distance, found, outputs)), given))
    if not ways:
        raise Unpaired("the graphs draw otherwise than the text")
    return min(ways, key=lambda way: way[0])[1]


def same_outputs(job, outputs, others):
    scale = (
        0.05
        if any(f.startswith("autocast") for f in job.draft.features)
        else 1e-3 if job.draft.dtype == torch.float32 else 1e-9
    )
    return len(outputs) == len(others) and all(
        distance(a, b) <= scale * (1 + float(b.double().abs().max())) for a, b in zip(others, outputs)
    )


def replayed(job, draws, held=None):
    """(the replay, the job's functions with it)."""
    replay = Replay(draws, held)
    names = dict(job.names)
    text = job.draft.text()
    lines = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("# cut "):
            indent = line[: len(line) - len(stripped)]
            lines += [f"{indent}{name} = cut({name})" for name in stripped[6:].split(", ")]
        elif "graph_break()" not in line:
            lines.append(line)
    exec(compile("\n".join(lines), names["__file__"], "exec"), names)
    names.update(replay.names())
    return replay, names


def gradients(job, draws, dtype=None, move=None, mode=None):
    """(loss, outputs, gradients) of eager PyTorch with these draws, in the job's dtype or another; `move`
    changes what it starts from, `mode` is a mode of PyTorch's dispatcher under which it runs."""
    replay, names = replayed(job, draws)
    mine = job.of(names)
    module, arguments = mine.state(dtype, move)
    called, args = mine.call(module, arguments)
    with mode or contextlib.nullcontext():
        found = mine.step(called, args, mine.leaves(module, arguments))
    if replay.next != len(draws):
        raise Unpaired("the graphs draw otherwise than the text")
    return found


def roundings(job, draws, truth):
    """What rounding does to each gradient: the largest difference to runs that are more exact, start one rounding step
    away, or round each op of the decomposed functions otherwise."""
    others = [gradients(job, draws, torch.float64)[2]] if job.draft.dtype == torch.float32 else []
    unit = 2 * UNIT[job.draft.dtype]
    for seed in (1, 2):
        generator = torch.Generator().manual_seed(seed)
        others.append(
            gradients(job, draws, None, lambda t: t * (1 + unit * torch.randint(-1, 2, t.shape, generator=generator)))[
                2
            ]
        )
    finer = []
    for seed in (3, 4, 5):
        with contextlib.suppress(RuntimeError, NotImplementedError):  # a decomposition that does not fit: no such run
            finer.append(gradients(job, draws, mode=rounding.Rounded(unit, seed))[2])
    found = {}
    largest = max(float(gradient.abs().max()) for gradient in truth.values())
    for name, gradient in truth.items():
        noise = max(distance(gradient, other[name]) for other in others)
        # Beyond this it is another derivative, and no rounding; where all cancel, roundings are all that there is.
        most = max(UNIT[job.draft.dtype] ** 0.5 * largest, 1e3 * UNIT[job.draft.dtype])
        noise = max([noise, *(d for other in finer if (d := distance(gradient, other[name])) <= most)])
        scale = max(float(gradient.abs().max()), 1e-3 * largest)  # a gradient may be zero but for rounding
        found[name] = noise + scale * UNIT[job.draft.dtype] * (8 + gradient.numel() ** 0.5)
    return found


def distance(a, b):
    """The largest difference of an element; infinite where one has a NaN that the other has not."""
    a, b = a.double(), b.double()
    if a.shape != b.shape:
        return float("inf")
    difference = (a - b).abs()
    difference[(a == b) | (a.isnan() & b.isnan())] = 0
    return (
        float(torch.nan_to_num(difference, nan=float("inf"), posinf=float("inf")).max()) if difference.numel() else 0.0
    )


def differences_agree(job, draws, exact):
    """Whether the derivative in one random direction is what finite differences in float64 give. Throws
    NoDerivative."""
    if not job.draft.differentiable:
        raise NoDerivative
    held = []
    replay, names = replayed(job, draws, held)
    mine = job.of(names)

    def value(step):
        generator = torch.Generator().manual_seed(7)
        replay.begin()
        module, arguments = mine.state(torch.float64)
        leaves = mine.leaves(module, arguments)
        slope = 0.0
        with torch.no_grad():
            for name, leaf in leaves.items():
                direction = torch.randn(leaf.shape, generator=generator, dtype=torch.float64)
                leaf += step * direction
                slope += float((direction * exact[name]).sum())
        called, args = mine.call(module, arguments)
        outputs = called(*args)
        replay.recording = False
        return float(mine.loss(outputs).detach()), slope

    base, slope = value(0.0)
    for step in (1e-5, 1e-6, 1e-7):
        quotient = (value(step)[0] - value(-step)[0]) / (2 * step)
        if (
            abs(quotient - slope)
            <= 2e-4 * max(abs(slope), abs(quotient)) + 1e-9 / step * max(1.0, abs(base)) * 1e-6 + 1e-7
        ):
            return True
    return False
