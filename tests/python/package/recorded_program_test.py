"""The program opens what retrograd.record wrote: it lists it, runs it again bit for bit in both directions, and judges it."""
import collections
import json
import re
import shutil
import unittest.mock
from pathlib import Path

from support import PROGRAM, InFolder, Net, retrograd, run, told, torch, unittest
import record_test
from replayer import read_records

F = torch.nn.functional


def verdict(path):
    """The exit code and the JSON of `check`."""
    code, text = run("check", path, "--format", "json")
    if "{" not in text:
        return code, text
    found = json.loads(text[text.index("{"):text.rindex("}") + 1])
    try:
        import jsonschema
    except ImportError:
        return code, found
    jsonschema.validate(found, json.loads((Path(__file__).resolve().parents[3] / "docs" / "report.schema.json").read_text()))
    return code, found


def claims(found, kind):
    """The claims whose kind begins so."""
    return [claim for claim in found["claims"] if claim.get("kind", "").startswith(kind)]


def cuts(found):
    return claims(found, "cut-")


@unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
class Program(InFolder):
    def recorded(self, kind="plain", steps=2):
        record_test.run(kind, steps, "here")
        return Path("here")

    def edit(self, change):
        """Each record goes through `change`, which gives the one to write, or None."""
        path = Path("here/ops.jsonl")
        records = [change(json.loads(line)) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(record) + "\n" for record in records if record is not None))

    def test_C10_trace_lists_phases_under_headings(self):
        folder = self.recorded()
        code, text = run("trace", folder)
        self.assertEqual(code, 0, text)
        for heading in ("# ---- step 0, forward", "# ---- step 0, backward", "# ---- step 0, optimizer", "# ---- step 1, forward"):
            self.assertIn(heading, text)
        self.assertIn("# module: first", text)
        self.assertIn("node: AddmmBackward0", text)
        self.assertIn("into the gradient of: first.weight", text)

    def test_C10_trace_of_one_phase(self):
        folder = self.recorded("checkpoint", 1)
        phase, counted = None, collections.Counter()
        for record in read_records(folder):
            phase = record["phase"] if record["k"] == "mode" else phase
            counted[phase] += record["k"] == "op"
        for name in ("forward", "loss", "backward", "recompute", "accumulation", "optimizer"):
            code, text = run("trace", folder, "--phase", name, "--plain")
            self.assertEqual(code, 0, text)
            ops = [line for line in text.splitlines() if "torch.ops." in line and "as_strided" not in line]
            strided = sum(record.get("op") == "aten.as_strided.default" for record in read_records(folder))
            self.assertLessEqual(abs(len(ops) - counted[name]), strided, name)
        code, text = run("trace", "here", "--phase", "sideways")
        self.assertEqual(code, 2)

    def test_C11_debug_steps_in_both_directions(self):
        folder = self.recorded()
        code, text = run("debug", folder, "-c", "continue", "-c", "reverse-continue", "-c", "run-to step 30", "-c", "reverse-step 7", "-c", "continue")
        self.assertEqual(code, 0, text)
        self.assertIn("step 23 of", text)

    def test_C10_a_nan_is_followed_from_the_update_to_the_line_of_the_model(self):
        model = Net(bad=0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            F.cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,))).backward()
            optimizer.step()

        with told():
            retrograd.record("here", step, model=model, optimizer=optimizer)
        code, text = run("debug", "here", "-c", "walk-nan")
        self.assertEqual(code, 1, text)
        self.assertIn("aten.log.default", text)
        self.assertIn("torch.log", text)  # the line

    def test_what_needs_a_derivation_is_refused(self):
        self.recorded()
        for arguments in (("bench", "here"), ("compare", "here", "--dtype-b", "float64"), ("diff", "here", "--partition-b", "min-cut"), ("check", "here", "here"),
                          ("export", "here", "-o", "x.py"), ("run", "here", "--shape", "x=2x3")):
            code, text = run(*arguments)
            self.assertEqual(code, 2, text)
            self.assertIn("is a recording", text)

    def test_C11_run_runs_every_op(self):
        folder = self.recorded()
        code, text = run("run", folder, "--format", "json")
        self.assertEqual(code, 0, text)
        report = json.loads(text[text.index("{"):text.rindex("}") + 1])
        self.assertEqual(len(report["steps"]), report["all_steps"])

    def test_C11_the_first_op_that_differs_is_named(self):
        self.recorded()
        seen = []

        def change(record):
            if record["k"] == "op" and record["op"] == "aten.addmm.default" and not seen:
                seen.append(record["n"])
                record["hash"] = ["0" * 15 + "1"]
            return record

        self.edit(change)
        self.made_by(re.search(r"LibTorch ([\d.]+)", run("version")[1])[1])
        code, found = verdict("here")
        self.assertEqual((code, found["verdict"], found["details"]["differing"]), (1, "fail", 1))
        (first,) = claims(found, "hash-differs")
        self.assertIn(f"op {seen[0]} (", first["sentence"])
        self.assertIn("aten.addmm.default is not as recorded, the first one; ", first["sentence"])
        self.assertIn("kernel", first["sentence"])

    def not_comparable(self):
        """One hash differs, and the recorder had another library."""
        self.edit(lambda record: {**record, "hash": ["0" * 15 + "1"]} if record.get("op") == "aten.relu.default" else record)
        self.made_by("2.14.0")
        return verdict("here")

    def made_by(self, version):
        """As if the recorder had this PyTorch."""
        manifest = json.loads(Path("here/retrograd.json").read_text())
        manifest["made"]["torch"] = version
        Path("here/retrograd.json").write_text(json.dumps(manifest))

    def test_C14_where_hashes_are_not_comparable_the_second_opinion_decides(self):
        self.recorded()
        code, found = self.not_comparable()
        self.assertEqual((code, found["verdict"], found["details"]["differing"] > 0), (0, "pass", True))
        self.assertIn("2.14.0", found["details"]["not_comparable"][0])

    def test_C11_another_library_is_not_comparable(self):
        with told(), torch.no_grad():
            retrograd.record("here", lambda: torch.relu(torch.randn(3)))
        code, found = self.not_comparable()
        self.assertEqual((code, found["verdict"]), (2, "not possible"))
        self.assertIn("2.14.0", found["reason"])

    def test_C12_cuts_have_a_name_a_line_a_factor_and_the_parameters_behind_them(self):
        self.recorded("custom_function")
        code, found = verdict("here")
        (cut,) = cuts(found)
        self.assertEqual((code, cut["kind"], cut["subject"], cut["parameters"]), (0, "cut-function", "Square", ["0.bias", "0.weight"]))
        self.assertAlmostEqual(cut["measure"]["factor"], 0.75, 5)
        self.assertIn("in backward", cut["line"])
        self.assertEqual(cut["severity"], "suspicion")

    def test_C12_hooks_and_detach_are_cuts(self):
        self.recorded("hooks")
        self.assertEqual({cut["subject"] for cut in cuts(verdict("here")[1])}, {"hook", "<lambda>", "double"})
        shutil.rmtree("here")
        self.recorded("gan")
        (cut,) = cuts(verdict("here")[1])
        self.assertEqual((cut["kind"], cut["measure"]["factor"], cut["parameters"]), ("cut-detach", 0, ["0.bias", "0.weight"]))

    def test_C14_strict_makes_each_cut_a_fault(self):
        self.recorded("custom_function")
        code, text = run("check", "here", "--strict")
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"function `Square`: 0\.75 times the derivative; .*record_test\.py:\d+ in backward")

    def test_C14_cuts_that_a_right_recording_has_are_meant(self):
        self.recorded("hooks")
        Path("here").rename("good")
        self.assertEqual(run("check", "good", "--against", "good")[0], 0)
        self.recorded("custom_function")
        code, text = run("check", "here", "--against", "good")
        self.assertEqual(code, 1, text)
        self.assertIn("the recording that is right has no such cut", text)
        self.assertEqual(run("check", "here", "--against", "nowhere")[0], 2)

    def test_C14_a_cut_that_leaves_a_parameter_without_a_gradient_is_a_fault(self):
        model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            model[1](torch.tanh(model[0](torch.randn(4, 6))).detach()).square().mean().backward()
            optimizer.step()

        with told():
            retrograd.record("here", step, model=model, optimizer=optimizer)
        code, found = verdict("here")
        self.assertEqual(code, 1)
        self.assertIn("detach", found["reason"])
        self.assertIn("without a gradient", cuts(found)[0]["sentence"])

    def test_C14_a_nan_in_the_step_is_not_sound(self):
        model = Net(bad=1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            for _ in range(2):
                optimizer.zero_grad()
                F.cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,))).backward()
                optimizer.step()

        with told():
            retrograd.record("here", step, model=model, optimizer=optimizer)
        code, found = verdict("here")
        self.assertEqual((code, found["verdict"], found["details"]["differing"]), (1, "fail", 0), found)
        self.assertTrue(any("loss of step 1" in claim["sentence"] for claim in claims(found, "not-finite")), found)

    def test_C15_a_recording_that_was_cut_off_opens_up_to_there(self):
        self.recorded()
        path = Path("here/ops.jsonl")
        path.write_bytes(path.read_bytes()[:-len(path.read_bytes()) // 3])
        code, text = run("trace", "here")
        self.assertEqual(code, 0, text)
        self.assertIn("damaged or cut off", text)
        code, found = verdict("here")
        self.assertEqual((code, found["verdict"], found["details"]["differing"]), (2, "not possible", 0), found)
        self.assertGreater(found["details"]["hashes"], 10)

    def test_C15_offsets_beyond_their_storage_are_refused(self):
        self.recorded()
        self.edit(lambda record: {**record, "offset": 1 << 40} if record["k"] == "tensor" and record["id"] == 3 else record)
        for command in ("trace", "check", "run"):
            code, text = run(command, "here")
            self.assertEqual(code, 2, text)
            self.assertIn("reaches beyond storage", text)

    def test_C15_an_op_that_reaches_files_is_not_run(self):
        self.recorded()
        target = self.folder / "written"
        self.edit(lambda record: {**record, "op": "aten.from_file.default", "in": [str(target), True, 1], "kw": {}} if record.get("op") == "aten.relu.default" else record)
        code, found = verdict("here")
        self.assertEqual(code, 2, found)
        self.assertIn("nobody can run it", found["reason"])
        self.assertFalse(target.exists())

    def test_C15_a_newer_version_says_so(self):
        self.recorded()
        manifest = json.loads(Path("here/retrograd.json").read_text())
        Path("here/retrograd.json").write_text(json.dumps({**manifest, "version": 2}))
        code, text = run("trace", "here")
        self.assertEqual(code, 2)
        self.assertIn("version 2", text)

    def test_recordings_are_listed_and_removed(self):
        self.recorded()
        shutil.copytree("here", "below/other")
        code, text = run("record", "--list", ".")
        self.assertEqual(code, 0, text)
        self.assertIn("2 recordings", text)
        Path("here/mine.txt").write_text("not of the recording")
        self.assertEqual(run("record", "--remove", "here", "--remove", "below/other")[0], 0)
        self.assertEqual((list(Path("here").iterdir()), Path("below/other").exists()), ([Path("here/mine.txt")], False))
        self.assertEqual(run("record", "--remove", "below")[0], 2)


# Gradients go through ops of which no derivative is known here (torch.cond, quantized and oneDNN tensors), or values are
# rewritten so that no op alone explains them: they are not judged.
FEW_DERIVATIVES = ("branches", "opaque_tensors", "rewritten")


def test_of(kind):
    def test(self):
        self.recorded(kind)
        code, found = verdict("here")
        details = found["details"]
        expected = (2, "not possible") if kind in FEW_DERIVATIVES else (0, "pass")  # K1: a pass is a promise
        self.assertEqual((code, found["verdict"], details["differing"]), (*expected, 0), found)
        self.assertEqual(details["ran"] + details["not_run"], details["ops"])
        self.assertGreater(details["hashes"], 20)
        if kind not in FEW_DERIVATIVES:
            self.assertEqual(found["judged"]["count"], found["judged"]["of"], found)
        self.assertEqual([cut["sentence"] for cut in cuts(found) if cut["kind"] in ("cut-op", "cut-no-grad", "cut-in-place")], [])

    return test


for name in record_test.KINDS:
    setattr(Program, f"test_C11_{name}_runs_again_bit_for_bit", test_of(name))

class Notebook(InFolder):
    def recorded(self):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with told(), retrograd.record("recorded", model=model, optimizer=optimizer) as recording:
            model(torch.randn(4, 6)).sum().backward()
            optimizer.step()
        return recording

    @unittest.skipUnless(PROGRAM, "RETROGRAD names no program")
    def test_a_cell_shows_the_page_in_a_frame_that_reaches_nothing(self):
        shown = self.recorded()._repr_html_()
        self.assertTrue(shown.startswith("<iframe ") and shown.endswith("</iframe>"), shown[:200])
        self.assertIn('sandbox="allow-scripts"', shown)
        self.assertNotIn("<script", shown)  # the page is text of an attribute
        self.assertIn("&lt;header class=&quot;verdict", shown)

    def test_without_a_program_a_cell_says_what_was_recorded(self):
        recording = self.recorded()
        with unittest.mock.patch("retrograd._page.run", side_effect=retrograd.ProgramNotFound()):
            shown = recording._repr_html_()
        self.assertIn(f"recorded {recording.ops} ops", shown)
        self.assertIn("was not found", shown)
        self.assertEqual(retrograd.record("other")._repr_html_(), "<p>retrograd: nothing was recorded</p>")


if __name__ == "__main__":
    unittest.main()
