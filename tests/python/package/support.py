"""What the tests of the Python package share: the program, a folder of their own, small models."""
import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch

import retrograd

torch.set_num_threads(1)
PROGRAM = os.environ.get("RETROGRAD")


def run(*arguments):
    """The program's exit code and what it wrote."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


class InFolder(unittest.TestCase):
    """Each test runs in a new folder."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="retrograd-test-"))
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.folder], check=True))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        torch.manual_seed(7)

    def check(self, path):
        """`retrograd check` agrees with PyTorch on a folder or a graph of it. A step that was caught for its NaN is not healthy, which is a failure of its own."""
        if PROGRAM:
            code, text = run("check", path, "--format", "json")
            reports, _ = json.JSONDecoder().raw_decode(text)  # what is said of the folder stands behind it
            faults = [claim for report in reports for claim in report["claims"] if claim["severity"] == "fault"]
            self.assertTrue(code == 0 or (code == 1 and all(claim["by"] == "health" for claim in faults)), text)

    def check_all(self, folder):
        """The same for every graph of a folder."""
        for graph in folder.manifest["graphs"]:
            self.check(folder.path / graph["name"])

    def walk(self, folder):
        """The text of walk-nan."""
        if not PROGRAM:
            self.skipTest("RETROGRAD names no program")
        code, text = run("debug", folder.path, "-c", "walk-nan")
        self.assertEqual(code, 1, text)  # it found one
        return text


@contextlib.contextmanager
def told():
    """What is printed for the person who runs a script."""
    text = io.StringIO()
    with contextlib.redirect_stderr(text):
        yield text


class Net(torch.nn.Module):
    """A small classifier with dropout and batch norm; from step `bad` on (counted by its calls) it takes the logarithm of a negative number."""

    def __init__(self, bad=None, dropout=0.5):
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.drop = torch.nn.Dropout(dropout)
        self.last = torch.nn.Linear(8, 3)
        self.bad, self.calls = bad, 0

    def forward(self, x):
        h = self.drop(torch.relu(self.norm(self.first(x))))
        if self.bad is not None and self.calls >= self.bad:
            h = torch.log(h - 10)  # the planted fault
        if not torch.compiler.is_compiling():
            self.calls += 1
        return self.last(h)


def batch(n=4):
    return torch.randn(n, 6), torch.randint(0, 3, (n,))


__all__ = ["InFolder", "Net", "PROGRAM", "batch", "retrograd", "run", "told", "torch", "unittest"]
