"""K19: recording changes nothing. A few of the cases that scripts/check-recording compares; all of them take half an hour."""
import contextlib
import json
import subprocess
import sys
from pathlib import Path

import numpy
from support import PROGRAM, InFolder, retrograd, run, told, torch, unittest

SWEEP = Path(__file__).resolve().parent.parent / "recording" / "main.py"


class Recording(InFolder):
    def swept(self, *arguments):
        done = subprocess.run([sys.executable, SWEEP, "--samples", "2", "--folder", self.folder / "swept", *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(": 0 differ with the recorder; ", done.stdout)

    def test_K19_a_few_cases_of_each_kind(self):
        self.swept("--few", "--seed", "1")

    def test_K19_what_was_seen_to_differ(self):
        self.swept("--only", "custom ops", "prod, float32", "prod, autocast", "masked_fill, float32", "linalg.det, float32", "linalg.eig, autocast", "ormqr, float32", "bilinear, autocast",
                   "linalg.polar, autocast", "pinverse, complex", "corrcoef, complex", "scalers", "optimizers")

    def recorded(self, path, step):
        with told(), retrograd.record(path):
            step()
        return json.loads((Path(path) / "retrograd.json").read_text()), [json.loads(line) for line in (Path(path) / "ops.jsonl").read_text().splitlines()]

    def test_K19_a_node_that_asks_whether_ops_are_seen_is_recorded_whole(self):
        x = torch.randn(3, 4, requires_grad=True)
        _, records = self.recorded("whole", lambda: (x.sin().prod(-1) * 2).sum().backward())
        whole = next(one for one in records if one.get("op") == "node.ProdBackward1")
        self.assertIn("ran whole", whole["opaque"])
        forward = next(one for one in records if one.get("op") == "aten.prod.dim_int")
        self.assertEqual(whole["of"], forward["n"])
        if PROGRAM:
            code, text = run("check", "whole")
            self.assertEqual(code, 2, text)  # there is no parameter whose gradient could be judged
            self.assertIn(", 0 differ", text)
            self.assertIn("of an op that cannot run again", text)

    def test_K19_an_error_in_such_a_node_leaves_the_recorder_on(self):
        def step():
            x = torch.eye(3, requires_grad=True)
            vectors = torch.linalg.eig(x + torch.tensor([[0.0, 1, 0], [-1, 0, 0], [0, 0, 0]]))[1]
            with contextlib.suppress(RuntimeError):
                vectors.real.sum().backward()
            torch.ones(2, requires_grad=True).prod().cos().backward()

        _, records = self.recorded("raised", step)
        self.assertTrue([one for one in records if one.get("op") == "aten.cos.default"])
        self.assertTrue([one for one in records if one.get("op") == "node.ProdBackward0"])

    def test_K19_autocast_is_recorded_as_it_was_where_an_op_was_called(self):
        def step():
            x = torch.randn(4, 4, requires_grad=True)
            with torch.autocast("cpu", torch.bfloat16):
                y = x @ x
            y.sum().backward()

        _, records = self.recorded("cast", step)
        self.assertEqual([one["autocast"] for one in records if one["k"] == "mode"][:3:2], [{}, {}])
        self.assertIn({"cpu": "bfloat16"}, [one["autocast"] for one in records if one["k"] == "mode"])


class Names(InFolder):
    """K13: names are the model's."""

    def test_K13_a_model_that_was_not_given_is_found_when_it_runs(self):
        for number, given in enumerate(({"optimizer": True}, {})):
            model = torch.nn.Sequential()
            model.add_module("first", torch.nn.Linear(4, 4))
            model.add_module("last", torch.nn.Linear(4, 2))
            optimizer = torch.optim.Adam(model.parameters())
            other = torch.nn.Linear(4, 4)  # runs first, and is none of the optimizer's
            with told(), retrograd.record(f"rec{number}", optimizer=optimizer if given else None):
                x = other(torch.randn(3, 4)).detach() if given else torch.randn(3, 4)
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
            manifest = json.loads(Path(f"rec{number}/retrograd.json").read_text())
            self.assertEqual(manifest["optimized"], ["first.bias", "first.weight", "last.bias", "last.weight"])
            records = [json.loads(line) for line in Path(f"rec{number}/ops.jsonl").read_text().splitlines()]
            self.assertFalse([one for one in records if "group0" in str(one.get("name")) or "group0" in str(one.get("accumulates"))])
            self.assertIn("last.weight", [one.get("accumulates") for one in records])


class Memory(InFolder):
    """K9: memory that others write."""

    def recorded(self, step):
        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with told(), retrograd.record("rec", model=model, optimizer=optimizer):
            step(model, optimizer)
        return [json.loads(line) for line in Path("rec/ops.jsonl").read_text().splitlines()]

    def passes(self):
        if PROGRAM:
            code, text = run("check", "rec")
            self.assertEqual(code, 0, text)

    def test_K9_a_batch_of_numpy_is_kept_as_it_was_read(self):
        def step(model, optimizer):
            batch = numpy.ones((2, 4), dtype="float32")
            for _ in range(2):
                x = torch.from_numpy(batch)
                batch *= 3
                optimizer.zero_grad()
                model(x).square().mean().backward()
                batch += 1  # after it was read
                optimizer.step()

        records = self.recorded(step)
        self.assertGreaterEqual(len([one for one in records if one["k"] == "external"]), 2)
        self.passes()

    def test_K9_large_memory_of_others_is_looked_at_where_it_is_read(self):
        def step(model, optimizer):
            batch = numpy.ones((8192, 4), dtype="float32")
            x = torch.from_numpy(batch)
            (model(x).mean() + x.sum()).backward()
            batch *= 2
            model(x).mean().backward()

        self.assertEqual(len([one for one in self.recorded(step) if one["k"] == "external"]), 1)
        self.passes()

    def test_K9_a_write_by_numpy_has_its_line(self):
        def step(model, optimizer):
            out = model(torch.ones(2, 4)).softmax(-1)
            out.detach().numpy()[...] = 0.5  # written by numpy
            out.sum().backward()

        records = self.recorded(step)
        external = next(one for one in records if one["k"] == "external")
        frames, stacks = ({one["id"]: one for one in records if one["k"] == kind} for kind in ("frame", "stack"))
        self.assertIn("written by numpy", frames[stacks[external["stack"]]["frames"][-1]]["code"])


if __name__ == "__main__":
    unittest.main()
