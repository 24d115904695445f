"""What the text of a job may call, in two versions: PyTorch's own, and one that takes its draws from a recording
(truth.py)."""

import contextlib

import torch

# The text between the markers is the head of every job; its names that draw or cut are replaced in the other version.
HEADER = """import torch
import torch.nn.functional as F
from torch import bernoulli, multinomial, no_grad, rand, rand_like, randint_like, randn_like, randperm
from torch.nn.functional import alpha_dropout, dropout, dropout1d, rrelu, scaled_dot_product_attention
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


def detach(x):
    return x.detach()


def data(x):
    return x.data


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class ExpOfSaved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        y = torch.exp(torch.tanh(x)) * scale
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * (1 - torch.tanh(x) ** 2), None


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b, a.sum()

    @staticmethod
    def backward(ctx, g, s):
        a, b = ctx.saved_tensors
        return g @ b.t() + s, a.t() @ g


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 2) / 2

    @staticmethod
    def backward(ctx, g):
        return g


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return -0.5 * g


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-0.3, 0.3)


class Stochastic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (torch.sigmoid(x) > rand_like(x)).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g * 0.5


class NoisyProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        noise = rand_like(x)
        ctx.save_for_backward(noise)
        return x * noise

    @staticmethod
    def backward(ctx, g):
        (noise,) = ctx.saved_tensors
        return g * noise


def keeps_products(ctx, op, *args, **kwargs):
    kept = op in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten.bmm.default)
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE


def selective():
    return create_selective_checkpoint_contexts(keeps_products)

"""

FUNCTIONS = ["Cube", "ExpOfSaved", "Product", "StraightThrough", "Reversed", "Clipped", "Stochastic", "NoisyProduct"]


class Bag:
    """Takes the place of a module while its job is drawn."""


def namespace():
    """The names of HEADER, for lines that run while they are drawn."""
    names = {"__name__": "drawn_job"}
    exec(HEADER, names)
    return names


def mode_of(mode):
    if mode == "no_grad":
        return torch.no_grad()
    if mode == "autocast":
        return torch.autocast("cpu", torch.bfloat16)
    return contextlib.nullcontext()
