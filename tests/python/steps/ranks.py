"""Steps on several ranks: replicated, sharded, split."""

import os

import torch
import torch.distributed as dist
from kinds import words
from loop import FUSED, F, Loop, optimizer_of, updates
from torch import nn


def begin(rank, world, store):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "LOCAL_RANK": str(rank)}
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down, self.drop = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8), nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.ModuleList([Block(), Block()]), nn.Linear(8, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def mesh(*sizes, names=None):
    return dist.device_mesh.init_device_mesh("cpu", sizes, mesh_dim_names=names)


def looped(draw, model, how=None, same=False, **said):
    """Each rank has a batch of its own, but where all compute one."""
    optimizer, name = optimizer_of(draw, model.parameters(), how, FUSED if how else None)
    parts, clipped = draw.choice((1, 2)), draw.random() < 0.5 and not same
    torch.manual_seed(50 + (0 if same else dist.get_rank()))

    def step(number):
        total = 0.0
        for part in range(parts):
            if hasattr(model, "require_backward_grad_sync"):
                model.require_backward_grad_sync = part == parts - 1
            loss = F.cross_entropy(model(torch.randn(4, 8)), words()) / parts
            loss.backward()
            total += loss.item()
        if clipped:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return total

    return Loop(model, [optimizer], updates(step, [optimizer]), {"optimizer": name, "parts": parts, **said})


def ddp(draw):
    way = draw.choice(("plain", "static graph", "unused", "bucket view", "compressed"))
    more = {"static graph": {"static_graph": True}, "unused": {"find_unused_parameters": True}, "bucket view": {"gradient_as_bucket_view": True}}
    model = nn.parallel.DistributedDataParallel(Tower(), bucket_cap_mb=0.0005, **more.get(way, {}))
    if way == "compressed":
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    return looped(draw, model, way=way)


def fsdp2(draw):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    model, world = Tower(), dist.get_world_size()
    hybrid = world == 4 and draw.random() < 0.5
    grid = mesh(2, 2, names=("replicate", "shard")) if hybrid else mesh(world)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if draw.random() < 0.5 else MixedPrecisionPolicy()
    after = draw.random() < 0.5
    for block in model.blocks:
        fully_shard(block, mesh=grid, mp_policy=policy, reshard_after_forward=after)
    fully_shard(model, mesh=grid, mp_policy=policy, reshard_after_forward=after)
    how = draw.choice(("foreach", "for-loop"))
    return looped(draw, model, how, hybrid=hybrid, bfloat16=policy.param_dtype is not None, reshard=after)


def tensor_parallel(draw):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model, world = Tower(), dist.get_world_size()
    plan = {f"blocks.{i}.{name}": how() for i in range(2) for name, how in (("up", ColwiseParallel), ("down", RowwiseParallel))}
    parallelize_module(model, mesh(world), plan)
    return looped(draw, model, "for-loop", same=True)


def both(draw):
    """Tensor parallelism within pairs, FSDP2 over them."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    grid = mesh(dist.get_world_size() // 2, 2, names=("shard", "split"))
    model = Tower()
    for block in model.blocks:
        parallelize_module(block, grid["split"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=grid["shard"])
    fully_shard(model, mesh=grid["shard"])
    return looped(draw, model, "for-loop", same=True)


def by_hand(draw):
    """Gradients are averaged by hand, in the background; experts on other ranks get their words by all-to-all."""
    model, world = Tower(), dist.get_world_size()
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(50 + dist.get_rank())

    class Exchange(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = torch.empty_like(x)
            dist.all_to_all_single(out, x.contiguous())
            return out

        @staticmethod
        def backward(ctx, gradient):
            return Exchange.apply(gradient)

    def step(number):
        loss = F.cross_entropy(model(Exchange.apply(model.blocks[0](torch.randn(4, 8)))), words())
        loss.backward()
        waiting = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]
        for p, work in zip(model.parameters(), waiting):
            work.wait()
            p.grad.div_(world)
        optimizer.step()
        gathered = [torch.zeros(()) for _ in range(world)]
        dist.all_gather(gathered, loss.detach())
        return torch.stack(gathered).mean().item()

    return Loop(model, [optimizer], updates(step, [optimizer]), {"optimizer": "AdamW"})


def pipelined(draw):
    """Stages on ranks, by PyTorch's schedules."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    rank, world = dist.get_rank(), dist.get_world_size()
    stage = nn.Sequential(Block(), Block()) if rank < world - 1 else nn.Sequential(Block(), nn.Linear(8, 3))
    held = PipelineStage(stage, rank, world, torch.device("cpu"))
    kind = draw.choice((Schedule1F1B, ScheduleGPipe))
    schedule = kind(held, world * 2, loss_fn=F.cross_entropy)
    optimizer, name = optimizer_of(draw, stage.parameters())

    def step(number):
        losses, y = [], words(3, world * 4)
        if rank == 0:
            schedule.step(torch.randn(world * 4, 8))
        elif rank == world - 1:
            schedule.step(target=y, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        return [loss.item() for loss in losses]

    return Loop(stage, [optimizer], updates(step, [optimizer]), {"optimizer": name, "schedule": kind.__name__})


def sharded_states(draw):
    """ZeRO's first stage: states of the optimizer are divided."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = nn.parallel.DistributedDataParallel(Tower())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)

    def step(number):
        loss = F.cross_entropy(model(torch.randn(4, 8)), words())
        loss.backward()
        optimizer.step()
        return loss.item()

    return Loop(model, [optimizer], updates(step, [optimizer]), {"optimizer": "AdamW, ZeRO"})


MORE = {"FSDP2 and tensor parallel": both, "by hand": by_hand, "pipeline": pipelined, "ZeRO": sharded_states}
KINDS = {"DDP": ddp, "FSDP2": fsdp2, "tensor parallel": tensor_parallel}
