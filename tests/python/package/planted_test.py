"""K14: a few of the training scripts that scripts/check-planted draws; 200 take half an hour."""
import subprocess
import sys
import tempfile
from pathlib import Path

from support import PROGRAM, unittest

PLANTED = Path(__file__).resolve().parent.parent / "planted" / "main.py"


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Planted(unittest.TestCase):
    def test_K14_drawn_scripts_are_unchanged_by_the_recorder_and_raise_no_alarm(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, PLANTED, "--few", "--seed", "5", "--folder", folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(", 0 not made: 0 changed by the recorder; 0 alarms on 6 right ones", done.stdout)


if __name__ == "__main__":
    unittest.main()
