"""What a DTensor says of the part that its rank holds."""
from __future__ import annotations

from typing import Any, Optional

import torch
from torch.utils._python_dispatch import _disable_current_modes

_meshes: dict[int, tuple[Any, Any, bool]] = {}  # by id: the mesh, its ranks, whether this rank is one of them


def _of_mesh(mesh: Any) -> tuple[Any, bool]:
    """To ask a mesh runs ops, which are none of the loop's."""
    found = _meshes.get(id(mesh))
    if found is None or found[0] is not mesh:
        with _disable_current_modes():
            found = _meshes[id(mesh)] = (mesh, mesh.mesh.tolist(), mesh.get_coordinate() is not None)
    return found[1], found[2]


def shard_of(tensor: Any) -> Optional[tuple[torch.Tensor, dict[str, Any]]]:
    """The rank's own part of a DTensor, and how the whole lies over the ranks; None for other tensors, and on ranks that are not of its mesh."""
    local, mesh = getattr(tensor, "_local_tensor", None), getattr(tensor, "device_mesh", None)
    if not isinstance(local, torch.Tensor) or type(local) is not torch.Tensor or mesh is None or local.layout != torch.strided:
        return None
    ranks, is_member = _of_mesh(mesh)
    if not is_member:
        return None
    fields = {"sizes": list(tensor.shape), "mesh": ranks, "placements": [_placement(one) for one in tensor.placements]}
    if mesh.mesh_dim_names is not None:
        fields["dims"] = list(mesh.mesh_dim_names)
    return local, fields


def _placement(placement: Any) -> str:
    if placement.is_replicate():
        return "replicate"
    if placement.is_partial():
        return f"partial {getattr(placement, 'reduce_op', 'sum')}"
    return f"shard {placement.dim}" if type(placement).__name__ == "Shard" else f"strided shard {getattr(placement, 'dim', 0)}"
