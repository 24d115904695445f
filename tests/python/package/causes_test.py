"""K10 (layout), K11, K12, K17, K18: what cut a gradient off, what a Function's backward depends on, what two loops do not share, who wrote memory. Each loop is run and recorded."""
import ctypes
import json
import unittest

from support import PROGRAM, InFolder, retrograd, run, told, torch

nn, F = torch.nn, torch.nn.functional


class Net(nn.Module):
    """`cut` is what happens between two layers."""

    def __init__(self, cut=lambda h: h):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.cut = cut

    def forward(self, x):
        h = self.cut(torch.tanh(self.a(x)))
        return self.c(torch.tanh(self.b(h)))


def through_data(h):
    made = torch.zeros_like(h)
    made.data.copy_(h)  # unseen
    return made


def under_no_grad(h):
    with torch.no_grad():
        return h * 2  # no history


CUTS = {
    "detach": (lambda h: h.detach(), "h.detach()"),
    "data": (lambda h: h.data, "h.data"),
    "no_grad": (under_no_grad, "# no history"),
    "written": (through_data, "# unseen"),
    "integer": (lambda h: F.one_hot(h.argmax(-1), 8).float(), "h.argmax(-1)"),
}


class Recorded(InFolder):
    def setUp(self):
        super().setUp()
        if not PROGRAM:
            self.skipTest("RETROGRAD names no program")
        self.x, self.y = torch.randn(2, 6, 8), torch.randint(0, 3, (2, 6))

    def record(self, model, name="here", steps=2, loop=None, optimizer=None):
        optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)

        def one(i):
            optimizer.zero_grad()
            F.cross_entropy(model(self.x[i]), self.y[i]).backward()
            optimizer.step()

        def both():
            for i in range(steps):
                (loop or one)(i)

        with told():
            retrograd.record(name, both, model=model, optimizer=optimizer)

    def claims(self, *arguments):
        code, text = run("check", *arguments, "--format", "json")
        found = json.loads(text[text.index("{"):text.rindex("}") + 1])
        return code, {claim["kind"]: claim for claim in reversed(found["claims"])}

    def at(self, line, code):
        """A line of this file has this code."""
        with open(__file__) as lines:
            self.assertIn(code, lines.read().splitlines()[int(line.split(":")[1].split(" ")[0]) - 1], line)


class Why(Recorded):
    def stops(self, value):
        code, text = run("debug", "here", "-c", f"why-no-gradient {value}", "--format", "json")
        self.assertEqual(code, 0, text)
        return json.loads(text)

    def test_K11_what_cuts_a_parameter_off_is_named_with_its_line(self):
        for name, (cut, code) in CUTS.items():
            with self.subTest(name):
                self.record(Net(cut), name)
                exit_code, claims = self.claims(name)
                claim = claims["no-gradient"]
                self.assertEqual((exit_code, claim["severity"]), (1, "fault"))
                self.at(claim["line"], code)
                _, text = run("debug", name, "-c", "why-no-gradient a.weight")
                self.assertIn(claim["line"], text)
                self.assertEqual(len(text.strip().splitlines()), 1, text)  # once, though both steps have it
                _, text = run("debug", name, "-c", "terms a.weight")
                self.assertIn(claim["line"], text)

    def test_K11_ops_of_a_backward_are_no_way_of_the_forward(self):
        self.record(Net(lambda h: h.detach()))
        stops = self.stops("a.weight")["stops"]
        self.assertEqual([stop["kind"] for stop in stops], ["detached"])
        self.at(stops[0]["line"], "h.detach()")

    def test_K11_what_is_computed_beside_the_loss_is_not_blamed(self):
        def cut(h):
            with torch.no_grad():
                h.norm()  # for a log
            return h.detach() * 1.0  # on the way

        self.record(Net(cut))
        stops = self.stops("a.weight")["stops"]
        self.assertEqual(len(stops), 1, stops)
        self.at(stops[0]["line"], "# on the way")

    def test_K11_each_value_of_the_forward_has_its_recorded_gradient(self):
        kept = []

        def keep(h):
            h = h + 0.5
            h.register_hook(lambda gradient: kept.append(gradient.clone()))
            return h

        self.record(Net(keep), steps=1)
        code, text = run("trace", "here")
        made = next(line.split(" = ")[0] for line in text.splitlines() if "aten.add.Tensor(" in line)
        gradient = self.stops(made)["gradient"]
        numbers = run("debug", "here", "-c", f"break {gradient}", "-c", "continue", "-c", "step", "-c", f"print grad {made}", "--format", "json")[1]
        found = json.loads(numbers.splitlines()[-1])
        self.assertAlmostEqual(found["statistics"]["norm"], kept[0].norm().item(), places=5)


class Straight(torch.autograd.Function):
    """Its backward reads memory row by row, whatever the strides."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = torch.as_strided(g, g.shape, (g.shape[1], 1))  # rows
        return g * w, (g * x).sum(0)


class Asks(Straight):
    @staticmethod
    def backward(ctx, g):
        return Straight.backward(ctx, g.contiguous())


class Scale(Straight):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g.view(-1, g.shape[-1]) * x).sum(0)


class Layout(Recorded):
    def judged(self, function):
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.w = nn.Linear(8, 3), nn.Parameter(torch.rand(3) + 0.5)

            def forward(self, x):
                return function.apply(self.a(x), self.w)

        self.record(Layer(), function.__name__)
        return self.claims(function.__name__)

    def test_K10_a_backward_that_depends_on_the_layout_of_its_gradient_is_a_fault(self):
        code, claims = self.judged(Straight)
        self.assertEqual((code, claims["function-layout"]["severity"]), (1, "fault"))
        self.assertIn("depends on the layout of its gradient", claims["function-layout"]["sentence"])
        self.at(claims["function-layout"]["line"], "# rows")

    def test_K10_one_that_asks_for_contiguous_memory_or_reads_by_indices_is_right(self):
        for function in Asks, Scale:
            with self.subTest(function.__name__):
                self.assertEqual(self.judged(function), (0, {}))


class Against(Recorded):
    def pair(self, good=None, bad=None, **options):
        for name, loop in ("good", good), ("here", bad):
            torch.manual_seed(3)
            model = Net()
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            self.record(model, name, loop=loop and (lambda i: loop(i, model, optimizer)), optimizer=optimizer, **options)
        return self.claims("here", "--against", "good")

    def test_K12_the_same_loop_has_no_difference(self):
        self.assertEqual(self.pair(), (0, {}))

    def test_K12_data_that_differ_are_named_first(self):
        self.record_right()
        self.x = self.x + 1
        self.record_right("here")
        code, claims = self.claims("here", "--against", "good")
        self.assertIn("what aten.select.int reads at causes_test.py:", claims["against-data"]["sentence"])
        self.assertNotIn("against-gradients", claims)

    def record_right(self, name="good", seed=3):
        torch.manual_seed(seed)
        self.record(Net(), name)

    def test_K12_weights_that_differ_are_named(self):
        self.record_right()
        self.record_right("here", 4)
        code, claims = self.claims("here", "--against", "good")
        self.assertEqual(len(claims["against-weights"]["parameters"]), 6)
        self.assertNotIn("against-gradients", claims)

    def test_K12_another_order_of_clip_and_unscale_has_its_line(self):
        def loop(i, model, optimizer, clips_first=False):
            scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(model(self.x[i]), self.y[i])).backward()
            if not clips_first:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 100.0)  # clips
            scaler.step(optimizer)

        code, claims = self.pair(loop, lambda *given: loop(*given, clips_first=True))
        self.assertEqual((code, claims["against-order"]["severity"]), (1, "fault"))
        self.assertIn("backward, clip, unscale, update", claims["against-order"]["sentence"])
        self.at(claims["against-order"]["line"], "# clips")

    def test_K12_a_missing_tie_is_named(self):
        class Tied(nn.Module):
            def __init__(self, ties):
                super().__init__()
                torch.manual_seed(3)
                self.e, self.head = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
                self.head.weight = self.e.weight if ties else nn.Parameter(self.e.weight.detach().clone())

            def forward(self, x):
                return self.head(torch.tanh(self.e(x)))

        self.record(Tied(True), "good")
        self.record(Tied(False))
        code, claims = self.claims("here", "--against", "good")
        self.assertEqual(code, 1)
        self.assertEqual(claims["against-parameters"]["parameters"], ["head.weight"])
        self.assertIn("tied", claims["against-parameters"]["sentence"])


class Writes(Recorded):
    def test_K18_a_write_that_is_noticed_later_lies_between_two_lines(self):
        def cut(h):
            h = h.exp()  # saves its result
            ctypes.memset(h.data_ptr(), 0, 4 * h.numel())  # no op of PyTorch
            return h + 1.0

        self.record(Net(cut), steps=1)
        code, claims = self.claims("here")
        self.assertEqual(code, 1)
        sentence = claims["cut-op"]["sentence"]
        self.assertIn("code outside of PyTorch's ops, between ", sentence)
        first, last = sentence.split("between ")[1].split(" and ")[:2]
        self.at(first, "# saves its result")
        self.at(last, "backward()")  # noticed


class Updates(Recorded):
    def test_K17_only_a_clip_has_a_factor(self):
        for clips in False, True:
            with self.subTest(clips=clips):
                model = Net()
                optimizer = torch.optim.SGD(model.parameters(), 0.1)

                def loop(i):
                    optimizer.zero_grad()
                    F.cross_entropy(model(self.x[i]), self.y[i]).backward()
                    if clips:
                        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
                    else:
                        torch.stack([p.grad.norm() for p in model.parameters()]).norm()  # looked at only
                    optimizer.step()

                self.record(model, f"clips-{clips}", loop=loop, optimizer=optimizer)
                code, text = run("run", f"clips-{clips}", "--updates", "--format", "json")
                found = [row.get("clip_factor") for step in json.loads(text)["steps"] for row in step["parameters"]]
                self.assertTrue(all((factor is not None and factor < 1) if clips else factor is None for factor in found), found)


    def test_K17_a_clip_of_scaled_gradients_has_its_own_factor(self):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        factors = []

        def loop(i):
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(model(self.x[i]), self.y[i])).backward()
            factors.append(1 / (nn.utils.clip_grad_norm_(model.parameters(), 1.0).item() + 1e-6))
            scaler.step(optimizer)
            scaler.update()

        self.record(model, loop=loop, optimizer=optimizer, steps=1)
        row = json.loads(run("run", "here", "--updates", "--format", "json")[1])["steps"][0]["parameters"][0]
        self.assertAlmostEqual(row["clip_factor"], factors[0], places=5)


if __name__ == "__main__":
    unittest.main()
