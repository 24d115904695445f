"""Which forward op a backward op belongs to, and which op a recomputed one repeats."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Hashable, Optional, Sequence

import torch

from ._lines import is_users
from ._where import ACCUMULATE, Place

_BEHIND = 64  # ops after a node was made among which its op is looked for: hooks of saved tensors run their own before it
_WRITTEN = "copyslices"  # the node of a write to a view, which is made after the op


@dataclass(frozen=True)
class Ran:
    """What links need to know of an op."""

    n: int
    kind: str  # its name without what tells overloads and in-place forms apart
    own: Optional[int]  # sequence number of the newest node, if one was made since the op before
    depth: int
    stack: Optional[int]  # of lines, by its id
    storages: frozenset[int]
    writes: bool


class Links:
    """Nodes have sequence numbers, which count in each thread; none is held. A node is made before its op runs, mostly right before: hooks of saved tensors and copies
    for saving run in between, and the node of a write to a view is made after the op. So a number gives a place among the ops, and name and operands decide there."""

    def __init__(self) -> None:
        self._ran: dict[int, list[Ran]] = {}  # by thread
        self._made: dict[int, list[tuple[int, int]]] = {}  # sequence number -> (thread, place of the first op that saw it)
        self._code: dict[Optional[int], frozenset[Any]] = {}  # of each stack
        self._known: dict[tuple[int, str], Optional[int]] = {}
        self._last: dict[int, int] = {}
        self.linked = self.ambiguous = self.unlinked = 0
        self.without: dict[str, int] = {}

    def begin(self, thread: int) -> None:
        self._last[thread] = _following_number()

    def made(self, op: int, name: str, thread: int, place: Place, stack: Optional[int], storages: frozenset[int], writes: bool) -> Optional[int]:
        """An op is called: the sequence number of the node that was made last before it, if one was made since the op before."""
        following = _following_number()
        last = self._last.get(thread, max(0, following - 1))
        self._last[thread] = following
        own = following - 1 if following > last else None
        ran = self._ran.setdefault(thread, [])
        for number in range(last, following):
            self._made.setdefault(number, []).append((thread, len(ran)))
            if len(self._made[number]) > 1:  # of another thread, too
                self._known = {key: found for key, found in self._known.items() if key[0] != number}
        ran.append(Ran(op, _kind_of_op(name), own, place.depth, stack, storages, writes))
        if stack not in self._code:
            self._code[stack] = frozenset(code for code, _ in place.frames)
        return own

    def of(self, node: Any, before: int, read: frozenset[int]) -> Optional[int]:
        """The forward op of a node, whose op `before` reads these storages; None if there is none, or more than one."""
        if node.name() == ACCUMULATE:
            return None
        found = self.forward(node, before, read)
        if found is not None:
            self.linked += 1
        else:
            self._missed(node.name(), bool(self._made.get(node._sequence_nr())), getattr(type(node), "_forward_cls", None))
        return found

    def forward(self, node: Any, before: int, read: frozenset[int]) -> Optional[int]:
        """The same without counting."""
        name = node.name()
        key = (node._sequence_nr(), name)
        if key not in self._known:
            function = getattr(type(node), "_forward_cls", None)
            found = {one.n: one for one in (self._at(thread, place, key[0], name, function, before, read) for thread, place in self._made.get(key[0], [])) if one is not None}
            if len(found) > 1:
                found = {n: one for n, one in found.items() if one.storages & read}
            if not found or len(found) > 1:
                return None
            self._known[key] = next(iter(found))
        return self._known[key]

    def _missed(self, name: str, seen: bool, function: Optional[type]) -> None:
        if function is not None:
            return  # it has a name of its own, and its forward made no op
        if seen:
            self.ambiguous += 1
        else:
            self.unlinked += 1
        self.without[name] = self.without.get(name, 0) + 1

    def _at(self, thread: int, place: int, number: int, name: str, function: Optional[type], before: int, read: frozenset[int]) -> Optional[Ran]:
        """The op of a node that the op at a place of a thread saw first."""
        ran = self._ran[thread]
        first, kind = ran[place], _kind_of_node(name)
        if function is not None:
            code = getattr(getattr(function, "forward", None), "__code__", None)
            return first if code is None or not is_users(code.co_filename) or code in self._code[first.stack] else None  # else its forward made no op
        if kind == _WRITTEN:
            return next((one for one in reversed(ran[:place]) if one.writes), None)
        if kind == "asstrided" and first.kind != kind:  # a view that is made again after a write: at once, or where it is read
            last = ran[place - 1] if place and ran[place - 1].writes else None
            at_once = last is not None and (thread, place) in self._made.get(number - 1, [])
            reading = next((one for one in reversed(ran[:place]) if one.writes and one.storages & first.storages), None)
            return last if at_once else reading or last
        if first.kind == kind and first.own == number:
            return first
        near = [one for one in ran[place:place + _BEHIND] if one.n < before and (one.n == first.n or one.own is None or one.stack == first.stack)]
        named = [one for one in near if one.kind == kind]
        inner = [one for one in named if one.own is None and one.n != first.n]  # the node was its own, and its hooks ran before it
        for some in ([one for one in inner if one.depth <= first.depth], inner, [one for one in named if one.storages & read], named):
            if some:
                return some[0]
        if first.own == number and first.storages & read:
            return first
        line = [one for one in near if one.stack == first.stack]  # torch.func: a rule of vmap ran several ops for the node, as a view, mm and add for addmm
        for some in ([one for one in line if one.storages & read], [one for one in line if len(one.kind) > 1 and one.kind in kind]):
            if some:
                return some[0]
        return None


@dataclass(frozen=True)
class Repeatable:
    """An op of a checkpointed region, which a backward may repeat."""

    n: int
    reads: tuple[int, ...]  # storages
    makes: list[int]
    module: Optional[int]
    call: Optional[int]


class Repeats:
    """Which op of a checkpointed region a recomputed one repeats: the one that reads what this one reads, storages being equal that ops which repeat one another made."""

    def __init__(self) -> None:
        self._regions: list[Repeatable] = []
        self._by_key: dict[Hashable, list[int]] = {}  # places in the list, by what an op and its repetition have in common: name, lines within the region, sizes
        self._done: set[int] = set()
        self._first: dict[int, int] = {}  # storage of a recomputation -> that of the forward
        self._following = 0

    def repeatable(self, key: Hashable, op: Repeatable) -> None:
        self._by_key.setdefault(key, []).append(len(self._regions))
        self._regions.append(op)

    def ops(self) -> list[int]:
        """Those of checkpointed regions, in their order."""
        return [one.n for one in self._regions]

    def repeated(self, key: Hashable, reads: Sequence[int], makes: Sequence[int]) -> Optional[Repeatable]:
        """The op that a recomputed one repeats. Regions are recomputed from the last to the first, and each in order."""
        same = self._by_key.get(key, [])
        wanted = tuple(self._first.get(one, one) for one in reads)
        left = [place for place in same if place not in self._done]
        exact = [place for place in left if self._regions[place].reads == wanted] or [place for place in same if self._regions[place].reads == wanted]
        found = exact or [place for place in left if not set(self._regions[place].makes) <= set(self._regions[place].reads)]
        if not found:
            return None
        at = next((place for place in found if place >= self._following), found[-1])
        self._done.add(at)
        self._following = at + 1
        op = self._regions[at]
        for mine, one in zip(makes, op.makes):
            if mine != one:
                self._first[mine] = self._first.get(one, one)
        return op


def _following_number() -> int:
    """The sequence number of the next autograd node of this thread."""
    return torch._C._autograd._get_sequence_nr()


def _kind_of_op(name: str) -> str:
    """"aten._foreach_addmm_.default" as "addmm"."""
    return name.split(".")[1].replace("_", "").lower().removeprefix("foreach").removesuffix("forward") if "." in name else name


def _kind_of_node(name: str) -> str:
    """"AddmmBackward0" as "addmm", "EluBackwardBackward0" as "elubackward"."""
    return re.sub(r"Backwards?\d*$", "", name.split("::")[-1]).replace("_", "").lower().removeprefix("foreach")
