"""retrograd.capture and retrograd.compare."""
import copy
import subprocess
import sys

from support import InFolder, Net, batch, retrograd, run, told, torch, unittest, PROGRAM


class Package(unittest.TestCase):
    def test_the_command_does_not_wait_for_torch(self):
        subprocess.run([sys.executable, "-c", "import sys, retrograd._program; assert 'torch' not in sys.modules"], check=True)

    def test_each_public_name_is_there(self):
        for name in retrograd.__all__:
            self.assertEqual(getattr(retrograd, name).__name__, name)
        self.assertLess(set(retrograd.__all__), set(dir(retrograd)))
        with self.assertRaisesRegex(AttributeError, "capure"):
            retrograd.capure


class Capture(InFolder):
    def test_step_with_a_loss_passes_check(self):
        model, (x, y) = Net(), batch()
        folder = retrograd.capture(model, x, loss=lambda logits: torch.nn.functional.cross_entropy(logits, y))
        manifest = folder.manifest
        self.assertEqual(manifest["kind"], "capture")
        self.assertEqual([graph["mode"] for graph in manifest["graphs"]], ["train"])
        self.assertEqual(manifest["cannot_replay"], [])
        self.assertTrue(any("relu" in line["code"] for line in manifest["source"]), manifest["source"])
        self.check(folder.path)

    def test_draws_are_those_of_the_script(self):
        """The state of the generator is kept: dropout draws the same mask, so that the loss is the same."""
        model, (x, y) = Net(), batch()
        torch.rand(17)
        before = torch.get_rng_state()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        torch.set_rng_state(before)
        folder = retrograd.capture(model, x, loss=lambda logits: torch.nn.functional.cross_entropy(logits, y))
        self.assertAlmostEqual(folder.manifest["graphs"][0]["numbers"]["out.0"], loss.item(), places=6)

    def test_nothing_is_changed(self):
        model, (x, _) = Net(), batch()
        x.requires_grad_()
        state, generator = copy.deepcopy(model.state_dict()), torch.get_rng_state()
        folder = retrograd.capture(model, x)
        self.assertTrue(torch.equal(generator, torch.get_rng_state()))
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, state[name]), name)
        self.assertTrue(all(p.grad is None for p in model.parameters()) and x.grad is None and model.training)
        self.check(folder.path)

    def test_names_are_the_models_own(self):
        class Named(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.head = torch.nn.Linear(4, 2)

            def forward(self, features, *, mask, extra=None):
                return {"logits": self.head(features * mask["left"]) + extra[0]}

        folder = retrograd.capture(Named(), torch.randn(3, 4), mask={"left": torch.ones(3, 4)}, extra=[torch.ones(2), "text"])
        program = torch.export.load(folder.path / "step" / "model.pt2")
        self.assertEqual(list(program.graph_signature.user_inputs), ["features", "mask_left", "extra_0"])
        self.assertEqual(sorted(program.state_dict), ["head.bias", "head.weight"])
        self.check(folder.path)

    def test_a_step_that_cannot_run_is_refused(self):
        with self.assertRaisesRegex(retrograd.CaptureError, "the step cannot run: .*shapes"):
            retrograd.capture(torch.nn.Linear(3, 2), torch.ones(2, 4))
        self.assertFalse(any((self.folder / "retrograd-capture").iterdir()))

    def test_limits(self):
        """Weights that do not fit are left out, and the folder says so; a batch that does not fit is refused."""
        folder = retrograd.capture(torch.nn.Linear(1000, 1000), torch.randn(2, 1000), limits=retrograd.Limits(folder_bytes=3 << 20))
        self.assertTrue(any("the weights" in line for line in folder.manifest["cannot_replay"]))
        self.assertLess(sum(file.stat().st_size for file in folder.path.rglob("*") if file.is_file()), 3 << 20)
        with self.assertRaises(retrograd.CaptureError):
            retrograd.capture(torch.nn.Linear(1000, 1000), torch.randn(2, 1000), limits=retrograd.Limits(folder_bytes=1000))

    def test_a_taken_name_gets_a_number(self):
        first, second = (retrograd.capture(torch.nn.Linear(2, 2), torch.ones(1, 2), path="here") for _ in range(2))
        self.assertEqual((first.path.name, second.path.name), ("here", "here-2"))

    def test_autocast_is_kept(self):
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
        with torch.autocast("cpu", torch.bfloat16):
            folder = retrograd.capture(model, torch.randn(4, 8), loss=lambda out: out.float().square().mean())
        self.assertEqual(folder.manifest["graphs"][0]["autocast"], "cpu: bfloat16")
        self.check(folder.path)

    def test_without_a_display_open_prints_commands(self):
        if not PROGRAM:
            self.skipTest("RETROGRAD names no program")
        import contextlib, io, os
        from unittest import mock

        folder, text = retrograd.capture(torch.nn.Linear(2, 2), torch.ones(1, 2)), io.StringIO()
        with mock.patch.dict(os.environ), contextlib.redirect_stdout(text):
            for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
                os.environ.pop(name, None)
            self.assertIsNone(folder.open())
        self.assertIn("retrograd check retrograd-capture/Linear", text.getvalue())


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Compare(InFolder):
    def test_C6_models_that_cannot_be_exported_are_compared_as_they_ran(self):
        class Branches(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

            def forward(self, x):
                h = torch.tanh(self.first(x))
                return self.last(h * 2 if h.sum() > 0 else h)

        a = Branches()
        b = copy.deepcopy(a)
        x = torch.randn(2, 4)
        self.assertTrue(retrograd.compare(a, b, x).equal)
        with torch.no_grad():
            b.last.weight[0, 0] += 1
        found = retrograd.compare(a, b, x)
        self.assertFalse(found.equal)
        self.assertRegex(found.first_divergence["op"], "aten.(t|addmm).default")
        self.assertIn("/recorded", found.command)

    def test_names_the_first_op(self):
        a = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 4), torch.nn.GELU())
        b = copy.deepcopy(a)
        x = torch.randn(2, 4)
        self.assertTrue(retrograd.compare(a, b, x).equal)
        with torch.no_grad():
            b[2].weight[0, 0] += 1
        found = retrograd.compare(a, b, (x,))
        self.assertFalse(found.equal)
        self.assertRegex(found.first_divergence["op"], "aten.(t|linear).default")  # the changed weight, as its first reader sees it


if __name__ == "__main__":
    unittest.main()
