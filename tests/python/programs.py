#!/usr/bin/env python3
"""Random modules of aten ops, with views and writes, go through torch.export, and `retrograd check` holds each against eager PyTorch.

Each program is drawn op by op on real tensors: what PyTorch refuses, or what grows too large, is not added. FOLDER/SEED gets model.pt2 as
torch.export saves it, ref.safetensors (outputs, gradients, written inputs and buffers of eager PyTorch, and the same in float64 where the program is
in float32) and program.txt, its text. Seeds whose program eager or torch.export refuses are passed over.
"""
import argparse
import contextlib
import copy
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import torch
from safetensors.torch import save_file

TOP = Path(__file__).resolve().parent.parent.parent
aten = torch.ops.aten
LARGEST = 1e3  # of an element; larger ones lose the digits that are compared

# Ops by the operands they take: x any tensor, ~ one that broadcasts with it, p a positive one, d a dimension, k True or False, s a number.
OPS = {
    "x": "sin cos tanh atan sigmoid exp expm1 neg square erf relu silu softplus softsign_ gelu abs mish hardswish selu elu leaky_relu hardtanh asinh sum mean amax cumulative_ "
         "flatten logsumexp_ nan_to_num clone contiguous ravel t_ erfc sgn sinc amin max min prod std var floor positive",
    "p": "log sqrt rsqrt reciprocal log1p lgamma digamma",
    "x ~": "add.Tensor sub.Tensor mul.Tensor maximum minimum atan2 hypot logaddexp fmax copysign.Tensor where_",
    "x p": "div.Tensor xlogy.Tensor remainder.Tensor fmod.Tensor",
    "x s": "add.Scalar mul.Scalar sub.Scalar rsub.Scalar clamp_min clamp_max le.Scalar gt.Scalar",
    "p s": "pow.Tensor_Scalar",
    "x d": "softmax.int log_softmax.int cumsum cumprod logcumsumexp msort_ argmax argmin squeeze.dim unsqueeze glu",
    "x D k": "sum.dim_IntList mean.dim amax amin logsumexp std.dim_ var.dim_",
}
VIEWS = ["select", "slice", "narrow", "transpose", "view", "reshape", "diagonal", "unfold", "unsqueeze", "squeeze", "expand", "as_strided", "split", "unbind", "chunk", "permute", "detach", "t", "flip",
         "alias", "real_of_complex", "movedim"]
WRITES = ["mul_.Scalar", "add_.Scalar", "fill_.Scalar", "zero_", "copy_", "add_.Tensor", "mul_.Tensor", "sub_.Tensor", "div_.Tensor", "addcmul_", "neg_", "sin_", "tanh_", "relu_", "sigmoid_", "exp_",
          "masked_fill_.Scalar", "clamp_", "index_add_", "index_fill_.int_Scalar", "abs_", "square_", "lerp_.Scalar", "cumsum_", "tril_"]


def op(name):
    """"add.Tensor" or "sin": the overload that it names; None for a name that only stands for an idea above."""
    base, _, overload = name.partition(".")
    try:
        return getattr(getattr(aten, base), overload or "default")
    except AttributeError:
        return None


class Ref(int):
    """The position of a value."""


class Step:
    """An op on values; of several results `part` is taken. `region`: steps under no_grad, autocast or a checkpoint instead."""

    def __init__(self, function, arguments, part=None, region=None, steps=()):
        self.function, self.arguments, self.part, self.region, self.steps = function, arguments, part, region, list(steps)

    def __call__(self, values):
        def filled(argument):
            if isinstance(argument, list):
                return [filled(item) for item in argument]
            return values[argument] if isinstance(argument, Ref) else argument

        result = self.function(*map(filled, self.arguments))
        return result if self.part is None else result[self.part]

    def run(self, values):
        if not self.region:
            values.append(self(values))
            return
        mode = torch.no_grad() if self.region == "no_grad" else torch.autocast("cpu", torch.bfloat16) if self.region == "autocast" else contextlib.nullcontext()
        if self.region == "checkpoint":
            values.append(torch.utils.checkpoint.checkpoint(self.alone, *values, use_reentrant=False))
            return
        with mode:
            for step in self.steps:
                step.run(values)

    def alone(self, *values):
        """The steps on values of their own; the last one's result."""
        values = list(values)
        for step in self.steps:
            step.run(values)
        return values[-1]

    def text(self, number):
        if self.region:
            lines, inside = [], number
            for step in self.steps:
                line, inside = step.text(inside)
                lines += ["    " + one for one in line]
            return [f"with {self.region}:", *lines], number + 1 if self.region == "checkpoint" else inside
        shown = ", ".join(f"v{a}" if isinstance(a, Ref) else str([f"v{i}" if isinstance(i, Ref) else i for i in a]) if isinstance(a, list) else str(a) for a in self.arguments)
        return [f"v{number} = {self.function}({shown})" + ("" if self.part is None else f"[{self.part}]")], number + 1


class Program(torch.nn.Module):
    """Inputs, then parameters, then buffers are the first values; each step adds its own."""

    def __init__(self, parameters, buffers):
        super().__init__()
        for i, parameter in enumerate(parameters):
            self.register_parameter(f"p{i}", torch.nn.Parameter(parameter))
        for i, buffer in enumerate(buffers):
            self.register_buffer(f"b{i}", buffer)
        self.steps, self.results = [], []

    def forward(self, *inputs):
        values = [*inputs, *self._parameters.values(), *self._buffers.values()]
        for step in self.steps:
            step.run(values)
        return tuple(values[i] for i in self.results)


class Draft:
    def __init__(self, seed):
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.dtype = torch.float32 if self.random.random() < 0.2 else torch.float64
        self.inputs = [self.tensor() for _ in range(self.random.randint(1, 3))]
        # An input that is written to is not differentiated: eager PyTorch writes to no leaf that requires a gradient.
        self.differentiated = [i == 0 or self.random.random() < 0.6 for i in range(len(self.inputs))]
        self.program = Program([self.tensor() for _ in range(self.random.randint(1, 3))], [self.tensor() for _ in range(self.random.randint(0, 2))])
        leaves = [tensor.clone().requires_grad_(wanted) for tensor, wanted in zip(self.inputs, self.differentiated)]
        state = copy.deepcopy(self.program)
        self.values = [*leaves, *state._parameters.values(), *state._buffers.values()]
        self.steps, self.used, self.written_views, self.ops = self.program.steps, set(), 0, Counter()

    def tensor(self):
        sizes = [self.random.choice([1, 2, 2, 3, 4]) for _ in range(self.random.randint(1, 3))]
        content = torch.randn(sizes, dtype=self.dtype)
        return content.transpose(0, -1).contiguous().transpose(0, -1) if self.random.random() < 0.2 else content

    def pick(self, fits=lambda tensor: True):
        found = [i for i, v in enumerate(self.values) if v.dtype == self.dtype and v.numel() > 0 and fits(v)]
        return Ref(max(self.random.choice(found), self.random.choice(found))) if found else None

    def add(self, function, *arguments, part=None):
        """The new value's position; None where PyTorch refuses or what comes out is too large."""
        if function is None or any(argument is None for argument in arguments):
            return None
        step = Step(function, list(arguments), part)
        try:
            value = step(self.values)
        except (RuntimeError, IndexError, TypeError, ValueError):
            return None
        writes = function._schema.is_mutable
        if not isinstance(value, torch.Tensor) or value.is_sparse or (not writes and (value.numel() > 200 or not self.moderate(value))):
            return None
        self.values.append(value)
        self.steps.append(step)
        self.used |= {a for a in arguments if isinstance(a, Ref)}
        self.ops[str(function)] += 1
        return Ref(len(self.values) - 1)

    @staticmethod
    def moderate(value):
        value = value.detach()
        return not (value.is_floating_point() or value.is_complex()) or (value.numel() == 0 or bool(value.abs().max() < LARGEST))

    def dim(self, x):
        return self.random.randrange(max(1, self.values[x].dim())) if x is not None else None

    def scalar(self):
        return self.random.randint(-16, 16) / 8 + 0.0625

    def positive(self, x):
        return self.add(aten.add.Scalar, self.add(aten.abs.default, x), 0.25) if x is not None else None

    def partner(self, x, same=False):
        """A tensor that broadcasts with x."""
        sizes = self.values[x].shape
        fits = (lambda v: v.shape == sizes) if same else (lambda v: v.shape == sizes or v.dim() == 0 or v.shape == sizes[-1:])
        return self.pick(fits)

    def one_op(self):
        kinds = list(OPS)
        choice = self.random.random()
        if choice < 0.3:
            return self.view(self.pick())
        if choice < 0.5:
            return self.special()
        kind = self.random.choice(kinds)
        function = op(self.random.choice(OPS[kind].split()))
        x = self.positive(self.pick()) if kind[0] == "p" else self.pick()
        arguments = [x]
        for token in kind.split()[1:] if x is not None else []:
            arguments.append({"~": lambda: self.partner(x), "p": lambda: self.positive(self.partner(x)), "d": lambda: self.dim(x), "D": lambda: [self.dim(x)],
                              "k": lambda: self.random.random() < 0.5, "s": self.scalar}[token]())
        return self.add(function, *arguments)

    def special(self):
        """Ops whose operands have to fit each other."""
        x = self.pick()
        v = self.values[x]
        d = self.dim(x)
        matrix = self.pick(lambda t: t.dim() == 2)
        draw = self.random.randrange(14)
        if draw == 0 and matrix is not None:
            return self.add(aten.mm.default, matrix, self.add(aten.t.default, matrix))
        if draw == 1 and matrix is not None:
            columns = self.values[matrix].shape[1]
            return self.add(aten.linear.default, matrix, self.pick(lambda t: t.dim() == 2 and t.shape[1] == columns))
        if draw == 2:
            return self.add(aten.cat.default, [x, self.partner(x, same=True)], d)
        if draw == 3:
            return self.add(aten.stack.default, [x, self.partner(x, same=True)], d)
        if draw == 4:
            mask = self.add(aten.gt.Scalar, x, self.scalar() / 4)
            return self.add(aten.where.self, mask, x, self.partner(x))
        if draw == 5 and v.dim() > 0:
            index = self.add(aten.argsort.default, x, d)
            return self.add(aten.gather.default, x, d, index)
        if draw == 6 and v.dim() > 0:
            return self.add(self.random.choice([aten.sort.default, aten.cummax.default, aten.max.dim, aten.min.dim, aten.median.dim]), x, d, part=0)
        if draw == 7:
            return self.add(aten.layer_norm.default, x, [v.shape[-1]]) if v.dim() > 0 else None
        if draw == 8:
            return self.add(aten.dropout.default, x, 0.25, True)
        if draw == 9 and v.dim() in (2, 3) and v.shape[0] * v[0, 0].numel() > 1:
            channels = v.shape[1]
            statistics = [i for i, b in enumerate(self.values) if b.shape == (channels,) and b.is_leaf and not b.requires_grad and i >= len(self.inputs)]
            mean, variance = (Ref(statistics[0]), Ref(statistics[-1])) if len(statistics) > 1 else (None, None)
            step = Step(aten.batch_norm.default, [x, None, None, mean, variance, True, 0.25, 0.01, False])
            try:
                self.values.append(step(self.values))
            except RuntimeError:
                return None
            self.steps.append(step)
            return Ref(len(self.values) - 1)
        if draw == 10:
            return self.add(aten.addcmul.default, x, self.partner(x, same=True), self.partner(x, same=True))
        if draw == 11 and matrix is not None:
            return self.add(aten.einsum.default, "ij,ij->i", [matrix, matrix])
        if draw == 12 and v.dim() > 0:
            return self.add(aten.index_select.default, x, d, self.add(aten.arange.default, min(2, v.shape[d])))
        if draw == 13 and v.dim() == 3:
            return self.add(aten.bmm.default, x, self.add(aten.transpose.int, x, 1, 2))
        return self.add(aten.mse_loss.default, x, self.partner(x, same=True))

    def view(self, x):
        if x is None:
            return None
        v, dim = self.values[x], self.dim(x)
        size = v.shape[dim] if v.dim() > 0 else 1
        half, start = max(1, size // 2), self.random.randrange(size)
        kind = self.random.choice(VIEWS)
        return {
            "select": lambda: self.add(aten.select.int, x, dim, start), "slice": lambda: self.add(aten.slice.Tensor, x, dim, start, size, self.random.randint(1, 2)),
            "narrow": lambda: self.add(aten.narrow.default, x, dim, size - half, half), "transpose": lambda: self.add(aten.transpose.int, x, dim, -1),
            "view": lambda: self.add(aten.view.default, x, [-1]), "reshape": lambda: self.add(aten.reshape.default, x, [-1, 2] if v.numel() % 2 == 0 else [-1]),
            "diagonal": lambda: self.add(aten.diagonal.default, x), "unfold": lambda: self.add(aten.unfold.default, x, dim, half, half),
            "unsqueeze": lambda: self.add(aten.unsqueeze.default, x, self.random.randint(0, v.dim())), "squeeze": lambda: self.add(aten.squeeze.default, x),
            "expand": lambda: self.add(aten.expand.default, x, [1, *v.shape]),
            "as_strided": lambda: self.add(aten.as_strided.default, x, [max(1, v.numel() - 1)], [1], v.storage_offset()) if v.is_contiguous() else None,
            "split": lambda: self.add(aten.split.Tensor, x, half, dim, part=-1), "unbind": lambda: self.add(aten.unbind.int, x, dim, part=start),
            "chunk": lambda: self.add(aten.chunk.default, x, 2, dim, part=0), "permute": lambda: self.add(aten.permute.default, x, list(reversed(range(v.dim())))),
            "detach": lambda: self.add(aten.detach.default, x), "t": lambda: self.add(aten.t.default, x), "flip": lambda: self.add(aten.flip.default, x, [dim]),
            "alias": lambda: self.add(aten.alias.default, x), "movedim": lambda: self.add(aten.movedim.int, x, dim, 0),
            "real_of_complex": lambda: self.add(self.random.choice([aten.real.default, aten.imag.default]), self.add(aten.complex.default, x, self.partner(x, same=True))),
        }[kind]()

    def writable(self, x):
        v = self.values[x]
        leaves = [leaf for leaf in self.values if leaf.is_leaf and leaf.requires_grad]
        parameters = range(len(self.inputs), len(self.inputs) + len(self.program._parameters))
        shared = leaves + [self.values[i] for i in parameters]
        return not any(v.untyped_storage().data_ptr() == leaf.untyped_storage().data_ptr() for leaf in shared)

    def write(self, x):
        v = self.values[x]
        function = op(self.random.choice(WRITES))
        name = function._schema.name.split("::")[1]
        dim = self.dim(x)
        if name in ("add_", "mul_", "sub_", "div_") and function._overloadname == "Tensor" or name == "copy_":
            return self.add(function, x, self.positive(self.partner(x)) if name == "div_" else self.partner(x))
        if function._overloadname == "Scalar" and name not in ("masked_fill_", "lerp_"):
            return self.add(function, x, self.scalar())
        return {
            "addcmul_": lambda: self.add(function, x, self.partner(x, same=True), self.partner(x, same=True)),
            "masked_fill_": lambda: self.add(function, x, self.add(aten.gt.Scalar, x, self.scalar() / 4), self.scalar()),
            "clamp_": lambda: self.add(function, x, -0.5, 1.5), "lerp_": lambda: self.add(function, x, self.partner(x, same=True), 0.25),
            "index_add_": lambda: self.add(function, x, dim, self.add(aten.arange.default, v.shape[dim]) if v.dim() > 0 else None, self.partner(x, same=True)),
            "index_fill_": lambda: self.add(function, x, dim, self.add(aten.arange.default, 1), self.scalar()), "cumsum_": lambda: self.add(function, x, dim),
        }.get(name, lambda: self.add(function, x))()

    def write_through_view(self):
        """A chain of views on memory of the program's own, a buffer or an input; a write at its end; and an op that reads the memory by another way."""
        base = self.pick(lambda v: v.numel() > 1)
        if base is not None and (not self.writable(base) or self.random.random() < 0.4):
            base = self.add(aten.mul.Scalar, base, 1.5)
        if base is None:
            return
        view = base
        for _ in range(self.random.randint(1, 3)):
            made = self.view(view)
            if made is not None and self.values[made].dtype == self.dtype and self.values[made].untyped_storage().data_ptr() == self.values[base].untyped_storage().data_ptr():
                view = made
        if view != base and self.write(view) is not None:
            self.written_views += 1
        self.add(aten.sin.default, base)

    def region(self):
        kind = self.random.choice(["no_grad", "no_grad", "autocast", "checkpoint"])
        outside, self.steps = self.steps, []
        before = len(self.values)
        mode = torch.no_grad() if kind == "no_grad" else torch.autocast("cpu", torch.bfloat16) if kind == "autocast" else contextlib.nullcontext()
        with mode:
            for _ in range(self.random.randint(1, 4)):
                self.one_op()
        inside, self.steps = self.steps, outside
        if not inside:
            return
        self.steps.append(Step(None, [], region=kind, steps=inside))
        if kind == "checkpoint":  # its last result alone is seen outside
            self.values[before:] = self.values[-1:]

    def draw(self):
        goal = self.random.randint(12, 24)
        writes = sorted(self.random.sample(range(goal), self.random.randint(1, 2)))
        regions = [self.random.randrange(goal)] if self.random.random() < 0.3 else []
        for step in range(goal):
            if step in writes:
                self.write_through_view()
            if step in regions:
                self.region()
            self.one_op()
        first = len(self.inputs) + len(self.program._parameters) + len(self.program._buffers)
        ends = [i for i in range(first, len(self.values)) if i not in self.used]
        self.program.results = ends[-5:] or [len(self.values) - 1]
        return self.program


def as_stored(tensor):
    tensor = tensor.detach().resolve_conj()
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).contiguous().clone()


def differentiable(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def in_eager(module, inputs, differentiated, names, cotangents, seed):
    """What a reference file says of a run: outputs, gradients, and what is written."""
    inputs = [tensor.detach().clone(memory_format=torch.preserve_format).requires_grad_(wanted) for tensor, wanted in zip(inputs, differentiated)]
    versions = [(f"mut.in.{name}", tensor, tensor._version) for name, tensor in zip(names, inputs)]
    versions += [(f"mut.b.{name}", buffer, buffer._version) for name, buffer in module.named_buffers()]
    torch.manual_seed(seed)
    outputs = module(*inputs)
    sources = {f"grad.in.{name}": tensor for name, tensor in zip(names, inputs) if tensor.requires_grad}
    sources |= {f"grad.p.{name}": parameter for name, parameter in module.named_parameters()}
    ends = [(output, cotangents(i, output)) for i, output in enumerate(outputs) if output.requires_grad]
    found = torch.autograd.grad([output for output, _ in ends], list(sources.values()), [cotangent for _, cotangent in ends], allow_unused=True) if ends else []
    results = {f"out.{i}": as_stored(output) for i, output in enumerate(outputs)}
    results |= {name: as_stored(tensor) for name, tensor, version in versions if tensor._version != version}
    return results | {name: as_stored(gradient) for name, gradient in zip(sources, found) if gradient is not None}


def export(seed, folder):
    """Writes the case; returns the draft. Throws what eager or torch.export throws."""
    draft = Draft(seed)
    module = draft.draw()
    differentiated = draft.differentiated
    stored, complex_keys = {}, []

    def cotangents(i, output):
        """Eighths of whole numbers, exact in each precision."""
        generator = torch.Generator().manual_seed(i)
        drawn = torch.randint(-8, 9, output.shape, generator=generator) / 8
        if f"cot.{i}" in stored:  # of the run in the file's dtype; what follows is the one in double precision
            return drawn.to(output.dtype)
        if not output.is_complex():
            stored[f"cot.{i}"] = drawn.to(draft.dtype if output.dtype == torch.float64 else output.dtype)
        else:
            stored[f"cot.{i}"] = as_stored(drawn.to(torch.complex128 if draft.dtype == torch.float64 else torch.complex64))
            complex_keys.append(f"cot.{i}")
        return drawn.to(output.dtype)

    inputs = tuple(draft.inputs)
    names = [f"inputs_{i}" for i in range(len(inputs))]
    expected = in_eager(copy.deepcopy(module), inputs, differentiated, names, cotangents, seed)
    exact = {}
    if draft.dtype == torch.float32:
        exact = in_eager(copy.deepcopy(module).double(), [tensor.double() for tensor in inputs], differentiated, names, cotangents, seed)
    exported = torch.export.export(copy.deepcopy(module), tuple(tensor.clone(memory_format=torch.preserve_format) for tensor in inputs))
    assert list(exported.graph_signature.user_inputs) == names, exported.graph_signature.user_inputs
    folder.mkdir(parents=True)
    torch.export.save(exported, folder / "model.pt2")
    stored |= {f"in.{name}": as_stored(tensor) for name, tensor in zip(names, inputs)} | expected | {f"f64/{name}": tensor for name, tensor in exact.items()}
    outputs = copy.deepcopy(module)(*[tensor.clone() for tensor in inputs])
    complex_keys += [f"{prefix}out.{i}" for i, output in enumerate(outputs) if output.is_complex() for prefix in ("", "f64/")]
    requires_grad = ",".join(name for name, wanted in zip(names, differentiated) if wanted)
    save_file(stored, folder / "ref.safetensors", {"seed": str(seed), "requires_grad": requires_grad, "complex_keys": ",".join(key for key in complex_keys if key in stored)})
    lines, number = [], len(inputs) + len(module._parameters) + len(module._buffers)
    for step in module.steps:
        text, number = step.text(number)
        lines += text
    (folder / "program.txt").write_text("\n".join(lines + [f"return {module.results}"]) + "\n")
    return draft


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=TOP / "build" / "programs")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1, help="of the first program; the others follow")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    refused, lengths, with_views, seed, made = Counter(), [], 0, options.seed, 0
    while made < options.count:
        try:
            draft = export(seed, folder / str(seed))
            made += 1
            lengths.append(sum(draft.ops.values()))
            with_views += draft.written_views > 0
        except Exception as error:  # whatever PyTorch throws: the seed has no program
            refused[f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:100]}"] += 1
            shutil.rmtree(folder / str(seed), ignore_errors=True)
        seed += 1
    print(f"{made} programs of {seed - options.seed} seeds; median of {sorted(lengths)[len(lengths) // 2]} ops; {with_views} write through a view")
    for reason, count in refused.most_common(8):
        print(f"  {count:>5} not exported: {reason}")
    report = folder / "report.json"
    subprocess.run([os.environ["RETROGRAD"], "check", "--suite", folder, "--threads", "1", "--report", report], check=False, stdout=subprocess.DEVNULL)
    reports = json.loads(report.read_text())
    counts = Counter(one["verdict"] for one in reports)
    for one in reports:
        if one["verdict"] != "pass":
            print(f"{one['file']}: {one['verdict']}: {one['reason'].splitlines()[:1]}")
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    if counts["pass"] < options.count:
        sys.exit(1)


main()
