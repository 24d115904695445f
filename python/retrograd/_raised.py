"""What a recording says about the exception that ended it. PyTorch's own errors are explained from the ops before them."""
from __future__ import annotations

import json
import re
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Sequence

import torch

from ._custom import nodes_behind
from ._folder import text_of
from ._lines import is_users

_WRITTEN = "modified by an inplace operation"
_TWICE = "backward through the graph a second time"
_NO_GRADIENT = "does not require grad and does not have a grad_fn"
_READY_TWICE = re.compile(r"Parameter at index (\d+)(?: with name (\S+))? has been marked as ready twice")
_UNFINISHED = re.compile(r"Expected to have finished reduction in the prior iteration.*?did not receive grad for rank \d+: ([\d ]+)", re.DOTALL)
_UNFINISHED_NAMES = re.compile(r"did not receive grad for rank \d+: (\w[\w.]*(?:, \w[\w.]*)*)")
_SAVED = ("A different number of tensors was saved", "Recomputed values for the following tensors have different metadata")
MOST = 20000  # characters of a message


@dataclass
class Node:
    """The node whose saved tensors a backward could not read."""

    node: Any
    storage: Optional[Any] = None  # of the saved tensor, where it was written


@dataclass
class Answer:
    """The reason in a sentence, and the ops that it names, with what each did."""

    sentence: str
    ops: list[tuple[str, int]] = field(default_factory=list)


def blocked(outputs: Sequence[Any], message: str) -> list[Node]:
    """The nodes behind `outputs` whose saved tensors cannot be read, for the reason that a message gives, in the order in which a backward comes to them. Hooks of saved
    tensors are not called."""
    words = _WRITTEN if _WRITTEN in message else _TWICE if _TWICE in message else None
    found: list[Node] = []
    for node in nodes_behind(outputs) if words is not None else ():
        for name in dir(node) if words is not None else ():
            if not name.startswith("_raw_saved_"):
                continue
            raws: list[Any] = []
            try:
                raw = getattr(node, name)
                raws = list(raw) if isinstance(raw, (tuple, list)) else [raw]
                if any(one.unpack_hook is not None for one in raws):
                    continue
                getattr(node, "saved_tensors" if name == "_raw_saved_tensors" else name.removeprefix("_raw"))
            except RuntimeError as error:
                if words is not None and words in str(error):
                    found.append(Node(node, _written(raws) if words == _WRITTEN else None))
                    break
    return sorted(found, key=lambda one: -int(one.node._sequence_nr()))


def _written(raws: Sequence[Any]) -> Optional[Any]:
    found = [raw.data for raw in raws if isinstance(raw.data, torch.Tensor) and raw.data.layout == torch.strided]
    return next((one.untyped_storage() for one in found if one._version > 0), found[0].untyped_storage() if found else None)


class Ops:
    """The ops of a stream, read back."""

    def __init__(self, path: Path):
        self.ops: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []
        self._frames: list[dict[str, Any]] = []
        self._stacks: list[list[int]] = []
        self._storage: list[Optional[int]] = []  # of tensors
        self.roles: dict[int, tuple[str, str]] = {}  # of storages
        mode: dict[str, Any] = {}
        for line in path.read_text().splitlines():
            record = json.loads(line)
            kind = record["k"]
            if kind == "op":
                self.ops.append(record | {"mode": mode})
            elif kind == "tensor":
                self._storage.append(record.get("storage"))
            elif kind == "frame":
                self._frames.append(record)
            elif kind == "stack":
                self._stacks.append(record["frames"])
            elif kind == "mode":
                mode = record
            elif kind == "name":
                self.roles.setdefault(record["storage"], (record["role"], record["name"]))
            elif kind == "error":
                self.errors.append(record)

    def storages(self, value: Any) -> Iterator[int]:
        """Storages of the tensors in a field of a record."""
        if isinstance(value, dict):
            if "t" in value and self._storage[value["t"]] is not None:
                yield self._storage[value["t"]] or 0
            elif "t" not in value:
                for one in value.values():
                    yield from self.storages(one)
        elif isinstance(value, list):
            for one in value:
                yield from self.storages(one)

    def reads(self, op: dict[str, Any]) -> set[int]:
        return {*self.storages(op["in"]), *self.storages(op.get("kw", {}))}

    def makes(self, op: dict[str, Any]) -> set[int]:
        return set(self.storages(op["out"]))

    def writes(self, op: dict[str, Any]) -> set[int]:
        """Older storages that the op writes."""
        written = {self._storage[one] or 0 for one in op.get("writes", []) if self._storage[one] is not None}
        is_view = op.get("hash") is None or all(one is None for one in op["hash"])
        return written if is_view else written | (self.makes(op) & self.reads(op))

    def line(self, op: dict[str, Any]) -> str:
        """"train.py:12", the innermost of the user's."""
        if "stack" not in op:
            return "at a line that is not known"
        frame = self._frames[self._stacks[op["stack"]][-1]]
        return f"{Path(frame['file']).name}:{frame['line']}"

    def said(self, op: dict[str, Any]) -> str:
        return f"{op.get('function') or short(op['op'])} ({self.line(op)})"


def short(name: str) -> str:
    """"aten.add_.Tensor" as "add_"."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else name


def lines_of(error: BaseException) -> list[dict[str, Any]]:
    """The user's frames of an exception, the innermost last."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    return [{"file": frame.filename, "line": frame.lineno, "function": frame.name} | ({"code": frame.line[:500]} if frame.line else {}) for frame in frames]


class Raised:
    """Keeps the state at an exception of a backward, and explains the exception."""

    def __init__(self) -> None:
        self._began: tuple[str, int] = ("", 0)  # the last call of the engine: its line, and the ops before it
        self._failed: Optional[tuple[BaseException, list[Node], list[Any]]] = None

    def backward(self, line: str, ops: int) -> None:
        self._began = (line, ops)

    def failed(self, error: BaseException, outputs: Sequence[Any]) -> None:
        """Called when a backward has raised; its graph still exists."""
        ends = [one for one in outputs if isinstance(one, torch.Tensor)]
        self._failed = (error, blocked(outputs, str(error)), ends)

    def manifest(self, error: BaseException, ops: Callable[[], Ops], storage: Callable[[Any], Optional[int]], forward: Callable[[Any], Optional[int]],
                 model: Optional[torch.nn.Module], regions: Sequence[int], source: bool) -> dict[str, Any]:
        """What the manifest says. `storage` gives the id of a storage, `forward` the op of a node, `regions` the ops of checkpointed regions in order."""
        frames = lines_of(error)
        found: dict[str, Any] = {"type": type(error).__name__, "message": text_of(error, MOST), "frames": frames if source else [{k: v for k, v in one.items() if k != "code"} for one in frames]}
        failed = self._failed if self._failed is not None and self._failed[0] is error else None
        try:
            answer = _Answers(ops(), str(error), failed[1] if failed else [], failed[2] if failed else [], *self._began, storage, forward, model, regions).answer()
        except Exception as own:  # an answer that cannot be given must not hide the error
            return found | {"unanswered": text_of(own)}
        if answer is not None:
            found |= {"answer": answer.sentence, "ops": [{"did": did, "n": n} for did, n in answer.ops]}
        self._failed = None
        return found


@dataclass
class _Answers:
    ops: Ops
    message: str
    nodes: Sequence[Node]
    ends: Sequence[Any]
    line: str  # of the last backward
    before: int  # ops before it
    storage: Callable[[Any], Optional[int]]
    forward: Callable[[Any], Optional[int]]
    model: Optional[torch.nn.Module]
    regions: Sequence[int]

    def answer(self) -> Optional[Answer]:
        if _WRITTEN in self.message:
            return self.overwritten()
        if _TWICE in self.message:
            return self.twice()
        if _NO_GRADIENT in self.message:
            return self.no_gradient()
        if (found := _READY_TWICE.search(self.message)) is not None:
            return self.ready_twice(self.parameter(int(found[1]), found[2]))
        if "Expected to have finished reduction in the prior iteration" in self.message:
            return self.unfinished()
        if any(words in self.message for words in _SAVED):
            return self.recomputed()
        return None

    # -- saved tensors

    def op_of(self, node: Any) -> Optional[dict[str, Any]]:
        n = self.forward(node)
        return self.ops.ops[n] if n is not None and n < len(self.ops.ops) else None

    def overwritten(self) -> Optional[Answer]:
        node = next(iter(self.nodes), None)
        saver = self.op_of(node.node) if node is not None else None
        if node is None or saver is None:
            return None
        memory = self.storage(node.storage) if node.storage is not None else None
        write = next((op for op in self.ops.ops[saver["n"] + 1:] if memory is not None and memory in self.ops.writes(op)), None)
        saved = self.ops.roles[memory][1] if memory in self.ops.roles else "its result" if memory is not None and memory not in self.ops.reads(saver) else "its input"
        begin = f"{self.ops.said(saver)} saved {saved} for the backward"
        if write is None:
            return Answer(f"{begin}, and its memory was written without an op", [("saved", saver["n"])])
        return Answer(f"{begin}, and {self.ops.said(write)} overwrote it", [("saved", saver["n"]), ("overwrote", write["n"])])

    def twice(self) -> Optional[Answer]:
        for node in self.nodes:  # those that this backward itself has freed come first
            shared = self.op_of(node.node)
            freed = next((op for op in self.ops.ops[:self.before] if shared is not None and op.get("of") == shared["n"]), None)
            if shared is not None and freed is not None:
                return Answer(f"the backward at {self.ops.line(freed)} freed what {self.ops.said(shared)} saved, and the backward at {self.line} comes to it again",
                              [("shared", shared["n"]), ("freed", freed["n"])])
        return None

    # -- a loss without a gradient

    def no_gradient(self) -> Optional[Answer]:
        memory = next((self.storage(one.untyped_storage()) for one in self.ends if not one.requires_grad), None)
        trained = {memory for memory, (role, _) in self.ops.roles.items() if role == "parameter"}
        wanted, cut = {memory}, None
        leads = self.leads(trained)
        for op in reversed([one for one in self.ops.ops if one["mode"].get("phase") in ("forward", "loss", "other")]):
            if not (self.ops.makes(op) | self.ops.writes(op)) & wanted:
                continue
            reads = self.ops.reads(op)
            if reads & leads.get(op["n"], set()) and (short(op["op"]) in ("detach", "detach_") or not op["mode"]["grad"]):
                cut = op
                break
            wanted |= reads
        if cut is None:
            return Answer("no parameter of the model leads to what backward is called on")
        how = "detaches" if short(cut["op"]).startswith("detach") else "ran under no_grad"
        return Answer(f"{self.ops.said(cut)} {how}: behind it no parameter has a gradient", [("cut", cut["n"])])

    def leads(self, trained: set[int]) -> dict[int, set[int]]:
        """For each op, the storages that depend on a parameter when it runs."""
        known = set(trained)
        found = {}
        for op in self.ops.ops:
            found[op["n"]] = self.ops.reads(op) & known
            if found[op["n"]]:
                known |= self.ops.makes(op)
        return found

    # -- DistributedDataParallel

    def parameter(self, index: int, name: Optional[str]) -> str:
        own = [one for one, p in self.model.named_parameters() if p.requires_grad] if self.model is not None else []
        return own[index].removeprefix("module.") if index < len(own) else (name or f"parameter {index}").strip(".")

    def uses(self, name: str) -> list[dict[str, Any]]:
        memory = {storage for storage, (role, one) in self.ops.roles.items() if role == "parameter" and one.removeprefix("module.") == name}
        return [op for op in self.ops.ops if op["mode"].get("phase") in ("forward", "recompute") and self.ops.reads(op) & memory and not (self.ops.makes(op) & memory and op.get("hash") is None)]

    def ready_twice(self, name: str) -> Answer:
        uses = self.uses(name)
        lines = list(dict.fromkeys(map(self.ops.said, uses)))
        by = f"; {', '.join(lines[:3])} read{'s' if len(lines) == 1 else ''} it" if lines else ""
        return Answer(f"the gradient of {name} came twice in one backward{by}: a use of it in two checkpoints, or in two backwards of one forward", [("used", op["n"]) for op in uses])

    def unfinished(self) -> Answer:
        listed = _UNFINISHED.search(self.message)
        named = _UNFINISHED_NAMES.search(self.message)
        names = [self.parameter(int(one), None) for one in listed[1].split()] if listed else [one.strip() for one in named[1].split(",")] if named else []
        unused = [name for name in names if not self.uses(name)] or names
        if not unused:
            return Answer("a parameter got no gradient in the step before, so that its reduction never ended")
        more = f" and {len(unused) - 2} more" if len(unused) > 2 else ""
        return Answer(f"{', '.join(unused[:2])}{more} got no gradient in the step before: no op of its forward that leads to the loss reads {'it' if len(unused) == 1 else 'them'}")

    # -- checkpoints

    def recomputed(self) -> Optional[Answer]:
        again = [op for op in self.ops.ops if op["mode"].get("phase") == "recompute"]
        begin = next((i for i in reversed(range(len(again))) if i == 0 or again[i]["n"] != again[i - 1]["n"] + 1), None)
        if begin is None:
            return None
        first = again[begin].get("repeats")
        again = [op for op in again[begin:] if short(op["op"]) != "detach"]  # what saves tensors detaches them
        places = {n: place for place, n in enumerate(self.regions)}
        if first not in places:
            return None
        once = [op for op in (self.ops.ops[n] for n in self.regions[places[first]:]) if short(op["op"]) != "detach"][:len(again) + 1]
        for place, op in enumerate(again):
            if place >= len(once):
                return Answer(f"the recomputation ran {self.ops.said(op)}, which the forward did not", [("recomputed", op["n"])])
            other = once[place]
            if other["op"] != op["op"]:
                return Answer(f"where the forward ran {self.ops.said(other)}, its recomputation ran {self.ops.said(op)}", [("forward", other["n"]), ("recomputed", op["n"])])
        if len(once) <= len(again):
            return None
        missing = once[len(again)]
        return Answer(f"the forward ran {self.ops.said(missing)}, which its recomputation did not", [("forward", missing["n"])])
