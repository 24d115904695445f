"""torch.compile(model, backend="retrograd"), through the installed entry point, and the graphs between graph breaks."""
import json

from support import InFolder, batch, retrograd, told, torch, unittest
from retrograd import _backend

F = torch.nn.functional


class Breaks(torch.nn.Module):
    """Two graphs with a graph break between them."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        self.norm = torch.nn.BatchNorm1d(8)

    def forward(self, x):
        h = torch.relu(self.norm(self.first(x)))
        torch._dynamo.graph_break()
        h = h * 2
        return self.last(F.dropout(h, 0.5, self.training))


class Nested(torch.nn.Module):
    """The graph break lies in a submodule: its graphs still have the names of the whole model."""

    def __init__(self):
        super().__init__()
        self.inner, self.head = Breaks(), torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.head(self.inner(x))


class Backend(InFolder):
    def setUp(self):
        super().setUp()
        torch._dynamo.reset()
        _backend._recordings.clear()

    def compile(self, model, **options):
        return torch.compile(model, backend="retrograd", **({"options": options} if options else {}))

    def train(self, model, compiled, steps=1):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(steps):
            x, y = batch()
            optimizer.zero_grad()
            F.cross_entropy(compiled(x), y).backward()
            optimizer.step()

    def manifest(self, name="retrograd-compile"):
        return json.loads((self.folder / name / "retrograd.json").read_text())

    def test_is_listed(self):
        self.assertIn("retrograd", torch._dynamo.list_backends())

    def test_each_graph_once(self):
        model = Breaks()
        with told() as text:
            self.train(model, self.compile(model), 3)
        manifest = self.manifest()
        self.assertEqual(manifest["kind"], "compile")
        self.assertEqual(len(manifest["graphs"]), 2, manifest)
        self.assertEqual(text.getvalue().count("graphs of torch.compile are saved in retrograd-compile"), 1)
        self.assertEqual(manifest["cannot_replay"], [])
        self.check_all(retrograd.Folder(self.folder / "retrograd-compile"))

    def test_runs_as_eager(self):
        results = []
        for compiled in (False, True):
            torch.manual_seed(3)
            model = Breaks()
            with told():
                self.train(model, self.compile(model) if compiled else model, 3)
            results.append(model.state_dict())
        for name in results[0]:
            self.assertTrue(torch.equal(results[0][name], results[1][name]), name)

    def test_names_are_the_models(self):
        model = Nested()
        with told():
            self.train(model, self.compile(model))
        names = set()
        for graph in self.manifest()["graphs"]:
            names |= set(torch.export.load(self.folder / "retrograd-compile" / graph["model"]).state_dict)
        self.assertEqual(names, set(model.state_dict()))
        self.check_all(retrograd.Folder(self.folder / "retrograd-compile"))

    def test_real_cotangents(self):
        """The gradients of a graph's parameters are those of the loop."""
        from safetensors.torch import load_file

        model = Breaks()
        x, y = batch()
        with told():
            F.cross_entropy(self.compile(model)(x), y).backward()
        seen = 0
        for graph in self.manifest()["graphs"]:
            for name, tensor in load_file(self.folder / "retrograd-compile" / graph["values"]).items():
                if name.startswith("grad.p."):
                    torch.testing.assert_close(tensor, model.get_parameter(name.removeprefix("grad.p.")).grad)
                    seen += 1
        self.assertEqual(seen, 6)

    def test_lines_of_python(self):
        model = Breaks()
        with told():
            self.train(model, self.compile(model))
        code = [line["code"] for line in self.manifest()["source"]]
        self.assertTrue(any("self.norm(self.first(x))" in line for line in code), code)

    def test_without_gradients(self):
        model = Breaks().eval()
        with told(), torch.no_grad():
            self.compile(model)(batch()[0])
        self.assertEqual(len(self.manifest()["graphs"]), 2)
        self.check_all(retrograd.Folder(self.folder / "retrograd-compile"))

    def test_limits(self):
        model = Breaks()
        with told() as text:
            self.train(model, self.compile(model, path="here", limits=retrograd.Limits(graphs=1)))
        self.assertEqual(len(self.manifest("here")["graphs"]), 1)
        self.assertIn("more than 1 graphs", text.getvalue())

    def test_a_new_shape_is_a_new_graph(self):
        model = torch.nn.Linear(6, 3)
        compiled = self.compile(model)
        with told():
            for n in (4, 5):
                compiled(torch.randn(n, 6)).sum().backward()
        self.assertEqual(len(self.manifest()["graphs"]), 2)
        self.check_all(retrograd.Folder(self.folder / "retrograd-compile"))

    def test_an_output_used_inside_too(self):
        """A graph's output that later ops of the same graph read: its cotangent is what comes from outside alone."""
        def step(w, x):
            h = w * x
            return h, (h * h).sum()

        w = torch.ones(3, requires_grad=True)
        with told():
            h, total = torch.compile(step, backend="retrograd")(w, torch.arange(3.0))
            (h.sum() + total).backward()
        self.check_all(retrograd.Folder(self.folder / "retrograd-compile"))
        torch.testing.assert_close(w.grad, torch.tensor([0.0, 3.0, 10.0]))


if __name__ == "__main__":
    unittest.main()
