"""K4: a step that raised says what it raised, and PyTorch's own errors are answered with the ops and lines that led to them."""
import json
import os
import subprocess
import sys
from pathlib import Path

from support import InFolder, retrograd, told, torch, unittest
from torch import nn
from torch.utils.checkpoint import checkpoint

LINES = Path(__file__).read_text().splitlines()


def at(mark):
    """"raised_test.py:30", the line with a mark."""
    return f"raised_test.py:{next(n for n, line in enumerate(LINES, 1) if line.endswith('# ' + mark))}"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.b(self.a(x).tanh())


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x  # saved by Square

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


class Raised(InFolder):
    def raised(self, step):
        """What the manifest says of a step of a model."""
        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with told() as text, self.assertRaises((RuntimeError, torch.utils.checkpoint.CheckpointError)):
            with retrograd.record("raised", model=model, optimizer=optimizer):
                step(model, optimizer, torch.randn(3, 4))
        found = json.loads(Path("raised/retrograd.json").read_text())["raised"]
        self.assertNotIn("unanswered", found)
        if "answer" in found:
            self.assertIn(found["answer"], text.getvalue())
        return found

    def test_K4_a_saved_tensor_that_is_overwritten(self):
        def step(model, optimizer, x):
            h = model.a(x).sigmoid()  # saved
            h += 1  # overwritten
            model.b(h).sum().backward()  # raised

        found = self.raised(step)
        self.assertEqual(found["answer"], f"sigmoid ({at('saved')}) saved its result for the backward, and add_ ({at('overwritten')}) overwrote it")
        self.assertEqual(found["type"], "RuntimeError")
        self.assertEqual(at("raised"), f"raised_test.py:{found['frames'][-1]['line']}")
        ops = [json.loads(line) for line in Path("raised/ops.jsonl").read_text().splitlines()]
        named = {one["did"]: next(op["op"] for op in ops if op.get("n") == one["n"] and op["k"] == "op") for one in found["ops"]}
        self.assertEqual(named, {"saved": "aten.sigmoid.default", "overwrote": "aten.add_.Tensor"})

    def test_K4_a_function_whose_input_is_overwritten(self):
        def step(model, optimizer, x):
            h = model.a(x)
            y = Square.apply(h)
            h.mul_(2)  # overwritten twice
            y.sum().backward()

        self.assertEqual(self.raised(step)["answer"], f"Square ({at('saved by Square')}) saved its input for the backward, and mul_ ({at('overwritten twice')}) overwrote it")

    def test_K4_weights_that_an_update_overwrites_before_a_second_backward(self):
        def step(model, optimizer, x):
            first, second = model(x).sum(), model(x).sum()
            first.backward()
            optimizer.step()  # updated
            second.backward()

        answer = self.raised(step)["answer"]
        self.assertIn("saved b.weight for the backward, and ", answer)
        self.assertIn(at("updated"), answer)

    def test_K4_a_graph_that_is_gone_through_twice(self):
        def step(model, optimizer, x):
            h = model.a(x).exp()  # shared
            model.b(h).sum().backward()  # first
            (h * 2).sum().backward()  # second

        self.assertEqual(self.raised(step)["answer"], f"the backward at {at('first')} freed what exp ({at('shared')}) saved, and the backward at {at('second')} comes to it again")

    def test_K4_a_loss_without_a_gradient(self):
        def within(model, optimizer, x):
            with torch.no_grad():
                h = model.a(x)  # cut
            h.relu().sum().backward()

        self.assertEqual(self.raised(within)["answer"], f"addmm ({at('cut')}) ran under no_grad: behind it no parameter has a gradient")
        os.rename("raised", "within")

        def detached(model, optimizer, x):
            model(x).detach().square().mean().backward()  # detached

        self.assertEqual(self.raised(detached)["answer"], f"detach ({at('detached')}) detaches: behind it no parameter has a gradient")
        os.rename("raised", "detached")
        self.assertEqual(self.raised(lambda model, optimizer, x: x.sum().backward())["answer"], "no parameter of the model leads to what backward is called on")

    def test_K4_a_checkpoint_that_recomputes_other_ops(self):
        calls = []

        def step(model, optimizer, x):
            def region(x):
                calls.append(1)
                y = model.a(x).sin()
                if len(calls) == 1:
                    y = y.exp()  # once
                return y.tanh()  # again

            checkpoint(region, x, use_reentrant=False).sum().backward()

        self.assertEqual(self.raised(step)["answer"], f"where the forward ran exp ({at('once')}), its recomputation ran tanh ({at('again')})")

    def test_K4_any_other_error_has_its_lines(self):
        found = self.raised(lambda model, optimizer, x: model(torch.randn(3, 5)))  # other
        self.assertNotIn("answer", found)
        self.assertIn("mat1 and mat2", found["message"])
        self.assertIn(int(at("other").split(":")[1]), [one["line"] for one in found["frames"]])

    def test_K4_catch_gives_the_answer(self):
        model = Model()
        with told() as text, self.assertRaises(RuntimeError), retrograd.catch(model) as c:
            out = model(torch.randn(3, 4)).sigmoid()  # saved for catch
            out.mul_(2)  # overwritten for catch
            out.sum().backward()
        answer = f"sigmoid ({at('saved for catch')}) saved its result for the backward, and mul_ ({at('overwritten for catch')}) overwrote it"
        self.assertIn(answer, text.getvalue())
        self.assertEqual(c.folder.manifest["recording"]["answer"], answer)

    def test_K4_parameters_that_DistributedDataParallel_meets_twice_or_never(self):
        script = """
import os, sys, torch, retrograd
from torch import nn
from torch.utils.checkpoint import checkpoint
twice = sys.argv[1] == "twice"
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        return checkpoint(self.a, checkpoint(self.a, x, use_reentrant=True), use_reentrant=True) if twice else self.a(x)
model = nn.parallel.DistributedDataParallel(Model(), find_unused_parameters=twice)
with retrograd.record(sys.argv[1], model=model):
    for _ in range(2):
        model(torch.randn(3, 4, requires_grad=True)).sum().backward()
"""
        for kind, words in (("twice", "the gradient of a."), ("never", "b.weight, b.bias got no gradient in the step before")):
            done = subprocess.run([sys.executable, "-c", script, kind], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(Path(retrograd.__file__).parent.parent)})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, json.loads((Path(kind) / "retrograd.json").read_text())["raised"].get("answer", done.stderr))


if __name__ == "__main__":
    unittest.main()
