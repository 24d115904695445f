"""Whether the links of a recording are right: by the format alone, each is compared with what the ops read and wrote."""

import collections
import re

def plain(name):
    return name.replace("_", "").lower()


def of_node(node):
    return plain(re.sub(r"Backwards?\d*$", "", node))


def of_op(op):
    return re.sub("forward$", "", plain(op.split(".")[1]))


def tensors(value):
    if isinstance(value, dict):
        if "t" in value:
            yield value["t"]
    elif isinstance(value, list):
        for one in value:
            yield from tensors(one)


class Links:
    """Reads the records. `wrong` lists links that operands or names contradict; `names` counts pairs of a node and an op whose names differ."""

    def __init__(self, records):
        self.tensors, self.phase = {}, "other"
        self.ops, self.made = {}, {}  # op -> its storages; storage -> op that made it, and its phase
        self.inputs, self.read = set(), set()  # storages: of the recording, and that ops of the forward read
        self.linked = self.without = self.accumulated = 0
        self.wrong, self.names = [], collections.Counter()
        self.nodes_without = collections.Counter()
        self.outs, self.reads, self.first = {}, {}, {}  # storages of an op's results; recomputed storage -> the one that it repeats
        for record in records:
            getattr(self, "on_" + record["k"], lambda _: None)(record)

    def on_tensor(self, record):
        self.tensors[record["id"]] = record

    def on_storage(self, record):
        if "data" in record or "missing" in record:
            self.inputs.add(record["id"])

    def on_mode(self, record):
        self.phase = record["phase"]

    def storages(self, value):
        for one in tensors(value):
            record = self.tensors[one]
            if "parts" in record:
                yield from self.storages([{"t": part} for part in record["parts"].values()])
            else:
                yield record["storage"]

    def on_op(self, record):
        n = record["n"]
        read = set(self.storages(record["in"])) | set(self.storages(list(record.get("kw", {}).values())))
        wrote = set(self.storages(record["out"])) | {
            one for number in record.get("writes", []) for one in self.storages({"t": number})
        }
        self.ops[n] = (record["op"], read | wrote)
        if "seq" in record and self.phase in ("forward", "loss", "recompute"):
            self.read |= read
        self.outs[n], self.reads[n] = list(self.storages(record["out"])), list(self.storages(record["in"]))
        if "repeats" in record:
            self.repeat(record)
        if self.phase == "backward" and "node" in record:
            self.backward(record, read)
        elif self.phase == "accumulation":
            self.accumulated += 1
        for storage in wrote:
            self.made.setdefault(storage, (n, self.phase))

    def repeat(self, record):
        of = record["repeats"]
        name, _ = self.ops[of]
        if name != record["op"]:
            self.wrong.append((record["n"], f"{record['op']} repeats {name}"))
        a, b = ([self.first.get(one, one) for one in self.reads[n]] for n in (record["n"], of))
        fresh = [x in self.inputs and y in self.inputs for x, y in zip(a, b)]  # Python makes the data of both again
        if len(a) != len(b) or any(x != y and not is_fresh for x, y, is_fresh in zip(a, b, fresh)):
            self.wrong.append((record["n"], f"{record['op']} reads {a} and repeats op {of}, which reads {b}"))
        for mine, repeated in zip(self.outs[record["n"]], self.outs[of]):
            if mine != repeated:
                self.first[mine] = self.first.get(repeated, repeated)

    def backward(self, record, read):
        """What a backward op reads of the forward, its forward op has read or written."""
        node, of = record["node"], record.get("of")
        if of is None:
            self.without += 1
            self.nodes_without[node] += 1
            return
        self.linked += 1
        if of >= record["n"]:
            self.wrong.append((record["n"], "of an op that comes later"))
            return
        name, own = self.ops[of]
        own = {self.first.get(storage, storage) for storage in own}
        alien = [
            storage
            for storage in read
            if self.first.get(storage, storage) not in own
            and storage in self.read - self.inputs
            and self.made[storage][1] in ("forward", "loss", "recompute")
        ]
        if alien and "function" not in record:
            self.wrong.append((record["n"], f"{record['op']} in {node} reads storages {alien}, which {name} ({of}) has not"))
        if of_node(node) != of_op(name) and "function" not in record and not self.is_write(node, name):
            self.names[f"{node} of {name}"] += 1

    def is_write(self, node, name):
        """The node of a write to a view, and that of a view made again after one, have numbers that no op made."""
        return node.endswith(("CopySlices", "AsStridedBackward0")) and name.split(".")[1].endswith("_")
