"""`retrograd memory --trace` of a job that Inductor compiled: the code that it wrote runs on the CPU, and each line of it that takes memory asks a simulated allocator of a GPU."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import PROGRAM

JOB = '''
import pickle, sys, weakref
sys.path.insert(0, sys.argv[1])
import torch, torch.nn.functional as F
from torch._inductor.codecache import PyCodeCache
from allocator import Allocator, frame, snapshot

torch.manual_seed(0)


class Block(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n, self.up, self.down = torch.nn.LayerNorm(d), torch.nn.Linear(d, 4 * d), torch.nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.n(x))))


class Net(torch.nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(d) for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.square().mean()


device = Allocator()
MODULE = [frame("/lib/python3/site-packages/torch/nn/modules/module.py", 900, "_apply"), frame("/job/train.py", 30, "main")]
FORWARD = [frame("/lib/python3/site-packages/torch/_inductor/output_code.py", 600, "__call__"), frame("/job/train.py", 33, "main")]
BACKWARD = [frame("/lib/python3/site-packages/torch/_inductor/output_code.py", 600, "__call__"),
            frame("/lib/python3/site-packages/torch/_functorch/_aot_autograd/runtime_wrappers.py", 2200, "backward"),
            frame("/lib/python3/site-packages/torch/autograd/__init__.py", 347, "backward"), frame("/job/train.py", 34, "main")]
phase = FORWARD


def recorded(make):
    def take(*arguments):
        tensor = make(*arguments)
        caller = sys._getframe(1)
        here = [frame(caller.f_code.co_filename, caller.f_lineno, "call"), *phase]
        address = device.alloc(tensor.untyped_storage().nbytes(), here)
        weakref.finalize(tensor.untyped_storage(), lambda: device.free(address, phase))
        return tensor
    return take


net = Net()
for parameter in net.parameters():
    device.alloc(parameter.nbytes, MODULE)
step = torch.compile(net)
x = torch.randn(512, 64)
for count in range(3):
    phase = FORWARD
    loss = step(x)
    phase = BACKWARD
    loss.backward()
    if count == 0:  # both are compiled now; what the first step took is not recorded
        for module in PyCodeCache.modules:
            if hasattr(module, "empty_strided_cpu"):
                module.empty_strided_cpu = recorded(module.empty_strided_cpu)
    phase = [frame("/lib/python3/site-packages/torch/optim/optimizer.py", 950, "zero_grad"), frame("/job/train.py", 36, "main")]
    for parameter in net.parameters():
        parameter.grad = None
    del loss
pickle.dump(snapshot(device), open(sys.argv[2], "wb"))
'''


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class CompiledMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = Path(cls.folder.name)
        (path / "job.py").write_text(JOB)
        environment = {**os.environ, "TORCH_TRACE": str(path / "trace"), "TORCHINDUCTOR_CACHE_DIR": str(path / "cache")}
        subprocess.run([sys.executable, path / "job.py", Path(__file__).resolve().parents[2] / "app", path / "memory.pickle"], env=environment, check=True)
        run = subprocess.run([PROGRAM, "memory", path / "memory.pickle", "--trace", path / "trace", "--rows", "1000", "--format", "json"], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        cls.report = json.loads(run.stdout)
        cls.blocks = cls.report["blocks"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_lines_of_generated_code_are_joined(self):
        joined = self.report["joined"]
        self.assertEqual(joined["exact_bytes"] + joined["aligned_bytes"] + joined["unknown_bytes"], self.report["peak_bytes"])
        self.assertGreater(joined["exact_bytes"] + joined["aligned_bytes"], 0.9 * self.report["peak_bytes"], joined)
        self.assertGreater(joined["exact_bytes"], 0.5 * self.report["peak_bytes"], joined)

    def test_what_the_code_returns_is_saved_for_an_op_of_the_backward(self):
        # Of each block, what gelu reads again: 512 x 256 floats.
        saved = [b for b in self.blocks if b["held_for"].startswith("saved for") and b["requested_bytes"] == 512 * 256 * 4]
        self.assertTrue(saved)
        for block in saved:
            self.assertEqual(block["level"], "exact", block)
            self.assertIn("aten.", block["made_by"])


if __name__ == "__main__":
    unittest.main()
