"""C6: what catch and capture can run again they record; for the rest one command runs the script again and records the step."""
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from support import PROGRAM, InFolder, Net, batch, retrograd, run, told, torch

F = torch.nn.functional
HERE = Path(__file__).resolve().parent

START = """
import math, torch, retrograd
F = torch.nn.functional
torch.manual_seed(0)
"""

MODEL = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""

LOOP = """
with retrograd.catch(model, optimizer) as c:
    for step in range(10):
        x, y = torch.randn(4, 6), torch.randint(0, 3, (4,))
        optimizer.zero_grad()
        loss = c.loss(F.cross_entropy, model(x), y)
        loss.backward()
        optimizer.step()
"""

# Each goes wrong in step 7, in the line that says so.
LOOPS = {
    "loss": MODEL + """
def criterion(out, y, step):
    return F.cross_entropy(out, y) + torch.log(out.sum() * (0 if step == 7 else 1e-9) + (step != 7))  # the fault
""" + LOOP.replace("c.loss(F.cross_entropy, model(x), y)", "c.loss(criterion, model(x), y, step)"),
    "model": MODEL.replace("return self.last(torch.tanh(self.first(x)))", """h = torch.tanh(self.first(x))
        if x[0, 0] > 50:
            h = torch.sqrt(h - 2)  # the fault
        return self.last(h)""") + LOOP.replace("optimizer.zero_grad()", "x[0, 0] = 99 if step == 7 else 0\n        optimizer.zero_grad()"),
    "backward": """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1
    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x / x  # the fault
""" + MODEL.replace("torch.tanh(self.first(x))", "Scale.apply(self.first(x) * 0 if x[0, 0] > 50 else self.first(x))")
    + LOOP.replace("optimizer.zero_grad()", "x[0, 0] = 99 if step == 7 else 0\n        optimizer.zero_grad()"),
    "optimizer": MODEL.replace("lr=0.01", "lr=0.01, eps=0.0") + LOOP.replace("        optimizer.step()", """        if step == 7:
            for p in model.last.parameters():
                p.grad.zero_()
                optimizer.state[p]["exp_avg"].zero_()
                optimizer.state[p]["exp_avg_sq"].zero_()
        optimizer.step()  # the fault"""),
    "scaler": MODEL + "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)\n" + LOOP.replace("catch(model, optimizer)", "catch(model, optimizer, scaler=scaler)")
    .replace("        loss.backward()", """        if step == 7:
            scaler.update(math.inf)  # the fault
        scaler.scale(loss).backward()""").replace("        optimizer.step()", "        scaler.step(optimizer)\n        scaler.update()"),
    "clip": MODEL + LOOP.replace("        optimizer.step()", """        limit = torch.zeros(()) if step == 7 else torch.ones(())
        for p in model.parameters():
            p.grad.mul_(limit / limit)  # the fault
        optimizer.step()"""),
    "data-dependent": MODEL.replace("return self.last(torch.tanh(self.first(x)))", """h = torch.tanh(self.first(x))
        while h.norm() > 1.5:
            h = h * 0.5
        if x[0, 0] > 50:
            h = torch.log(h * 0)  # the fault
        return self.last(h)""") + LOOP.replace("optimizer.zero_grad()", "x[0, 0] = 99 if step == 7 else 0\n        optimizer.zero_grad()"),
    "checkpointed": MODEL.replace("self.last(torch.tanh(self.first(x)))", "self.last(torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False))").replace("    def forward(self, x):", """    def inner(self, x):
        h = torch.tanh(self.first(x))
        return torch.sqrt(h * 0) if x[0, 0] > 50 else h  # the fault
    def forward(self, x):""") + "import torch.utils.checkpoint\n" + LOOP.replace("optimizer.zero_grad()", "x[0, 0] = 99 if step == 7 else 0\n        optimizer.zero_grad()"),
}


def script(text, record=None, **environment):
    """Runs a script; what it wrote for the person."""
    Path("train.py").write_text(START + text)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])), **environment}
    if record is not None:
        variables["RETROGRAD_RECORD"] = str(record)
    done = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True, env=variables, timeout=300)
    return done.returncode, done.stderr


def shell(command):
    """Runs a printed command, as a person does."""
    command = command.strip().replace("retrograd ", f"{PROGRAM} ", 1) if command.strip().startswith("retrograd ") else command.strip()
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=variables, timeout=300)
    return done.returncode, done.stdout + done.stderr


def commands(text):
    return [line.strip() for line in text.splitlines() if line.startswith("    ")]


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Acceptance(InFolder):
    def leads_to_the_line(self, text):
        """The printed command walks to the NaN, or runs the script again first where it was made outside of what catch can run again."""
        again = commands(text)[0]
        if again.startswith("RETROGRAD_RECORD="):
            self.assertTrue(again.startswith("RETROGRAD_RECORD=7 "), again)
            code, text = shell(again)
            self.assertEqual(code, 0, text)
            self.assertIn("The 7 losses before it are those of the run before", text)
        code, found = shell(next(one for one in commands(text) if "walk-nan" in one))
        self.assertEqual(code, 1, found)
        lines = re.findall(r"train\.py:(\d+)", found.split("root:")[-1])
        code = Path("train.py").read_text().splitlines()
        self.assertTrue(any("the fault" in code[int(line) - 1] for line in lines), found)


def acceptance_of(name):
    def test(self):
        code, text = script(LOOPS[name])
        self.assertEqual(code, 0, text)
        self.assertRegex(text, "retrograd: step 7: ")
        self.leads_to_the_line(text)

    return test


for name in LOOPS:
    setattr(Acceptance, f"test_C6_{name.replace('-', '_')}_leads_to_its_line", acceptance_of(name))


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Recorded(InFolder):
    def recording(self, folder):
        code, text = run("check", folder.recording)
        self.assertIn("0 differ", text)
        return code, text

    def test_C6_a_model_that_cannot_be_exported_is_recorded(self):
        class Branches(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

            def forward(self, x):
                h = self.first(x)
                return self.last(torch.log(h - 1000) if h.sum().item() > -1e9 else h)

        model = Branches()
        with told() as text, retrograd.catch(model) as c:
            x, y = batch()
            c.loss(F.cross_entropy, model(x), y).backward()
        manifest = c.folder.manifest
        self.assertEqual((manifest["graphs"], manifest["open"], manifest["cannot_replay"]), ([], {"recording": "recorded", "at": "root"}, []))
        self.assertIn("h.sum().item()", manifest["export_failed"])
        self.assertIn("retrograd retrograd-catch/step0/recorded", text.getvalue())
        self.recording(c.folder)
        code, text = run("trace", c.folder.recording)
        self.assertIn("0 ambiguous", text)
        self.assertIn("cross_entropy", text)

    def test_C6_capture_records_where_the_export_fails_or_is_not_asked_for(self):
        class Branches(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.last = torch.nn.Linear(6, 3)

            def forward(self, x):
                return self.last(x * 2 if x.sum() > 0 else x)

        x, y = batch()
        for model, options in ((Branches(), {}), (Net(), {"export": False})):
            before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            state = torch.get_rng_state()
            with told():
                folder = retrograd.capture(model, x, loss=lambda out: F.cross_entropy(out, y), path=type(model).__name__, **options)
            self.assertEqual((folder.manifest["graphs"], "export_failed" in folder.manifest), ([], not options))
            self.assertTrue(all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items()))
            self.assertTrue(all(p.grad is None for p in model.parameters()) and torch.equal(state, torch.get_rng_state()))
            code, text = self.recording(folder)
            self.assertEqual(code, 0, text)

    def test_C6_a_custom_backward_is_in_the_recording_next_to_the_graph(self):
        import record_test

        class Squared(torch.nn.Linear):
            def forward(self, x):
                return record_test.Square.apply(super().forward(x))

        x, y = batch()
        with told():
            folder = retrograd.capture(Squared(6, 3), x, loss=lambda out: F.cross_entropy(out, y))
        self.assertEqual(len(folder.manifest["graphs"]), 1)
        code, text = run("check", folder.recording, "--strict")
        self.assertEqual(code, 1, text)
        self.assertIn("function `Square`: 0.75 times the derivative", text)


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class WholeStep(InFolder):
    def loop(self, spoil, steps=9, watched=True, make=torch.optim.AdamW, **settings):
        torch.manual_seed(3)
        model = Net(dropout=0.3)
        optimizer = make(model.parameters(), lr=0.01, **settings)

        def step(x, y, n):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            spoil(n, model, optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        losses = []
        with told() as text, retrograd.catch(model, optimizer, step=step) as c:
            for n in range(steps):
                losses.append(float((c.step if watched else step)(*batch(), n)))
        self.text = text.getvalue()
        return c, model, losses

    def test_C6_a_whole_step_runs_again_and_is_recorded(self):
        def spoil(n, model, optimizer):
            if n == 4:
                model.last.bias.grad[1] = float("nan")  # the fault

        c, model, losses = self.loop(spoil, steps=5)
        self.assertEqual((c.folder.manifest["step"], c.folder.manifest["failure"]["kind"]), (4, "nan_weight"))
        code, text = run("debug", c.folder.recording, "-c", "walk-nan")
        self.assertEqual(code, 1)
        self.assertIn("# the fault", text)
        code, text = run("run", c.folder.recording, "--updates")
        self.assertEqual(code, 1)
        self.assertIn("step 4\n", text)
        self.assertIn("of first.weight in step 4 is not finite: clipping made its gradient so: the gradient of last.bias has 1 NaN", text)

    def test_C6_a_loop_with_whole_steps_is_not_changed(self):
        def spoil(n, model, optimizer):
            if n == 4:
                model.last.bias.grad[1] = float("nan")

        results = [self.loop(spoil, watched=watched) for watched in (True, False)]
        self.assertEqual(len(results[0][0].folders), 1)
        self.assertEqual(str(results[0][2]), str(results[1][2]))
        for name, tensor in results[0][1].state_dict().items():
            self.assertTrue(torch.equal(tensor.isnan(), results[1][1].state_dict()[name].isnan()), name)

    def test_C6_whole_steps_beyond_the_limit_are_left_to_the_script(self):
        model = Net()
        with told() as text, retrograd.catch(model, step=lambda: model(batch()[0]), limits=retrograd.Limits(weights_bytes=8)) as c:
            c.step()
        self.assertIn("no step can run again", text.getvalue())
        with self.assertRaisesRegex(TypeError, "step=FUNCTION"), retrograd.catch(model) as c:
            c.step()


class Rerun(InFolder):
    def test_C6_another_run_says_so(self):
        loop = LOOPS["optimizer"]
        code, text = script(loop)
        self.assertIn("RETROGRAD_RECORD=7", text)
        code, text = script(loop.replace("torch.optim", "torch.manual_seed(5)\noptimizer = torch.optim", 1), record=7)
        self.assertEqual(code, 0, text)
        self.assertIn("this run is not the one before: the loss of step 0 is", text)
        self.assertNotIn("are those of the run before", text)
        manifest = json.loads(Path("retrograd-catch/step7/recorded/retrograd.json").read_text())
        self.assertEqual((manifest["updates"], manifest["complete"]), ([7], True))

    def test_C6_a_loop_that_ends_before_the_step_says_so(self):
        code, text = script(MODEL + LOOP, record=70)
        self.assertEqual(code, 0, text)
        self.assertIn("nothing was recorded: the loop ended before step 70", text)


if __name__ == "__main__":
    unittest.main()
