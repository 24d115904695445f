"""What makes a job unlike a plain function: draws, checkpoints, regions, writes, Functions, inner gradients. ALL
lists them."""

from typing import Callable, NamedTuple

import torch

import functions


class Feature(NamedTuple):
    probability: float
    draw: Callable


# Draws.


def draw_once(draft):
    """One op that draws random numbers; the name of its value, or None."""
    a = draft.pick()
    p = draft.random.choice([0.2, 0.3, 0.5])
    rows = draft.rows()
    kinds = {
        "dropout": lambda: draft.add(f"dropout({a}, {p}, True)"),
        "rand_like": lambda: draft.add(f"{a} * rand_like({a})"),
        "randn_like": lambda: draft.add(f"{a} * (1.0 + 0.5 * randn_like({a}))"),
        "rand": lambda: draft.add(f"{rows} * rand([{draft.shape(rows)[-1]}], dtype={draft.dtype})"),
        "bernoulli": lambda: draft.add(f"{a} * bernoulli(torch.sigmoid(detach({a})))"),
        "bernoulli of a constant": lambda: draft.add(f"torch.sin({a}) * bernoulli(torch.full_like({a}, {p}))"),
        "feature dropout": lambda: cube_of(draft, lambda c: f"dropout1d({c}, {p}, True)"),
        "alpha dropout": lambda: draft.add(f"alpha_dropout({a}, {p}, True)"),
        "rrelu": lambda: draft.add(f"rrelu({a}, 0.1, 0.6, True)"),
        "attention dropout": lambda: cube_of(
            draft, lambda c: f"scaled_dot_product_attention({c}, {c}, {c}, dropout_p={p})"
        ),
        "causal attention dropout": lambda: cube_of(
            draft, lambda c: f"scaled_dot_product_attention({c}, {c} * 0.5, {c}, dropout_p={p}, is_causal=True)"
        ),
        "randperm": lambda: draft.add(f"{rows}[:, randperm({draft.shape(rows)[-1]})] * {rows}"),
        "randint_like": lambda: draft.add(f"{a} * randint_like({a}, 1, 4)"),
        "noise through a threshold": lambda: draft.add(f"torch.where(rand_like({a}) > {p}, {a}, {a} * 0.25)"),
    }
    kind = draft.random.choice(list(kinds))
    name = kinds[kind]()
    if name is not None:
        draft.features[f"draw: {kind}"] += 1
        draft.has_draws = True
    return name


def cube_of(draft, expression):
    """A value of three dimensions made of the expression; None where it does not fit."""
    cube = draft.pick(lambda t: t.dim() == 3)
    if cube is None:
        cube = draft.add(f"{draft.rows()}.unsqueeze(1) * {draft.parameter(3, 1)}")
    return draft.add(expression(cube)) if cube else None


def draws(draft):
    for _ in range(draft.random.randint(1, 2)):
        draw_once(draft)


# Checkpoints.


def checkpointed(draft):
    """A function that is checkpointed, of either kind, with draws in it at times."""
    inputs = {draft.pick(lambda t: t.requires_grad) or draft.scope[-1]}
    if draft.chance(0.4):
        inputs.add(draft.pick())
    inputs = sorted(inputs)
    name = draft.fresh("block")
    arguments = [draft.fresh("a") for _ in inputs]
    for argument, given in zip(arguments, inputs):
        draft.env[argument] = draft.env[given]
    before, outside = len(draft.lines), list(draft.scope)
    draft.emit(f"def {name}({', '.join(arguments)}):")
    draft.indent += 1
    draft.scope = list(arguments)
    label = []
    for _ in range(draft.random.randint(1, 3)):
        if draft.chance(0.4):
            label.append(draw_once(draft))
        else:
            draft.plain(1)
    if draft.chance(0.15):
        custom(draft)
    if draft.chance(0.15):
        cut(draft)
    made = [n for n in draft.scope if n not in arguments and draft.env[n].requires_grad]
    results = draft.unread(made, before)[-3:] or made[-1:]
    if results:
        draft.emit(f"return {', '.join(results)}")
    draft.indent -= 1
    draft.scope = outside
    if not results:
        del draft.lines[before:]
        return
    ways = {"non-reentrant": "use_reentrant=False", "reentrant": "use_reentrant=True"}
    way = draft.random.choice(["non-reentrant"] * 4 + ["reentrant"])
    options = [ways[way]]
    if draft.chance(0.4):
        preserve = draft.chance(0.4)
        options.append(f"preserve_rng_state={preserve}")
        draft.features[f"checkpoint: preserve_rng_state={preserve}"] += 1
    if way == "non-reentrant" and draft.chance(0.15):
        options.append("context_fn=selective")
        draft.features["checkpoint: selective"] += 1
    outputs = [draft.fresh() for _ in results]
    draft.emit(f"{', '.join(outputs)} = checkpoint({name}, {', '.join(inputs)}, {', '.join(options)})")
    for output, result in zip(outputs, results):
        draft.env[output] = draft.env[result]
        draft.scope.append(output)
    draft.features[f"checkpoint: {way}"] += 1
    if any(label):
        draft.features["checkpoint with draws"] += 1


# Cuts.


def cut(draft):
    a = draft.pick()
    kinds = {
        "detach": lambda: draft.add(f"detach({a}) * {draft.pick()}") or draft.add(f"{a} * detach({a})"),
        "data": lambda: draft.add(f"{a} * data({a})"),
        "detached part": lambda: draft.add(f"{a} + detach(torch.tanh({a}) - {a})"),
        "no_grad": lambda: no_grad(draft),
        "no_grad in no_grad": lambda: no_grad(draft, nested=True),
    }
    kind = draft.random.choice(list(kinds))
    if kinds[kind]() is not None:
        draft.features[f"cut: {kind}"] += 1


def no_grad(draft, nested=False):
    """A region whose values are used after it."""
    before, outside = len(draft.lines), list(draft.scope)
    draft.emit("with no_grad():")
    draft.indent += 1
    draft.mode = "no_grad"
    if draft.buffers and draft.chance(0.4):
        write_buffer(draft)
    made = draft.plain(draft.random.randint(1, 2))
    draft.mode = "plain"
    inner = [name for name in draft.scope if name not in outside]
    if nested and made:
        draft.emit(f"# cut {', '.join(inner)}")
        draft.emit("with torch.enable_grad():")
        draft.indent += 1
        kept = draft.plain(1)
        draft.indent -= 1
        if kept is None:
            del draft.lines[-2:]
        else:
            inner = []
    draft.indent -= 1
    if made is None:
        del draft.lines[before:]
        draft.scope = outside
        return None
    if inner:
        draft.emit(f"# cut {', '.join(inner)}")
    partner = draft.like(made)
    return (
        draft.add(f"{made} * {partner}") if partner else draft.add(f"{made} * {draft.scalar()} + {draft.pick()}.sum()")
    )


# Writes.


def write(draft):
    kinds = [
        write_value,
        write_value,
        write_view,
        write_buffer,
        write_input,
        write_in_no_grad,
        write_data,
        write_parameter,
    ]
    draft.random.choice(kinds)(draft)


def copy_of(draft):
    """A value that may be written to: no leaf, nothing that an op before it has saved."""
    a = draft.pick(lambda t: t.dim() >= 1) or draft.scope[-1]
    return draft.add(f"{a} * {draft.scalar()}")


def write_value(draft):
    a = copy_of(draft)
    if a is None:
        return
    b = draft.like(a)
    line = draft.random.choice(
        [
            f"{a}.mul_({draft.scalar()})",
            f"{a}.relu_()",
            f"{a}.add_({b})",
            f"{a}.mul_({b})",
            f"{a}.tanh_()",
            f"{a}.clamp_(-1.0, 1.0)",
            f"{a}.sub_({b}, alpha=0.5)",
            f"{a}.copy_({b})",
            f"{a}.masked_fill_({a}.detach() > 0.3, 0.5)",
            f"{a}.sigmoid_()",
            f"{a}.addcmul_({b}, {b}, value=0.25)",
            f"{a}.zero_()",
            f"{a}.lerp_({b}, 0.25)",
        ]
    )
    if draft.say(line):
        draft.features["write: value"] += 1
        draft.used.discard(a)


def write_view(draft):
    a = copy_of(draft)
    if a is None:
        return
    b = draft.pick(lambda t: t.shape[1:] == draft.env[a].shape[1:] and t.dim() >= 1)
    lines = [
        f"{a}[0] = 0.5",
        f"{a}[..., 0] = {draft.scalar()}",
        f"{a}[1] = {b}[0]",
        f"{a}[:2].mul_({draft.scalar()})",
        f"{a}[..., :1].add_({a}.detach()[..., 1:2])",
        f"{a}[1:3].copy_({b}[:2].tanh())",
        f"{a}.select(0, 1).tanh_()",
        f"{a}.transpose(0, -1)[0].zero_()",
        f"{a}.index_add_(0, torch.tensor([0, 1]), {b}[:2])",
        f"{a}.index_put_((torch.tensor([0, 2]),), {b}[:2], accumulate=True)",
        f"{a}.scatter_add_(0, torch.zeros_like({a}, dtype=torch.int64), {a}.detach())",
    ]
    if draft.say(draft.random.choice(lines)):
        draft.features["write: through a view"] += 1
        draft.used.discard(a)


def write_buffer(draft):
    """Running statistics, counters, and caches that the loss reads afterwards."""
    a = draft.rows()
    columns = draft.shape(a)[-1]
    kind = draft.random.randrange(5)
    if kind == 0:
        mean, variance = draft.buffer(torch.zeros(columns, dtype=draft.dtype)), draft.buffer(
            torch.ones(columns, dtype=draft.dtype)
        )
        name = draft.add(f"F.batch_norm({a}, {mean}, {variance}, {draft.parameter(columns)}, None, True, 0.25)")
        if name:
            draft.features["write: batch norm"] += 1
        return
    if kind == 1:
        counter = draft.buffer(torch.tensor(3, dtype=torch.int64))
        draft.say(f"{counter}.add_(1)")
        draft.add(f"{a} / {counter}")
        draft.features["write: counter"] += 1
        return
    cache = draft.buffer(draft.tensor(columns))
    line = [
        f"{cache}.mul_(0.9).add_(detach({a}).mean(0), alpha=0.1)",
        f"{cache}.copy_(detach({a}).amax(0))",
        f"{cache}.lerp_(detach({a}).mean(0), 0.3)",
    ][kind - 2]
    if draft.say(line):
        draft.add(f"{a} * {cache}")
        draft.features["write: buffer"] += 1


def write_input(draft):
    """An input without gradient is written to, and read afterwards."""
    name = draft.input(draft.tensor(draft.size, draft.random.choice([2, 3, 4])))
    line = draft.random.choice(
        [
            f"{name}.mul_({draft.scalar()})",
            f"{name}.add_(1.0)",
            f"{name}[0] = 0.5",
            f"{name}.copy_(torch.tanh({name}))",
            f"{name}[:, 1].zero_()",
        ]
    )
    draft.add(f"{name} * {draft.parameter(draft.shape(name)[-1])}")
    if draft.say(line):
        draft.add(f"torch.sin({name}) * {draft.parameter(draft.shape(name)[-1])}")
        draft.features["write: input"] += 1


def write_in_no_grad(draft):
    a = copy_of(draft)
    if a is None:
        return
    draft.emit("with no_grad():")
    draft.indent += 1
    draft.mode = "no_grad"
    kept = draft.say(
        draft.random.choice(
            [
                f"{a}.mul_({draft.scalar()})",
                f"{a}[0] = 0.25",
                f"{a}.clamp_(-0.8, 0.8)",
                f"{a}.add_({a}.mean())",
                f"{a}[..., 0].mul_(0.5)",
            ]
        )
    )
    draft.mode = "plain"
    draft.indent -= 1
    if not kept:
        draft.lines.pop()
        return
    draft.features["write: in no_grad"] += 1
    draft.differentiable = False
    draft.used.discard(a)


def write_data(draft):
    a = copy_of(draft)
    if a is not None and draft.say(
        draft.random.choice([f"{a}.data.mul_({draft.scalar()})", f"{a}.data[0] = 0.25", f"{a}.detach().add_(0.5)"])
    ):
        draft.features["write: data"] += 1
        draft.differentiable = False
        draft.used.discard(a)


def write_parameter(draft):
    """A constraint on a parameter, applied before it is used."""
    a = draft.rows()
    columns = draft.shape(a)[-1]
    name = draft.parameter(columns)
    if draft.form == "function":
        return
    draft.emit("with no_grad():")
    draft.indent += 1
    draft.mode = "no_grad"
    kept = draft.say(
        draft.random.choice([f"{name}.clamp_(-0.5, 0.5)", f"{name}.mul_(0.5)", f"{name}.div_({name}.norm() + 0.5)"])
    )
    draft.mode = "plain"
    draft.indent -= 1
    if not kept:
        draft.lines.pop()
        return
    draft.add(f"{a} * {name}")
    draft.features["write: parameter"] += 1
    draft.differentiable = False


# Regions, Functions, inner gradients.


def autocast(draft):
    if draft.dtype != torch.float32:
        return
    outside = list(draft.scope)
    before = len(draft.lines)
    draft.emit("with torch.autocast('cpu', dtype=torch.bfloat16):")
    draft.indent += 1
    draft.mode = "autocast"
    a = draft.rows()
    columns = draft.shape(a)[-1]
    wide = draft.random.choice([2, 3, 4])
    made = draft.add(f"F.linear({a}, {draft.parameter(wide, columns)})")
    if made and draft.chance(0.6):
        made = draft.add(f"torch.tanh({made}) @ {draft.parameter(wide, wide)}") or made
    if made and draft.chance(0.3):
        made = draft.add(f"F.softmax({made}, -1)") or made
    if made and draft.chance(0.25):
        dropped = draft.add(f"dropout({made}, 0.4, True)")
        if dropped:
            draft.has_draws, made = True, dropped
            draft.features["autocast with draws"] += 1
    draft.mode = "plain"
    draft.indent -= 1
    draft.scope = outside
    if made is None:
        del draft.lines[before:]
        return
    draft.used.add(made)
    draft.add(f"{made}.to({a}.dtype)")
    draft.features["autocast"] += 1


def custom(draft):
    a = draft.pick()
    kind = draft.random.choice(functions.FUNCTIONS)
    if kind == "Product":
        a = draft.rows()
        name, total = draft.fresh(), draft.fresh()
        weight = draft.parameter(draft.shape(a)[-1], 3)
        if draft.say(f"{name}, {total} = Product.apply({a}, {weight})"):
            draft.scope += [name, total]
    else:
        name = draft.add(f"{kind}.apply({a}{', 0.5' if kind == 'ExpOfSaved' else ''})")
    if name is None or name not in draft.env:
        return
    draft.features[f"Function: {kind}"] += 1
    draft.has_draws |= kind in ("Stochastic", "NoisyProduct")
    draft.differentiable &= kind not in ("Clipped", "Reversed", "StraightThrough", "Stochastic")


def inner(draft):
    a = draft.pick(lambda t: t.requires_grad and t.dim() == 2) or draft.rows()
    columns = draft.shape(a)[-1]
    weight = draft.parameter(columns)
    energy = draft.random.choice(
        [
            f"torch.sin({{}} * {weight}).sum()",
            f"({{}}.square() * {weight}).sum()",
            f"torch.exp(0.3 * {{}}).sum()",
            f"torch.tanh({{}}).pow(3).sum()",
            f"F.softplus({{}} * {weight}).sum()",
        ]
    )
    if draft.chance(0.5):
        name = draft.add(f"torch.func.grad(lambda t: {energy.format('t')})({a})")
        kind = "torch.func.grad"
    else:
        create = draft.chance(0.75)
        name = draft.add(f"torch.autograd.grad({energy.format(a)}, {a}, create_graph={create})[0]")
        kind = "autograd.grad" + (", create_graph" if create else "")
        draft.differentiable &= create
    if name:
        draft.features[f"inner gradient: {kind}"] += 1


def branch(draft):
    """Values without a derivative: comparisons, positions, roundings."""
    a = draft.rows()
    b = draft.pick()
    expressions = [
        f"{a} * ({a} > 0.1).to({draft.dtype})",
        f"{a}[:, {a}.mean(0).argmax()].unsqueeze(-1) * {a}",
        f"torch.round({a} * 4) * 0.25 + {a}",
        f"{a}.sign() * {a}.square()",
        f"{a}.gather(-1, {a}.argsort(-1, descending=True)) * {a}",
        f"torch.floor({b}) * 0.5 + {b}",
        f"F.one_hot({a}.argmax(-1), {draft.shape(a)[-1]}).to({draft.dtype}) * {a}",
        f"{b} * torch.isfinite({b})",
        f"torch.bucketize({a}.contiguous(), torch.tensor([-0.5, 0.5])).to({draft.dtype}) * {a}",
        f"{b} * ({b}.numel() * 0.01)",
    ]
    if draft.add(draft.random.choice(expressions)):
        draft.features["branch without derivative"] += 1


def graph_break(draft):
    if draft.say("torch._dynamo.graph_break()"):
        draft.features["graph break"] += 1


def extra_output(draft):
    """A result besides: a detached one, an integer, a view of another, an input as it is, the same twice."""
    a = draft.rows()
    end = draft.outputs[0]
    kinds = {
        "detached": f"detach({a})",
        "integer": f"{a}.argmax(-1)",
        "view": f"{a}[0]",
        "same twice": None,
        "bool": f"{a} > 0",
        "parameter": None,
    }
    kind = draft.random.choice(list(kinds))
    if kind == "same twice":
        name = end
    elif kind == "parameter" and draft.parameters:
        name = draft.prefix + draft.random.choice(list(draft.parameters))
    elif kinds[kind]:
        name = draft.add(kinds[kind])
    else:
        name = None
    if name:
        draft.outputs.append(name)
        draft.features[f"output: {kind}"] += 1


ALL = [
    Feature(0.45, draws),
    Feature(0.35, checkpointed),
    Feature(0.1, checkpointed),
    Feature(0.3, cut),
    Feature(0.35, write),
    Feature(0.15, autocast),
    Feature(0.25, custom),
    Feature(0.15, inner),
    Feature(0.25, branch),
    Feature(0.04, graph_break),
]
