"""Norms of gradients, which are read once each."""
from __future__ import annotations

from typing import Sequence

import torch


def values_of(gradient: torch.Tensor) -> torch.Tensor:
    """The numbers of a gradient that this rank holds."""
    local = gradient.to_local() if hasattr(gradient, "to_local") else gradient  # a DTensor's shard
    return (local.coalesce().values() if local.layout == torch.sparse_coo else local).detach()


def norms(gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Norms of the gradients that have elements, in their order, in float32 at least, on one device."""
    groups: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for i, gradient in enumerate(gradients):
        if gradient.numel():
            groups.setdefault((gradient.device, gradient.dtype), []).append(i)
    found: dict[int, torch.Tensor] = {}
    for (_, dtype), group in groups.items():
        each = torch._foreach_norm([gradients[i] for i in group], 2, dtype=torch.float32 if dtype in (torch.float16, torch.bfloat16) else None)
        found |= dict(zip(group, each))
    if not found:
        return []
    wide = torch.float64 if any(norm.dtype == torch.float64 for norm in found.values()) else torch.float32
    device = next(iter(found.values())).device
    return [found[i].to(device, wide) for i in sorted(found)]
