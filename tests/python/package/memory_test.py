"""catch() where the GPU's memory runs out. The allocator's history is one that was recorded on a GPU, with a request in it that fails."""
import lzma
import pickle
from pathlib import Path
from unittest import mock

import torch

import retrograd
from retrograd import _memory
from support import PROGRAM, InFolder, told, unittest

HISTORY = Path(__file__).resolve().parents[2] / "data" / "memory" / "leak.pickle.xz"


def recorded(fails=True):
    snapshot = pickle.loads(lzma.decompress(HISTORY.read_bytes()))
    frames = [{"name": "forward", "filename": "/job/train.py", "line": 15}]
    if fails:
        snapshot["device_traces"][0].append({"action": "oom", "device_free": 1 << 20, "size": 1 << 30, "stream": 0, "frames": frames})
    return snapshot


class OutOfMemory(InFolder):
    def run_out(self, snapshot, where=None):
        """A loop whose forward, or backward, has no room."""
        model = torch.nn.Linear(3, 3)

        def fail(*_):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")

        with mock.patch.object(torch.cuda.memory, "_snapshot", lambda: snapshot), told() as text:
            with self.assertRaises(torch.OutOfMemoryError):
                with retrograd.catch(model) as c:
                    loss = model(torch.randn(2, 3)).sum()
                    if where == "backward":
                        loss.register_hook(fail)
                        loss.backward()
                    fail()
        return c, text.getvalue()

    @unittest.skipUnless(PROGRAM, "the program reads the snapshot")
    def test_the_message_names_the_request_and_three_choices(self):
        for where in "forward", "backward":
            with mock.patch.dict("os.environ", RETROGRAD=PROGRAM):
                c, text = self.run_out(recorded(), where)
            self.assertIn("out of memory: 1.0 GiB asked for at train.py:15 in forward did not fit", text)
            self.assertIn("64 MiB workspace", text)
            self.assertIn("7.5 MiB: let go what train.py:34 in main keeps from step to step", text)
            self.assertEqual(text.split("What would free most:")[1].split("Kept:")[0].count("MiB: "), 3)
            self.assertIn(f"retrograd memory {c.snapshot} --at oom", text)
            self.assertEqual(len(pickle.loads(c.snapshot.read_bytes())["device_traces"][0]), 1932)
            self.assertEqual(c.folders, [])

    def test_without_a_history_the_message_says_how_to_have_one(self):
        c, text = self.run_out({"segments": [], "device_traces": [[]]})
        self.assertIn("_record_memory_history", text)
        self.assertIsNone(c.snapshot)

    def test_without_the_program_the_snapshot_is_kept_all_the_same(self):
        with mock.patch.object(_memory, "run", side_effect=retrograd.ProgramNotFound()):
            c, text = self.run_out(recorded())
        self.assertTrue(c.snapshot.exists())
        self.assertIn("Tried to allocate 1.00 GiB", text)

    def test_choices_are_those_that_free_most(self):
        report = {"categories": [{"name": "activation", "bytes": 60}, {"name": "optimizer", "bytes": 50}, {"name": "workspace", "bytes": 10}],
                  "groups": [{"name": "net.py:3", "category": "activation", "bytes": 40}], "findings": []}
        self.assertEqual([size for size, _ in _memory.choices(report)], [50, 40, 30])


if __name__ == "__main__":
    unittest.main()
