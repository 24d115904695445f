"""Finds what changes gradients and is no op of a graph: custom autograd.Functions and hooks."""
from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Iterable, Iterator

import torch

from ._lines import caller, line_text


def _place(code: Any) -> str:
    """Where a function is written: "model.py:12 in backward"."""
    try:
        function = inspect.unwrap(code)
        inner = getattr(function, "func", function)  # functools.partial
        inner = getattr(inner, "__func__", inner)
        return f"{inner.__code__.co_filename}:{inner.__code__.co_firstlineno} in {inner.__name__}"
    except (AttributeError, ValueError):
        return ""


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", getattr(function, "__name__", type(function).__name__)))


def nodes_behind(outputs: Iterable[Any]) -> Iterator[Any]:
    """The nodes of autograd that led to `outputs` (tensors or edges of the graph), each once."""
    begin = [output.grad_fn if isinstance(output, torch.Tensor) else output.node for output in outputs]
    waiting = [node for node in begin if node is not None]
    seen: set[Any] = set(waiting)
    while waiting:
        node: Any = waiting.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)


def place_of_backward(node: Any) -> str:
    """Where the backward of a custom Function's node is written; empty if unknown."""
    return _place(getattr(getattr(type(node), "_forward_cls", None), "backward", None))


def custom_backward(module: torch.nn.Module, outputs: Iterable[torch.Tensor]) -> list[dict[str, Any]]:
    """The custom autograd.Functions that led to `outputs`, and the module's own backward hooks, each with the line where it is written."""
    found: list[dict[str, Any]] = []
    for node in nodes_behind(outputs):
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            forward = getattr(type(node), "_forward_cls", None)
            own = forward is not None and not str(getattr(forward, "__module__", "")).startswith("torch.")
            one = {"kind": "function", "name": _name(forward), "line": place_of_backward(node)} if own else None
            if one is not None and one not in found:
                found.append(one)
    for name, one in module.named_modules():
        for table in ("_backward_hooks", "_backward_pre_hooks"):
            for hook in getattr(one, table, {}).values():
                found.append({"kind": "hook", "name": _name(hook), "of": name or type(one).__name__, "line": _place(hook)})
    return found


@contextlib.contextmanager
def noticed_hooks() -> Iterator[list[dict[str, Any]]]:
    """Collects the hooks that are set on tensors meanwhile, with the line that sets each."""
    hooks: list[dict[str, Any]] = []
    own: Callable[..., Any] = torch.Tensor.register_hook

    def register(tensor: torch.Tensor, hook: Callable[..., Any]) -> Any:
        line = caller()
        one = {"kind": "hook", "name": _name(hook), "line": line_text(line) if line is not None else _place(hook)}
        if one not in hooks:
            hooks.append(one)
        return own(tensor, hook)

    setattr(torch.Tensor, "register_hook", register)
    try:
        yield hooks
    finally:
        setattr(torch.Tensor, "register_hook", own)
