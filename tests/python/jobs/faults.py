"""Plants one fault into a backward graph: another operand, constant, sign or draw, a dropped term, a rounded
operand, two gradients exchanged."""

import contextlib
import operator

import torch

aten = torch.ops.aten
SWAPPED = {
    aten.sub.Tensor,
    aten.div.Tensor,
    aten.where.self,
    aten.mm.default,
    aten.tanh_backward.default,
    aten.sigmoid_backward.default,
    aten.threshold_backward.default,
    aten.bmm.default,
    aten._softmax_backward_data.default,
    aten._log_softmax_backward_data.default,
    aten.gelu_backward.default,
    aten.pow.Tensor_Tensor,
    aten.atan2.default,
    aten.maximum.default,
}
SCALED = {
    aten.mul.Scalar,
    aten.mul.Tensor,
    aten.div.Scalar,
    aten.div.Tensor,
    aten.add.Scalar,
    aten.add.Tensor,
    aten.sub.Tensor,
    aten.pow.Tensor_Scalar,
    aten.native_dropout_backward.default,
    aten.rsub.Scalar,
    aten.threshold_backward.default,
    aten.le.Scalar,
    aten.lt.Scalar,
    aten.gt.Scalar,
    aten.ge.Scalar,
    aten.clamp.default,
    aten.clamp_min.default,
    aten.full.default,
    aten.leaky_relu_backward.default,
    aten.elu_backward.default,
    aten.hardtanh_backward.default,
    aten.mse_loss_backward.default,
    aten.smooth_l1_loss_backward.default,
    aten.full_like.default,
    aten.softplus_backward.default,
    aten.scalar_tensor.default,
}


class Fault:
    """An edit of a graph: `undo` takes it back."""

    def __init__(self, kind, text):
        self.kind, self.text = kind, text
        self.before, self.inserted, self.targets = {}, [], []

    def keep(self, node):
        self.before.setdefault(node, (node.args, node.kwargs))

    def set(self, node, args):
        self.keep(node)
        node.args = tuple(args)

    def retarget(self, node, target):
        self.targets.append((node, node.target))
        node.target = target

    def replace(self, old, new):
        """`new` in the place of `old` wherever that is read, but by `new` itself and by what was inserted for it."""
        for user in list(old.users):
            if user is not new and user not in self.inserted:
                self.keep(user)
                user.replace_input_with(old, new)

    def insert(self, graph, before, target, args, like, kwargs=None):
        with graph.inserting_before(before):
            node = graph.call_function(target, tuple(args), kwargs or {})
        node.meta = {"val": like}
        self.inserted.append(node)
        return node

    def undo(self, graph):
        for node, (args, kwargs) in self.before.items():
            node.args, node.kwargs = args, kwargs
        for node, target in self.targets:
            node.target = target
        for node in reversed(self.inserted):
            graph.erase_node(node)


def kind_of(node):
    """(shape, dtype) of a node that is a tensor of floating point, else None."""
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return (
        (tuple(map(str, value.shape)), value.dtype)
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        else None
    )


def calls(graph):
    return [node for node in graph.nodes if node.op == "call_function" and node.users]


def first_call(graph):
    return next(node for node in graph.nodes if node.op in ("call_function", "get_attr", "output"))


def operand_exchanged(graph, random, _):
    found = [
        n
        for n in calls(graph)
        if n.target in SWAPPED
        and len(n.args) >= 2
        and kind_of(n.args[-2])
        and kind_of(n.args[-2]) == kind_of(n.args[-1])
        and n.args[-1] is not n.args[-2]
    ]
    if not found:
        return None
    node = random.choice(found)
    fault = Fault("operand", f"{node.name}: the last two operands are exchanged")
    fault.set(node, [*node.args[:-2], node.args[-1], node.args[-2]])
    return fault


def operand_other(graph, random, _):
    """An operand is another value of the same type, from before the op."""
    nodes = list(graph.nodes)
    order = {node: i for i, node in enumerate(nodes)}
    choices = []
    for node in calls(graph):
        for i, argument in enumerate(node.args):
            if kind_of(argument):
                same = [
                    other
                    for other in nodes[: order[node]]
                    if kind_of(other) == kind_of(argument) and other is not argument
                ]
                choices += [(node, i, other) for other in same]
    if not choices:
        return None
    node, i, other = random.choice(choices)
    fault = Fault("operand", f"{node.name}: operand {i} is {other.name} instead of {node.args[i]}")
    args = list(node.args)
    args[i] = other
    fault.set(node, args)
    return fault


def constant(graph, random, _):
    choices = [
        (node, i)
        for node in calls(graph)
        if node.target in SCALED
        for i, a in enumerate(node.args)
        if isinstance(a, (int, float)) and not isinstance(a, bool)
    ]
    if not choices:
        return None
    node, i = random.choice(choices)
    old = node.args[i]
    new = old + 1 if isinstance(old, int) else old * 1.25 if old else 0.2
    fault = Fault("constant", f"{node.name}: {old} is {new}")
    args = list(node.args)
    args[i] = new
    fault.set(node, args)
    return fault


def sign(graph, random, _):
    found = [node for node in calls(graph) if kind_of(node)]
    if not found:
        return None
    node = random.choice(found)
    if node.target is aten.neg.default and kind_of(node.args[0]) == kind_of(node):
        fault = Fault("sign", f"{node.name}: is not taken")
        fault.replace(node, node.args[0])
        return fault
    fault = Fault("sign", f"{node.name}: with the other sign")
    fault.replace(node, fault.insert(graph, node.next, aten.neg.default, [node], node.meta["val"]))
    return fault


def dropped(graph, random, _):
    """A term of a sum, or a factor of a product, is missing."""
    found = []
    for node in calls(graph):
        if node.target in (aten.add.Tensor, aten.mul.Tensor, aten.sub.Tensor, aten.div.Tensor):
            for keep in (0, 1) if node.target in (aten.add.Tensor, aten.mul.Tensor) else (0,):
                if (
                    len(node.args) == 2
                    and kind_of(node.args[keep]) == kind_of(node)
                    and isinstance(node.args[1 - keep], torch.fx.Node)
                ):
                    found.append((node, keep))
    sums = [(n, k) for n, k in found if n.target in (aten.add.Tensor, aten.sub.Tensor)]
    found = sums if sums and random.random() < 0.6 else found
    if not found:
        return None
    node, keep = random.choice(found)
    fault = Fault("dropped", f"{node.name}: without {node.args[1 - keep]}")
    fault.replace(node, node.args[keep])
    return fault


def rounded(graph, random, _):
    choices = [
        (node, i)
        for node in calls(graph)
        for i, a in enumerate(node.args)
        if kind_of(a) and kind_of(a)[1] in (torch.float32, torch.float64) and node.target is not operator.getitem
    ]
    if not choices:
        return None
    node, i = random.choice(choices)
    argument = node.args[i]
    value = argument.meta["val"]
    fault = Fault("rounded", f"{node.name}: operand {i} is rounded to bfloat16")
    low = fault.insert(
        graph, node, aten._to_copy.default, [argument], value.to(torch.bfloat16), {"dtype": torch.bfloat16}
    )
    high = fault.insert(graph, node, aten._to_copy.default, [low], value, {"dtype": value.dtype})
    args = list(node.args)
    args[i] = high
    fault.set(node, args)
    return fault


def gradients_exchanged(graph, random, _):
    output = next(iter(graph.find_nodes(op="output")))
    results = list(output.args[0])
    pairs = [
        (i, j)
        for i in range(len(results))
        for j in range(i)
        if kind_of(results[i]) and kind_of(results[i]) == kind_of(results[j]) and results[i] is not results[j]
    ]
    if not pairs:
        return None
    i, j = random.choice(pairs)
    fault = Fault("exchanged", f"gradients {j} and {i} are exchanged")
    results[i], results[j] = results[j], results[i]
    fault.set(output, [tuple(results)])
    return fault


def drawn_in(forward, is_draw):
    """Names of the forward's values that come from draws alone: masks, noises."""
    names = set()
    for node in forward.nodes:
        if node.op != "call_function":
            continue
        inputs = [a.name for a in node.all_input_nodes]
        first = node.args[0] if getattr(node.target, "__name__", "") == "run_and_save_rng_state" else node.target
        seeded = "inductor" in str(node.target)
        if is_draw(first) or seeded or (inputs and all(name in names for name in inputs)):
            names.add(node.name)
    return names


def other_draw(graph, random, drawn):
    """A mask or noise of the forward is drawn once more, or one state or seed takes the place of another."""
    choices = []
    for node in graph.nodes:
        value = node.meta.get("val")
        if (
            not isinstance(value, torch.Tensor)
            or not node.users
            or any(isinstance(s, torch.SymInt) for s in value.shape)
        ):
            continue
        if (
            node.name in drawn
            and value.dtype in (torch.bool, torch.float32, torch.float64)
            and node.op == "placeholder"
        ):
            choices.append((node, "fresh"))
        if node.op == "call_function" and node.target is torch.ops.prims.inductor_random.default:
            choices.append((node, "seed"))
        if node.op == "call_function" and getattr(node.target, "__name__", "") == "run_with_rng_state":
            choices.append((node, "state"))
    if not choices:
        return None
    node, way = random.choice(choices)
    fault = Fault("draw", f"{node.name}: drawn once more")
    if way == "fresh":
        value = node.meta["val"]
        shape = [int(s) for s in value.shape]
        begin = first_call(graph)
        like = torch.ops.aten.rand.default
        new = fault.insert(
            graph,
            begin,
            like,
            [shape],
            value.to(torch.float32) if value.dtype == torch.bool else value,
            {
                "dtype": torch.float32 if value.dtype == torch.bool else value.dtype,
                "device": torch.device("cpu"),
                "pin_memory": False,
            },
        )
        if value.dtype == torch.bool:
            new = fault.insert(graph, begin, aten.gt.Scalar, [new, 0.4], value)
        fault.replace(node, new)
    elif way == "seed":
        seeds = fault.insert(
            graph,
            node,
            torch.ops.prims.inductor_seeds.default,
            [1, torch.device("cpu")],
            torch.empty(1, dtype=torch.int64, device="meta"),
        )
        with contextlib.suppress(KeyError):
            seeds.meta["val"] = node.args[1].meta["val"].new_empty([1])
        seed = fault.insert(
            graph, node, torch.ops.prims.inductor_lookup_seed.default, [seeds, 0], node.args[1].meta["val"]
        )
        fault.set(node, [node.args[0], seed, *node.args[2:]])
    else:
        states = [
            p for p in graph.find_nodes(op="placeholder") if p.name.startswith("rng_state") and p is not node.args[0]
        ]
        if states and random.random() < 0.7:
            other = random.choice(states)
            fault.text = f"{node.name}: drawn from {other.name} instead of {node.args[0].name}"
            fault.set(node, [other, *node.args[1:]])
        else:
            fault.retarget(node, node.args[1])
            fault.set(node, node.args[2:])
    return fault


KINDS = [operand_exchanged, operand_other, constant, sign, dropped, rounded, gradients_exchanged]


def plant(module, random, drawn):
    """One fault in the graph, or None where that kind finds no place."""
    if drawn and random.random() < 0.5:
        fault = other_draw(module.graph, random, drawn)
        if fault is not None:
            return fault
    return random.choice(KINDS)(module.graph, random, drawn)
