"""X2, X4: a few of the cases of scripts/check-ranks, on two Gloo ranks."""
import subprocess
import sys
import tempfile
from pathlib import Path

from support import PROGRAM, unittest

RANKS = Path(__file__).resolve().parent.parent / "ranks" / "main.py"


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Ranks(unittest.TestCase):
    def test_X4_faults_between_ranks_are_named_and_right_steps_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, RANKS, "--few", "--folder", folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
