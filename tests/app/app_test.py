#!/usr/bin/env python3
"""Runs the built `retrograd` (first argument) on tests/data and on bad input; validates its JSON against docs/*.schema.json."""
import array
import csv
import json
import math
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree
import zipfile

import support
from support import MODELS as DATA
from support import TOP, Case, run, valid, verdicts

DYNAMIC = TOP / "tests" / "data" / "dynamic"
MODELS = ["mlp", "cond_hop", "multi_output", "batchnorm_train"]


class Device(Case):
    GPU = os.path.exists("/dev/nvidia0")

    def test_deriving_for_a_gpu_needs_none(self):
        for model in MODELS:
            text = self.good("trace", DATA / model / "model.pt2", "--device", "cuda").stdout
            self.assertIn('"cuda:0 f32[', text)
            self.assertNotIn('"cpu ', text)
        self.assertIn('"cuda:3 f32[', self.good("trace", DATA / "mlp" / "model.pt2", "--device", "cuda:3").stdout)
        self.assertNotIn("cuda", self.good("trace", DATA / "mlp" / "model.pt2", "--device", "cpu").stdout)

    def test_running_without_one_says_what_is_missing(self):
        if self.GPU:
            self.skipTest("there is a GPU")
        model = DATA / "mlp" / "model.pt2"
        for command in (["run", model], ["bench", model], ["check", model], ["check", "--suite", DATA], ["debug", model, "-c", "where"], ["compare", model],
                        ["picture", model, self.path / "x.png"], ["shrink", model, "--nan"], ["numbers", model, model], ["export", model, "--format", "chrome"]):
            message = self.bad(*command, "--device", "cuda").stderr
            self.assertIn("cuda:0: cannot be run on: there is no NVIDIA driver", message, command)
            self.assertIn("run on the CPU", message)
        self.assertIn("cannot be run on", self.bad("compare", model, "--device-b", "cuda").stderr)

    def test_a_session_keeps_its_device(self):
        session = self.path / "on_gpu.retrograd"
        self.good("save", DATA / "mlp" / "model.pt2", "--device", "cuda", "--out", session)
        self.assertIn('"cuda:0 f32[', self.good("trace", session).stdout)
        self.assertNotIn("cuda", self.good("trace", session, "--device", "cpu").stdout)
        self.good("run", session, "--device", "cpu")
        if not self.GPU:
            self.assertIn("cuda:0: cannot be run on", self.bad("run", session).stderr)

    def test_printed_traces_keep_their_device(self):
        text = self.path / "printed.txt"
        text.write_text(self.good("trace", DATA / "mlp" / "model.pt2", "--device", "cuda").stdout)
        again = self.good("trace", text)
        self.assertIn('"cuda:0 f32[', again.stdout)
        self.assertIn("those that follow from its computation", again.stderr)

    def test_a_device_that_is_none(self):
        for text in ("tpu", "cuda:", "cuda:x", "cuda:-1", "gpu0"):
            self.assertIn("is not a device", self.bad("trace", DATA / "mlp" / "model.pt2", "--device", text).stderr)


class Trace(Case):
    def test_json_fits_the_schema_and_refers_to_what_exists(self):
        for model in MODELS:
            for archive in sorted((DATA / model).glob("*.pt2")):
                with self.subTest(archive=archive):
                    document = self.fits("trace", "trace", archive)
                    self.check_references(document)

    def test_recomputation_fits_the_schema_and_names_its_originals(self):
        model = DATA / "dropout_train" / "model.pt2"
        for options in (["--recompute", "all"], ["--partition", "min-cut"], ["--partition", "min-cut", "--recompute", "#relu"]):
            with self.subTest(options=options):
                document = self.fits("trace", "trace", model, *options)
                self.check_references(document)
                again = [op for op in document["traces"]["backward"]["ops"] if op.get("recomputed")]
                self.assertTrue(again)
                for op in again:
                    self.assertEqual(op["origin"]["role"], "recompute")
                forward = {op["id"] for op in document["traces"]["forward"]["ops"]}
                for op in again:
                    self.assertIn(op.get("replays", next(iter(forward))), forward)

    def test_refuses_what_cannot_be_recomputed_or_fitted(self):
        model = DATA / "mlp" / "model.pt2"
        self.assertIn("did you mean 'linear'", self.bad("trace", model, "--recompute", "#liner").stderr)
        self.assertIn("; there are ", self.bad("run", model, "--recompute", "no.such.module").stderr)
        self.assertIn("smallest possible budget is", self.bad("bench", model, "--budget", "0").stderr)
        self.bad("check", model, "--partition", "best")

    def check_references(self, document):
        values, traces = document["values"], document["traces"]
        self.assertEqual(set(traces), {"computation", "joint", "forward", "backward"})
        computation = {op["id"] for op in traces["computation"]["ops"]}

        def check(argument):
            if isinstance(argument, list):
                for item in argument:
                    check(item)
            elif isinstance(argument, dict) and "value" in argument:
                self.assertIn(str(argument["value"]), values)

        for name, trace in traces.items():
            for value in trace["inputs"] + trace["outputs"]:
                self.assertTrue(value is None or str(value) in values)
            for op in trace["ops"]:
                check(op["args"])
                check(list(op["kwargs"].values()))
                for output in op["outputs"]:
                    self.assertTrue(output is None or str(output) in values)
                if name != "computation":
                    origin = op["origin"]
                    self.assertIsNotNone(origin, op)
                    self.assertTrue(origin["id"] is not None or origin["value"] is not None, op)
                    if origin["id"] is not None:
                        self.assertIn(origin["id"], computation)
        saved = [v for v in traces["forward"]["saved"] if values[str(v)]["kind"] == "saved"]
        for value in saved:
            self.assertIn(value, traces["backward"]["inputs"])

    def test_text_names_the_forward_op_in_the_backward(self):
        text = self.good("trace", DATA / "mlp" / "model.pt2", "--show", "backward").stdout
        self.assertIn("def backward(", text)
        self.assertNotIn("\ndef forward(", text)
        self.assertIn('"torch.ops.aten.linear.default"', text)
        self.assertIn(", forward: ", text)
        self.assertIn("del ", text)

    def test_options_that_do_not_fit_the_file_are_refused(self):
        recording, log = DATA.parent / "recordings" / "step", DATA.parent / "jobs" / "drawdetach.log"
        for options in (["--format", "json"], ["--show", "backward"]):
            self.assertIn("--phase is for the text", self.bad("trace", recording, "--phase", "loss", *options).stderr)
        self.assertIn("--numbers is for models", self.bad("trace", log, "--numbers").stderr)

    def test_text_is_python(self):
        for model in MODELS:
            text = self.good("trace", DATA / model / "model.pt2").stdout
            compile(text, model, "exec")


class DynamicShapes(Case):
    def test_json_fits_the_schema_and_tells_symbols(self):
        for archive in sorted(DYNAMIC.glob("*/*.pt2")):
            with self.subTest(archive=archive):
                document = self.fits("trace", "trace", archive)
                self.assertTrue(document["sizes"])

    def test_literals_of_the_backward_are_expressions(self):
        document = json.loads(self.good("trace", DYNAMIC / "loss" / "model.pt2", "--format", "json").stdout)
        self.assertEqual(document["sizes"], [{"symbol": "s48", "hint": 6, "min": 2, "max": 512}])
        literals = json.dumps([op["args"] for op in document["traces"]["backward"]["ops"]])
        self.assertIn('{"symbol": "s48", "hint": 6}', literals)
        made = [document["values"][str(output)] for op in document["traces"]["backward"]["ops"] for output in op["outputs"]]
        self.assertTrue(any("symbols" in value for value in made))

    def test_text_is_python_and_names_the_range(self):
        for archive in sorted(DYNAMIC.glob("*/*.pt2")):
            text = self.good("trace", archive).stdout
            compile(text, str(archive), "exec")
        text = self.good("trace", DYNAMIC / "attention" / "model.pt2", "--show", "backward").stdout
        self.assertIn("    # s77: 3, symbolic size in [2, 64]\n", text)

    def test_inputs_of_other_sizes_run_and_their_sizes_are_listed(self):
        folder = DYNAMIC / "attention"
        for options in ([], ["--partition", "min-cut"], ["--recompute", "all"]):
            self.good("run", folder / "model.pt2", "--inputs", folder / "ref.safetensors", *options)
            self.good("check", folder / "model.pt2", "--reference", folder / "ref.safetensors", *options)
        text = self.good("trace", folder / "model.pt2", "--inputs", folder / "ref.safetensors").stdout
        self.assertIn("s77: 4, symbolic size", text)
        self.assertNotIn("s77=3", text)

    def test_inputs_that_do_not_fit_are_bad_use(self):
        errors = self.bad("run", DYNAMIC / "attention" / "model.pt2", "--inputs", DYNAMIC / "loss" / "ref.safetensors").stderr
        self.assertIn("input x", errors)
        self.assertIn("[s77, s27, 8]", errors)


class Check(Case):
    def test_the_reference_is_met(self):
        for model in MODELS:
            with self.subTest(model=model):
                folder = DATA / model
                result = self.good("check", folder / "model.pt2", "--reference", folder / "ref.safetensors", "--format", "json")
                report = verdicts(result.stdout)[0]
                self.assertEqual(report["verdict"], "pass")
                self.assertEqual(report["judged"]["count"], report["judged"]["of"])

    def test_without_reference_libtorch_is_the_measure(self):
        self.assertIn("pass", self.good("check", DATA / "mlp" / "model.pt2").stdout)

    def test_a_wrong_tensor_fails_and_is_named(self):
        folder = DATA / "mlp"
        content = bytearray((folder / "ref.safetensors").read_bytes())
        size = int.from_bytes(content[:8], "little")
        begin, end = json.loads(content[8 : 8 + size])["grad.p.l2.weight"]["data_offsets"]
        content[8 + size + begin : 8 + size + end] = b"\0\0\x80\x3f" * ((end - begin) // 4)  # ones
        reference = self.path / "wrong.safetensors"
        reference.write_bytes(content)
        result = self.bad("check", folder / "model.pt2", "--reference", reference, code=1)
        self.assertIn("fail", result.stdout)
        self.assertIn("grad.p.l2.weight", result.stdout)
        self.good("check", folder / "model.pt2", "--reference", reference, "--tolerance", "10")
        report = json.loads(self.bad("check", folder / "model.pt2", "--reference", reference, "--format", "json", code=1).stdout)[0]
        claim = next(claim for claim in report["claims"] if claim["severity"] == "fault" and claim["kind"] == "tensor")
        self.assertEqual((claim["subject"], claim["by"]), ("grad.p.l2.weight", "reference"))
        self.assertGreater(claim["measure"]["deviation"], claim["measure"]["tolerance"])
        self.assertIn(claim["sentence"], result.stdout)

    def test_what_is_not_finite_fails_and_names_the_op(self):
        for model, op in (("log_of_zero", "aten.log.default"), ("half_overflow", "aten.mul.Tensor")):
            result = self.bad("check", TOP / "tests" / "data" / "planted" / (model + ".txt"), code=1)
            self.assertIn("NaN", result.stdout)
            self.assertIn(op + " (planted)", result.stdout)

    def test_a_suite_reports_every_case_and_none_ends_the_others(self):
        suite = self.path / "suite"
        suite.mkdir()
        for model in ("mlp", "multi_output"):
            target = suite / model
            target.mkdir()
            for file in (DATA / model).iterdir():
                (target / file.name).write_bytes(file.read_bytes())
        (suite / "broken").mkdir()
        (suite / "broken" / "model.pt2").write_bytes(b"garbage")
        out = self.path / "report.json"
        result = self.bad("check", "--suite", suite, "--report", out, code=1)
        reports = {one["file"]: one for one in verdicts(out.read_text())}
        broken = reports.pop("broken")
        self.assertEqual((broken["verdict"], broken["claims"][0]["kind"]), ("fail", "error"))
        self.assertEqual([one["verdict"] for one in reports.values()], ["pass"] * len(reports))
        self.assertIn("1 failed", result.stdout)


class RunAndBench(Case):
    def test_bench_fits_the_schema(self):
        report = self.fits("bench", "bench", DATA / "mlp" / "model.pt2", "--repeat", "2")
        self.assertGreater(report["ops"]["joint"], 0)

    def test_what_run_saves_is_a_reference(self):
        out = self.path / "saved.safetensors"
        for model in MODELS:
            file = DATA / model / "model.pt2"
            self.assertIn("backward", self.good("run", file, "--save", out, "--seed", "7").stdout)
            self.good("check", file, "--reference", out)

    def test_what_run_saves_is_read_at_every_order(self):  # K17
        file, out, again = DATA / "mlp" / "model.pt2", self.path / "saved.safetensors", self.path / "again.safetensors"
        for order in (["--order", "2"], ["--order", "3"], ["--order", "2", "--again", "backward"]):
            with self.subTest(order=order):
                self.good("run", file, *order, "--save", out, "--seed", "7")
                self.good("run", file, *order, "--inputs", out, "--save", again)
                self.assertEqual(out.read_bytes()[-4000:], again.read_bytes()[-4000:])
                self.assertIn("pass", self.good("check", file, *order, "--reference", out).stdout)
        self.assertIn("--order", self.bad("run", file, "--inputs", out).stderr)

    def test_run_stops_where_told(self):
        table = self.good("run", DATA / "mlp" / "model.pt2", "--until", "aten.relu.default").stdout
        self.assertIn("relu", table)
        self.assertNotIn("------  backward", table)
        self.bad("run", DATA / "mlp" / "model.pt2", "--until", "no_such_op")

    def test_ctrl_c_ends_cleanly(self):
        process = subprocess.Popen([support.PROGRAM, "check", "--suite", str(DATA)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()  # it is at work
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertIn(process.returncode, (0, 130))
        if process.returncode == 130:
            self.assertIn("cancelled", errors)


class Notes(Case):
    def setUp(self):
        super().setUp()
        self.model = self.path / "model.pt2"
        shutil.copy(DATA / "mlp" / "model.pt2", self.model)
        self.beside = self.path / "model.pt2.notes.json"

    def notes(self, *options, file=None):
        return json.loads(self.good("notes", file or self.model, "--format", "json", *options).stdout)["notes"]

    def test_notes_are_made_listed_and_taken_away(self):
        self.assertEqual(self.notes(), [])
        self.assertIn("no notes", self.good("notes", self.model).stdout)
        made = self.notes("--at", "linear", "--comment", "the first\nlayer", "--bookmark", "--name", "hidden")
        self.assertEqual([(n["comment"], n["bookmark"], n["name"]) for n in made], [("the first\nlayer", True, ""), ("", False, "hidden")])
        valid(self.beside.read_text(), "notes")
        self.assertEqual(self.notes(), made)
        text = self.good("notes", self.model).stdout
        for part in ("; the first", "; layer", "bookmark", "name: hidden"):
            self.assertIn(part, text)
        self.assertEqual(self.notes("--at", f"#{made[0]['op']}", "--no-bookmark")[0]["bookmark"], False)
        self.assertEqual(self.notes("--at", "linear", "--remove"), [])
        self.assertFalse(self.beside.exists())

    def test_the_debugger_makes_the_same(self):
        self.good("debug", self.model, "-c", "comment linear what is this", "-c", "name linear hidden", "-c", "bookmark linear")
        found = self.notes()
        self.assertEqual([(n["comment"], n["bookmark"], n["name"]) for n in found], [("what is this", True, ""), ("", False, "hidden")])
        answer = json.loads(self.good("debug", self.model, "-c", "bookmark linear", "--format", "json").stdout)
        self.assertFalse(answer["notes"][0]["bookmark"])
        self.assertEqual(answer["file"], str(self.beside))

    def test_a_session_takes_them_along(self):
        self.notes("--at", "linear", "--comment", "kept")
        session = self.path / "other.retrograd"
        self.good("save", self.model, "-o", session)
        self.beside.unlink()
        self.assertEqual([n["comment"] for n in self.notes(file=session)], ["kept"])
        self.notes("--at", "linear", "--comment", "", file=session)
        self.assertEqual(self.notes(file=session), [])

    def test_bad_use_and_broken_files(self):
        self.assertIn("there is no value 'nothing'", self.bad("notes", self.model, "--at", "nothing", "--bookmark").stderr)
        self.assertIn("there is no op #99999", self.bad("notes", self.model, "--at", "#99999", "--bookmark").stderr)
        self.assertIn("--at", self.bad("notes", self.model, "--bookmark").stderr)
        self.assertIn("--comment", self.bad("notes", self.model, "--at", "linear").stderr)
        self.beside.write_text("{")
        self.assertIn("notes.json", self.bad("notes", self.model).stderr)
        self.assertIn("saved without these notes", self.good("save", self.model).stderr)


class Compare(Case):
    MODEL = DATA / "mlp" / "model.pt2"

    def compared(self, *options):
        return json.loads(self.good("compare", self.MODEL, "--format", "json", *options).stdout)

    def test_in_another_precision(self):
        double = self.compared("--double")
        self.assertEqual(double, self.compared("--dtype-b", "float64"))
        self.assertEqual([double["dtype_a"], double["dtype_b"], double["tolerance"]], ["float32", "float64", 1e-4])
        narrow = self.compared("--dtype-b", "bfloat16")
        self.assertEqual([narrow["dtype_a"], narrow["dtype_b"], narrow["tolerance"]], ["float32", "bfloat16", 5e-2])
        self.assertGreater(narrow["largest"], 100 * double["largest"])
        self.assertIsNone(narrow["first_divergence"])
        self.assertEqual(len(narrow["rows"]), len(double["rows"]))
        strict = run("compare", self.MODEL, "--dtype-b", "float16", "--tolerance", "1e-6")
        self.assertEqual(strict.returncode, 1)
        self.assertIn("they diverge at #", strict.stdout)

    def test_weights_come_first(self):
        a, b = support.safetensors(self.path / "a.safetensors", {"h.0.w": [1, 2], "h.0.b": [1], "out.w": [3]}), support.safetensors(self.path / "b.safetensors", {"h.0.w": [1, 3], "h.0.b": [1], "out.w": [3]})
        text = self.bad("compare", a, b, code=1).stdout
        self.assertTrue(text.startswith("weights: 1 of 3 differ, largest relative difference 0.333"), text)
        self.assertIn("h.0: 1", text)
        self.fits("compare", "compare", a, b, code=1)
        self.assertEqual(self.good("compare", a, a).stdout, "weights: all 3 are equal\n")
        both = self.good("compare", self.MODEL, self.MODEL).stdout
        self.assertIn("weights: all ", both)
        report = self.fits("compare", "compare", self.MODEL, self.MODEL)
        self.assertEqual(report["weights"]["differ"], [])

    def test_bad_use(self):
        self.assertIn("float16", self.bad("compare", self.MODEL, "--dtype-b", "int8").stderr)
        self.bad("compare", self.MODEL, "--dtype-b", "float16", "--double")
        self.assertIn("nowhere.pt2", self.bad("compare", self.MODEL, "nowhere.pt2").stderr)


class Debug(Case):
    def test_every_command_answers_in_json(self):
        """What a script of all commands says, a line of JSON for each, with the command's name in it."""
        commands = ["where", "break kind mm", "break any if nan", "disable 2", "enable 2", "breakpoints", "continue", "reverse-step", "step 2", "next", "reverse-next", "step-out",
                    "reverse-step-out", "delete 1", "delete", "run-to border", "history", "list 2", "origin", "saved", "memory", "memory measured", "print l1.weight",
                    "run-to end", "print both l1.weight", "histogram l1.weight", "magnitudes l1.weight", "save-value l1.weight " + str(self.path / "w.npy"),
                    "watch l1.weight", "watch", "why-saved relu", "what-if recompute all", "why-no-gradient l1.weight", "check-gradient all",
                    "terms l1.weight", "comment relu its words", "name relu mine", "bookmark relu", "notes", "walk-nan", "restart", "step", "reverse-continue", "help"]
        model = self.path / "model.pt2"  # notes are kept next to it
        shutil.copy(DATA / "mlp" / "model.pt2", model)
        known = json.loads(self.good("debug", model, "--format", "json", "-c", "help").stdout)
        named = {command.split()[0] for command in commands}
        of_recordings = {"updates"}  # refused for a model
        self.assertEqual(sorted(set(known) - {"command"} - named - {"set"} - of_recordings), [])
        answers = self.good("debug", model, "--format", "json", "--keep-going", *[word for c in commands for word in ("-c", c)]).stdout.splitlines()
        self.assertEqual(len(answers), len(commands))
        for command, answer in zip(commands, map(json.loads, answers)):
            self.assertEqual(answer["command"], command)
            self.assertNotIn("error", answer)
            self.assertGreater(len(answer), 1, command)


class Save(Case):
    def save(self, model, *options, out="saved.retrograd"):
        out = self.path / out
        result = self.good("save", DATA / model / "model.pt2", "-o", out, "--format", "json", *options)
        valid(result.stdout, "save")
        return out

    def test_every_command_opens_a_session_as_it_was(self):
        for model in MODELS:
            with self.subTest(model=model):
                file = self.save(model, "--recompute", "all", "--seed", "5")
                options = ["--recompute", "all", "--seed", "5"]
                fresh = json.loads(self.good("trace", DATA / model / "model.pt2", "--format", "json", *options).stdout)
                stored = json.loads(self.good("trace", file, "--format", "json").stdout)
                for document in (fresh, stored):
                    document.pop("file")
                    for trace in document["traces"].values():
                        for record in trace["history"]:
                            record.pop("seconds")
                self.assertEqual(fresh, stored)
                self.assertIn("pass", self.good("check", file).stdout)
                self.assertIn("backward", self.good("run", file).stdout)
                self.fits("bench", "bench", file, "--repeat", "1")

    def test_options_derive_again_and_say_so(self):
        file = self.save("dropout_train", "--partition", "min-cut", "--recompute", "all")
        self.assertNotIn("derived again", self.good("trace", file).stderr)
        for options in (["--partition", "default"], ["--grad-inputs", "none"], ["--seed", "0"]):
            self.assertIn("derived again", self.good("trace", file, *options).stderr)
        count = lambda *options: self.good("trace", file, "--format", "json", *options).stdout.count('"recomputed"')
        self.assertGreater(count(), 0)
        self.assertGreater(count("--seed", "1"), 0)  # what is not named stays
        self.assertEqual(count("--partition", "default"), 0)

    def test_a_missing_model_file_is_named(self):
        model = self.path / "model.pt2"
        model.write_bytes((DATA / "mlp" / "model.pt2").read_bytes())
        self.good("save", model)
        model.unlink()
        for command in ("trace", "check", "run", "bench"):
            errors = self.bad(command, self.path / "model.retrograd").stderr
            self.assertIn(str(model), errors)
            self.assertIn("--embed", errors)

    def test_damaged_sessions_are_refused_by_name(self):
        content = self.save("mlp", "--embed", "--values").read_bytes()
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 1
        for name, damaged in (("cut", content[: len(content) // 2]), ("flipped", bytes(flipped))):
            file = self.path / f"{name}.retrograd"
            file.write_bytes(damaged)
            self.assertIn(file.name, self.bad("trace", file).stderr)


class Schedules(Case):
    SAMPLES = TOP / "tests" / "data" / "schedules"

    def schedule(self, *arguments):
        return self.good("pipeline", "schedule", *arguments).stdout

    def test_named_schedules_are_those_of_the_samples(self):
        csv = self.schedule("zbvzerobubble", "--ranks", 4, "--microbatches", 8, "--format", "csv")
        self.assertEqual(csv, (self.SAMPLES / "ZBVZeroBubble_pp4_mb8.csv").read_text())
        self.assertIn("makespan 33, bubble 27.3 %", self.schedule("1F1B", "--ranks", 4, "--microbatches", 8))

    def test_json_follows_its_schema(self):
        for arguments in (("DualPipeV", "--ranks", 2, "--microbatches", 4), (self.SAMPLES / "GPipe_pp2_mb4.csv",)):
            document = valid(self.schedule(*arguments, "--format", "json"), "schedule")
            self.assertEqual(len(document["rows"]), 2)

    def test_lowered_and_costed(self):
        costs = self.path / "costs.json"
        costs.write_text('{"unit": "ms", "transfer": 1, "stages": [{"F": 2, "B": 4, "activation_bytes": 10}]}')
        file = self.path / "lowered.csv"
        self.schedule("GPipe", "--ranks", 2, "--microbatches", 1, "--lower", "--format", "csv", "-o", file)
        self.assertEqual(file.read_text(), "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n")
        self.assertIn("makespan 14 ms", self.schedule(file, "--costs", costs))

    def test_times_are_those_of_a_model(self):
        model = ["--model", TOP / "tests" / "data" / "pipeline" / "mlp_3st" / "model.pt2", "--microbatches", 6]
        for options, unit in (([], "%"), (["--measure"], "ms")):
            document = valid(self.schedule("1F1B", *model, *options, "--format", "json"), "schedule")
            self.assertEqual((document["ranks"], document["unit"], len(document["costs"])), (3, unit, 3))
            work = sum(cost["F"] + cost["B"] for cost in document["costs"])
            self.assertAlmostEqual(sum(row["busy"] for row in document["rows"]), 6 * work, places=6)
            for cost, row in zip(document["costs"], document["rows"]):
                self.assertGreater(cost["activation_bytes"], 0)
                self.assertEqual(row["peak_activation_bytes"], row["peak_in_flight"] * cost["activation_bytes"])
                self.assertAlmostEqual(cost["I"] + cost["W"], cost["B"])
            if not options:
                self.assertAlmostEqual(work, 100)
        self.assertTrue(self.schedule("1F1B", *model, "--measure", "--format", "svg").startswith("<svg"))
        slow = json.loads(self.schedule("1F1B", *model, "--measure", "--link", 1e-6, "--format", "json"))  # a kilobyte a second
        self.assertGreater(slow["makespan"], 100)
        self.assertIn("--measure", self.bad("pipeline", "schedule", "1F1B", *model, "--link", 1).stderr)
        self.assertIn("F", self.schedule("ZBVZeroBubble", "--model", DATA / "mlp" / "model.pt2", "--stages", 4, "--ranks", 2, "--microbatches", 4, "--measure"))
        self.assertIn("the model is cut into 3: cut it with --stages 2", self.bad("pipeline", "schedule", "ZBVZeroBubble", *model).stderr)
        self.assertIn("--model", self.bad("pipeline", "schedule", "1F1B", "--stages", 2, "--microbatches", 2, "--ranks", 2).stderr)
        self.assertIn("--model", self.bad("pipeline", "schedule", "1F1B", "--measure", "--microbatches", 2, "--ranks", 2).stderr)

    def test_svg_is_xml(self):
        root = xml.etree.ElementTree.fromstring(self.schedule("Interleaved1F1B", "--ranks", 3, "--microbatches", 5, "--format", "svg"))
        self.assertEqual(sum(1 for e in root.iter() if e.tag.endswith("}title") and "microbatch" in e.text), 3 * 2 * 5 * 2)

    def test_what_cannot_be_is_said(self):
        result = self.bad("pipeline", "schedule", self.SAMPLES / "1F1B_pp2_mb4.csv", code=1)
        self.assertIn("rank 1, action 2 (1B0): deadlock: it needs 1F0, which no rank does", result.stderr)
        self.assertIn("at least 8", self.bad("pipeline", "schedule", "DualPipeV", "--ranks", 4, "--microbatches", 7).stderr)
        self.assertIn("GPipe", self.bad("pipeline", "schedule", "nothing").stderr)
        file = self.path / "bad.csv"
        file.write_text("0F0,0B0\n1F0,1Q0\n")
        self.assertIn("bad.csv: row 2, cell 2", self.bad("pipeline", "schedule", file).stderr)


class Ranks(Case):
    def test_each_rank_runs_the_command(self):
        lines = sorted(self.good("pipeline", "launch", "--ranks", 2, "--", "version").stdout.splitlines())
        self.assertEqual([line[:18] for line in lines], ["[rank 0] retrograd", "[rank 1] retrograd"])

    def test_the_first_failure_is_the_exit_code(self):
        result = self.bad("pipeline", "launch", "--ranks", 2, "--", "trace", "/no/such/file.pt2")
        self.assertIn("ended with exit code 2", result.stderr)
        self.assertIn("[rank 1] ", result.stderr)


    MARKED = TOP / "tests" / "data" / "pipeline"
    GPT12 = TOP.parent / "shared" / "cases" / "large" / "gpt12" / "model.pt2"

    def ranks(self, count, *arguments):
        return self.good("pipeline", "launch", "--ranks", count, "--", "pipeline", "run", *arguments, "--check")

    def test_ranks_give_the_gradients_of_the_model_in_one_piece(self):
        for model in ("mlp_3st", "shared_2st"):  # the second with a parameter that two stages share
            for schedule in ("GPipe", "1F1B", "InterleavedZeroBubble"):
                with self.subTest(model=model, schedule=schedule):
                    lines = self.ranks(3, self.MARKED / model / "model.pt2", "--schedule", schedule, "--microbatches", 4).stdout
                    self.assertEqual(lines.count("compared with the model in one piece"), 3)

    # On the CPU a link goes over Gloo: what NCCL does between GPUs, with the same code around it.
    def test_tensors_go_directly_or_through_the_host(self):
        shared = self.MARKED / "shared_2st" / "model.pt2"
        for schedule in ("1F1B", "InterleavedZeroBubble"):
            lines = self.ranks(3, shared, "--schedule", schedule, "--microbatches", 4, "--transfers", "direct").stdout
            self.assertEqual(lines.count("tensors over Gloo"), 3)
            self.assertEqual(lines.count("compared with the model in one piece"), 3)
        for how in ("auto", "host"):
            self.assertNotIn("tensors over", self.ranks(3, shared, "--transfers", how).stdout)
        draws = self.ranks(2, DATA / "dropout_train" / "model.pt2", "--stages", 2, "--microbatches", 3, "--transfers", "direct").stdout
        self.assertEqual(len(re.findall(r"pass +rank \d +equal", draws)), 2)

    # A buffer that a forward writes stays with its stage and goes on from microbatch to microbatch, as in a training step.
    def test_written_buffers_are_saved(self):
        model = DATA / "batchnorm_train" / "model.pt2"
        alone, folder = self.path / "alone.safetensors", self.path / "ranks"
        self.good("run", model, "--save", alone)
        expected = {name: data for name, data in self.tensors(alone).items() if name.startswith("mut.")}
        counts = {name: struct.unpack("<q", data)[0] for name, data in expected.items() if name.endswith("num_batches_tracked")}
        self.assertTrue(counts)
        for microbatches in (1, 3):
            with self.subTest(microbatches=microbatches):
                self.ranks(2, model, "--stages", 2, "--microbatches", microbatches, "--save", folder)
                ranks = [self.tensors(folder / f"rank_{rank}.safetensors") for rank in range(2)]
                self.assertFalse({name for name in ranks[0] if name.startswith("mut.")} & ranks[1].keys(), "one stage owns a buffer")
                saved = {name: data for rank in ranks for name, data in rank.items() if name.startswith("mut.")}
                self.assertEqual(saved.keys(), expected.keys())
                for name, count in counts.items():
                    self.assertEqual(struct.unpack("<q", saved[name])[0], count + microbatches - 1)
                self.assertEqual(saved == expected, microbatches == 1)

    def tensors(self, file):
        """The bytes of each tensor of a safetensors file."""
        content = file.read_bytes()
        size = struct.unpack_from("<Q", content)[0]
        header = json.loads(content[8 : 8 + size])
        return {name: content[8 + size :][slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}

    def test_what_is_transmitted_is_a_parameter_that_stages_share(self):
        shared = self.MARKED / "shared_2st" / "model.pt2"
        self.assertIn("model.pt2: parameter nothing: the model has no such parameter", self.bad("pipeline", "split", shared, "--transmit", "nothing").stderr)
        one = json.loads(self.good("pipeline", "split", self.MARKED / "mlp_3st" / "model.pt2", "--format", "json").stdout)["stages"][0]["parameters"][0]
        name = one if isinstance(one, str) else one["name"]
        noted = self.good("pipeline", "split", self.MARKED / "mlp_3st" / "model.pt2", "--transmit", name)
        self.assertIn(f"parameter {name} is used by no two stages: it is not transmitted", noted.stdout + noted.stderr)

    def gpus(self):
        if not shutil.which("nvidia-smi"):
            self.skipTest("no GPU here")
        count = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ")
        if count == 0:
            self.skipTest("no GPU here")
        return count

    def test_gpus_are_linked_by_nccl(self):
        count = min(self.gpus(), 4)
        alone = self.ranks(1, self.MARKED / "shared_2st" / "model.pt2", "--schedule", "InterleavedZeroBubble", "--device", "cuda", "--transfers", "direct").stdout
        self.assertIn("tensors over NCCL", alone)  # the sum over ranks at least
        if count == 1:
            self.skipTest("one GPU: nothing goes from one to another")
        lines = self.ranks(count, DATA / "mlp" / "model.pt2", "--stages", count, "--microbatches", 4, "--device", "cuda", "--transfers", "direct").stdout
        self.assertEqual(lines.count("tensors over NCCL"), count)
        self.assertEqual(lines.count("compared with the model in one piece"), count)

    def test_ranks_that_share_a_gpu_go_through_the_host(self):
        count = self.gpus() + 1
        result = self.ranks(count, DATA / "mlp" / "model.pt2", "--stages", count, "--microbatches", 2, "--device", "cuda")
        self.assertIn("note: tensors go through the memory of the host: ranks 0 and", result.stderr)

    # Holds P37: TRANSMIT over ranks, and REPLICATE without it.
    def test_shared_parameters_are_sent_or_summed(self):
        models = [self.MARKED / "shared_2st" / "model.pt2", TOP.parent / "shared" / "cases" / "pipeline" / "gpt4_2st" / "model.pt2"]
        for model in filter(pathlib.Path.exists, models):
            stages = len(json.loads(self.good("pipeline", "split", model, "--format", "json").stdout)["stages"])
            for transmit in ([], ["--transmit", "all"]):
                with self.subTest(model=model, transmit=transmit):
                    lines = self.ranks(stages, model, *transmit, "--microbatches", 2).stdout
                    self.assertEqual(lines.count("compared with the model in one piece"), stages)
                    self.good("pipeline", "check", model, *transmit)
                    split = json.loads(self.good("pipeline", "split", model, *transmit, "--format", "json").stdout)
                    self.assertTrue(split["transmitted" if transmit else "replicated"])
                    self.assertFalse(split["replicated" if transmit else "transmitted"])

    def test_draws_over_ranks_are_those_of_the_model_in_one_piece(self):
        model = self.path / "draws.txt"
        model.write_text('def computation(x):\n    # x: "f32[8, 8]"\n    a = aten.dropout(x, 0.5, True)\n    b = aten.tanh(a)\n    c = aten.dropout(b, 0.5, True)\n'
                         '    d = aten.sin(c)\n    e = aten.dropout(d, 0.5, True)\n    return e\n')
        lines = self.ranks(3, model, "--at", "#b", "--at", "#d", "--microbatches", 2, "--seed", 5).stdout
        self.assertEqual(lines.count("judged: 2 tensors"), 1)  # its outputs
        for schedule in ("1F1B", "InterleavedZeroBubble"):
            lines = self.ranks(2, DATA / "dropout_train" / "model.pt2", "--stages", 2, "--schedule", schedule, "--microbatches", 3, "--seed", 5).stdout
            self.assertEqual(len(re.findall(r"pass +rank \d +equal", lines)), 2)

    def batch(self, **inputs):
        """A safetensors file of float32 tensors, by shape, and of int64 ones, by their elements."""
        header, blob = {}, b""
        for name, value in inputs.items():
            count = math.prod(value) if isinstance(value, tuple) else len(value)
            data = array.array("f", [math.sin(i) for i in range(count)]) if isinstance(value, tuple) else array.array("q", value)
            header["in." + name] = {"dtype": "F32" if isinstance(value, tuple) else "I64", "shape": list(value) if isinstance(value, tuple) else [count],
                                    "data_offsets": [len(blob), len(blob) + len(data.tobytes())]}
            blob += data.tobytes()
        text = json.dumps(header).encode()
        file = self.path / "batch.safetensors"
        file.write_bytes(struct.pack("<Q", len(text)) + text + blob)
        return file

    def test_a_batch_is_cut_into_microbatches(self):
        loss = DYNAMIC / "loss" / "model.pt2"
        twelve = ["--batch", self.batch(x=(12, 8), target=list(range(10)) + [3, 4]), "--stages", 2, "--microbatches", 4]
        lines = self.ranks(2, loss, *twelve, "--scale-gradients", "--save", self.path / "saved").stdout
        self.assertEqual(lines.count("compared with the model in one piece over the whole batch"), 2)
        self.assertEqual(len(re.search(r"output 0 is ([-\d. ]+)", lines)[1].split()), 4)
        self.assertTrue((self.path / "saved" / "rank_1.safetensors").exists())
        launch = ["pipeline", "launch", "--ranks", 2, "--", "pipeline", "run", loss]
        self.assertIn("--scale-gradients divides so", self.bad(*launch, *twelve, "--check", code=1).stdout)
        uneven = self.ranks(2, DYNAMIC / "recurrence" / "model.pt2", "--batch", self.batch(x=(7, 5, 4)), "--stages", 2, "--microbatches", 3).stdout
        self.assertEqual(uneven.count("over the whole batch"), 2)
        static = self.ranks(2, DATA / "mlp" / "model.pt2", "--batch", self.batch(x=(12, 8)), "--stages", 2, "--microbatches", 3).stdout
        self.assertEqual(static.count("compared with the model in one piece"), 2)

    def test_a_batch_that_does_not_fit_says_why(self):
        launch = ["pipeline", "launch", "--ranks", 1, "--", "pipeline", "run", DATA / "mlp" / "model.pt2"]
        batch = self.batch(x=(10, 8))
        self.assertIn("microbatch 1 of 3", self.bad(*launch, "--batch", batch, "--microbatches", 3).stderr)
        self.assertIn("excludes", self.bad(*launch, "--batch", batch, "--inputs", batch).stderr)
        self.assertIn("the batch has no such tensor; it has x", self.bad(*launch, "--batch", batch, "--batch-dim", "y=0").stderr)
        self.assertIn("microbatch 0 of 3", self.bad(*launch, "--batch", self.batch(x=(12, 7)), "--microbatches", 3).stderr)
        self.assertIn("y: the model has no such input; it has x", self.bad(*launch, "--batch", self.batch(y=(4, 8))).stderr)
        self.assertIn("NAME=replicate", self.bad(*launch, "--batch", batch, "--batch-dim", "x=much").stderr)
        text = self.path / "one.txt"
        text.write_text('def computation(x):\n    # x: "f32[1, 4]"\n    a = aten.sin(x)\n    return a\n')
        self.assertIn("note: the batch makes 3 microbatches, not 8: x has 3 along dimension 0",
                      self.good(*launch[:-1], text, "--batch", self.batch(x=(3, 4)), "--microbatches", 8).stderr)

    # Holds P20: where data decide what is computed, one graph does not stand for all microbatches.
    def test_data_dependent_models_are_refused(self):
        result = self.bad("pipeline", "launch", "--ranks", 1, "--", "pipeline", "run", DYNAMIC / "selection" / "model.pt2", "--microbatches", 2)
        self.assertIn("its traces hold for one set of inputs only", result.stderr)

    def test_a_transformer_in_four_stages(self):
        if not self.GPT12.exists():
            self.skipTest("the large cases are not there")
        for schedule in ("1F1B", "InterleavedZeroBubble"):
            with self.subTest(schedule=schedule):
                lines = self.ranks(4, self.GPT12, "--stages", 4, "--balance", "parameters", "--schedule", schedule, "--microbatches", 8).stdout
                self.assertEqual(lines.count("compared with the model in one piece"), 4)

    def test_a_killed_rank_ends_all_and_is_named(self):
        process = subprocess.Popen([support.PROGRAM, "pipeline", "launch", "--ranks", "3", "--", "pipeline", "run", self.MARKED / "mlp_3st" / "model.pt2",
                                    "--schedule", "1F1B", "--microbatches", "20000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        time.sleep(8)  # they have met and run, for a minute or more
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        self.assertEqual(len(children), 3)
        os.kill(int(children[1]), signal.SIGKILL)
        begin = time.monotonic()
        output, errors = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("was ended by a signal (Killed)", errors)
        self.assertRegex(errors, r"\[rank \d\] retrograd: .*rank 1 is gone")

    def test_what_cannot_run_over_ranks_says_why(self):
        model = self.MARKED / "mlp_3st" / "model.pt2"
        self.assertIn("RANK", self.bad("pipeline", "run", model).stderr)
        self.assertIn("shared evenly", self.bad("pipeline", "launch", "--ranks", 2, "--", "pipeline", "run", model).stderr)


class BadInput(Case):
    def files(self):
        archive = (DATA / "mlp" / "model.pt2").read_bytes()
        flipped = bytearray(archive)
        flipped[len(flipped) // 2] ^= 0x10
        contents = {"empty": b"", "text": b"import torch\n" * 100, "garbage": os.urandom(4096), "truncated": archive[: len(archive) // 2],
                    "flipped": bytes(flipped), "headless": archive[100:]}
        for name, content in contents.items():
            file = self.path / f"{name}.pt2"
            file.write_bytes(content)
            yield file

    def test_trace_and_check_name_the_file(self):
        for file in self.files():
            for command in ("trace", "check", "run", "bench"):
                with self.subTest(file=file.name, command=command):
                    self.assertIn(file.name, self.bad(command, file).stderr)

    def test_unknown_ops_are_named_and_the_rest_is_shown(self):
        file = self.path / "unknown.pt2"
        with zipfile.ZipFile(DATA / "mlp" / "model.pt2") as old, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as new:
            for entry in old.infolist():
                new.writestr(entry.filename, old.read(entry).replace(b"torch.ops.aten.tanh.default", b"torch.ops.aten.tanhh.default"))
        result = self.good("trace", file)
        self.assertIn("aten.tanhh.default", result.stderr)
        self.assertIn("torch.ops.aten.relu.default", result.stdout)
        self.assertIn("tanhh", result.stdout)
        self.fits("trace", "trace", file)
        self.assertIn("aten.tanhh.default", self.bad("check", file).stdout)
        # What could not be checked does not pass, alone or in a suite, and the report keeps the reason.
        for arguments in ([file], ["--suite", self.path]):
            result = self.bad("check", *arguments, "--format", "json")
            report = verdicts(result.stdout)[0]
            self.assertEqual(report["verdict"], "not possible")
            self.assertIn("opaque-ops", [claim["kind"] for claim in report["claims"]])
        self.assertIn("not possible", self.good("check", "--suite", self.path, "--allow-skips").stdout)

    def test_missing_files(self):
        absent = self.path / "absent.pt2"
        self.assertIn("no such file", self.bad("trace", absent).stderr)
        self.assertIn("no such file", self.bad("check", DATA / "mlp" / "model.pt2", "--reference", absent).stderr)
        self.assertIn("no such folder", self.bad("check", "--suite", absent).stderr)
        self.assertIn("no such file", self.bad(absent).stderr)

    def test_bad_use(self):
        self.bad("trace")
        self.bad("check")
        self.bad("trace", DATA / "mlp" / "model.pt2", "--show", "nothing")
        self.bad("--no-such-option")
        self.bad("help", "no-such-topic")
        self.bad("run", DATA / "mlp" / "model.pt2", "--grad-inputs", "no_such_input")


class Filter(Case):
    def test_lists_the_ops_that_pass(self):
        model = DATA / "mlp" / "model.pt2"
        text = self.good("trace", model, "--show", "backward", "--filter", "op:mm or role:accumulation").stdout
        calls = [line for line in text.splitlines() if " = torch.ops" in line]
        self.assertTrue(calls and all("aten.mm.default(" in line for line in calls))
        self.assertIn(f"backward: {len(calls)} of ", text)
        document = self.fits("trace", "trace", model, "--filter", "saved")
        self.assertLess(len(document["traces"]["joint"]["ops"]), 30)
        self.assertIn("column 4", self.bad("trace", model, "--filter", "op:").stderr)


class Export(Case):
    def test_every_format_writes_a_file(self):
        model = DATA / "batchnorm_train" / "model.pt2"
        for name in ("model.txt", "model.py", "model.dot", "model.csv", "model.json"):
            with self.subTest(name=name):
                self.good("export", model, "-o", self.path / name)
                self.assertGreater((self.path / name).stat().st_size, 200)
        valid((self.path / "model.json").read_text(), "ops")
        compile((self.path / "model.py").read_text(), "model.py", "exec")
        self.assertTrue((self.path / "model.py.safetensors").exists())
        self.good("check", self.path / "model.txt")  # printed traces read back in

    def test_tables_hold_the_ops_of_the_traces(self):
        table = self.path / "table.csv"
        self.good("export", DATA / "cond_hop" / "model.pt2", "--show", "all", "-o", table)
        with table.open(newline="") as file:
            rows = list(csv.DictReader(file))
        document = json.loads(self.good("trace", DATA / "cond_hop" / "model.pt2", "--format", "json").stdout)
        self.assertEqual([(row["trace"], int(row["id"]), row["op"]) for row in rows],
                         [(kind, op["id"], op["op"].removeprefix("torch.ops.")) for kind in ("computation", "joint", "forward", "backward")
                          for op in document["traces"][kind]["ops"]])
        self.assertTrue(all((row["milliseconds"] == "") == (row["trace"] == "computation") for row in rows))

    def test_a_profile_holds_slices_counters_and_arrows(self):
        trace = json.loads(self.good("export", DATA / "mlp" / "model.pt2", "--to", "chrome").stdout)
        kinds = [event["ph"] for event in trace["traceEvents"]]
        self.assertEqual(kinds.count("X"), kinds.count("C"))
        self.assertEqual(kinds.count("s"), kinds.count("f"))
        self.assertGreater(kinds.count("s"), 0)

    def test_bad_use(self):
        model = self.path / "model.pt2"
        shutil.copy(DATA / "mlp" / "model.pt2", model)
        before = model.read_bytes()
        self.assertIn("--format", self.bad("export", model).stderr)
        self.assertIn("-o FILE", self.bad("export", model, "--to", "python").stderr)
        self.assertIn("is both read and written", self.bad("export", model, "--to", "text", "-o", model).stderr)
        self.bad("export", model, "--to", "no-such-format")
        self.assertIn("no-such-folder", self.bad("export", model, "-o", self.path / "no-such-folder" / "a.txt").stderr)
        self.assertEqual(model.read_bytes(), before)

    def test_pictures_of_the_graph(self):
        model = DATA / "mlp" / "model.pt2"
        if "picture" not in self.good("help").stdout:
            message = self.bad("export", model, "-o", self.path / "graph.svg").stderr
            self.assertIn("built with its window", message)
            self.assertFalse((self.path / "graph.svg").exists())
            return
        for name, magic in (("graph.svg", b"<?xml"), ("graph.png", b"\x89PNG"), ("graph.pdf", b"%PDF")):
            self.good("export", model, "-o", self.path / name)
            self.assertTrue((self.path / name).read_bytes().startswith(magic), name)
        texts = lambda *arguments: [element.text for element in
                                    xml.etree.ElementTree.fromstring(self.good("export", model, "--to", "svg", *arguments).stdout).iter("{http://www.w3.org/2000/svg}text")]
        closed, opened = texts(), texts("--open-all")
        self.assertIn("l1 \u00b7 linear", closed)
        self.assertGreater(len(opened), len(closed))
        self.assertIn("addmm", texts("--open", "l1"))
        self.assertNotIn("addmm", closed)
        self.assertNotIn("l1 \u00b7 linear backward", texts("--show", "forward"))
        self.assertIn("--open no.such", self.bad("export", model, "--to", "svg", "--open", "no.such").stderr)
        self.assertIn("one trace", self.bad("export", model, "--to", "svg", "--show", "all").stderr)
        self.assertIn("pictures", self.bad("export", model, "--to", "csv", "--open-all").stderr)
        self.bad("export", model, "-o", self.path / "no-such-folder" / "graph.pdf")


class Diff(Case):
    def test_what_is_equal_and_what_is_not(self):
        model = DATA / "mlp" / "model.pt2"
        self.assertEqual(self.good("diff", model, model).stdout, "")
        text = self.bad("diff", model, "--recompute-b", "l2", code=1).stdout
        self.assertIn("~  saved: saved for the backward -> not saved", text)
        self.assertIn("recompute of", text)
        self.assertTrue(text.splitlines()[-1].endswith(" the same"), text)
        self.assertEqual(self.ends(1, "diff", model, "--recompute-b", "l2", "-q").stdout, "")
        self.assertIn("dtype: f32 -> f64", self.bad("diff", model, "--double", "--show", "computation", code=1).stdout)

    def test_json_fits_the_schema_and_its_lines_are_those_of_the_traces(self):
        model, other = DATA / "inplace_views" / "model.pt2", DATA / "multi_output" / "model.pt2"
        for arguments in ([other], ["--recompute-b", "all"], ["--show-b", "forward"], ["--pass", "dead"], ["--show", "computation", "--show-b", "joint"]):
            with self.subTest(arguments=arguments):
                document = self.fits("diff", "diff", model, *arguments, code=1)
                counts, rows = document["counts"], document["rows"]
                for kind, name in (("changed", "changed"), ("only_a", "only_a"), ("only_b", "only_b"), ("moved_away", "moved"), ("moved_here", "moved")):
                    self.assertEqual(sum(row["kind"] == kind for row in rows), counts[name])
                of_a = counts["same"] + sum(row["part"] == "op" and row["a"] is not None and row["kind"] != "moved_here" for row in rows)
                self.assertEqual(of_a, document["a"]["ops"])

    def test_text_forms(self):
        model = DATA / "mlp" / "model.pt2"
        whole = self.bad("diff", model, "--recompute-b", "all", "-U", "100000", code=1).stdout.splitlines()
        ops = len(json.loads(self.good("trace", model, "--show", "joint", "--format", "json").stdout)["traces"]["joint"]["ops"])
        self.assertEqual(sum(line[0] in " -" for line in whole[3:-1] if not line.startswith(" return")), ops)
        columns = self.bad("diff", model, "--recompute-b", "all", "-y", "-W", "100", code=1).stdout.splitlines()
        self.assertTrue(any(" > " in line for line in columns))
        self.assertTrue(all(len(line) <= 102 for line in columns[1:-1] if not line.lstrip().startswith(("~", "@@"))), max(columns, key=len))

    def test_passes(self):
        model = DATA / "inplace_views" / "model.pt2"
        self.assertIn("only in the first", self.bad("diff", model, "--pass", "dead", code=1).stdout)
        self.assertIn("clone", self.bad("diff", model, "--pass", "copy", code=1).stdout)
        self.assertIn("before Dead code elimination", self.bad("diff", model, "--before", "dead", code=1).stdout)
        message = self.bad("diff", model, "--pass", "recomputation").stderr
        self.assertIn("Grad transform, Dead code elimination, Copy elision, Split", message)
        self.assertIn("after Recomputation", self.bad("diff", model, "--pass", "recomputation", "--recompute", "all", code=1).stdout)

    def test_bad_use(self):
        model = DATA / "mlp" / "model.pt2"
        self.assertIn("second", self.bad("diff", model).stderr)
        self.bad("diff", model, self.path / "missing.pt2")
        self.bad("diff", model, model, "--pass", "dead")
        self.bad("diff", model, "--pass", "dead", "--before", "dead")
        self.bad("diff", model, "--recompute-b", "no.such.module")


class Pipeline(Case):
    MARKED = TOP / "tests" / "data" / "pipeline"

    def test_json_fits_the_schema(self):
        for arguments in (["mlp_3st"], ["shared_2st"], ["shared_2st", "--transmit", "all"]):
            model = self.MARKED / arguments[0] / "model.pt2"
            document = self.fits("pipeline", "pipeline", "split", model, *arguments[1:])
            self.assertEqual(len(document["stages"]), 3)

    def test_stages_have_devices_of_their_own(self):
        model = DATA / "mlp" / "model.pt2"
        document = self.fits("pipeline", "pipeline", "split", model, "--stages", 2, "--devices", "cpu,cuda:1", "--out", self.path)
        self.assertEqual([stage["device"] for stage in document["stages"]], ["cpu", "cuda:1"])
        self.assertNotIn("cuda", self.good("trace", self.path / "stage_0.retrograd").stdout)
        trace = self.good("trace", self.path / "stage_1.retrograd").stdout
        self.assertIn("cuda:1 f32[", trace)
        self.assertNotIn('"cpu', trace)
        self.good("pipeline", "check", model, "--stages", 2, "--devices", "cpu")
        self.assertIn("3 devices are given for 2 stages", self.bad("pipeline", "split", model, "--stages", 2, "--devices", "cpu,cpu,cpu").stderr)
        self.assertIn("is not a device", self.bad("pipeline", "split", model, "--devices", "gpu").stderr)

    # Holds P56: stages are kept on disk as session files.
    def test_stages_are_files_of_their_own(self):
        model = self.path / "model.pt2"
        shutil.copy(self.MARKED / "shared_2st" / "model.pt2", model)
        self.good("pipeline", "split", model, "--out", self.path)
        model.unlink()  # they have weights of their own
        document = valid((self.path / "pipeline.json").read_text(), "pipeline")
        stages = sorted(self.path.glob("stage_*.retrograd"))
        self.assertEqual(len(stages), 3)
        for stage, told in zip(stages, document["stages"]):
            self.good("check", stage)
            self.assertEqual(re.findall(r'", parameter ([\w.]+)', self.good("trace", stage, "--show", "computation").stdout), told["parameters"])
            self.good("run", stage)

    # Holds P19: where nothing runs between two calls of a module, the numbers that torch.export gave them distinguish them.
    def test_calls_in_a_row_are_cut_apart(self):
        file = self.path / "in_a_row.pt2"
        modules = {"relu": "L__self__l1,l1", "linear_1": "L__self__l1@1,l1"}  # l1, and l1 again
        with zipfile.ZipFile(DATA / "mlp" / "model.pt2") as old, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as new:
            for entry in old.infolist():
                content = old.read(entry)
                if entry.filename.endswith("model.json"):
                    program = json.loads(content)
                    for node in program["graph_module"]["graph"]["nodes"]:
                        if node["name"] in modules:
                            node["metadata"]["nn_module_stack"] = f"L__self__,,model.M;{modules[node['name']]},torch.nn.modules.linear.Linear"
                    content = json.dumps(program)
                new.writestr(entry.filename, content)
        document = json.loads(self.good("pipeline", "split", file, "--at", "l1", "--format", "json").stdout)
        self.assertEqual([stage["ops"] for stage in document["stages"]], [2, 3])

    def test_stages_equal_the_model(self):
        for arguments in (["--stages", "3"], ["--at", "l2", "--at", "#tanh:after"]):
            self.assertIn("bit for bit", self.good("pipeline", "check", DATA / "mlp" / "model.pt2", *arguments).stdout)
        reports = verdicts(self.good("pipeline", "check", "--suite", DATA, "--stages", "2", "--balance", "bytes", "--format", "json", "--allow-skips").stdout)
        self.assertGreater(len([r for r in reports if r["verdict"] == "pass"]), 8)

    def test_without_cuts_it_is_one_stage_and_says_so(self):
        self.assertIn("one stage", self.good("pipeline", "check", DATA / "mlp" / "model.pt2").stdout)

    def test_refusals_name_op_and_reason(self):
        model = DATA / "mlp" / "model.pt2"
        self.assertIn("nonexistent module nothing", self.bad("pipeline", "check", model, "--at", "nothing.here").stderr)
        self.assertIn("is the most", self.bad("pipeline", "split", model, "--stages", "40").stderr)
        self.assertIn("Cannot specify both", self.bad("pipeline", "split", self.MARKED / "mlp_3st" / "model.pt2", "--stages", "2").stderr)
        self.assertIn("#fill_ (torch.ops.aten.fill_.Scalar) in stage 1",
                      self.bad("pipeline", "check", DATA / "inplace_views" / "model.pt2", "--at", "#fill_").stderr)
        self.bad("pipeline")
        self.bad("pipeline", "check")
        self.bad("pipeline", "split", self.path / "none.pt2")


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=1)
