"""K2: steps of several ranks, judged below the subclass of tensors on each of them: FSDP2 gathers parameters and reduces their gradients, tensor parallelism has shards, DistributedDataParallel exchanges in the background."""
import os
import subprocess
import sys
import unittest

from support import PROGRAM, InFolder, run

SCRIPT = """
import os, sys, torch, torch.distributed as dist, retrograd
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
torch.set_num_threads(1)
rank, kind, fault = int(os.environ["RANK"]), sys.argv[1], sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("met"), rank=rank, world_size=2)
torch.manual_seed(0)


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sigmoid() * x

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        s = x.sigmoid()
        return (2 if fault == "twice" else 1) * gradient * (s + x * s * (1 - s))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.c(Gate.apply(self.b(torch.tanh(self.a(x)))))


model, mesh = Net(), init_device_mesh("cpu", (2,))
if kind == "data":
    model = nn.parallel.DistributedDataParallel(model)
elif kind == "tensor":
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    parallelize_module(model, mesh, {"a": ColwiseParallel(), "b": RowwiseParallel()})
else:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if kind == "bfloat16" else MixedPrecisionPolicy()
    for layer in (model.a, model.b, model.c):
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=kind != "whole")
    fully_shard(model, mesh=mesh, mp_policy=policy)
optimizer = torch.optim.AdamW(model.parameters(), foreach=kind != "tensor")
torch.manual_seed(100 + (0 if kind == "tensor" else rank))
with retrograd.record("rec", model=model, optimizer=optimizer):
    for _ in range(2):
        if fault != "uncleared":
            optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(6, 8)).float(), torch.randint(0, 4, (6,))).backward()
        optimizer.step()
dist.barrier()
"""


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Ranks(InFolder):
    def check(self, kind, fault, *options):
        """Exit code and text of each rank."""
        with open("loop.py", "w") as file:
            file.write(SCRIPT)
        ranks = [subprocess.Popen([sys.executable, "loop.py", kind, fault], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(2)]
        for one in ranks:
            said = one.communicate(timeout=200)[0]
            self.assertEqual(one.returncode, 0, said)
        return [run("check", f"rec/rank{rank}", *options) for rank in range(2)]

    def test_K2_a_right_step_passes_on_each_rank(self):
        for kind in ("whole", "gathered", "bfloat16", "tensor", "data"):
            with self.subTest(kind):
                for code, text in self.check(kind, "none", "--strict"):
                    self.assertEqual(code, 0, text)
                    self.assertIn("judged: 6 gradients", text)
                subprocess.run(["rm", "-rf", "rec", "met"], check=True)

    def test_K2_a_function_of_twice_its_derivative_is_named_on_each_rank(self):
        for kind in ("gathered", "tensor", "data"):
            with self.subTest(kind):
                for code, text in self.check(kind, "twice"):
                    self.assertIn("function `Gate`: 2 times the derivative", text)
                    self.assertEqual(code, 0, text)  # a suspicion
                subprocess.run(["rm", "-rf", "rec", "met"], check=True)

    def test_K2_gradients_that_nothing_cleared_are_used_twice(self):
        for code, text in self.check("gathered", "uncleared"):
            self.assertIn("nothing cleared them", text)
            self.assertEqual(code, 1, text)


if __name__ == "__main__":
    unittest.main()
