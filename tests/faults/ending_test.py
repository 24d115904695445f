#!/usr/bin/env python3
"""What libraries do when they are taken down does not change how the program ends. Arguments: the program, the library of ending.cpp."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

MODEL = pathlib.Path(__file__).resolve().parents[1] / "data" / "models" / "mlp" / "model.pt2"


def untimed(text):
    """The text without the times that passes took, which no two runs share on a busy machine."""
    return re.sub(r"took \d+ milliseconds", "took some milliseconds", text)


class Ending(unittest.TestCase):
    def run_preloaded(self, *command):
        environment = {**os.environ, "LD_PRELOAD": str(pathlib.Path(LIBRARY).resolve())}
        return subprocess.run([*map(str, command)], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)

    def test_the_library_ends_other_programs(self):
        self.assertEqual(self.run_preloaded("/bin/true").returncode, -6)

    def test_a_run_ends_with_its_exit_code_and_all_its_output(self):
        plain = subprocess.run([PROGRAM, "trace", MODEL], capture_output=True, text=True, timeout=120)
        result = self.run_preloaded(PROGRAM, "trace", MODEL)
        self.assertEqual((result.returncode, untimed(result.stdout)), (0, untimed(plain.stdout)), result.stderr)
        self.assertTrue(plain.stdout)

    def test_so_does_one_that_fails(self):
        result = self.run_preloaded(PROGRAM, "trace", "no-such-file.pt2")
        self.assertEqual(result.returncode, 2)
        self.assertIn("no-such-file.pt2", result.stderr)


if __name__ == "__main__":
    LIBRARY, PROGRAM = sys.argv.pop(), sys.argv.pop(1)
    unittest.main()
