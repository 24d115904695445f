"""The norm of all gradients: one reading of each."""
from __future__ import annotations

from typing import Sequence

import torch


def values_of(gradient: torch.Tensor) -> torch.Tensor:
    """The numbers of a gradient that this rank holds."""
    local = gradient.to_local() if hasattr(gradient, "to_local") else gradient  # a DTensor's shard
    return (local.coalesce().values() if local.layout == torch.sparse_coo else local).detach()


def norms(gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Norms of the gradients, in float32 at least, on one device."""
    groups: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}
    for gradient in gradients:
        if gradient.numel():
            groups.setdefault((gradient.device, gradient.dtype), []).append(gradient)
    found: list[torch.Tensor] = []
    for (_, dtype), group in groups.items():
        found += torch._foreach_norm(group, 2, dtype=torch.float32 if dtype in (torch.float16, torch.bfloat16) else None)
    if not found:
        return []
    return [norm.to(found[0].device, torch.float64 if found[0].dtype == torch.float64 else torch.float32) for norm in found]
