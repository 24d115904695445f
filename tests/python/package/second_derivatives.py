"""K16: training steps that take a derivative of a derivative."""
import torch
from opinion_programs import Cube
from support import retrograd, told


class Keeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.square = x * x  # without history
        return ctx.square * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3 * ctx.square


def penalty(model, x, cube, graph=True, change=lambda g: g):
    z = x.clone().requires_grad_()
    out = model[2](cube(model[0](z)))
    (g,) = torch.autograd.grad(out.sum(), z, create_graph=graph, retain_graph=True)
    return out.square().mean() + (change(g).norm(dim=1) - 1).square().mean() * model[0].weight.mean()


def descent(model, x, graph):
    loss = model(x).square().mean()
    slopes = torch.autograd.grad(loss, list(model.parameters()), create_graph=graph)
    new = {name: p - 0.1 * slope for (name, p), slope in zip(model.named_parameters(), slopes)}
    return torch.func.functional_call(model, new, (x,)).square().mean()


def line(function, below):
    """The line so many below that of `def`, as `check` names it; a decorator is not counted."""
    first = function.__code__.co_firstlineno + (function.__name__ == "backward")
    return f"second_derivatives.py:{first + below} in {function.__name__}"


STEPS = {  # what `check` says of it; none: nothing, also with --strict
    "penalty": (lambda model, x: penalty(model, x, torch.tanh), None),
    "right function": (lambda model, x: penalty(model, x, Cube.apply), None),
    "descent": (lambda model, x: descent(model, x, True), None),
    "saved intermediate": (lambda model, x: penalty(model, x, Keeps.apply), ("saved by `Keeps`", line(Keeps.backward, 1))),
    "forgotten": (lambda model, x: penalty(model, x, torch.tanh, graph=False), ("ran without create_graph", line(penalty, 3))),
    "first order": (lambda model, x: descent(model, x, False), ("ran without create_graph",)),
}


def record(path, loss):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(6, 4)
    with told():
        retrograd.record(path, lambda: (loss(model, x).backward(), optimizer.step()), model=model, optimizer=optimizer)
