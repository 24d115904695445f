"""C13: what the program says of an optimizer's updates in a recording, compared with what the loop itself measures."""
import json
import math
import unittest
from pathlib import Path

from support import PROGRAM, InFolder, Net, batch, retrograd, run, told, torch

F = torch.nn.functional


def updates(path="here"):
    """The exit code and the JSON of `run --updates`."""
    code, text = run("run", path, "--updates", "--format", "json")
    found = json.loads(text[text.index("{"):text.rindex("}") + 1])
    try:
        import jsonschema
    except ImportError:
        return code, found
    jsonschema.validate(found, json.loads((Path(__file__).resolve().parents[3] / "docs" / "updates.schema.json").read_text()))
    return code, found


class Halves(torch.optim.Optimizer):
    """An optimizer that nobody knows."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state[p].setdefault("mean", torch.zeros_like(p))
                    state.lerp_(p.grad, 0.5)
                    p -= 0.1 * state.sign()


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Updates(InFolder):
    def recorded(self, optimizer, steps=2, clip=None, spoil=None, scaler=None):
        """Records a loop; per step the norms that the loop itself finds."""
        measured = []
        model = optimizer.model

        def loop():
            for step in range(steps):
                optimizer.zero_grad()
                x, y = batch()
                loss = F.cross_entropy(model(x), y)
                (scaler.scale(loss) if scaler else loss).backward()
                if spoil:
                    spoil(step, model, optimizer)
                if scaler:
                    scaler.unscale_(optimizer)
                norms = {name: float(p.grad.norm()) for name, p in model.named_parameters()}
                total = float(torch.nn.utils.clip_grad_norm_(model.parameters(), clip)) if clip else 0
                before = {name: p.detach().clone() for name, p in model.named_parameters()}
                if scaler:
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    optimizer.step()
                measured.append({name: (norms[name], float(before[name].norm()), float((p.detach() - before[name]).norm()), min(1, clip / (total + 1e-6)) if clip else None)
                                 for name, p in model.named_parameters()})

        with told():
            retrograd.record("here", loop, model=model, optimizer=optimizer)
        return measured

    def optimizer(self, kind, model=None, **settings):
        model = model or Net(dropout=0.0)
        optimizer = kind(model.parameters(), **settings)
        optimizer.model = model
        return optimizer

    def agrees(self, optimizer, states, **how):
        measured = self.recorded(optimizer, **how)
        code, found = updates()
        self.assertEqual((code, len(found["steps"])), (0, len(measured)), found)
        self.assertNotIn("first_bad", found)
        for step, truth in zip(found["steps"], measured):
            self.assertEqual({one["parameter"] for one in step["parameters"]}, set(truth))
            for one in step["parameters"]:
                gradient, weight, update, factor = truth[one["parameter"]]
                for name, expected in (("gradient", gradient), ("weight", weight), ("update", update)):
                    self.assertTrue(math.isclose(one[name], expected, rel_tol=1e-4, abs_tol=1e-7), (one, name, expected))
                if factor is not None and gradient > 1e-6:
                    self.assertAlmostEqual(one["clip_factor"], factor, 4)
                self.assertEqual(set(one["states"]), states)
        last = found["steps"][-1]["parameters"]
        for one in last:
            for state in states - {"step"}:
                tensor = optimizer.state[dict(optimizer.model.named_parameters())[one["parameter"]]][state]
                self.assertTrue(math.isclose(one["states"][state], float(tensor.float().norm()), rel_tol=1e-4, abs_tol=1e-9), (one, state))
        return found

    def test_C13_sgd_with_momentum(self):
        self.agrees(self.optimizer(torch.optim.SGD, lr=0.1, momentum=0.9), {"momentum_buffer"})

    def test_C13_adam_with_clipping(self):
        found = self.agrees(self.optimizer(torch.optim.AdamW, lr=0.01), {"exp_avg", "exp_avg_sq", "step"}, clip=0.1)
        self.assertEqual({one["states"]["step"] for one in found["steps"][1]["parameters"]}, {2})

    def test_K17_what_writes_a_gradient_as_a_reduction_does_is_no_clipping(self):
        for scale, factor in (("copy_", None), ("mul_", 0.5)):
            model = Net()
            optimizer = torch.optim.SGD(model.parameters(), 0.1)

            def step():
                x, y = batch()
                F.cross_entropy(model(x), y).backward()
                with torch.no_grad():
                    for p in model.parameters():
                        p.grad.mul_(0.5) if scale == "mul_" else p.grad.copy_(p.grad.flip(0))
                optimizer.step()

            with told():
                retrograd.record(scale, step, model=model, optimizer=optimizer)
            for one in updates(scale)[1]["steps"][0]["parameters"]:
                self.assertAlmostEqual(one.get("clip_factor", 0), factor or 0, 4, (scale, one["parameter"]))

    def test_C13_one_tensor_after_another(self):
        self.agrees(self.optimizer(torch.optim.Adam, lr=0.01, foreach=False), {"exp_avg", "exp_avg_sq", "step"}, clip=0.1)

    def test_C13_fused(self):
        self.agrees(self.optimizer(torch.optim.Adam, lr=0.01, fused=True), {"exp_avg", "exp_avg_sq", "step"})

    def test_C13_an_optimizer_that_nobody_knows(self):
        self.agrees(self.optimizer(Halves), {"mean"})

    def bad(self, *arguments, **how):
        self.recorded(*arguments, **how)
        code, found = updates()
        self.assertEqual(code, 1, found)
        return found["first_bad"]

    def test_C13_a_second_moment_of_zero_and_no_epsilon(self):
        for foreach in (True, False):
            with self.subTest(foreach=foreach):
                def spoil(step, model, optimizer):
                    if step == 1:
                        model[2].weight.grad[0] = 0
                        optimizer.state[model[2].weight]["exp_avg_sq"][0] = 0
                        optimizer.state[model[2].weight]["exp_avg"][0] = 0

                model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
                bad = self.bad(self.optimizer(torch.optim.Adam, model, lr=0.01, eps=0.0, foreach=foreach), spoil=spoil)
                self.assertEqual((bad["step"], bad["parameter"]), (1, "2.weight"))
                self.assertIn("second moment (exp_avg_sq) is 0", bad["why"])
                self.assertIn("updates_test.py", bad["line"])
                self.assertIn("addcdiv", bad["text"])
                __import__("shutil").rmtree("here")

    def test_C13_an_infinite_gradient(self):
        def spoil(step, model, optimizer):
            if step == 1:
                model.first.bias.grad[2] = math.inf

        bad = self.bad(self.optimizer(torch.optim.SGD, lr=0.1), spoil=spoil)
        self.assertEqual((bad["step"], bad["parameter"], bad["why"]), (1, "first.bias", "code between backward and update made its gradient so: 1 infinity among 8 elements"))
        self.assertIn("in spoil", bad["line"])

    def test_C13_a_gradient_that_the_backward_made_infinite(self):
        model = Net(dropout=0.0)
        model.last.bias.register_hook(lambda gradient: gradient / 0)
        bad = self.bad(self.optimizer(torch.optim.SGD, model, lr=0.1), steps=1)
        self.assertEqual((bad["parameter"], bad["why"]), ("last.bias", "its gradient has 3 infinities among 3 elements"))
        self.assertIn("in <lambda>", bad["line"])

    def test_C13_clipping_spreads_a_nan(self):
        def spoil(step, model, optimizer):
            if step == 0:
                model.last.bias.grad[1] = math.nan

        bad = self.bad(self.optimizer(torch.optim.SGD, lr=0.1), clip=1.0, spoil=spoil, steps=1)
        self.assertEqual(bad["parameter"], "first.weight")
        self.assertIn("clipping made its gradient so: the gradient of last.bias has 1 NaN among 3 elements", bad["why"])
        self.assertIn("in spoil", bad["line"])

    def test_C13_a_scaler_skips_a_step(self):
        def spoil(step, model, optimizer):
            if step == 1:
                model.first.weight.grad[0, 0] = math.inf

        self.recorded(self.optimizer(torch.optim.SGD, lr=0.1), steps=3, spoil=spoil, scaler=torch.amp.GradScaler("cpu", init_scale=1024.0))
        code, found = updates()
        self.assertEqual((code, [step["step"] for step in found["steps"]]), (0, [0, 1, 1]))
        self.assertEqual(["skipped" in step for step in found["steps"]], [False, True, False])
        self.assertEqual(found["steps"][1]["skipped"], "the scaler skipped it: the gradient of first.weight has 1 infinity among 48 elements at scale 1024; the next scale is 512")
        self.assertEqual(found["steps"][2]["scale"], 512)

    def test_C13_check_and_debug_say_it_too(self):
        def spoil(step, model, optimizer):
            if step == 1:
                model.first.bias.grad[2] = math.inf

        self.recorded(self.optimizer(torch.optim.SGD, lr=0.1), spoil=spoil)
        code, text = run("check", "here")
        self.assertEqual(code, 1)
        self.assertIn("the update of first.bias in step 1 is not finite: code between backward and update made its gradient so: 1 infinity", text.splitlines()[0])
        code, text = run("debug", "here", "-c", "updates first.bias")
        self.assertEqual(code, 1)
        self.assertIn("the update of first.bias in step 1 is not finite", text)
        self.assertNotIn("last.weight", text)
        self.assertEqual(run("debug", "here", "-c", "updates nothing")[0], 2)


if __name__ == "__main__":
    unittest.main()
