#!/usr/bin/env python3
"""The scripts that people work with: which tests are near a change, circles of imports, subjects of commits, notes of a release."""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"


def load(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(SCRIPTS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class Affected(unittest.TestCase):
    """Tests near a change."""
    affected = load("affected")

    def keys(self, *files, most=99):
        return [self.affected.key(test) for test in self.affected.tests_of(files) if test.distance <= most]

    def test_a_unit_is_tested_by_the_tests_that_include_its_header(self):
        self.assertIn("test_core SizeFit", self.keys("core/derivation/size_fit.cpp", most=1))

    def test_a_unit_without_a_header_of_its_own_is_reached_through_those_of_its_folder(self):
        self.assertIn("test_torch Writes", self.keys("core/torch/grad/writes.cpp"))

    def test_a_changed_test_comes_first(self):
        self.assertEqual(self.affected.tests_of(["tests/core/derivation/size_fit_test.cpp"])[0][1:], ("test_core", "SizeFit"))

    def test_a_subcommand_is_tested_by_the_program(self):
        self.assertIn("app_command_line", self.keys("app/cli/check/check.cpp"))

    def test_a_part_of_the_window_reaches_tests_of_the_window(self):
        self.assertTrue([key for key in self.keys("views/parts/layouts.cpp") if key.startswith("test_views_")])

    def test_a_page_runs_its_commands(self):
        self.assertIn("app_docs", self.keys("docs/checking.md"))

    def test_the_nearest_come_first_and_fit(self):
        Test = self.affected.Test
        tests = [Test(distance, "test_x", f"S{distance}") for distance in range(9)]
        self.affected.times = lambda: {f"test_x S{i}": 4.0 for i in range(9)}
        chosen, left = self.affected.choose(tests, 10)
        self.assertEqual([test.suite for test in chosen], ["S0", "S1"])
        self.assertEqual(len(left), 7)


class Circles(unittest.TestCase):
    graph = load("include-graph")

    def test_modules_that_import_one_another_are_named(self):
        found = list(self.graph.circles({"_a": {"_b"}, "_b": {"_c"}, "_c": {"_a"}, "_d": {"_a"}}))
        self.assertEqual(len(found), 1)
        for name in ("_a", "_b", "_c"):
            self.assertIn(name, found[0])
        self.assertNotIn("_d", found[0])

    def test_modules_that_import_downwards_are_none(self):
        self.assertEqual(list(self.graph.circles({"_a": {"_b", "_c"}, "_b": {"_c"}})), [])

    def test_an_import_within_a_function_or_for_types_alone_counts(self):
        text = "import os\nfrom ._a import a\nif TYPE_CHECKING:\n    from ._b import B\ndef f():\n    from . import _c\n"
        self.assertEqual(set(self.graph.imports(text)), {"_a", "_b", "_c"})


class Subjects(unittest.TestCase):
    """The first line of a commit."""
    check = load("check-subject")

    def test_good(self):
        for message in ("Say what is different now", "x" * 72 + "\n\nA body.\n", "Merge branch 'main'" + "x" * 90):
            self.assertEqual(list(self.check.troubles(message)), [])

    def test_bad(self):
        for message in ("", "x" * 73, "A subject.", "A subject\nwithout an empty line", "# a comment only"):
            self.assertTrue(list(self.check.troubles(message)), message)


class Release(unittest.TestCase):
    """A release."""
    release = load("release")

    def test_notes_are_the_part_of_the_changes(self):
        text = self.release.notes("0.1")
        self.assertIn("The first version", text)
        self.assertNotIn("##", text)

    def test_a_heading_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(self.release.Problem, "no heading '## 9.9'.*0.1"):
            self.release.notes("9.9")


class Setup(unittest.TestCase):
    def fetched(self, *programs):
        """What setup would fetch on a machine that has Debian's programs and these, and LibTorch, but no CUDA Toolkit and no GPU."""
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            scripts = top / "scripts"
            stubs = top / "bin"
            scripts.mkdir()
            stubs.mkdir()
            (scripts / "setup").write_text((SCRIPTS / "setup").read_text().replace("/usr/local/cuda", str(top / "cuda")))
            (scripts / "nvcc.lock").write_text("")
            for path in (scripts / "install", *(stubs / name for name in ("python3", "unzip", *programs))):
                path.write_text("#!/bin/sh\nexit 0\n")
                path.chmod(0o755)
            environment = {"PATH": f"{stubs}:/usr/bin:/bin", "RETROGRAD_LIBTORCH": str(top)}
            return subprocess.run(["bash", str(scripts / "setup")], env=environment, capture_output=True, text=True).stdout

    def test_nvcc_is_fetched_where_there_is_none(self):
        self.assertIn("fetching nvcc", self.fetched())

    def test_nvcc_of_the_system_is_used(self):
        self.assertEqual(self.fetched("nvcc"), "")


if __name__ == "__main__":
    sys.argv[1:] = [argument for argument in sys.argv[1:] if not argument.startswith("/")]  # the program, which is not needed
    unittest.main()
