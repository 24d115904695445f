"""Results of a computation as bytes, without the recorder, without it once more, and with it."""

import hashlib
import random
import tempfile
from pathlib import Path

import numpy
import torch


def tensors(value):
    """Those in a result, in their order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors(one)


def signature(value):
    """Dtype, sizes, strides and a digest of the bytes."""
    if value is None:
        return None
    one = value.detach()
    if one.layout != torch.strided or one.is_nested or one.is_quantized:
        if one.layout == torch.sparse_coo:
            parts = (one._indices(), one._values())
        elif one.is_nested:
            parts = one.unbind()
        elif one.is_quantized:
            parts = (one.int_repr(),)
        elif one.layout == torch._mkldnn:
            parts = (one.to_dense(),)
        else:
            rows = one.layout in (torch.sparse_csr, torch.sparse_bsr)
            parts = (one.crow_indices() if rows else one.ccol_indices(), one.col_indices() if rows else one.row_indices())
            parts = (*parts, one.values())
        return (str(one.layout), tuple(one.shape), *map(signature, parts))
    raw = one.resolve_conj().resolve_neg().contiguous().reshape(-1)
    data = raw.view(torch.uint8).numpy().tobytes() if raw.numel() else b""
    return (str(one.dtype), tuple(one.shape), one.stride(), hashlib.sha256(data).hexdigest()[:16])


def seeded(seed=0):
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)


def outcome(run):
    """What a call gives: named signatures, and the generator afterwards; or the kind and text of its exception."""
    seeded()
    try:
        found = {name: [signature(one) for one in tensors(value)] for name, value in run().items()}
    except Exception as error:
        return {"raises": [type(error).__name__, str(error)[:200]]}
    return {**found, "generator": [signature(torch.get_rng_state())]}


def differing(runs):
    """For each named call: what differs with the recorder, as text ("" for nothing, None where it differs without it)."""
    import retrograd

    names, calls = zip(*runs) if runs else ((), ())
    first, second = ([outcome(run) for run in calls] for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        with retrograd.record(Path(folder) / "recording", source=False) as recording:
            third = [outcome(run) for run in calls]
    for name, a, b, c in zip(names, first, second, third):
        text = ", ".join(key for key in {**a, **c} if a.get(key) != c.get(key))
        if text and "raises" in {**a, **c}:
            text += f" ({a.get('raises')} without, {c.get('raises')} with)"
        yield name, None if a != b else text, "raises" in a
    if recording.notes:
        yield "the recording", "; ".join(recording.notes), False
