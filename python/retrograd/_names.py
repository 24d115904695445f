"""Names of the parameters in a loop: the model's own names, also for parameters that only an optimizer has."""
from __future__ import annotations

from typing import Any, Iterator, Optional, Sequence

import torch
from torch.nn.parameter import is_lazy

_SWITCHED = ("Dropout", "BatchNorm", "InstanceNorm", "RReLU", "Alpha")  # classes of modules that compute otherwise in eval


def parameters_of(optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]) -> Iterator[tuple[torch.Tensor, str, Optional[str]]]:
    """Each parameter with its name. A parameter that the model lacks has the name of the model's parameter in its place, which is the third item."""
    own = list(model.named_parameters()) if model is not None else []
    names = {id(p): name for name, p in own}
    given = [(p, f"group{group}.{place}") for group, one in enumerate(optimizer.param_groups) for place, p in enumerate(one["params"])]
    known = {id(p) for p, _ in given}
    copied = _in_order(optimizer, own) if not known & set(names) else {}
    for at, (parameter, fallback) in enumerate(given):
        if id(parameter) in names:
            yield parameter, names[id(parameter)], None
            continue
        left = [name for name, p in own if id(p) not in known and not is_lazy(p) and not is_lazy(parameter) and p.shape == parameter.shape and p.dtype == parameter.dtype]
        found = copied.get(id(parameter)) or _place_of(at, [names.get(id(p)) for p, _ in given], [name for name, _ in own], left)
        yield parameter, f"{found} (of the optimizer)" if found is not None else fallback, found


def _in_order(optimizer: torch.optim.Optimizer, own: Sequence[tuple[str, torch.nn.Parameter]]) -> dict[int, str]:
    """For an optimizer of a copy: the model's parameters that its own are like, each group in the model's order; none where one is like none."""
    found: dict[int, str] = {}
    taken: set[str] = set()
    for group in optimizer.param_groups:
        left = iter([(name, p) for name, p in own if p.requires_grad and not is_lazy(p)])
        for parameter in group["params"]:
            name = next((name for name, p in left if name not in taken and p.shape == parameter.shape and p.dtype == parameter.dtype), None)
            if name is None:
                return {}
            found[id(parameter)] = name
            taken.add(name)
    return found


def _place_of(at: int, given: Sequence[Optional[str]], own: Sequence[str], left: Sequence[str]) -> Optional[str]:
    """The model's parameter in the place of an optimizer's: at the same place of both lists, after the same parameter, or the only one left."""
    if len(given) == len(own) and own[at] in left:
        return own[at]
    before = given[at - 1] if at > 0 else None
    if before is not None and own.index(before) + 1 < len(own) and own[own.index(before) + 1] in left:
        return own[own.index(before) + 1]
    return left[0] if len(left) == 1 else None


def members(optimizer: torch.optim.Optimizer, model: Optional[torch.nn.Module]) -> dict[str, Any]:
    """An optimizer and its parameters, for the manifest."""
    return {"class": type(optimizer).__name__,
            "parameters": [{"name": name, "requires_grad": parameter.requires_grad} | ({"stands_for": own} if own is not None else {})
                           for parameter, name, own in parameters_of(optimizer, model)]}


def is_switched(module: torch.nn.Module) -> bool:
    """Whether a module computes something else in eval mode than in train mode."""
    return any(word in type(module).__name__ for word in _SWITCHED) or bool(getattr(module, "dropout", 0) if isinstance(getattr(module, "dropout", 0), (int, float)) else 0)
