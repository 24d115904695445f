"""What real loops showed: losses of every form, lines of helpers, exceptions in backward, models that cannot be followed, numbers that are read late."""
import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from unittest import mock

from support import InFolder, Net, PROGRAM, batch, retrograd, told, torch, unittest
from retrograd import _backend, _checks, _lines
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

F = torch.nn.functional
HERE = Path(__file__).name


class Words(torch.nn.Module):
    """Logits for each word of a text."""

    def __init__(self):
        super().__init__()
        self.table, self.head = torch.nn.Embedding(11, 6), torch.nn.Linear(6, 11)

    def forward(self, ids):
        return self.head(torch.tanh(self.table(ids)))


def spoiled(logits):
    """Infinite: all differences are 0."""
    return (logits - logits).log().sum()  # the fault


class SpoiledLoss:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, logits, labels):
        return F.cross_entropy(logits, labels, label_smoothing=0.1, ignore_index=3) + self.weight * spoiled(logits)


class Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Infinite(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient / 0


class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("never")


class Raising(Words):
    def forward(self, ids):
        return Raises.apply(super().forward(ids))


class Loop(InFolder):
    def caught(self, model, loss, inputs=lambda: torch.randint(0, 11, (2, 5)), steps=1, **options):
        """The folder of a loop with `loss(c, output, input)`."""
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with told() as text, retrograd.catch(model, optimizer, **options) as c:
            for _ in range(steps):
                x = inputs()
                optimizer.zero_grad()
                loss(c, model(x), x).backward()
                optimizer.step()
        self.text = text.getvalue()
        self.assertFalse(torch.overrides._get_current_function_mode_stack())
        return c.folder

    def graph(self, folder):
        return torch.export.load(folder.path / "step" / "model.pt2")

    def lines(self, folder):
        """Of each op, the innermost line of its stack."""
        found = {}
        for module in self.graph(folder).graph_module.modules():
            for node in getattr(module, "graph", torch.fx.Graph()).nodes:
                if node.op == "call_function" and node.meta.get("stack_trace"):
                    found.setdefault(str(node.target), []).append(_lines._FRAME.findall(node.meta["stack_trace"] + "\n")[-1])
        return found


class LossesInTheGraph(Loop):
    def assert_whole(self, folder, root="aten.log.default"):
        """The loss is in the graph: Retrograd finds the op of the loss, and PyTorch's gradients."""
        self.assertEqual(folder.manifest["cannot_replay"], [])
        self.assertEqual(folder.manifest["numbers"]["loss_again"], folder.manifest["numbers"]["loss"])
        self.assertIn(root, self.lines(folder))
        self.assertIn("the fault", self.lines(folder)[root][0][3])
        self.check_agrees(folder)

    def check_agrees(self, folder):
        if PROGRAM:
            walked = self.walk(folder)
            self.assertIn(HERE, walked.split("root:")[1], walked)

    def test_reshaped_sliced_shifted_and_cast(self):
        forms = {
            "flat": lambda c, out, x: c.loss(lambda a, b: F.cross_entropy(a, b) + spoiled(a), out.flatten(0, 1), x.flatten()),
            "shifted": lambda c, out, x: c.loss(SpoiledLoss(0.5), out[:, :-1].reshape(-1, 11), x[:, 1:].reshape(-1)),
            "cast": lambda c, out, x: c.loss(SpoiledLoss(0.5), out.double().transpose(1, 2), x),
            "chunks": lambda c, out, x: c.loss(SpoiledLoss(0.5), torch.stack(out.chunk(2, 0))[0].squeeze(0), x[0]),
        }
        for name, loss in forms.items():
            with self.subTest(name):
                self.assert_whole(self.caught(Words(), loss, path=name))

    def test_a_loss_that_was_computed_before(self):
        """c.loss(value), several losses, a loss that is scaled or written in place, and no c.loss at all."""
        def value(c, out, x):
            return c.loss(SpoiledLoss(0.5)(out.flatten(0, 1), x.flatten()))

        def several(c, out, x):
            return c.loss(F.cross_entropy, out.flatten(0, 1), x.flatten()) + c.loss(spoiled(out[..., :5]))

        def scaled(c, out, x):
            return c.loss(SpoiledLoss(0.5)(out.flatten(0, 1), x.flatten())) / 4

        def in_place(c, out, x):
            loss = SpoiledLoss(0.5)(out.flatten(0, 1), x.flatten())
            loss /= 4
            return c.loss(loss)

        def masked(c, out, x):
            out = out * 1
            out[x == 3] = 7.0
            return c.loss(spoiled(out))

        for loss in (value, several, scaled, in_place, masked):
            with self.subTest(loss.__name__):
                self.assert_whole(self.caught(Words(), loss, path=loss.__name__))

    def test_gradients_are_those_of_the_loop(self):
        """A scaled sum of losses, one of them without a name, and a penalty on the weights; a hook of the loop spoils another gradient."""
        model = Words()

        def loss(c, out, x):
            return (c.loss(F.cross_entropy, out.flatten(0, 1), x.flatten()) + 0.5 * out.float().square().mean() + 0.1 * sum(p.square().sum() for p in model.parameters())) / 8

        model.head.bias.register_hook(lambda gradient: torch.full_like(gradient, float("inf")))
        folder = self.caught(model, loss)
        from safetensors.torch import load_file

        values = load_file(folder.path / "step" / "ref.safetensors")
        for name in ("head.weight", "table.weight"):
            torch.testing.assert_close(values["grad.p." + name], model.get_parameter(name).grad)
        self.assertEqual(sorted(name for name in values if name.startswith(("out.", "cot."))), ["cot.1", "out.0", "out.1"])
        self.check(folder.path)

    def test_no_name_for_the_loss(self):
        """A plain loop: what backward is called on is the loss."""
        folder = self.caught(Words(), lambda c, out, x: F.cross_entropy(out.flatten(0, 1), x.flatten()) + spoiled(out))
        self.assertIn("the fault", self.lines(folder)["aten.log.default"][0][3])
        self.assertEqual(folder.manifest["cannot_replay"], [])

    def test_outputs_in_containers(self):
        @dataclasses.dataclass
        class Out:
            logits: torch.Tensor
            hidden: tuple

        class Tuple(Words):
            def forward(self, ids):
                logits = super().forward(ids)
                return Out(logits, (logits * 2, {"third": logits * 3}))

        self.assert_whole(self.caught(Tuple(), lambda c, out, x: c.loss(spoiled, out.hidden[1]["third"][0]) + out.logits.mean()))

    def test_what_cannot_be_part_of_the_graph_is_said(self):
        """A custom Function between model and loss has a backward that no graph holds: the graph ends at the outputs, with their gradients."""
        folder = self.caught(Words(), lambda c, out, x: c.loss(F.cross_entropy, Identity.apply(out).flatten(0, 1) * float("inf"), x.flatten()))
        (line,) = folder.manifest["cannot_replay"]
        self.assertIn("the loss: between the model's outputs and the loss lies Identity (a custom autograd.Function, ", line)
        self.assertIn(line, self.text)
        self.assertNotIn("aten.cross_entropy_loss.default", self.lines(folder))

    def test_a_custom_function_is_named_with_its_line(self):
        folder = self.caught(Words(), lambda c, out, x: Identity.apply(out).sum() * float("inf"))
        (line,) = folder.manifest["cannot_replay"]
        self.assertRegex(line, r"lies Identity \(a custom autograd.Function, .*reports_test.py:\d+ in backward\)")

    def test_a_loss_of_several_calls_of_the_model(self):
        """As of two texts that are compared: the folder has the call that the fault comes after. Where the fault is in an earlier call, it has that one."""
        def losses(model, spoil_first):
            first, second = (model(torch.randint(0, 11, (2, 5))).mean(-1) for _ in range(2))
            if spoil_first:
                first = spoiled(first)
            return (first - second) * (1 if spoil_first else 0)

        for where in ("later", "earlier"):
            model = Words()
            with told() as text, retrograd.catch(model, path=where) as c:
                difference = losses(model, where == "earlier")
                loss = difference.log().mean() if where == "later" else difference.mean()
                loss.backward()
            self.assertIn("1 other call(s) of the model in the same backward", text.getvalue())
            ops = self.lines(c.folder)
            if where == "later":
                self.assertIn("difference.log()", ops["aten.log.default"][0][3])
                self.check_agrees(c.folder)
            else:
                self.assertIn("this folder has call 1 of 2, and ends at its outputs", text.getvalue())

    def test_modes_of_the_loop_stay(self):
        """The loop's own modes are left as they were, in whatever order they begin and end."""
        model = Words()
        with told(), retrograd.catch(model) as c:
            with torch.device("cpu"):
                out = model(torch.randint(0, 11, (2, 5)))
            with torch.device("meta"):
                self.assertEqual(torch.ones(1).device.type, "meta")
            self.assertEqual(torch.ones(1).device.type, "cpu")
            compiled = torch.compile(lambda a: a.flatten(0, 1).square().mean(), backend="eager")
            c.loss(compiled, out).backward()
        self.assertEqual(torch.overrides._get_current_function_mode_stack(), [])
        self.assertIsNone(c.folder)


class Lines(Loop):
    def test_helpers_of_forward_and_of_the_loss(self):
        class Helped(Words):
            def forward(self, ids):
                logits = super().forward(ids)
                return logits, spoiled(logits)

        folder = self.caught(Helped(), lambda c, out, x: out[1])
        file, _, function, code = self.lines(folder)["aten.log.default"][0]
        self.assertEqual((Path(file).name, function), (HERE, "spoiled"))
        self.assertIn("the fault", code)
        self.assertTrue(all(_lines.owner(line["file"]) == "user" for line in folder.manifest["source"]), folder.manifest["source"])

    def test_a_model_without_a_line_has_the_line_that_calls_it(self):
        model = torch.nn.Sequential(torch.nn.Embedding(11, 6), torch.nn.Linear(6, 11))
        folder = self.caught(model, lambda c, out, x: c.loss(spoiled, out))
        self.assertIn("loss(c, model(x), x).backward()", self.lines(folder)["aten.linear.default"][0][3])

    def test_decorated_helpers_and_capture(self):
        def decorated(function):
            import functools

            @functools.wraps(function)
            def around(*args):
                return function(*args)
            return around

        @decorated
        def helper(logits):
            return logits.sin()  # here

        class Helped(Words):
            def forward(self, ids):
                return helper(super().forward(ids))

        folder = retrograd.capture(Helped(), torch.randint(0, 11, (2, 5)), loss=lambda out: F.cross_entropy(out.flatten(0, 1), torch.zeros(10, dtype=torch.long)))
        self.assertIn("# here", self.lines(folder)["aten.sin.default"][0][3])
        self.assertIn("retrograd.capture(", self.lines(folder)["aten.cross_entropy_loss.default"][0][3])

    def test_pytorchs_place_for_frames_is_there(self):
        from torch.fx.proxy import TracerBase

        self.assertTrue(callable(TracerBase._filter_traceback_frames))

    def test_graphs_of_dynamo(self):
        torch._dynamo.reset()
        _backend._recordings.clear()

        class Helped(Words):
            def forward(self, ids):
                return spoiled(super().forward(ids))

        with told():
            torch.compile(Helped(), backend="retrograd")(torch.randint(0, 11, (2, 5))).backward()
        manifest = retrograd.Folder(self.folder / "retrograd-compile").manifest
        self.assertTrue(any("the fault" in line["code"] for line in manifest["source"]))
        self.assertTrue(all(_lines.owner(line["file"]) == "user" for line in manifest["source"]), manifest["source"])


    def test_the_loss_of_a_model_with_a_graph_break(self):
        """What comes after the model has its own lines where the step is recorded, too, and never the line that calls backward."""
        class Branching(Words):
            def forward(self, ids):
                x = torch.tanh(self.table(ids))
                if x.mean().item() > 100:
                    x = -x
                return self.head(x)

        for form, loss in {"named": lambda c, out, x: c.loss(spoiled, out), "unnamed": lambda c, out, x: spoiled(out)}.items():
            with self.subTest(form):
                folder = self.caught(Branching(), loss, path=form)
                records = [json.loads(line) for line in (folder.recording / "ops.jsonl").read_text().splitlines()]
                frames = {record["id"]: record for record in records if record["k"] == "frame"}
                stacks = {record["id"]: frames[record["frames"][-1]] for record in records if record["k"] == "stack" and record["frames"]}
                at = {}
                for record in records:
                    if record["k"] == "op" and "stack" in record and record["op"] not in at:
                        at[record["op"]] = stacks[record["stack"]]
                self.assertIn("the fault", at["aten.log.default"]["code"])
                self.assertEqual(at["aten.log.default"]["function"], "spoiled")
                self.assertEqual((at["aten.addmm.default"]["function"], at["aten.addmm.default"]["code"]), ("forward", "return self.head(x)"))


class BranchInLoop(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if x.sum() > 0:  # depends on data
                x = x * 2
        return x


class LeftOut(Loop):
    def setUp(self):
        super().setUp()
        torch._dynamo.reset()
        _backend._listen()
        _backend._recordings.clear()

    def test_a_branch_in_a_loop_is_said(self):
        with told() as text:
            torch.compile(BranchInLoop(), backend="retrograd", options={"path": "here"})(torch.randn(2, 4)).sum().backward()
        self.assertRegex(text.getvalue(), r"forward \(.*reports_test.py:\d+\) runs in Python.*data-dependent branching, in a loop.*if x.sum\(\) > 0.*Next way: ")
        self.assertIn("runs in Python", retrograd.Folder(self.folder / "here").manifest["cannot_replay"][0])

    def test_other_backends_are_not_spoken_of(self):
        with told() as text:
            torch.compile(BranchInLoop(), backend="eager")(torch.randn(2, 4)).sum().backward()
        self.assertEqual(text.getvalue(), "")

    def test_checkpointed_regions_are_kept_by_the_backend(self):
        class Checkpointed(Words):
            def forward(self, ids):
                return checkpoint(super().forward, ids, use_reentrant=False)

        with told() as text:
            torch.compile(Checkpointed(), backend="retrograd")(torch.randint(0, 11, (2, 5))).sum().backward()
        folder = retrograd.Folder(self.folder / "retrograd-compile")
        self.assertEqual(folder.manifest["cannot_replay"], [], text.getvalue())
        graph = torch.export.load(folder.path / folder.manifest["graphs"][0]["model"]).graph
        self.assertTrue(any("tag_activation_checkpoint" in str(node.target) for node in graph.nodes))
        self.check_all(folder)

    def test_checkpointing_that_the_export_leaves_out_is_said(self):
        for reentrant in (False, True):
            class Checkpointed(Words):
                def forward(self, ids):
                    return self.head(checkpoint(torch.tanh, self.table(ids), use_reentrant=reentrant))

            with told() as text:
                folder = retrograd.capture(Checkpointed(), torch.randint(0, 11, (2, 5)), loss=lambda out: out.square().mean(), path=f"reentrant-{reentrant}")
            self.assertIn("checkpointing: torch.export leaves torch.utils.checkpoint out", folder.manifest["cannot_replay"][0])
            self.assertIn("checkpointing", text.getvalue())
            self.assertEqual(len(folder.manifest["cannot_replay"]), 1)
            from safetensors.torch import load_file

            values = load_file(folder.path / "step" / "ref.safetensors")
            self.assertEqual(sorted(name for name in values if name.startswith("grad.")), ["grad.p.head.bias", "grad.p.head.weight", "grad.p.table.weight"])
            self.check(folder.path)  # the graph's gradients pass the region

    def test_a_reentrant_region_without_an_input_that_is_differentiated_has_no_gradients(self):
        """As in PyTorch, which warns of it: its parameters get none."""
        class Cut(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

            def forward(self, x):
                return self.last(checkpoint(self.first, x, use_reentrant=True)).sum()

        model = Cut()
        model.first.weight.grad = torch.ones(4, 4)
        with told():
            folder = retrograd.capture(model, torch.randn(2, 4))
        self.check(folder.path)
        torch.testing.assert_close(model.first.weight.grad, torch.ones(4, 4))  # stays the loop's
        self.assertIsNone(model.last.weight.grad)

    def test_a_data_dependent_model(self):
        """It is recorded as it runs, and the message names the line at which the export stops."""
        folder = self.caught(BranchInLoop(), lambda c, out, x: c.loss(spoiled, out), lambda: torch.randn(2, 4))
        self.assertIn("weights and the batch are inside", self.text)
        self.assertRegex(self.text, r"Recorded, as torch.export cannot follow the step: .*reports_test.py:\d+ in forward: if x.sum\(\) > 0")
        self.assertEqual((folder.manifest["cannot_replay"], len(folder.manifest["export_failed"].splitlines())), ([], 1))
        self.assertTrue((folder.path / "export.log").read_text().strip())
        self.assertLess(max(len(line) for line in self.text.splitlines()), 900)


class Exceptions(Loop):
    def raising(self, model, loss, **options):
        with self.assertRaisesRegex(RuntimeError, "no gradient today") as raised:
            self.caught(model, loss, **options)
        return raised

    def hooked(self):
        model = Words()

        def fails(gradient):
            raise RuntimeError("no gradient today\nsecond line")

        model.head.weight.register_hook(fails)
        return model

    def test_an_exception_in_a_hook_is_written_once(self):
        with told() as text, self.assertRaisesRegex(RuntimeError, "no gradient today"), retrograd.catch(self.hooked()) as c:
            x = torch.randint(0, 11, (2, 5))
            c.loss(F.cross_entropy, c.model(x).flatten(0, 1), x.flatten()).backward()
        self.assertEqual([folder.manifest["failure"]["kind"] for folder in c.folders], ["exception"])
        self.assertEqual(text.getvalue().count("no gradient today"), 1)
        self.assertNotIn("second line", text.getvalue())
        self.assertIn("second line", c.folder.manifest["failure"]["message"])
        self.assertNotIn("walk-nan", text.getvalue())

    def test_an_exception_that_the_loop_handles_is_written(self):
        model = self.hooked()
        with told() as text, retrograd.catch(model) as c:
            for _ in range(2):
                try:
                    model(torch.randint(0, 11, (2, 5))).sum().backward()
                except RuntimeError:
                    pass
        self.assertEqual(c.folder.manifest["failure"]["kind"], "exception")
        self.assertEqual(len(c.folders), 1)

    def test_recomputation_that_differs(self):
        """A checkpointed model that routes otherwise when it is run again: CheckpointError."""
        class Routed(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.experts = torch.nn.ModuleList(torch.nn.Linear(6, 6) for _ in range(2))
                self.calls = 0

            def route(self, x):
                self.calls += 1
                chosen = (x.sum(1) + self.calls % 2 > 0.5).nonzero().squeeze(-1)
                return torch.zeros_like(x).index_add(0, chosen, self.experts[0](x[chosen]).tanh())

            def forward(self, x):
                return checkpoint(self.route, x, use_reentrant=False).square().sum()

        with self.assertRaises(torch.utils.checkpoint.CheckpointError), told() as text, retrograd.catch(Routed()) as c:
            c.model(torch.randn(20, 6)).backward()
        self.assertEqual(c.folder.manifest["failure"]["kind"], "exception")
        self.assertIn("CheckpointError", text.getvalue())

    def test_no_backward_followed_is_said_only_then(self):
        model = Net(bad=0)
        x, y = batch()
        for differentiated in (False, True):
            with told() as text, retrograd.catch(model, path=f"differentiated-{differentiated}") as c:
                loss = c.loss(F.cross_entropy, model(x), y)
                if differentiated:
                    loss.backward()
            self.assertEqual("no backward followed" in text.getvalue(), not differentiated)

    def test_a_loop_that_checks_the_loss_before_backward(self):
        """It raises, ends the program or goes on: the step is written, with the loss as far as it was seen, and the exception stays the loop's."""
        def step(model, ends):
            loss = spoiled(model(torch.randint(0, 11, (2, 5)))) * 0.5
            if not torch.isfinite(loss):
                ends()

        def raises():
            raise FloatingPointError("the loop's own")

        for name, ends in {"raise": raises, "exit": lambda: sys.exit("the loop's own"), "continue": lambda: None}.items():
            with self.subTest(name), told() as text:
                model = Words()
                try:
                    with retrograd.catch(model, path=name) as c:
                        step(model, ends)
                        model(torch.randint(0, 11, (2, 5)))
                except (FloatingPointError, SystemExit) as error:
                    self.assertEqual(str(error), "the loop's own")
                self.assertEqual(c.folder.manifest["failure"], {"kind": "nan_loss", "message": "the loss is -inf; no backward followed", "parameters": [], "parameters_total": 0})
                self.assertIn("the fault", self.lines(c.folder)["aten.log.default"][0][3])
                self.assertEqual(c.folder.manifest["numbers"]["loss_again"], "-inf")
                self.assertIn("no backward followed", text.getvalue())

    def test_a_loss_that_was_not_seen_before_the_exception_is_said(self):
        class Total(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.sum() * float("nan")

        with self.assertRaises(FloatingPointError), told() as text, retrograd.catch(Words()) as c:
            loss = Total.apply(c.model(torch.randint(0, 11, (2, 5))))
            raise FloatingPointError(loss.item())
        self.assertEqual(c.folders, [])
        self.assertRegex(text.getvalue(), r"step 0: FloatingPointError before a backward\. catch saw no loss .* c\.loss\(function, output, target\)")

    def test_a_backward_that_raises_has_no_gradients_to_compare(self):
        """`check` compares what there is, and misses no gradient."""
        with told(), self.assertRaises(RuntimeError), retrograd.catch(Raising()) as c:
            c.model(torch.randint(0, 11, (2, 5))).sum().backward()
        self.assertTrue(any("backward raises RuntimeError: never" in line for line in c.folder.manifest["cannot_replay"]))
        self.check(c.folder.path)

    def test_anomaly_mode_is_a_nan_with_a_root(self):
        """The exception of set_detect_anomaly: gradients to compare with are computed all the same."""
        with told(), self.assertRaises(RuntimeError), retrograd.catch(Words()) as c, torch.autograd.set_detect_anomaly(True):
            out = c.model(torch.randint(0, 11, (2, 5)))
            (out * 0).sqrt().sum().backward()  # the fault
        self.assertEqual((c.folder.manifest["failure"]["kind"], c.folder.manifest["open"]["at"]), ("nan_gradient", "root"))
        self.assertEqual(c.folder.manifest["cannot_replay"], [])
        if PROGRAM:
            self.assertIn("the fault", self.walk(c.folder).split("root:")[1])

    def test_a_transform_of_torch_func_is_said_once(self):
        model = Words()
        parameters = dict(model.named_parameters())
        with told() as text, retrograd.catch(model) as c:
            for _ in range(2):
                torch.func.grad(lambda own: torch.func.functional_call(model, own, (torch.randint(0, 11, (2, 5)),)).sum() * float("nan"))(parameters)
            spoiled(model(torch.randint(0, 11, (2, 5)))).backward()
        self.assertEqual(text.getvalue().count("within a transform of torch.func"), 1)
        self.assertEqual(c.folder.manifest["failure"]["kind"], "nan_loss")

    def test_a_nan_of_a_custom_backward_is_named(self):
        class Broken(Words):
            def forward(self, ids):
                return Infinite.apply(super().forward(ids))

        folder = self.caught(Broken(), lambda c, out, x: out.sum())
        (line,) = folder.manifest["cannot_replay"]
        self.assertRegex(line, r"the backward of Infinite \(.*reports_test.py:\d+ in backward\): torch.export leaves it out")

    def test_a_forgotten_scaler_is_named(self):
        for kind in (torch.float16, torch.bfloat16):
            with told() as text, retrograd.catch(Words(), path=str(kind)) as c:
                with torch.autocast("cpu", kind):
                    loss = F.cross_entropy(c.model(torch.randint(0, 11, (2, 5))).flatten(0, 1), torch.zeros(10, dtype=torch.long))
                (loss * float("inf")).backward()
            self.assertEqual("scaler=scaler" in text.getvalue(), kind == torch.float16 and c.folder.manifest["failure"]["kind"] != "nan_loss")

    def test_outputs_with_a_nan_and_no_loss_are_written(self):
        with self.assertRaises(FloatingPointError), told(), retrograd.catch(Net(bad=0)) as c:
            out = c.model(batch()[0])
            if out.isnan().any():
                raise FloatingPointError
        self.assertEqual(c.folder.manifest["failure"]["message"], "an output of the model has a NaN; no backward followed")
        self.assertIn("aten.log.default", self.lines(c.folder))

    def test_outputs_that_hold_a_tensor_twice(self):
        """Outputs of transformers are a dict and have attributes: the loop reads the one or the other."""
        from transformers.modeling_outputs import CausalLMOutput

        class Twice(Words):
            def forward(self, ids):
                return CausalLMOutput(loss=spoiled(super().forward(ids)))

        for read in (lambda out: out["loss"], lambda out: out.loss, lambda out: out[0]):
            folder = self.caught(Twice(), lambda c, out, x: read(out) / 2)
            self.assertEqual(folder.manifest["failure"]["message"], "the loss is -inf")
            self.assertEqual(folder.manifest["cannot_replay"], [])


class Numbers(Loop):
    def test_a_norm_that_overflows_names_the_gradients(self):
        model = torch.nn.Linear(4, 1)
        with told() as text, retrograd.catch(model) as c:
            (model(torch.ones(2, 4)).sum() * 3e25).backward()
        self.assertEqual((c.folder.manifest["failure"]["kind"], c.folder.manifest["open"]["at"]), ("nan_norm", "start"))
        self.assertIn("weight", c.folder.manifest["failure"]["parameters"])
        self.assertIn("the squares overflow in weight", text.getvalue())
        self.assertNotIn("first NaN", text.getvalue())
        self.assertNotIn("walk-nan", text.getvalue())

    def test_the_last_steps_and_the_optimizer(self):
        model = Net(bad=4)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, betas=(0.8, 0.9))
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        losses = []
        with told(), retrograd.catch(model, optimizer) as c:
            for _ in range(6):
                x, y = batch()
                optimizer.zero_grad()
                loss = c.loss(F.cross_entropy, model(x), y)
                losses.append(loss.item())
                loss.backward()
                optimizer.step()
                schedule.step()
        history = c.folder.manifest["history"]
        self.assertEqual([one["step"] for one in history], [0, 1, 2, 3, 4])
        for one, loss in zip(history[:4], losses):
            self.assertAlmostEqual(one["loss"], loss, places=5)
            self.assertGreater(one["gradient_norm"], 0)
        self.assertEqual([one["learning_rates"] for one in history], [[0.1 * 0.5 ** i] for i in range(5)])
        self.assertEqual(history[4]["loss"], "nan")
        described = c.folder.manifest["optimizer"]
        self.assertEqual((described["kind"], described["groups"][0]["betas"]), ("torch.optim.adamw.AdamW", [0.8, 0.9]))

    def test_a_spike_is_written_when_asked_for(self):
        for spike in (None, 10):
            model = torch.nn.Linear(6, 1)
            steps = iter(range(30))
            loss = lambda c, out, x: c.loss(out.square().mean() + (1000 if next(steps) == 20 else 1))
            folder = self.caught(model, loss, lambda: torch.randn(4, 6), 25, limits=retrograd.Limits(spike=spike), path=f"spike-{spike}")
            if spike is None:
                self.assertIsNone(folder)
                continue
            self.assertEqual((folder.manifest["failure"]["kind"], folder.manifest["step"], folder.manifest["open"]["at"]), ("spike", 20, "start"))
            self.assertIn("times the median of the last 20", self.text)

    def test_functions_and_hooks_are_named(self):
        class Custom(Words):
            def forward(self, ids):
                h = super().forward(ids)
                if h.requires_grad:
                    h.register_hook(lambda gradient: gradient.clamp(-1, 1))
                return Identity.apply(h)

        folder = retrograd.capture(Custom(), torch.randint(0, 11, (2, 5)), loss=lambda out: out.sum())
        found = {one["kind"]: one for one in folder.manifest["graphs"][0]["custom_backward"]}
        self.assertEqual(found["function"]["name"], "Identity")
        self.assertRegex(found["function"]["line"], rf"{HERE}:\d+ in backward")
        self.assertIn("h.register_hook", found["hook"]["line"])


class Scalars(TorchDispatchMode):
    """Counts the numbers that Python reads of tensors: on a GPU each waits for it."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        Scalars.count += function in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.is_nonzero.default, torch.ops.aten.equal.default)
        return function(*args, **(kwargs or {}))


class Late:
    """A background copy that is there when it is waited for; the order of events is kept."""

    events = []

    def __init__(self, numbers):
        self.numbers, self.waited = numbers, False
        Late.events.append("taken")

    def query(self):
        return self.waited

    def synchronize(self):
        self.waited = True
        Late.events.append("read")


class OnAGpu(Loop):
    """The order in which `catch` takes and reads numbers on a GPU, with a CPU in its place."""

    def setUp(self):
        super().setUp()
        Late.events = []
        for patch in (mock.patch.object(_checks, "copied_in_background", Late), mock.patch("retrograd._judge.on_gpu", lambda model: True)):
            patch.start()
            self.addCleanup(patch.stop)

    def test_nothing_is_read_before_the_update(self):
        model = Net(dropout=0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with told() as text, retrograd.catch(model, optimizer) as c:
            for step in range(4):
                x, y = batch()
                optimizer.zero_grad()
                if step:
                    Scalars.count = 0
                    with Scalars():
                        c.loss(F.cross_entropy, model(x), y).backward()
                    self.assertEqual(Scalars.count, 0)
                    self.assertEqual(Late.events[-1], "taken")
                else:
                    c.loss(F.cross_entropy, model(x), y).backward()
                optimizer.step()
                Late.events.append("updated")
        self.assertEqual(Late.events, ["taken", "updated"] + ["taken", "read", "updated"] * 3 + ["read"])
        self.assertRegex(text.getvalue(), r"keeps a copy of the weights on the GPU \(\d+ B\)")
        self.assertIsNone(c.folder)

    def test_the_weights_are_those_from_before_the_update(self):
        model = Net(bad=2, dropout=0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        before = {}
        with told(), retrograd.catch(model, optimizer) as c:
            for step in range(5):
                x, y = batch()
                before[step] = {name: p.detach().clone() for name, p in model.named_parameters()}
                optimizer.zero_grad()
                c.loss(F.cross_entropy, model(x), y).backward()
                optimizer.step()
                after = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.assertEqual((c.folder.manifest["step"], c.folder.manifest["cannot_replay"]), (2, []))
        for name, tensor in torch.export.load(c.folder.path / "step" / "model.pt2").state_dict.items():
            if name in before[2]:
                torch.testing.assert_close(tensor, before[2][name], rtol=0, atol=0)
        for name, p in model.named_parameters():
            torch.testing.assert_close(p, after[name], equal_nan=True)

    def test_without_room_for_a_copy_each_update_waits(self):
        model = Net(bad=2, dropout=0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with told() as text, retrograd.catch(model, optimizer, limits=retrograd.Limits(weights_bytes=10)) as c:
            for step in range(3):
                x, y = batch()
                optimizer.zero_grad()
                c.loss(F.cross_entropy, model(x), y).backward()
                self.assertEqual(len(c.folders), int(step == 2))
                optimizer.step()
        self.assertIn("each update waits for the check before it", text.getvalue())

    def test_the_last_step_is_read_when_the_loop_ends(self):
        model = Net(bad=0, dropout=0)
        with told(), retrograd.catch(model) as c:
            x, y = batch()
            c.loss(F.cross_entropy, model(x), y).backward()
            self.assertEqual(c.folders, [])
        self.assertEqual(c.folder.manifest["failure"]["kind"], "nan_loss")

    def test_commands_and_generators_of_a_gpu(self):
        from retrograd._state import Generators
        from retrograd._folder import FolderWriter, Limits

        state = torch.tensor(list((1234).to_bytes(8, "little") + (40).to_bytes(8, "little")), dtype=torch.uint8)
        self.assertEqual(Generators(torch.get_rng_state(), {1: state}).philox(), {"cuda:1": {"seed": 1234, "offset": 40}})
        writer = FolderWriter(self.folder / "gpu", Limits())
        writer.graphs.append({"name": "step", "model": "step/model.pt2", "devices": ["cpu", "cuda:0"]})
        folder = writer.finish({"kind": "catch", "open": {"graph": "step", "at": "root"}})
        self.assertIn("check gpu --device cuda", folder.headless())
        self.assertIn("debug gpu -c walk-nan --device cuda", folder.headless())


if __name__ == "__main__":
    unittest.main()
