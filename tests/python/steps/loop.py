"""A training loop that can be run again: what a kind of step gives."""

import contextlib
from dataclasses import dataclass, field
from typing import Any, Callable

import torch

F = torch.nn.functional
UPDATES = 5  # of each loop; the first and the last are recorded


@dataclass
class Loop:
    """`run(around)` makes UPDATES updates, each within `around(number)`, and gives the losses. `optimizers` is empty where the loop makes its own."""

    model: torch.nn.Module
    optimizers: list
    run: Callable[[Callable], list]
    said: dict[str, Any] = field(default_factory=dict)
    own_eager: bool = False  # runs compiled: the loop without the recorder runs the recorded update eagerly too


def updates(step, optimizers=()):
    """A run that clears gradients, calls `step(number)` and updates, unless the step has done so and returns None."""

    def run(around):
        losses = []
        for number in range(UPDATES):
            with around(number):
                for optimizer in optimizers:
                    optimizer.zero_grad()
                losses.append(step(number))
        return losses

    return run


def nothing(number):
    return contextlib.nullcontext()


OPTIMIZERS = {
    "SGD": lambda p, **more: torch.optim.SGD(p, lr=0.05, momentum=0.9, **more),
    "SGD, Nesterov, weight decay": lambda p, **more: torch.optim.SGD(
        p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01, **more
    ),
    "Adam": lambda p, **more: torch.optim.Adam(p, lr=1e-3, **more),
    "Adam, amsgrad": lambda p, **more: torch.optim.Adam(p, lr=1e-3, amsgrad=True, **more),
    "AdamW": lambda p, **more: torch.optim.AdamW(p, lr=1e-3, **more),
    "Adagrad": lambda p, **more: torch.optim.Adagrad(p, lr=1e-2, **more),
    "RMSprop": lambda p, **more: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5, centered=True, **more),
    "NAdam": lambda p, **more: torch.optim.NAdam(p, **more),
    "RAdam": lambda p, **more: torch.optim.RAdam(p, **more),
    "Adamax": lambda p, **more: torch.optim.Adamax(p, **more),
    "Adadelta": lambda p, **more: torch.optim.Adadelta(p, **more),
    "ASGD": lambda p, **more: torch.optim.ASGD(p, **more),
    "Rprop": lambda p, **more: torch.optim.Rprop(p, **more),
    "Adafactor": lambda p, **more: torch.optim.Adafactor(p, **more),
}
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")


def optimizer_of(draw, parameters, how=None, names=None):
    """An optimizer, and what it is called. `how`: foreach, fused or for-loop."""
    how = how or draw.choice(("foreach", "fused", "for-loop"))
    name = draw.choice(names or (FUSED if how == "fused" else sorted(OPTIMIZERS)))
    more = {"fused": True} if how == "fused" else {"foreach": how == "foreach"}
    return OPTIMIZERS[name](list(parameters), **more), f"{name}, {how}"


def schedule_of(draw, optimizer):
    kinds = torch.optim.lr_scheduler
    return draw.choice(
        (
            lambda: kinds.CosineAnnealingLR(optimizer, 5),
            lambda: kinds.OneCycleLR(optimizer, 0.01, total_steps=20, cycle_momentum=False),
            lambda: kinds.LinearLR(optimizer, 0.3, 1.0, 4),
            lambda: kinds.LambdaLR(optimizer, lambda n: 0.9**n),
        )
    )()
