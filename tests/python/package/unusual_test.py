"""retrograd.catch in loops of unusual form. The fault is a row of zeros under a root, whose derivative is infinite there."""
import dataclasses
from unittest import mock

from support import InFolder, Net, batch, retrograd, told, torch, unittest
from torch.optim import optimizer as optimizers
from torch.utils.checkpoint import checkpoint


class Root(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 3, bias=False)

    def forward(self, x):
        return self.first(x).square().sum(1).sqrt()


@dataclasses.dataclass(frozen=True)
class Batch:
    x: torch.Tensor
    name: str = "train"


@dataclasses.dataclass
class Output:
    loss: torch.Tensor
    roots: torch.Tensor


class OfDataclasses(Root):
    def forward(self, batch):
        roots = super().forward(batch.x)
        return Output(roots.sum(), roots)


class Opaque:
    """An object whose tensors nobody knows of."""

    def __init__(self, tensor):
        self.tensor = tensor


def rows(bad):
    """A batch, with a row of zeros where it is to be bad."""
    x = torch.randn(4, 6)
    return torch.cat([x[:3], torch.zeros(1, 6)]) if bad else x


class Unusual(InFolder):
    def caught(self, model, loss, steps=3, watched=None, **options):
        """The folder of a loop whose last step, 2, is bad. `loss(model, x)`."""
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with told() as text, retrograd.catch(watched or model, **options) as c:
            for step in range(steps):
                optimizer.zero_grad()
                loss(model, rows(step == 2)).backward()
                optimizer.step()
        self.text = text.getvalue()
        return c.folder

    def assert_shows(self, folder):
        """It is the folder of step 2; Retrograd finds the root in it, and PyTorch's gradients."""
        self.assertIsNotNone(folder, self.text)
        self.assertEqual(folder.manifest["step"], 2)
        self.assertIn("aten.sqrt", self.walk(folder).split("root:")[1])
        self.check(folder.path)

    def test_two_calls_in_one_backward(self):
        """As in a GAN: the folder has the call that made the NaN, be it the first or the second, and says that there was another."""
        for bad in (1, 2):
            def loss(model, x):
                sound = rows(False)
                return (model(x if bad == 1 else sound) + model(x if bad == 2 else sound)).sum()

            folder = self.caught(Root(), loss, path=f"call{bad}")
            self.assert_shows(folder)
            (line,) = folder.manifest["cannot_replay"]
            self.assertTrue(line.startswith(f"1 other call(s) of the model in the same backward: this folder has call {bad} of 2"), line)

    def test_dataclasses_in_and_out(self):
        folder = self.caught(OfDataclasses(), lambda model, x: model(Batch(x)).loss)
        self.assert_shows(folder)
        self.assertEqual(folder.manifest["cannot_replay"], [])
        self.assertEqual(list(torch.export.load(folder.path / "step" / "model.pt2").graph_signature.user_inputs), ["batch_x"])

    def test_output_of_an_unknown_kind_is_seen_at_the_update(self):
        class Hides(Root):
            def forward(self, x):
                return Opaque(super().forward(x))

        folder = self.caught(Hides(), lambda model, x: model(x).tensor.sum())
        self.assertIn("step 2: the gradient of first.weight has a NaN or Inf", self.text)
        self.assertIn("returns an object of class Opaque, in which no tensor is found", self.text)
        self.assertEqual(folder.manifest["step"], 2)

    def test_layers_that_are_released_or_added_in_the_loop(self):
        model = Root()
        model.requires_grad_(False)

        def loss(model, x):
            if model.first.weight.requires_grad is False:
                model.first = torch.nn.Linear(6, 3, bias=False)
            return model(x).sum()

        self.assert_shows(self.caught(model, loss))

    def test_compiled_in_place(self):
        model = Root()
        model.compile(backend="eager")
        compiled = model._compiled_call_impl
        self.assert_shows(self.caught(model, lambda model, x: model(x).sum()))
        self.assertIs(model._compiled_call_impl, compiled)

    def test_the_whole_model_is_a_checkpoint(self):
        for reentrant in (False, True):
            self.assert_shows(self.caught(Root(), lambda model, x: checkpoint(model, x.requires_grad_(), use_reentrant=reentrant).sum(), path=f"reentrant-{reentrant}"))

    def test_one_within_the_other(self):
        """Neither takes what the other runs to write its folder for a step."""
        outer = torch.nn.Sequential(Root())
        with retrograd.catch(outer[0], path="inner") as inner:
            self.assert_shows(self.caught(outer, lambda model, x: model(x).sum()))
        self.assertIsNotNone(inner.folder)
        self.assertEqual(inner.folder.manifest["step"], 2)

    def test_sparse_gradient(self):
        class Embeds(Root):
            def __init__(self):
                super().__init__()
                self.table = torch.nn.Embedding(5, 6, sparse=True)

            def forward(self, x):
                return super().forward(x + self.table(torch.tensor([0, 1, 1, 2])) * x)

        self.assert_shows(self.caught(Embeds(), lambda model, x: model(x).sum()))

    def test_norm_of_scaled_gradients_may_overflow(self):
        class Scaler:
            def get_scale(self):
                return 2.0**40

        model = torch.nn.Linear(4, 1)
        with told(), retrograd.catch(model, scaler=Scaler()) as c:
            (model(torch.ones(2, 4)).sum() * 3e25).backward()
        self.assertIsNone(c.folder)

    def test_nan_that_is_not_the_models(self):
        """A hook of the loop spoils a gradient: the graph cannot show that, and the recording does."""
        model = Root()
        model.first.weight.register_hook(lambda gradient: gradient * float("nan"))
        folder = self.caught(model, lambda model, x: model(x).sum())
        self.assertEqual(folder.manifest["step"], 0)
        self.assertEqual((folder.manifest["cannot_replay"], folder.manifest["open"]), ([], {"recording": "recorded", "at": "root"}))

    def test_no_room(self):
        model = Root()
        self.assertIsNone(self.caught(model, lambda model, x: model(x).sum(), steps=5, limits=retrograd.Limits(folder_bytes=1000)))
        self.assertIn("It could not be saved: NoSpace", self.text)
        self.assertEqual([path.name for path in self.folder.rglob("*")], ["retrograd-catch"])

    def test_path_is_a_file(self):
        """That is said before the training, not after it."""
        (self.folder / "taken").write_text("")
        with self.assertRaises(NotADirectoryError):
            retrograd.catch(Root(), path="taken")

    def test_interrupted(self):
        model = Net()
        with self.assertRaises(KeyboardInterrupt), retrograd.catch(model) as c:
            model(batch()[0]).sum().backward()
            raise KeyboardInterrupt
        self.assertEqual((c.folders, len(model._forward_hooks), len(model._forward_pre_hooks)), ([], 0, 0))
        self.assertFalse(optimizers._global_optimizer_pre_hooks or optimizers._global_optimizer_post_hooks)

    def test_an_error_of_its_own_does_not_end_the_loop(self):
        model = Root()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        steps = 0
        with told() as text, mock.patch("retrograd._checks.norms", side_effect=ValueError("unforeseen")), retrograd.catch(model):
            for _ in range(3):
                optimizer.zero_grad()
                model(rows(False)).sum().backward()
                optimizer.step()
                steps += 1
        self.assertEqual(steps, 3)
        self.assertEqual(text.getvalue().count("catch stops watching, the loop goes on: ValueError: unforeseen"), 1)


if __name__ == "__main__":
    unittest.main()
