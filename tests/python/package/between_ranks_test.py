"""X2, X4: a few of the cases of scripts/check-ranks, on two Gloo ranks."""
import subprocess
import sys
import tempfile
from pathlib import Path

from support import PROGRAM, run, unittest

RANKS = Path(__file__).resolve().parent.parent / "ranks" / "main.py"


def record(form, fault, ranks, folder):
    subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0",
                    RANKS.parent / "programs.py", form, fault, "1", folder], check=True, capture_output=True)


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Ranks(unittest.TestCase):
    def test_X4_faults_between_ranks_are_named_and_right_steps_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, RANKS, "--few", "--folder", folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_X2_a_rank_that_stops_is_named_and_ops_are_folded(self):
        with tempfile.TemporaryDirectory() as folder:
            step = Path(folder, "step")
            record("hand", "right", 2, step)
            code, text = run("trace", step, "--ranks")
            self.assertEqual(code, 0, text)
            self.assertRegex(text, r"\[0, 1\]  .*native_layer_norm")
            self.assertRegex(text, r"# [1-9][0-9]+ ops on all ranks, 0 on some")
            stream = step / "rank1" / "ops.jsonl"
            lines = stream.read_text().splitlines(keepends=True)
            first = next(i for i, line in enumerate(lines) if "c10d.allreduce_" in line)
            stream.write_text("".join(lines[:first]))  # as of a process that was killed
            code, text = run("check", step)
            self.assertEqual(code, 1, text)
            self.assertRegex(text, r"rank 1 does not come to collective 0 over \[0, 1\], for which rank 0 waits: all_reduce \(sum\) of f32\[\d+\].*; its recording breaks off.*programs.py:\d+ in backward")
            self.assertEqual(text.count("fault: "), 1, text)  # what rank 0 got from the lost part is nobody's fault
            self.assertIn("not all that rank 1 did is known", text)

    def test_X2_what_a_lost_part_would_have_said_is_not_judged(self):
        with tempfile.TemporaryDirectory() as folder:
            step = Path(folder, "step")
            record("tp", "right", 2, step)
            stream = step / "rank1" / "ops.jsonl"
            lines = stream.read_text().splitlines(keepends=True)
            for share in (0.5, 0.75, 0.95):
                stream.write_text("".join(lines[:int(len(lines) * share)]))
                code, text = run("check", step)
                self.assertEqual(code, 2, text)
                self.assertNotIn("fault: ", text)

    def test_K4_a_step_that_raised_is_no_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            step = Path(folder, "step")
            record("hand", "raises", 2, step)
            code, text = run("check", step)
            self.assertEqual(code, 1, text)
            self.assertIn("fault: rank 0: the step raised ArithmeticError: after the update", text)

    def test_X4_gradients_are_those_of_one_process_on_the_whole_batch(self):
        with tempfile.TemporaryDirectory() as folder:
            step, single = Path(folder, "step"), Path(folder, "single")
            record("single", "first", 1, single)
            record("fsdp", "first", 2, step)
            code, text = run("check", step, "--against", single)
            self.assertEqual(code, 0, text)
            self.assertIn("16 of 16 gradients compared with", text)


if __name__ == "__main__":
    unittest.main()
