"""Recordings of two commits: which ops are paired, which differ, and which is to blame (Q1, Q6)."""
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from support import PROGRAM, unittest

COMPARE = Path(__file__).resolve().parent.parent / "compare" / "main.py"
# Two versions of one training script: VERSION's statements differ from A's in one place.
SCRIPT = """
import sys
import torch
import torch.nn.functional as F
import retrograd

VERSION, OUT = sys.argv[1:3]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)
        self.norm = torch.nn.LayerNorm(8, eps=1e-3 if VERSION == "eps" else 1e-5)

    def forward(self, x):
        h = F.relu(self.a(x))
        if VERSION == "scaled":
            h = h * 1.01
        h = self.norm(F.relu(self.b(h)))
        if VERSION == "cast":
            h = h.bfloat16().float()
        if VERSION != "unmasked":
            h = h.masked_fill(h < -1, 0)
        return self.c(h)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), 0.2 if VERSION == "rate" else 0.1)
x, y = torch.randn(6, 8), torch.tensor([0, 1, 2, 0, 1, 2])
if VERSION == "fewer":
    x, y = x[:4], y[:4]
with retrograd.record(OUT, model=model, optimizer=optimizer):
    for step in range(2):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""

# A block with a mask that is drawn, which is run again in the backward in one of several ways, or not.
CHECKPOINTS = """
import sys
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
import retrograd

VERSION, OUT = sys.argv[1:3]


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.down = torch.nn.LayerNorm(8), torch.nn.Linear(16, 8)
        self.up, self.shift = torch.nn.Parameter(torch.randn(8, 16) / 3), torch.nn.Parameter(torch.zeros(16))

    def forward(self, x):
        h = torch.addmm(self.shift, self.norm(x).flatten(0, 1), self.up).unflatten(0, x.shape[:2])
        return x + F.dropout(self.down(F.gelu(h)), 0.2)


torch.manual_seed(0)
model = torch.nn.ModuleList([torch.nn.Linear(4, 8), Block(), Block(), torch.nn.Linear(8, 3)])
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x, y = torch.randn(6, 5, 4), torch.randint(0, 3, (6, 5))
with retrograd.record(OUT, model=model, optimizer=optimizer):
    for step in range(2):
        optimizer.zero_grad()
        h = model[0](x)
        for block in (model[1], model[2]):
            if VERSION == "none":
                h = block(h)
            else:
                h = checkpoint(block, h, use_reentrant="reentrant" in VERSION, preserve_rng_state="redrawn" not in VERSION)
        F.cross_entropy(model[3](h).flatten(0, 1), y.flatten()).backward()
        optimizer.step()
"""

# A sum in one order or the other, and a softmax that makes much of the last digit.
ORDER = """
import sys
import torch
import retrograd

VERSION, OUT = sys.argv[1:3]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 1)

    def forward(self, x):
        a, b, c = (0.3 + 1e-5 * part(x) for part in (self.a, self.b, self.c))
        h = a + (b + c) if VERSION == "other" else (a + b) + c
        p = torch.softmax(h * 1e5, -1)
        return self.head(p)


torch.manual_seed(3)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.randn(64, 8)
with retrograd.record(OUT, model=model, optimizer=optimizer):
    model(x).square().mean().backward()
    optimizer.step()
"""


class Recorded(unittest.TestCase):
    script = SCRIPT

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name) / "train.py"
        cls.path.write_text(textwrap.dedent(cls.script))
        cls.made = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def recorded(self, version):
        if version not in self.made:
            out = Path(self.folder.name) / version
            subprocess.run([sys.executable, self.path, version, out], check=True, capture_output=True)
            self.made[version] = out
        return self.made[version]

    def json(self, command, a, b):
        done = subprocess.run([PROGRAM, command, self.recorded(a), self.recorded(b), "--format", "json"], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, json.loads(done.stdout)

    def line_of(self, text):
        return f"train.py:{[text in line for line in self.script.splitlines()].index(True) + 1} in forward"

    def faults(self, a, b):
        code, found = self.json("compare", a, b)
        faults = [claim for claim in found["report"]["claims"] if claim["severity"] == "fault"]
        self.assertEqual(code, 1 if faults else 0, found["report"])
        return faults


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Pairs(Recorded):
    def test_diff_names_the_op_that_was_inserted_with_its_line(self):
        code, found = self.json("diff", "A", "scaled")
        self.assertEqual(code, 1)
        added = [row["b"] for row in found["rows"] if row["kind"] == "only_b"]
        self.assertEqual(len(added), 4, added)  # in two steps, forward and backward
        self.assertIn("aten.mul.Tensor", added[0]["text"])
        self.assertEqual(added[0]["source"], self.line_of("h * 1.01"))
        self.assertEqual(found["counts"]["only_a"], 0)

    def test_Q1_the_op_or_statement_that_a_commit_changed_is_to_blame_with_its_line(self):
        for version, kind, text in [("scaled", "inserted", "h * 1.01"), ("unmasked", "removed", "masked_fill"),
                                    ("cast", "cast-inserted", "h.bfloat16"), ("eps", "arguments", "self.norm(")]:
            with self.subTest(version):
                first = self.faults("A", version)[0]
                self.assertEqual((first["kind"], first["line"]), (kind, self.line_of(text)), first)

    def test_Q3_the_path_goes_from_the_op_to_blame_to_the_loss(self):
        _, found = self.json("compare", "A", "scaled")
        path = found["path"]
        self.assertEqual(path["to"], "the loss")
        steps = path["steps"]
        self.assertEqual(steps[0]["line"], self.line_of("h = self.norm(F.relu"))  # that reads what was inserted
        self.assertIn("nll_loss_forward", steps[-1]["op"])
        self.assertTrue(all(step["relative"] > 0 for step in steps))
        text = subprocess.run([PROGRAM, "compare", self.recorded("A"), self.recorded("scaled")], capture_output=True, text=True).stdout
        self.assertIn(f"path to the loss, {len(steps)} values", text)

    def test_Q1_what_comes_in_and_what_is_the_ops_own_are_apart(self):
        _, found = self.json("compare", "A", "eps")
        rows = [row for row in found["rows"] if "layer_norm.default" in row["op"]]
        self.assertEqual(rows[0]["inherited"], 0)
        self.assertGreater(rows[0]["own"], rows[0]["budget"])
        later = [row for row in found["rows"] if "addmm" in row["op"] and row["inherited"]]
        self.assertTrue(later and all(row["own"] is None for row in later))  # nothing about it is different

    def test_Q1_an_update_with_another_rate(self):
        first = self.faults("A", "rate")[0]
        self.assertEqual(first["kind"], "arguments")
        self.assertIn("train.py", first["line"])
        self.assertIn("0.2", first["sentence"])

    def test_Q1_a_batch_of_another_size_is_nobodys_fault(self):
        self.assertEqual(self.faults("A", "fewer"), [])

    def test_a_recording_is_identical_to_its_copy(self):
        self.made["copy"] = Path(self.folder.name) / "copy"
        shutil.copytree(self.recorded("A"), self.made["copy"])
        code, found = self.json("compare", "A", "copy")
        self.assertEqual(code, 0)
        self.assertIn("identical", found["notes"][0])
        self.assertEqual(found["rows"], [])  # nothing ran


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Order(Recorded):
    script = ORDER

    def test_Q3_rounding_that_a_softmax_enlarges_is_nobodys_fault_and_the_softmax_is_named(self):
        self.assertEqual(self.faults("one", "other"), [])
        _, found = self.json("compare", "one", "other")
        self.assertGreater(found["first_divergence"]["relative"], 1e-3)
        (note,) = [claim for claim in found["report"]["claims"] if claim["kind"] == "amplified"]
        self.assertEqual(note["line"], self.line_of("torch.softmax"))
        self.assertRegex(note["sentence"], r"rounding, enlarged [\d.]+e\+04 times by _softmax #\d+ on the way to the loss")

    def test_Q3_own_measures_how_much_each_op_enlarges_one_rounding(self):
        done = subprocess.run([PROGRAM, "compare", self.recorded("one"), self.recorded("one"), "--threads-b", "2", "--own", "--format", "json"], capture_output=True, text=True)
        rows = json.loads(done.stdout)["rows"]
        enlarged = {row["op"]: row["enlarged"] for row in rows if row["enlarged"]}
        self.assertEqual(max(enlarged, key=enlarged.get), "torch.ops.aten._softmax.default")
        self.assertGreater(enlarged["torch.ops.aten._softmax.default"], 1e4)
        self.assertLess(enlarged["torch.ops.aten.detach.default"], 2)


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Checkpoints(Recorded):
    script = CHECKPOINTS

    def test_Q6_what_runs_again_in_the_backward_is_nobodys_fault(self):
        for a, b in itertools.permutations(["none", "plain", "reentrant"], 2):
            with self.subTest(f"{a}, {b}"):
                self.assertEqual(self.faults(a, b), [])

    def test_the_backward_of_a_reentrant_checkpoint_is_that_of_the_ops_that_ran_first(self):
        _, found = self.json("compare", "none", "reentrant")
        self.assertEqual(found["only_in_a"], 0)

    def test_Q1_a_checkpoint_that_draws_another_mask_is_to_blame(self):
        for a, b in [("none", "redrawn"), ("none", "redrawn reentrant"), ("plain", "redrawn"), ("reentrant", "redrawn reentrant")]:
            with self.subTest(f"{a}, {b}"):
                first = self.faults(a, b)[0]
                self.assertIn("bernoulli_", first["sentence"])
                self.assertEqual(first["line"], self.line_of("F.dropout"))


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Planted(unittest.TestCase):
    def test_Q6_a_few_of_the_faults_that_check_compare_plants(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, COMPARE, "--models", "1", "--seed", "7", "--folder", folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("14 pairs: 14 right, 0 not", done.stdout)


if __name__ == "__main__":
    unittest.main()
