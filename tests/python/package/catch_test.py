"""retrograd.catch in plain loops."""
import shutil

from support import InFolder, Net, batch, retrograd, told, torch, unittest

F = torch.nn.functional


def train(model, steps=10, catch=None, spoil=None, optimizer=None):
    """A plain loop; `spoil(step, model)` is called before each step."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        if spoil:
            spoil(step, model)
        x, y = batch()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if catch:
            catch.loss(loss)
        loss.backward()
        optimizer.step()


class Catch(InFolder):
    def test_planted_nan_at_step_7(self):
        """The folder is that of step 7, has the weights from before its update, and leads to the op with its line."""
        model = Net(bad=7)
        weights = {}

        def remember(step, model):
            if step == 7:
                weights.update({name: p.detach().clone() for name, p in model.state_dict().items()})

        with told() as text, retrograd.catch(model) as c:
            train(model, catch=c, spoil=remember)
        manifest = c.folder.manifest
        self.assertEqual((manifest["step"], manifest["kind"], manifest["failure"]["kind"]), (7, "catch", "nan_loss"))
        self.assertIn("retrograd retrograd-catch/step7", text.getvalue())
        self.assertIn("weights and the batch are inside", text.getvalue())
        self.assertEqual(manifest["cannot_replay"], [])
        self.assertTrue(any("torch.log(h - 10)" in line["code"] for line in manifest["source"]))
        saved = torch.export.load(c.folder.path / "step" / "model.pt2").state_dict
        for name, tensor in saved.items():
            self.assertTrue(torch.equal(tensor, weights[name]), name)
        walked = self.walk(c.folder)
        self.assertIn("torch.ops.aten.log.default", walked.split("root:")[1])
        self.check(c.folder.path)

    def test_loss_inside_the_model_is_replayed(self):
        class WithLoss(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = Net(bad=3)

            def forward(self, x, y):
                logits = self.net(x)
                return {"loss": F.cross_entropy(logits, y), "logits": logits}

        model = WithLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with told(), retrograd.catch(model, optimizer) as c:
            for _ in range(5):
                x, y = batch()
                optimizer.zero_grad()
                model(x, y)["loss"].backward()
                optimizer.step()
        manifest = c.folder.manifest
        self.assertEqual((manifest["step"], manifest["numbers"]["loss"], manifest["numbers"]["loss_again"]), (3, "nan", "nan"))
        self.assertIn("aten.log.default", self.walk(c.folder))

    def test_loss_by_function_is_in_the_graph(self):
        model = Net(bad=2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with told(), retrograd.catch(model) as c:
            for _ in range(4):
                x, y = batch()
                optimizer.zero_grad()
                c.loss(F.cross_entropy, model(x), y).backward()
                optimizer.step()
        program = torch.export.load(c.folder.path / "step" / "model.pt2")
        self.assertIn("aten.cross_entropy_loss.default", program.graph_module.code.replace("torch.ops.", ""))
        self.assertEqual(list(program.graph_signature.user_inputs), ["x", "target"])
        self.check(c.folder.path)

    def test_dropout_draws_again(self):
        """A finite loss and an infinite gradient: the loss that the replay has is that of the loop, to the last mask of dropout."""
        class Root(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.ones(6, 2))
                self.drop = torch.nn.Dropout(0.5)
                self.bad = False

            def forward(self, x, y):
                h = self.drop(x @ self.w)
                return (torch.sqrt(h * 0) if self.bad else h).sum() + F.mse_loss(self.drop(x @ self.w), y)

        model = Root()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        losses = []
        with told(), retrograd.catch(model) as c:
            for step in range(4):
                model.bad = step == 2
                optimizer.zero_grad()
                loss = model(torch.randn(3, 6), torch.randn(3, 2))
                losses.append(loss.item())
                loss.backward()
                optimizer.step()
        manifest = c.folder.manifest
        self.assertEqual((manifest["failure"]["kind"], manifest["step"]), ("nan_gradient", 2))
        self.assertAlmostEqual(manifest["graphs"][0]["numbers"]["out.0"], losses[2], places=5)
        self.assertIn("w", manifest["failure"]["parameters"])
        self.check(c.folder.path)

    def test_batch_norm_is_as_before_the_step(self):
        model = Net(bad=1)
        before = {}
        with told(), retrograd.catch(model) as c:
            train(model, 3, spoil=lambda step, m: before.update({n: b.clone() for n, b in m.named_buffers()}) if step == 1 else None)
        saved = torch.export.load(c.folder.path / "step" / "model.pt2").state_dict
        for name, buffer in before.items():
            self.assertTrue(torch.equal(saved[name], buffer), name)

    def test_norm_that_overflows(self):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0)
        with told(), retrograd.catch(model) as c:
            (model(torch.ones(2, 4)).sum() * 3e25).backward()
            optimizer.step()
        self.assertEqual(c.folder.manifest["failure"]["kind"], "nan_norm")

    def test_exception_in_backward(self):
        class Fails(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                raise RuntimeError("no gradient today")

        model = Net()
        with told() as text, self.assertRaisesRegex(RuntimeError, "no gradient today"), retrograd.catch(model) as c:
            x, y = batch()
            F.cross_entropy(Fails.apply(model(x)), y).backward()
        self.assertEqual(c.folder.manifest["failure"]["kind"], "exception")
        shutil.rmtree(c.folder.path)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Linear(8, 3))
        model[1].weight.register_hook(lambda gradient: (_ for _ in ()).throw(RuntimeError("no gradient today")))
        with told() as text, self.assertRaisesRegex(RuntimeError, "no gradient today"), retrograd.catch(model) as c:
            x, y = batch()
            F.cross_entropy(model(x), y).backward()
        self.assertEqual(c.folder.manifest["failure"]["kind"], "exception")
        self.assertIn("no gradient today", text.getvalue())
        self.check(c.folder.path)

    def test_an_exception_elsewhere_writes_nothing(self):
        model = Net()
        with self.assertRaises(KeyError), retrograd.catch(model) as c:
            train(model, 1)
            raise KeyError("elsewhere")
        self.assertEqual(c.folders, [])

    def test_a_clean_loop_is_not_changed(self):
        """The same weights, bit for bit, with and without; nothing is written; no hook stays."""
        results = []
        for watched in (False, True):
            torch.manual_seed(1)
            model = Net()
            if watched:
                with retrograd.catch(model) as c:
                    train(model, 5, catch=c)
                self.assertFalse(list(self.folder.iterdir()))
                self.assertFalse(model._forward_hooks or model._forward_pre_hooks)
            else:
                train(model, 5)
            results.append(model.state_dict())
        for name in results[0]:
            self.assertTrue(torch.equal(results[0][name], results[1][name]), name)

    def test_microbatches(self):
        model = Net(bad=5, dropout=0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with told(), retrograd.catch(model, optimizer) as c:
            for _ in range(4):
                optimizer.zero_grad()
                for _ in range(2):
                    x, y = batch()
                    F.cross_entropy(model(x), y).backward()
                optimizer.step()
        self.assertEqual((c.folder.manifest["step"], c.folder.manifest["microbatch"]), (2, 1))

    def test_microbatches_of_a_loss_that_is_written_in_place(self):
        """As transformers' Trainer scales the model's own loss."""
        class Own(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.last, self.calls = torch.nn.Linear(6, 1), 0

            def forward(self, x):
                self.calls += 1
                return {"loss": (self.last(x) * (float("nan") if self.calls == 4 else 1)).mean()}

        model = Own()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with told() as text, retrograd.catch(model) as c:
            for _ in range(3):
                optimizer.zero_grad()
                for _ in range(2):
                    loss = model(torch.randn(4, 6))["loss"]
                    loss *= 0.5
                    loss.backward()
                optimizer.step()
        self.assertEqual((c.folder.manifest["step"], c.folder.manifest["microbatch"]), (1, 1))
        self.assertIn("step 1, microbatch 1: the loss is nan", text.getvalue())

    def test_count_of_folders(self):
        model = Net(bad=1)
        with told(), retrograd.catch(model, limits=retrograd.Limits(folders=2)) as c:
            train(model, 6)
        self.assertEqual([folder.path.name for folder in c.folders], ["step1", "step2"])

    def test_input_written_in_place(self):
        class Writes(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.last = torch.nn.Linear(6, 1)

            def forward(self, x):
                x.sub_(100)
                return torch.log(self.last(x) * 0 - 1).sum()

        for limit, lost in ((16 << 20, False), (0, True)):
            model, x = Writes(), torch.randn(4, 6)
            before = x.clone()
            with told() as text, retrograd.catch(model, limits=retrograd.Limits(copy_bytes=limit)) as c:
                model(x).backward()
            self.assertEqual(any("written in place" in line for line in c.folder.manifest["cannot_replay"]), lost)
            self.assertEqual("Cannot be replayed: 1 input" in text.getvalue(), lost)
            (args, kwargs) = torch.export.load(c.folder.path / "step" / "model.pt2").example_inputs
            self.assertEqual(torch.equal(kwargs["x"], before), not lost)

    def test_autocast(self):
        model = Net(bad=2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with told(), retrograd.catch(model) as c:
            for _ in range(4):
                x, y = batch()
                optimizer.zero_grad()
                with torch.autocast("cpu", torch.bfloat16):
                    loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
        self.assertEqual(c.folder.manifest["graphs"][0]["autocast"], "cpu: bfloat16")
        self.assertIn("aten.log.default", self.walk(c.folder))
        self.check(c.folder.path)

    def test_compiled_model(self):
        model = Net(bad=2)
        compiled = torch.compile(model, backend="eager")
        with told(), retrograd.catch(compiled) as c:
            for _ in range(2):
                x, y = batch()
                F.cross_entropy(compiled(x), y).backward()
            model.bad = 0
            model.zero_grad()
            torch._dynamo.reset()
            F.cross_entropy(compiled(x), y).backward()
        self.assertEqual(c.folder.manifest["step"], 2)
        self.check(c.folder.path)

    def test_scaler_may_meet_infinity(self):
        """A scale that is too large makes infinite gradients, which the scaler steps over: no failure."""
        class Scaler:
            def get_scale(self):
                return 2.0**40

        model = torch.nn.Linear(4, 1)
        with told(), retrograd.catch(model, scaler=Scaler()) as c:
            (model(torch.ones(2, 4)).sum() * float("inf")).backward()
        self.assertIsNone(c.folder)

    def scaled(self, step, scaler, count=4, scale=None):
        """A loop with a scaler, where `step` gives the loss of the model's output. What is printed, and what catch gives."""
        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 1e-30)
        with told() as text, retrograd.catch(model, optimizer, scaler=scaler) as c:
            for number in range(count):
                optimizer.zero_grad()
                scaler.scale(step(model(torch.ones(2, 4)), number)).backward()
                scaler.step(optimizer)
                scaler.update(scale)
        self.assertNotIn("scale", scaler.__dict__)
        return text.getvalue(), c

    def test_K5_a_loss_that_is_not_finite_is_told_before_the_scaler_decides(self):
        text, c = self.scaled(lambda out, number: out.sum() / (0.0 if number == 2 else 1.0), torch.amp.GradScaler("cpu", init_scale=1024.0))
        self.assertIn("step 2: the loss is ", text)
        self.assertIn("a smaller scale cannot mend it", text)
        self.assertEqual(c.folder.manifest["failure"]["kind"], "nan_loss")
        self.walk(c.folder)

    def test_K5_a_gradient_that_overflows_by_its_scale_is_no_fault(self):
        text, c = self.scaled(lambda out, number: out.sum() * 1e20, torch.amp.GradScaler("cpu", init_scale=2.0**100, backoff_factor=2.0**-60))
        self.assertIsNone(c.folder, text)

    def test_K5_it_is_one_once_the_scale_no_longer_falls(self):
        text, c = self.scaled(lambda out, number: (out * 1e38).sum(), torch.amp.GradScaler("cpu", init_scale=1024.0), scale=1024.0)
        self.assertIn("has a NaN or Inf, and the scale, 1024, no longer falls", text)
        self.assertEqual(c.folder.manifest["failure"]["kind"], "nan_gradient")

    def test_K5_gradients_of_inputs_and_buffers_count(self):
        model = torch.nn.Linear(4, 3)
        x = torch.zeros(2, 4, requires_grad=True)
        with told() as text, retrograd.catch(model):
            F.linear(model(x).detach() + x.sqrt()[:, :3], torch.ones(1, 3)).sum().backward()
            model(x).sum().backward()
        self.assertIn("the gradient of input 0 has a NaN or Inf", text.getvalue())

        class Counts(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(4, 3)
                self.register_buffer("seen", torch.zeros(3))

            def forward(self, x):
                out = self.inner(x)
                self.seen += out.detach().mean(0) / (x.sum() - 8)
                return out

        with told() as text, retrograd.catch(Counts()) as c:
            for number in range(2):
                c.model(torch.full((2, 4), 1.0 + (number == 0))).sum().backward()
        self.assertIn("the forward wrote a NaN or Inf into buffer seen", text.getvalue())

    def test_recorded_numbers(self):
        """DebugMode's norms lie in the folder where PyTorch has them."""
        from torch.utils import _debug_mode

        model = Net(bad=0)
        with told(), retrograd.catch(model) as c:
            train(model, 1)
        self.assertEqual("recorded" in c.folder.manifest, hasattr(_debug_mode.DebugMode, "save_logs"))


if __name__ == "__main__":
    unittest.main()
