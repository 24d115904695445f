"""The calls that the sweep compares: PyTorch's own samples of ops and modules, optimizers, scalers, custom ops."""

import itertools

import torch
from compared import tensors

DTYPES = {"float32": torch.float32, "autocast": torch.float32, "complex": torch.complex64}


def cotangents(values, seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = []
    for one in values:
        wide = torch.complex64 if one.is_complex() else torch.float32
        drawn.append(torch.randn(one.shape, generator=generator, dtype=wide).to(one.dtype))
    return drawn


def differentiable(value):
    return [one for one in tensors(value) if one.requires_grad]


def leaves(sample):
    return [one for one in tensors((sample.input, sample.args, sample.kwargs)) if one.requires_grad and one.is_leaf]


def given(ends):
    """Cotangents of a sparse or nested result have its layout; a sum does."""
    return None if any(one.layout != torch.strided for one in ends) else cotangents(ends, 1)


def forward_and_backward(function, sample, kind, twice):
    """A call of forward, backward and, with `twice`, the second derivative."""

    def run():
        with torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"):
            out = function(sample.input, *sample.args, **sample.kwargs)
        found = {"forward": out}
        ends, inputs = differentiable(out), leaves(sample)
        if not ends or not inputs:
            return found
        if given(ends) is None:
            return found | {"backward": torch.autograd.grad([one.sum() for one in ends], inputs, allow_unused=True)}
        first = torch.autograd.grad(ends, inputs, given(ends), create_graph=twice, allow_unused=True)
        found["backward"] = first
        again = differentiable(first)
        if twice and again:
            found["second"] = torch.autograd.grad(again, inputs, cotangents(again, 2), allow_unused=True)
        return found

    return run


def in_place(function):
    return lambda value, *args, **kwargs: function(value.clone(), *args, **kwargs)


def of_op(op, kind, most):
    """The calls of an OpInfo."""
    dtype = DTYPES[kind]
    if dtype not in op.supported_dtypes("cpu"):
        return
    differentiates = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    if kind == "complex" and not differentiates or not op.supports_autograd:
        return
    torch.manual_seed(0)
    samples = itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=differentiates), most)
    for number, sample in enumerate(samples):
        twice = differentiates and op.supports_gradgrad and number < most // 2
        yield f"{number}", forward_and_backward(op.op, sample, kind, twice)
        other = op.get_inplace()
        broadcast = getattr(sample, "broadcasts_input", False)
        if other is not None and kind == "float32" and not broadcast:
            yield f"{number} in place", forward_and_backward(in_place(other), sample, kind, False)


def ops():
    from torch.testing._internal.common_methods_invocations import op_db

    for kind in DTYPES:
        for op in op_db:
            yield f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}, {kind}", lambda most, op=op, kind=kind: of_op(op, kind, most)


def modules():
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        for kind in ("float32", "autocast"):
            for training in (True, False):
                name = f"{info.name}, {kind}{'' if training else ', eval'}"
                yield name, lambda most, info=info, kind=kind, training=training: of_module(info, kind, training, most)


def of_module(info, kind, training, most):
    drawn = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training)
    for number, one in enumerate(itertools.islice(drawn, most)):
        if one.forward_input is None:
            continue

        def run(one=one):
            module = info.module_cls(*one.constructor_input.args, **one.constructor_input.kwargs).train(training)
            with torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"):
                out = module(*one.forward_input.args, **one.forward_input.kwargs)
            ends = differentiable(out)
            if ends:
                inputs = [*module.parameters(), *(i for i in tensors((one.forward_input.args, one.forward_input.kwargs)) if i.requires_grad)]
                made = torch.autograd.grad(ends, inputs, given(ends), allow_unused=True)
            return {"forward": out, "backward": made if ends else (), "buffers": list(module.buffers())}

        yield f"{number}", run


def cases():
    """(name, function of the most samples that gives named calls)."""
    import loops

    yield from ops()
    yield from modules()
    yield from loops.cases()
