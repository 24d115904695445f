"""A training step on several ranks, recorded: torchrun --nproc-per-node N programs.py FORM FAULT SEED FOLDER. FAULT "right" plants none."""
from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Optional

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional as F

import retrograd

WIDTH, BATCH = 16, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        with torch.no_grad():
            self.norm.weight.add_(0.2 * torch.linspace(-1, 1, WIDTH))  # ones would look alike, of whichever part
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(WIDTH, 4)
        self.spare = nn.Linear(WIDTH, 4)

    def forward(self, x: torch.Tensor, spare: bool = True) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        x = self.dropout(x)
        return self.head(x) + 0.1 * self.spare(x) if spare else self.head(x)


# ---- data parallelism ----------------------------------------------------------------------------------------------------------------------------------


class Loop:
    """What forms have in common: a model, an optimizer, batches of this rank."""

    def __init__(self, fault: str, seed: int) -> None:
        self.fault, self.rank, self.size = fault, dist.get_rank(), dist.get_world_size()
        torch.manual_seed(seed)
        self.model: nn.Module = self.build()
        torch.manual_seed(1000 * seed + self.data_rank() + 1)
        self.batches = [(torch.randn(BATCH, WIDTH), torch.randn(BATCH, 4)) for _ in range(3)]
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.called: Callable[..., torch.Tensor] = self.model

    def data_rank(self) -> int:
        return self.rank

    def build(self) -> nn.Module:
        return Model()

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = self.called(x, self.fault != "unused")
        loss = F.mse_loss(out, y)
        if self.fault == "branch" and self.rank == 0:
            loss = loss + 0.1 * out.abs().mean()
        return loss

    def backward(self) -> None:
        self.loss(*self.batches[0]).backward()

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()


class Ddp(Loop):
    def build(self) -> nn.Module:
        group = None
        if self.fault == "group":  # of pairs, where all are meant
            pairs = [dist.new_group([i, i + 1]) for i in range(0, self.size, 2)]
            group = pairs[self.rank // 2]
        model = nn.parallel.DistributedDataParallel(Model(0.1), process_group=group)
        if self.fault == "precision":
            from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

            model.register_comm_hook(None, bf16_compress_hook)
        if self.fault == "twice":
            def doubled(state, bucket):  # type: ignore[no-untyped-def]  # DDP looks at annotations
                work = dist.all_reduce(bucket.buffer().div_(self.size / 2), async_op=True)
                return work.get_future().then(lambda done: done.value()[0])

            model.register_comm_hook(None, doubled)
        return model

    def __init__(self, fault: str, seed: int) -> None:
        super().__init__(fault, seed)
        if fault in ("inner", "missing"):
            self.called = self.model.module


class DdpAccumulating(Ddp):
    def backward(self) -> None:
        last = len(self.batches) - (2 if self.fault == "no_sync" else 1)
        for i, (x, y) in enumerate(self.batches):
            with self.model.no_sync() if i != last else contextlib.nullcontext():
                (self.loss(x, y) / len(self.batches)).backward()


class DdpBuckets(Ddp):
    """Gradients are parts of buckets, cleared in place, in two updates."""

    def build(self) -> nn.Module:
        return nn.parallel.DistributedDataParallel(Model(), gradient_as_bucket_view=True)

    def step(self) -> None:
        for _ in range(2):
            self.optimizer.zero_grad(set_to_none=False)
            self.backward()
            self.optimizer.step()


class Hand(Loop):
    """Gradients are reduced by the loop."""

    def build(self) -> nn.Module:
        return Model(0.1)

    def group(self) -> Optional[dist.ProcessGroup]:
        return None

    def backward(self) -> None:
        super().backward()
        group = dist.new_group([0, 1]) if self.fault == "group" else None
        if self.fault == "group" and self.rank > 1:
            group = dist.new_group([2, 3], use_local_synchronization=True)
        for name, parameter in self.model.named_parameters():
            if parameter.grad is None or (self.fault == "missing" and name == "blocks.0.up.weight"):
                continue
            if self.fault == "precision":
                low = parameter.grad.to(torch.bfloat16)
                dist.all_reduce(low)
                parameter.grad.copy_(low)
            else:
                dist.all_reduce(parameter.grad, group=group)
            if self.fault == "twice":
                parameter.grad.mul_(2)
            if self.fault != "sum":
                parameter.grad.div_(self.size)


class Fsdp(Loop):
    policy: Any = None

    def build(self) -> nn.Module:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        mesh = init_device_mesh("cpu", (self.size // 2, 2), mesh_dim_names=("dp", "tp"))["tp"] if self.fault == "group" else init_device_mesh("cpu", (self.size,))
        policy = MixedPrecisionPolicy(reduce_dtype=torch.bfloat16) if self.fault == "precision" else MixedPrecisionPolicy(**(self.policy or {}))
        model = Model()
        for block in model.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        return model

    def backward(self) -> None:
        super().backward()
        for parameter in self.model.parameters() if self.fault == "twice" else ():
            parameter.grad.mul_(2)


class Single(Loop):
    """One process on the batches of two ranks, as FSDP has them."""

    def __init__(self, fault: str, seed: int) -> None:
        super().__init__(fault, seed)
        x, y = self.batches[0]
        torch.manual_seed(1000 * seed + 2)
        self.batches = [(torch.cat([x, torch.randn(BATCH, WIDTH)]), torch.cat([y, torch.randn(BATCH, 4)]))]


class FsdpMixed(Fsdp):
    policy = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}


class FsdpAccumulating(Fsdp):
    def backward(self) -> None:
        last = len(self.batches) - (2 if self.fault == "no_sync" else 1)
        for i, (x, y) in enumerate(self.batches):
            self.model.set_requires_gradient_sync(i == last)
            (self.loss(x, y) / len(self.batches)).backward()


# ---- one forward on several ranks -----------------------------------------------------------------------------------------------------------------------


class Together(Loop):
    def data_rank(self) -> int:
        return 0

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.backward()
        if self.fault == "clip":  # by the norm of what this rank holds
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.01)
        self.optimizer.step()


class Tp(Together):
    def build(self) -> nn.Module:
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        model = Model()
        plan = {f"blocks.{i}.{name}": how for i in (0, 1) for name, how in (("up", ColwiseParallel()), ("down", RowwiseParallel()))}
        return parallelize_module(model, init_device_mesh("cpu", (self.size,), mesh_dim_names=("tp",)), plan)


def summed(gradient: torch.Tensor, fault: str) -> torch.Tensor:
    """The sum of all ranks' gradients, or what the fault makes of it."""
    total = gradient.to(torch.bfloat16) if fault == "precision" else gradient.clone()
    if fault != "missing":
        dist.all_reduce(total)
    if fault == "twice":
        total = total * 2
    return total.to(gradient.dtype)


class Copied(torch.autograd.Function):
    """Equal values go into each rank's part; the parts of their gradient are summed."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fault: str) -> torch.Tensor:
        ctx.fault = fault
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return summed(gradients[0], ctx.fault), None


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return gradients[0]


class Parted(nn.Module):
    """A block of which each rank has a part of the hidden units."""

    def __init__(self, whole: Block, fault: str) -> None:
        super().__init__()
        rank, size = dist.get_rank(), dist.get_world_size()
        self.fault = fault
        self.norm = whole.norm
        self.up = nn.Parameter(whole.up.weight.detach().chunk(size, 0)[rank].clone())
        self.bias = nn.Parameter(whole.up.bias.detach().chunk(size, 0)[rank].clone())
        self.down = nn.Parameter(whole.down.weight.detach().chunk(size, 1)[rank].clone())
        self.out = nn.Parameter(whole.down.bias.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = F.gelu(F.linear(Copied.apply(self.norm(x), self.fault), self.up, self.bias))
        if self.training and self.fault == "generator":
            x = F.dropout(x, 0.5)
        return x + Summed.apply(F.linear(hidden, self.down)) + self.out


class TpHand(Together):
    def build(self) -> nn.Module:
        model = Model()
        model.blocks = nn.ModuleList([Parted(model.blocks[0], "right"), Parted(model.blocks[1], self.fault)])
        return model

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if self.fault == "generator":
            torch.manual_seed(self.rank)
        return super().loss(x, y)


class Gathered(torch.autograd.Function):
    """Keys and values of all ranks' parts of a sequence; a gradient is summed over the ranks, each of which keeps its part."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fault: str) -> torch.Tensor:
        ctx.fault, ctx.size = fault, x.shape[0]
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return summed(gradients[0], ctx.fault)[dist.get_rank() * ctx.size:][:ctx.size], None


class Attention(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault
        self.embed = nn.Linear(WIDTH, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x: torch.Tensor, spare: bool = True) -> torch.Tensor:
        x = torch.tanh(self.embed(x))
        keys, values = Gathered.apply(self.key(x), "right"), Gathered.apply(self.value(x), self.fault)
        return self.head(x + torch.softmax(self.query(x) @ keys.t() / 4, -1) @ values)


class Cp(Hand):
    """Context parallelism by hand: each rank has a part of one sequence, and gradients are reduced by the loop."""

    def build(self) -> nn.Module:
        return Attention(self.fault)

    def backward(self) -> None:
        self.fault, fault = "right" if self.fault != "sum" else "sum", self.fault
        super().backward()
        self.fault = fault


FORMS: dict[str, type[Loop]] = {"ddp": Ddp, "ddp_buckets": DdpBuckets, "ddp_accumulating": DdpAccumulating, "hand": Hand, "fsdp": Fsdp, "fsdp_mixed": FsdpMixed, "fsdp_accumulating": FsdpAccumulating,
                                "tp": Tp, "tp_hand": TpHand, "cp": Cp, "single": Single}


def main(form: str, fault: str, seed: str, folder: str) -> None:
    dist.init_process_group("gloo")
    loop = FORMS[form](fault, int(seed))
    if fault == "right" or not isinstance(loop, Together) and fault not in ("first", "unused"):  # PyTorch raises at the next forward
        loop.step()
    with contextlib.suppress(ArithmeticError), retrograd.record(folder, model=loop.model, optimizer=loop.optimizer):
        loop.step()
        if fault == "raises":
            raise ArithmeticError("after the update")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:5])
