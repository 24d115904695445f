"""Runs of PyTorch that round otherwise: ops are decomposed as compilers do, and what each gives is moved by a step."""

import functools

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Ops that only move, choose or count: what they give is exact.
EXACT = set(
    """_to_copy abs alias amax amin argmax argmin argsort arange bernoulli cat clamp clamp_max clamp_min clone
    constant_pad_nd copy detach empty empty_like empty_strided eq expand fill flip full full_like gather ge gt index
    index_put index_select le lift_fresh lt masked_fill max maximum min minimum native_dropout ne neg new_empty
    new_empty_strided new_full new_zeros ones ones_like rand rand_like randn randn_like relu repeat roll round scalar_tensor
    scatter scatter_add select_backward select_scatter sgn sign slice_backward slice_scatter sort stack
    threshold_backward topk tril triu unfold_backward where zeros zeros_like""".split()
)


@functools.cache
def decompositions():
    from torch._inductor.decomposition import select_decomp_table

    table = dict(select_decomp_table())
    aten = torch.ops.aten
    for random in (aten.native_dropout, aten.bernoulli, aten.rand_like, aten.randn_like, aten.randint_like):
        for overload in random.overloads():
            table.pop(getattr(random, overload), None)
    return table


class Rounded(TorchDispatchMode):
    """Below autograd, so that the derivatives are PyTorch's own."""

    def __init__(self, unit, seed):
        super().__init__()
        self.unit, self.generator = unit, torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        decomposed = decompositions().get(op)
        if decomposed is not None and not op._schema.is_mutable:
            with self:
                result = decomposed(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = op(*args, **kwargs)
        if op.is_view or op._schema.is_mutable or op._schema.name.split("::")[1] in EXACT:
            return result
        return torch.utils._pytree.tree_map_only(torch.Tensor, self.moved, result)

    def moved(self, tensor):
        if not tensor.is_floating_point():
            return tensor
        steps = torch.randint(-1, 2, tensor.shape, generator=self.generator)
        return tensor * (1 + self.unit * steps.to(tensor.dtype))
