"""Folders that the Python package records (docs/folders.md), opened by the real program: folders made by hand, of the tests' models."""
import json
import shutil
import sys
import unittest

import support
from support import MODELS, Case


class Folders(Case):
    def folder(self, models, **more):
        """A folder with graphs of the tests' models, by name."""
        for name in models:
            (self.path / name).mkdir()
            for file in ("model.pt2", "ref.safetensors"):
                shutil.copy(MODELS / name / file, self.path / name / file)
        graphs = [{"name": name, "model": f"{name}/model.pt2", "values": f"{name}/ref.safetensors"} for name in models]
        manifest = {"format": "retrograd.folder", "version": 1, "kind": "capture", "graphs": graphs, "open": {"graph": models[-1], "at": "start"}, **more}
        (self.path / "retrograd.json").write_text(json.dumps(manifest))
        return self.path

    def test_check_takes_the_values_of_the_folder(self):
        folder = self.folder(["mlp", "multi_output"])
        self.assertIn("multi_output/model.pt2", self.good("check", folder).stdout)
        self.assertIn("mlp/model.pt2", self.good("check", folder / "mlp").stdout)
        self.assertEqual(self.good("check", "--suite", folder).stdout.count("pass "), 2)
        # With a result of the reference spoilt, that result is compared.
        values = (folder / "mlp" / "ref.safetensors").read_bytes()
        length = int.from_bytes(values[:8], "little")
        place = json.loads(values[8:8 + length])["out.0"]["data_offsets"][0] + 8 + length
        (folder / "mlp" / "ref.safetensors").write_bytes(values[:place] + b"\x00\x00\x80\x42" + values[place + 4:])
        self.ends(1, "check", folder / "mlp")

    def test_all_subcommands_take_it(self):
        folder = self.folder(["mlp"])
        for command in (["trace"], ["run"], ["bench", "--repeat", "1"], ["debug", "-c", "walk-nan"], ["compare"], ["diff", folder / "mlp"]):
            self.good(command[0], folder, *command[1:])
        self.good("compare", folder, folder / "mlp")
        self.good("save", folder, "-o", self.path / "kept.retrograd")
        self.good("export", folder, "-o", self.path / "kept.json")

    def test_graphs_lists_folders(self):
        folder = self.folder(["mlp", "multi_output"], step=7, rank=1, ranks=2, failure={"kind": "nan_loss", "message": "the loss is nan"}, cannot_replay=["the weights (2 GiB)"])
        shown = self.good("graphs", folder).stdout
        for text in ("rank 1 of 2  capture  step 7", "failed: the loss is nan", "  mlp ", "multi_output ", "opens first", "cannot be replayed: the weights (2 GiB)"):
            self.assertIn(text, shown)
        # A folder of them, as `retrograd.catch` makes it: by rank.
        steps = self.path / "retrograd-catch"
        for name, rank in (("a", 1), ("b", 0)):
            shutil.copytree(folder, steps / name, ignore=shutil.ignore_patterns("retrograd-catch"))
            manifest = json.loads((steps / name / "retrograd.json").read_text())
            (steps / name / "retrograd.json").write_text(json.dumps({**manifest, "rank": rank}))
        report = self.fits("graphs", "graphs", steps)
        self.assertEqual([(one["rank"], [graph["name"] for graph in one["graphs"]]) for one in report["folders"]], [(0, ["mlp", "multi_output"]), (1, ["mlp", "multi_output"])])
        self.bad("graphs", folder, "--save-plan")
        (steps / "a" / "retrograd.json").write_text("{")
        self.bad("graphs", steps)

    def test_numbers_finds_those_of_a_folder(self):
        folder = self.folder(["mlp"], recorded={"debug_mode": "debug_mode.json"})
        self.assertIn("holds no recorded numbers", self.bad("numbers", folder).stderr)
        (folder / "debug_mode.json").write_text("{")
        self.assertIn("debug_mode.json", self.bad("numbers", folder).stderr)
        self.assertIn("debug_mode.json", self.bad("numbers", folder, folder / "mlp").stderr)
        self.assertIn("what to compare it with", self.bad("numbers", folder / "mlp").stderr)

    def test_a_folder_is_saved_next_to_it(self):
        folder = self.folder(["mlp"])
        (folder / "run.1").mkdir()
        for name in ("mlp", "retrograd.json"):
            (folder / name).rename(folder / "run.1" / name)
        for name in ("run.1", "run.1/"):
            self.assertIn("run.1.retrograd", self.good("save", f"{folder}/{name}").stdout)
            self.assertTrue((folder / "run.1.retrograd").is_file())
            (folder / "run.1.retrograd").unlink()
        self.assertEqual([path.name for path in (folder / "run.1").iterdir() if path.suffix == ".retrograd"], [])

    def test_the_session_of_a_log_opens_again(self):
        trace = self.path / "trace"
        shutil.copytree(support.TOP / "resources" / "samples" / "lost_precision" / "trace", trace)
        self.assertIn("weights inside", self.good("save", trace).stdout)
        self.good("run", self.path / "trace.retrograd")

    def test_the_session_of_printed_traces_opens_again_however_often_it_is_saved(self):
        text, session = self.path / "model.py", self.path / "model.retrograd"
        text.write_text('import torch\n\ndef computation(w, x):\n    # w: "cpu f32[4]", parameter lin.w\n    # x: "cpu f32[4]"\n'
                        '    y = torch.ops.aten.mul.Tensor(w, x)  # y: "cpu f32[4]"\n    return (y,)\n')
        self.good("save", text)
        first, second = self.path / "first.safetensors", self.path / "second.safetensors"
        self.good("run", session, "-o", first)
        text.unlink()  # the session holds the weights that were drawn
        self.assertIn("weights inside", self.good("save", session).stdout)
        self.good("run", session, "-o", second)
        self.assertEqual(first.read_bytes(), second.read_bytes())

    def test_what_cannot_be_replayed_is_said(self):
        folder = self.folder(["mlp"], failure={"kind": "nan_loss", "message": "the loss is nan"}, cannot_replay=["the weights (2 GiB)"])
        told = self.good("run", folder).stderr
        self.assertIn("recorded because the loss is nan", told)
        self.assertIn("cannot be replayed: the weights (2 GiB)", told)

    def test_the_generators_state_is_where_draws_begin(self):
        """The mask of dropout is that of the recorded state, in `check` against PyTorch's results, and after it was saved as a session."""
        folder = self.folder(["dropout_train"])
        self.good("check", folder)
        outputs = []
        for number in range(3):
            state = bytearray(self.state())
            for word in range(624):
                state[24 + 8 * word] ^= number
            self.with_state(folder / "dropout_train" / "ref.safetensors", bytes(state))
            self.good("run", folder, "--save", self.path / f"out{number}.safetensors")
            self.good("save", folder, "-o", self.path / f"kept{number}.retrograd")
            self.good("run", self.path / f"kept{number}.retrograd", "--save", self.path / f"again{number}.safetensors")
            self.assertEqual(self.tensor(f"out{number}.safetensors"), self.tensor(f"again{number}.safetensors"))
            outputs.append(self.tensor(f"out{number}.safetensors"))
        self.assertGreater(len(set(outputs)), 1)
        self.assertNotEqual(outputs[0], self.tensor("dropout_train/ref.safetensors"))
        self.with_state(folder / "dropout_train" / "ref.safetensors", b"\xff" * 5056)
        self.assertIn("not a state of a random generator", self.bad("run", folder).stderr)

    @staticmethod
    def state():
        """`torch.get_rng_state()` after torch.manual_seed(5489): the first words of the generator that are known without PyTorch."""
        words, value = [5489], 5489
        for i in range(1, 624):
            value = (1812433253 * (value ^ (value >> 30)) + i) & 0xFFFFFFFF
            words.append(value)
        # THGeneratorStateNew: seed, left, seeded, next, state[624] as 64-bit words, then the cached normals.
        head = (5489).to_bytes(8, "little") + (1).to_bytes(4, "little") + (1).to_bytes(4, "little") + (0).to_bytes(8, "little")
        body = b"".join(word.to_bytes(8, "little") for word in words)
        return (head + body).ljust(5056, b"\0")

    @staticmethod
    def with_state(path, state):
        values = path.read_bytes()
        length = int.from_bytes(values[:8], "little")
        header, data = json.loads(values[8:8 + length]), values[8 + length:]
        old = header.pop("generator.cpu", None)
        if old:
            data = data[:old["data_offsets"][0]]
        header["generator.cpu"] = {"dtype": "U8", "shape": [len(state)], "data_offsets": [len(data), len(data) + len(state)]}
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + data + state)

    def tensor(self, name, tensor="out.0"):
        values = (self.path / name).read_bytes()
        length = int.from_bytes(values[:8], "little")
        begin, end = json.loads(values[8:8 + length])[tensor]["data_offsets"]
        return values[8 + length + begin:8 + length + end]

    def test_bad_folders(self):
        self.assertIn("is a folder, not a file", self.bad("run", self.path).stderr)
        folder = self.folder(["mlp"])
        for text in ("", "[", "{}", '{"format": "retrograd.folder", "version": 9, "kind": "catch", "graphs": []}',
                     '{"format": "retrograd.folder", "version": 1, "kind": "catch", "graphs": []}',
                     '{"format": "retrograd.folder", "version": 1, "kind": "catch", "graphs": [{"name": "mlp", "model": "../../model.pt2"}]}'):
            (folder / "retrograd.json").write_text(text)
            self.assertIn(str(folder), self.bad("check", folder).stderr, text)
        (folder / "retrograd.json").unlink()
        self.bad("check", folder / "mlp")


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main()
