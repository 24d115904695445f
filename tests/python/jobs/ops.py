"""Differentiable ops without anything special, as text."""

UNARY = [
    "torch.tanh({a})",
    "torch.sin({a})",
    "torch.cos({a})",
    "torch.sigmoid({a})",
    "F.gelu({a})",
    "F.gelu({a}, approximate='tanh')",
    "F.silu({a})",
    "F.relu({a})",
    "F.softplus({a})",
    "torch.exp({a}.clamp(max=1.5))",
    "{a}.square()",
    "{a} * {s}",
    "{a} + {s}",
    "{s} - {a}",
    "{s} / ({a}.abs() + 0.7)",
    "torch.sqrt({a}.abs() + 0.5)",
    "torch.log({a}.square() + 0.5)",
    "{a} / ({a}.abs() + 1.0)",
    "F.leaky_relu({a}, 0.2)",
    "F.hardtanh({a})",
    "torch.erf({a})",
    "F.elu({a})",
    "{a}.pow(3)",
    "torch.reciprocal({a}.square() + 1.0)",
    "F.mish({a})",
    "F.hardswish({a})",
    "F.logsigmoid({a})",
    "torch.atan({a})",
    "{a}.clamp(-0.8, 0.9)",
    "torch.rsqrt({a}.square() + 0.4)",
    "torch.expm1({a}.clamp(max=1.0))",
    "{a}.clone()",
    "-{a}",
    "torch.sinh({a}.clamp(-1.5, 1.5))",
    "torch.abs({a})",
    "torch.log1p({a}.abs())",
    "torch.xlogy({a}.abs() + 0.3, {a}.abs() + 0.3)",
    "F.threshold({a}, 0.1, 0.05)",
    "F.softsign({a})",
]
ROWWISE = [
    "F.layer_norm({a}, {a}.shape[-1:])",
    "F.softmax({a}, -1)",
    "F.log_softmax({a}, -1)",
    "{a}.cumsum(-1)",
    "{a} - {a}.mean(0, keepdim=True)",
    "F.normalize({a}, dim=-1)",
    "{a} / {a}.norm(dim=-1, keepdim=True).clamp_min(0.2)",
    "{a}.sort(-1).values",
    "{a} * {a}.amax(-1, keepdim=True)",
    "{a} - {a}.logsumexp(-1, keepdim=True)",
    "{a}.flip(-1)",
    "torch.roll({a}, 1, -1)",
    "torch.cat([{a}, {a}.sin()], -1)",
    "{a}.max(-1, keepdim=True).values * {a}",
    "F.pad({a}, (1, 0))",
    "{a}[..., 1:]",
    "{a}[:, ::2]",
    "{a}.chunk(2, -1)[0]",
    "{a}.t() @ {a}",
    "{a}.unsqueeze(1) * {a}.unsqueeze(2)",
    "torch.tril({a})",
    "{a}.masked_fill({a} > 0.4, 0.25)",
    "torch.where({a} > 0, {a}, {a} * 0.3)",
    "F.rms_norm({a}, {a}.shape[-1:])",
    "{a}.std(-1, keepdim=True) + {a}",
    "{a}.cumprod(-1)",
    "F.glu(torch.cat([{a}, {a}.cos()], -1), -1)",
    "torch.stack([{a}, {a} * 2], 0).mean(0)",
    "{a}.topk(2, -1).values",
    "{a}.repeat(1, 2)",
    "{a}.index_select(-1, torch.tensor([0, 1]))",
    "torch.einsum('bi,bj->bij', {a}, {a})",
    "{a}.gather(-1, {a}.argsort(-1))",
    "{a} * {a}.var(-1, keepdim=True)",
    "torch.take_along_dim({a}, {a}.argmax(-1, keepdim=True), -1) + {a}",
    "F.cosine_similarity({a}, {a}.roll(1, -1), -1).unsqueeze(-1) * {a}",
]
BINARY = [
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "{a} / ({b}.abs() + 0.7)",
    "torch.maximum({a}, {b})",
    "torch.where({a} > {b}, {a}, {b} * 0.5)",
    "torch.atan2({a}, {b}.abs() + 0.5)",
    "torch.lerp({a}, {b}, 0.3)",
    "torch.addcmul({a}, {b}, {b}, value=0.5)",
    "torch.hypot({a}, {b} + 0.1)",
    "torch.logaddexp({a}, {b})",
    "torch.cat([{a}, {b}], -1)",
    "torch.stack([{a}, {b}]).sum(0)",
    "{a} - 0.5 * {b}",
    "torch.add({a}, {b}, alpha=-1.5)",
    "torch.minimum({a}, {b})",
    "torch.addcdiv({a}, {b}, {b}.abs() + 1.0)",
    "({a} - {b}).square()",
    "torch.dist({a}, {b}) * {a}",
]
CUBES = [
    "torch.bmm({a}, {a}.transpose(1, 2))",
    "{a}.sum(1)",
    "{a}.mean(-1)",
    "{a}.transpose(1, 2)",
    "{a}.flatten(1)",
    "scaled_dot_product_attention({a}, {a}, {a})",
    "{a}.amax(1)",
    "F.max_pool1d({a}, 2)",
    "F.avg_pool1d({a}, 2)",
    "{a}[:, 0]",
    "{a}.permute(2, 0, 1)",
    "F.softmax({a}, 1)",
    "{a}.logsumexp(2)",
    "{a}.diagonal(dim1=1, dim2=2)",
    "{a}.unbind(1)[1]",
]


def one(draft):
    """Adds one op; its value's name, or None."""
    kind = draft.random.random()
    if kind < 0.3:
        a = draft.pick()
        return template(draft, UNARY, a=a)
    if kind < 0.45:
        return template(draft, ROWWISE, a=draft.rows())
    if kind < 0.65:
        a = draft.pick()
        return template(draft, BINARY, a=a, b=draft.like(a))
    if kind < 0.75:
        a = draft.pick(lambda t: t.dim() == 3)
        return (
            template(draft, CUBES, a=a)
            if a
            else draft.add(f"{draft.rows()}.unsqueeze(1).expand(-1, 3, -1) * {draft.parameter(3, 1)}")
        )
    return matrix(draft)


def template(draft, templates, **names):
    if any(name is None for name in names.values()):
        return None
    chosen = draft.random.choice(templates)
    name = draft.add(chosen.format(s=draft.scalar(), **names))
    if name is not None:
        draft.ops[chosen] += 1
    return name


def matrix(draft):
    """Layers with parameters."""
    a = draft.rows()
    columns = draft.shape(a)[-1]
    wide = draft.random.choice([2, 3, 4, 6])
    kind = draft.random.randrange(10)
    bias = (lambda n: draft.parameter(n)) if draft.chance(0.6) else (lambda n: "None")
    if kind < 3:
        return draft.add(f"F.linear({a}, {draft.parameter(wide, columns)}, {bias(wide)})")
    if kind == 3:
        return draft.add(f"{a} @ {draft.parameter(columns, wide)}")
    if kind == 4:
        return draft.add(
            f"torch.addmm({draft.parameter(wide)}, {a}, {draft.parameter(columns, wide)}, alpha={abs(draft.scalar())})"
        )
    if kind == 5:
        return draft.add(f"F.layer_norm({a}, [{columns}], {draft.parameter(columns)}, {bias(columns)})")
    if kind == 6:
        return draft.add(f"{a} * {draft.parameter(columns)}")
    if kind == 7:
        ids = draft.input(draft.env["torch"].randint(0, 5, (draft.size,)))
        draft.ops["embedding"] += 1
        return draft.add(f"F.embedding({ids}, {draft.parameter(5, columns)}) + {a}")
    if kind == 8 and columns % 2 == 0 and columns > 2:
        return draft.add(f"F.group_norm({a}, 2, {draft.parameter(columns)}, {bias(columns)})")
    if kind == 9:
        cube = draft.add(f"F.conv1d({a}.unsqueeze(1), {draft.parameter(2, 1, 2)}, {bias(2)}, padding=1)")
        return cube
    return draft.add(f"torch.einsum('bi,ij->bj', {a}, {draft.parameter(columns, wide)})")
