"""A sample of the planted faults of opinion_faults.py, each kind with its right step; checkpoints; detaches."""
import checkpoints
import torch
import torch.utils.checkpoint
from support import PROGRAM, InFolder, retrograd, run, told, unittest
import opinion_faults
import opinion_programs
import second_derivatives


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Faults(unittest.TestCase):
    pass


def test_of(kind):
    def test(self):
        found = opinion_faults.one(kind, 100)
        self.assertTrue(found.named and found.listed and found.right, found)

    return test


class Programs(unittest.TestCase):
    @unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
    def test_C12_random_programs_have_the_cuts_that_are_there_and_no_others(self):
        for seed in range(8):
            problem, compared, _ = opinion_programs.wrong(seed)
            self.assertTrue(not problem or problem.startswith("not listed"), (seed, problem))
            self.assertGreater(compared + bool(problem), 0, seed)


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Checkpoints(InFolder):
    def test_K3_a_right_step_around_a_checkpoint_has_no_cut(self):
        for name, block in checkpoints.RIGHT.items():
            with self.subTest(name):
                checkpoints.record(name, block)
                code, text = run("check", name, "--strict")
                self.assertEqual(code, 0, text)

    def test_K3_a_recomputation_that_is_not_its_forward_is_named_with_both_lines(self):
        for reentrant in (True, False):
            for name, (block, *said) in checkpoints.WRONG.items():
                with self.subTest(name, reentrant=reentrant):
                    path = f"{name} {reentrant}"
                    checkpoints.record(path, lambda net, h: block(net, h, reentrant))
                    code, text = run("check", path)
                    self.assertEqual(code, 1, text)
                    for part in said:
                        self.assertIn(part, text)


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class SeveralUpdates(InFolder):
    """What an update or a mean of weights leaves of a parameter is the parameter, in the next step and in its second micro-batch."""

    def record(self, region, average=None):
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)  # which gives back nothing of what it writes
        x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
        with told(), retrograd.record("loop", model=model, optimizer=optimizer):
            for _ in range(3):
                optimizer.zero_grad()
                for _ in range(2):
                    torch.nn.functional.cross_entropy(region(model, x), y).backward()
                optimizer.step()
                if average:
                    average(model)
        code, text = run("check", "loop", "--strict")
        self.assertEqual(code, 0, text)
        self.assertIn("judged: 4 gradients", text)

    def test_K1_around_a_checkpoint(self):
        self.record(lambda model, x: torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False))

    def test_K1_with_a_mean_of_weights(self):
        means = {}

        def average(model):
            for name, parameter in model.named_parameters():
                means[name] = parameter.detach() * 0.1 + means.get(name, 0) * 0.9

        self.record(lambda model, x: model(x), average)


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Functions(InFolder):
    def test_K10_the_line_is_that_of_the_statement_that_made_the_gradient(self):
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.save_for_backward(x, w)
                return x * w

            @staticmethod
            def backward(ctx, gradient):
                x, w = ctx.saved_tensors
                of_x = gradient * w
                of_w = (gradient * x).mean(0)  # should be a sum
                return of_x, of_w

        line = Scale.backward.__code__.co_firstlineno + 4
        model = torch.nn.ParameterDict({"w": torch.rand(4) + 0.5})
        optimizer = torch.optim.SGD(model.values(), 0.1)
        x = torch.randn(8, 4)
        with told():
            retrograd.record("step", lambda: (Scale.apply(x, model["w"]).tanh().square().sum().backward(), optimizer.step()), model=model, optimizer=optimizer)
        code, text = run("check", "step", "--strict")
        self.assertEqual(code, 1, text)
        self.assertIn("Scale`: 0.125 times the derivative; in the gradient of w", text)
        self.assertIn(f"opinion_test.py:{line} in backward", text)


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class UnwrittenMemory(InFolder):
    def test_K18_a_gradient_that_reads_what_nobody_wrote_is_a_fault_of_the_op(self):
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.RReLU(0.1, 0.9), torch.nn.Linear(8, 3))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        x = torch.randn(5, 6)

        def step(path, block):
            with told():
                retrograd.record(path, lambda: (model[2](block(x)).square().mean().backward(), optimizer.step()), model=model, optimizer=optimizer)

        step("right", model[:2])
        step("wrong", lambda z: torch.utils.checkpoint.checkpoint(model[:2], z, use_reentrant=False))
        code, text = run("check", "right", "--strict")
        self.assertEqual(code, 0, text)
        code, text = run("check", "wrong")
        self.assertEqual(code, 1, text)
        self.assertIn("aten.rrelu_with_noise", text)


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class SecondDerivatives(InFolder):
    def test_K16_a_first_backward_is_part_of_the_forward_of_the_next_one(self):
        for name, (loss, said) in second_derivatives.STEPS.items():
            with self.subTest(name):
                second_derivatives.record(name, loss)
                code, text = run("check", name, "--strict")
                self.assertEqual(code, 0 if said is None else 1, text)
                self.assertNotIn("not judged", text)
                for part in said or ():
                    self.assertIn(part, text)


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Detaches(InFolder):
    def test_K11_a_detach_in_the_line_of_its_op_is_named(self):
        model = torch.nn.ParameterDict({"A": torch.randn(2, 8), "B": torch.randn(3, 2)})
        optimizer = torch.optim.AdamW(model.values(), 0.01)
        x = torch.randn(4, 8)

        def step():
            up = torch.tanh(x @ model["A"].t()).detach() @ model["B"].t()
            torch.tanh(up).square().mean().backward()
            optimizer.step()

        with told():
            retrograd.record("step", step, model=model, optimizer=optimizer)
        code, text = run("check", "step")
        self.assertEqual(code, 1, text)
        self.assertIn("detach (aten.detach.default): no gradient goes through", text)
        self.assertIn("opinion_test.py", text)


for name in opinion_faults.KINDS:
    setattr(Faults, f"test_C12_C14_{name.replace(' ', '_')}", test_of(name))

if __name__ == "__main__":
    unittest.main()
