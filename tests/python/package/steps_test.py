"""C9: a few of the steps that scripts/check-steps draws; all of them take an hour."""
import subprocess
import sys
import tempfile
from pathlib import Path

from support import PROGRAM, unittest

STEPS = Path(__file__).resolve().parent.parent / "steps" / "main.py"


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Steps(unittest.TestCase):
    def test_C9_a_few_steps_in_their_first_and_their_fifth_update(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, STEPS, "--few", "--seed", "1", "--folder", folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(", 0 differ; ", done.stdout)
        self.assertIn(" 0 not made, ", done.stdout)


if __name__ == "__main__":
    unittest.main()
