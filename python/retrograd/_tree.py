"""Takes arguments and results of models apart and puts them together: as torch's pytree, and also dataclasses, which pytree treats as leaves."""
from __future__ import annotations

import copy
import dataclasses
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch
from torch.utils import _pytree as pytree

Path = tuple[Any, ...]


class Tree:
    """Nested containers, taken apart. `leaves` are in order; a leaf's path has a key for each container around it."""

    def __init__(self, value: Any):
        keyed, self._spec = pytree.tree_flatten_with_path(value)
        self._parts: list[tuple[Any, Tree] | None] = []  # for each of pytree's leaves: the dataclass object that it is, and its fields
        self.paths: list[Path] = []
        self.leaves: list[Any] = []
        for path, leaf in keyed:
            fields = _fields(leaf)
            inner = Tree(fields) if fields else None
            self._parts.append((leaf, inner) if inner is not None else None)
            self.paths += [(*path, *below) for below in inner.paths] if inner is not None else [tuple(path)]
            self.leaves += inner.leaves if inner is not None else [leaf]

    def with_leaves(self, leaves: Sequence[Any]) -> Any:
        """The same containers with other leaves. Containers are copied."""
        return self._built(iter(leaves))

    def _built(self, leaves: Iterator[Any]) -> Any:
        return pytree.tree_unflatten([next(leaves) if part is None else _replaced(part[0], part[1]._built(leaves)) for part in self._parts], self._spec)


def _fields(leaf: Any) -> dict[str, Any]:
    """The fields of a dataclass object by name; none for anything else."""
    if not dataclasses.is_dataclass(leaf) or isinstance(leaf, (type, torch.Tensor, torch.nn.Module)):
        return {}
    return {field.name: getattr(leaf, field.name) for field in dataclasses.fields(leaf) if hasattr(leaf, field.name)}


def _replaced(one: Any, fields: dict[str, Any]) -> Any:
    new = copy.copy(one)
    for name, value in fields.items():
        object.__setattr__(new, name, value)  # also of a frozen one
        if isinstance(new, dict) and name in new:  # transformers' outputs hold each field twice
            new[name] = value
    return new


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The same containers with `function` applied to each leaf."""
    tree = Tree(value)
    return tree.with_leaves([function(leaf) for leaf in tree.leaves])


def tensor_leaves(value: Any) -> list[torch.Tensor]:
    """The tensors in arguments or results, in order."""
    return [leaf for leaf in Tree(value).leaves if isinstance(leaf, torch.Tensor)]


def named_leaves(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in arguments, by position or keyword, and by their place in one that has several."""
    for name, value in [*((str(place), one) for place, one in enumerate(args)), *kwargs.items()]:
        found = tensor_leaves(value)
        for place, leaf in enumerate(found):
            yield (name if len(found) == 1 else f"{name}[{place}]"), leaf
