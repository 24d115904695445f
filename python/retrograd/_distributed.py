"""What catch() needs to know of DistributedDataParallel and of fully_shard (FSDP2)."""
from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Sharding:
    """How a model is distributed over ranks."""

    kind: str  # none, ddp, fsdp2

    @property
    def reduces(self) -> bool:
        """Whether gradients are reduced over ranks after this backward; only then are they checked."""
        return self.kind != "none"

    def agree(self, failed: bool) -> bool:
        """Whether this rank writes a folder. With FSDP2 all ranks write if one does, since each needs the others' shards of the weights."""
        if self.kind != "fsdp2":
            return failed
        device = torch.device("cuda", torch.cuda.current_device()) if torch.distributed.get_backend() == "nccl" else torch.device("cpu")
        flag = torch.tensor([int(failed)], device=device)
        torch.distributed.all_reduce(flag, torch.distributed.ReduceOp.MAX)
        return bool(flag.item())


def sharding_of(model: torch.nn.Module) -> Sharding:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        from torch.distributed.tensor import DTensor

        if any(isinstance(p, DTensor) for p in model.parameters()):
            return Sharding("fsdp2")
    return Sharding("ddp" if isinstance(model, torch.nn.parallel.DistributedDataParallel) else "none")


def gathered(model: torch.nn.Module) -> torch.nn.Module:
    """A copy of a sharded model on the CPU, in one piece and without the hooks that shard it. Every rank has to call this."""
    from torch.distributed.fsdp import FSDPModule

    tensors: dict[int, Any] = {}

    def whole(tensor: Any) -> Any:
        if tensor is None:
            return None
        if id(tensor) not in tensors:
            full = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
            plain = full.detach().to("cpu", copy=True)
            tensors[id(tensor)] = torch.nn.Parameter(plain, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else plain
        return tensors[id(tensor)]

    modules: dict[int, torch.nn.Module] = {}

    def plain_copy(module: torch.nn.Module) -> torch.nn.Module:
        if id(module) in modules:
            return modules[id(module)]
        kind = type(module)
        if isinstance(module, FSDPModule):  # a class made of FSDPModule and the model's own
            kind = next(base for base in kind.__mro__ if base is not kind and base is not FSDPModule and issubclass(base, torch.nn.Module))
        new = kind.__new__(kind)
        new.__dict__.update(copy.copy(module.__dict__))
        for table in ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks",
                      "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"):
            if table in new.__dict__:
                new.__dict__[table] = type(new.__dict__[table])()
        modules[id(module)] = new
        new.__dict__["_parameters"] = {name: whole(p) for name, p in module._parameters.items()}
        new.__dict__["_buffers"] = {name: whole(b) for name, b in module._buffers.items()}
        new.__dict__["_modules"] = {name: plain_copy(one) if one is not None else None for name, one in module._modules.items()}
        return new

    return plain_copy(model)
