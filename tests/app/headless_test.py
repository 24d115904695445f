"""The command line without the window: it has nothing of Qt, checks a model, and says that there is no window."""
import subprocess
import sys
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SAMPLE = TOP / "resources/samples/tiny_gpt.pt2"
PROGRAM = sys.argv.pop(1)


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, timeout=100, check=False)


class Headless(unittest.TestCase):
    def test_it_links_nothing_of_qt(self):
        libraries = run("ldd", PROGRAM).stdout
        self.assertIn("libtorch", libraries)
        self.assertNotIn("Qt", libraries)

    def test_it_checks_a_model(self):
        result = run(PROGRAM, "check", str(SAMPLE))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 passed", result.stdout + result.stderr)

    def test_it_has_no_window(self):
        result = run(PROGRAM, str(SAMPLE))
        self.assertEqual(result.returncode, 2)
        self.assertIn("no window", result.stderr)

    def test_it_has_no_pictures(self):
        self.assertEqual(run(PROGRAM, "picture", str(SAMPLE), "x.png").returncode, 2)


if __name__ == "__main__":
    unittest.main()
