#!/usr/bin/env python3
"""What the built `retrograd` (first argument) does with what a training job leaves: weights, batches, recorded numbers, repro folders.

The samples lie beside the checkout (../shared/cases/jobs); without them these tests say that they are skipped. The others need none.
"""
import json
import pathlib
import struct
import sys
import unittest
import zipfile

import support
from support import MODELS, TOP, Case, valid

JOBS = TOP.parent / "shared" / "cases" / "jobs"
MLP = MODELS / "mlp" / "model.pt2"


def read_safetensors(path):
    """{name: (dtype, shape, bytes)}"""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:8 + size]), content[8 + size:]
    return {name: (one["dtype"], one["shape"], data[slice(*one["data_offsets"])]) for name, one in header.items() if name != "__metadata__"}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def weights_of(model):
    """The weights of a .pt2 as safetensors has them."""
    with zipfile.ZipFile(model) as archive:
        name = next(n for n in archive.namelist() if n.endswith("model_weights_config.json"))
        folder = name.rsplit("/", 1)[0]
        result = {}
        for key, entry in json.loads(archive.read(name))["config"].items():
            sizes = [size["as_int"] for size in entry["tensor_meta"]["sizes"]]
            result[key] = ("F32", sizes, archive.read(folder + "/" + entry["path_name"]))
        return result


class Weights(Case):
    def setUp(self):
        super().setUp()
        self.own = weights_of(MLP)
        self.run_file = self.path / "run.safetensors"

    def results(self, *arguments):
        self.good("run", MLP, "--save", self.run_file, *arguments)
        return read_safetensors(self.run_file)

    def test_J13_weights_take_the_place_of_the_models(self):
        own = self.results()
        same = write_safetensors(self.path / "same.safetensors", {"module." + name: tensor for name, tensor in self.own.items()})
        self.assertEqual(self.results("--weights", same), own)
        zeros = write_safetensors(self.path / "zeros.safetensors", {name: (d, s, bytes(len(b))) for name, (d, s, b) in self.own.items()})
        self.assertNotEqual(self.results("--weights", zeros), own)

    def test_J14_what_does_not_fit_is_listed_and_refused(self):
        names = sorted(self.own)
        odd = dict(self.own)
        lacking, wrong = names[0], names[1]
        del odd[lacking]
        dtype, shape, content = odd[wrong]
        odd[wrong] = (dtype, [len(content) // 4, 1], content)
        odd["extra.weight"] = ("F32", [1], bytes(4))
        path = write_safetensors(self.path / "odd.safetensors", odd)
        errors = self.bad("run", MLP, "--weights", path).stderr
        for text in (f"missing: {lacking} f32[", f"different: {wrong} f32[{len(content) // 4}, 1], wanted f32[", "superfluous: extra.weight f32[1]", "--partial-weights"):
            self.assertIn(text, errors)
        self.assertIn("superfluous: extra.weight", self.good("run", MLP, "--weights", path, "--partial-weights").stderr)

    def test_J14_a_batch_that_does_not_fit_is_refused(self):
        path = write_safetensors(self.path / "batch.safetensors", {"nothing": ("F32", [1], bytes(4))})
        errors = self.bad("run", MLP, "--batch", path).stderr
        self.assertIn("missing: ", errors)
        self.assertIn("superfluous: nothing f32[1]", errors)

    def test_a_session_keeps_the_weights(self):
        zeros = write_safetensors(self.path / "zeros.safetensors", {name: (d, s, bytes(len(b))) for name, (d, s, b) in self.own.items()})
        expected = self.results("--weights", zeros)
        session = self.path / "model.retrograd"
        self.good("save", MLP, "--weights", zeros, "-o", session)
        self.good("run", session, "--save", self.run_file)
        self.assertEqual(read_safetensors(self.run_file), expected)


class Shrink(Case):
    """Faults planted in small graphs: what is left is the op that makes them, with what it reads."""
    PLANTED = TOP / "tests" / "data" / "planted"

    def shrunk(self, *arguments):
        report = valid(self.good("shrink", *arguments, "-o", self.path / "small", "--format", "json").stdout, "shrink")
        self.assertTrue(pathlib.Path(report["script"]).is_file())
        self.good("run", report["session"])
        return [op["op"].removeprefix("torch.ops.aten.") for op in report["ops"]]

    def test_to_the_op_that_makes_a_nan(self):
        self.assertEqual(self.shrunk(self.PLANTED / "zero_over_zero.txt", "--nan"), ["mul.Tensor", "sqrt.default"])
        self.assertEqual(self.shrunk(self.PLANTED / "half_overflow.txt", "--nan"), ["sin.default"])
        self.assertEqual(self.shrunk(self.PLANTED / "log_of_zero.txt", "--nan"), ["mul.Tensor", "log.default"])
        # What was written shows the fault by itself.
        self.assertIn("root: ", self.ends(1, "debug", self.path / "small.retrograd", "-c", "walk-nan").stdout)
        self.good("shrink", self.path / "small.retrograd", "--nan", "-o", self.path / "again")

    def test_to_the_op_that_lacks_precision(self):
        self.assertEqual(self.shrunk(self.PLANTED / "half_overflow.txt", "--double"), ["mul.Tensor"])
        self.assertIn("does not show the fault", self.bad("shrink", self.PLANTED / "log_of_zero.txt", "--double").stderr)
        self.assertIn("does not show the fault", self.bad("shrink", self.PLANTED / "half_overflow.txt", "--double", "--tolerance", "inf").stderr)

    def test_to_the_op_that_differs_from_another_run(self):
        model = self.path / "chain.txt"
        model.write_text("""def computation(x):
    # x: "f32[4]"
    y = aten.mul.Tensor(x, 2.0)
    z = aten.add.Tensor(y, 1.0)
    w = aten.mul.Tensor(z, 3.0)
    v = aten.neg(w)
    return v
""")
        inputs = support.safetensors(self.path / "x.safetensors", {"in.x": [1, 2, 3, 4]})
        right = {"y": [2, 4, 6, 8], "z": [3, 5, 7, 9], "w": [9, 15, 21, 27], "v": [-9, -15, -21, -27]}
        wrong = {**right, "w": [9, 15, 21, 27.5], "v": [-9, -15, -21, -27.5]}
        given = (model, "--inputs", inputs, "--reference")
        reference = support.safetensors(self.path / "wrong.safetensors", wrong)
        self.assertEqual(self.shrunk(*given, reference), ["mul.Tensor"])
        self.assertIn("does not show the fault", self.bad("shrink", *given, reference, "--tolerance", "0.1").stderr)
        self.assertIn("does not show the fault", self.bad("shrink", *given, support.safetensors(self.path / "right.safetensors", right)).stderr)

    def test_one_fault_at_a_time(self):
        for options in ([], ["--nan", "--double"]):
            self.assertIn("one of --nan, --double, --reference FILE, --command COMMAND", self.bad("shrink", self.PLANTED / "log_of_zero.txt", *options).stderr)


class Logs(Case):
    """A job that evaluates before it trains: 0/0 has an inference graph alone, 0/1 all three."""
    LOG = TOP / "resources" / "samples" / "evaluate" / "trace"

    def test_an_inference_graph_is_a_computation(self):
        shown = self.good("trace", self.LOG, "--compile", "0/0").stdout
        self.assertIn("def computation(arg0_1,", shown)
        self.assertIn("torch.ops.aten.nll_loss_forward.default", shown)
        self.assertEqual(shown, self.good("trace", self.LOG, "--show", "computation").stdout)
        traces = valid(self.good("trace", self.LOG, "--format", "json").stdout, "trace")["traces"]
        self.assertEqual(len(traces), 1)
        for kind in ("joint", "forward", "backward"):
            self.assertIn("this compile has no backward in the log", self.bad("trace", self.LOG, "--compile", "0/0", "--show", kind).stderr)
            self.assertIn(f"def {kind}(", self.good("trace", self.LOG, "--compile", "0/1", "--show", kind).stdout)
        self.bad("trace", self.LOG, "--compile", "0/1", "--show", "computation")

    def test_what_is_printed_reads_back(self):
        text = self.path / "printed.txt"
        for kind in ("joint", "forward", "backward"):
            text.write_text(self.good("trace", self.LOG, "--compile", "0/1", "--show", kind).stdout)
            again = self.good("trace", text).stdout
            self.assertEqual(again, "".join(line for line in text.read_text().splitlines(True) if not line.startswith("# ")))
        self.assertIn("the text has no joint trace", self.bad("trace", text, "--show", "joint").stderr)
        self.assertIn("def computation", self.bad("run", text).stderr)

    def test_a_compile_without_a_backward_runs(self):
        results = self.path / "run.safetensors"
        ran = self.good("run", self.LOG, "--compile", "0/0", "--save", results)
        self.assertIn("this compile has no backward in the log", ran.stderr)
        self.assertEqual([name for name in read_safetensors(results) if name.startswith("grad.")], [])
        self.good("run", self.LOG, "--compile", "0/1", "--save", results)
        self.assertIn("grad.p.a.weight", read_safetensors(results))

    def test_check_says_that_there_is_no_gradient(self):
        told = self.ends(2, "check", self.LOG, "--compile", "0/0").stdout
        self.assertIn("there is no gradient to compare", told)
        report = valid(self.ends(2, "check", self.LOG, "--compile", "0/0", "--format", "json").stdout, "report")
        self.assertEqual(report["verdict"], "not possible")
        # Without a name it is the first compile with a backward.
        report = valid(self.good("check", self.LOG, "--format", "json").stdout, "report")
        self.assertIn("compile 0/1", report["notes"][0])
        self.assertEqual(report["details"]["drawn"], 6)
        self.assertIn("6 inputs were drawn from the descriptors in the log", self.good("check", self.LOG).stdout)

    def test_a_log_that_ends_early(self):
        """Without the backward, then without the forward: what is left opens, and says what is missing."""
        text = next(self.LOG.iterdir()).read_text()
        for ends_at, shown, told in (('{"aot_backward_graph"', "forward", "no backward in the log"), ('{"aot_forward_graph"', "joint", "the joint graph of compile 0/1")):
            log = self.path / "cut.log"
            log.write_text(text[:text.rindex("\n", 0, text.index(ends_at)) + 1])
            self.assertIn(f"def {shown}(", self.good("trace", log, "--compile", "0/1").stdout)
            ran = self.good("run", log, "--compile", "0/1", "--save", self.path / "run.safetensors")
            self.assertIn(told, ran.stderr)
            self.assertIn("grad.p.a.weight", read_safetensors(self.path / "run.safetensors"))
            self.assertIn("there is no gradient to compare", self.ends(2, "check", log, "--compile", "0/1").stdout)


@unittest.skipUnless(JOBS.exists(), "the samples are not beside the checkout")
class Jobs(Case):
    def test_J13_the_step_that_went_nan_in_each_form(self):
        job = JOBS / "nan_step"
        for weights in ("dcp", "step.pt", "model.safetensors.index.json"):
            with self.subTest(weights=weights):
                given = ("--weights", job / weights, "--batch", job / "batch.safetensors")
                # It agrees with the job, whose loss is infinite too: no pass all the same.
                verdict = self.ends(1, "check", job / "model.pt2", *given, "--reference", job / "ref.safetensors").stdout
                self.assertNotRegex(verdict, "fault: .* tolerance ")
                self.assertIn("fault: Inf is first made by ", verdict)
                script = self.path / "walk.txt"
                script.write_text("walk-nan\n")
                walk = self.ends(1, "debug", job / "model.pt2", *given, "--script", script).stdout
                self.assertRegex(walk, r"root: .*log.*\n(.*\n)*.*\.py:\d+")

    # Holds J9: a collective does not run; it is passed over with the values that are given, and else the rest says what it waits for.
    def test_J9_collectives_are_passed_over_where_their_values_are_given(self):
        log = JOBS / "tp" / "trace"
        if not log.exists():
            self.skipTest("no samples of jobs")
        alone = self.good("run", log)
        self.assertIn("_c10d_functional.all_reduce.default (2 times)", alone.stderr)
        self.assertIn("fill these in from a safetensors file with --fill", alone.stderr)
        lines = alone.stdout.splitlines()
        line = lambda lines, name: next(one for one in lines if f"  {name} = " in one)
        self.assertTrue(line(lines, "all_reduce").endswith("  # not run: opaque"))
        self.assertTrue(line(lines, "sum_1").endswith("  # not run: depends on torch.ops._c10d_functional.wait_tensor.default"))
        self.assertNotIn("not run", line(lines, "mm_1"))
        content = struct.pack("<128f", *range(128))
        given = write_safetensors(self.path / "given.safetensors", {name: ("F32", [8, 16], content) for name in ("wait_tensor", "wait_tensor_1")})
        saved = self.path / "run.safetensors"
        filled = self.good("run", log, "--fill", given, "--save", saved)
        self.assertNotIn("do not run", filled.stderr)
        lines = filled.stdout.splitlines()
        self.assertTrue(line(lines, "wait_tensor").endswith("  # not run: its result was given"))
        self.assertNotIn("not run", line(lines, "sum_1"))
        self.assertEqual(struct.unpack("<f", read_safetensors(saved)["out.0"][2]), (float(sum(range(128))),))
        wrong = write_safetensors(self.path / "wrong.safetensors", {"mm_1": ("F32", [8, 16], content)})
        self.assertIn("no opaque op has this result", self.bad("run", log, "--fill", wrong).stderr)

    def test_J12_the_second_gelu_is_the_first_difference(self):
        job = JOBS / "debugmode"
        report = valid(self.ends(1, "numbers", job / "clean.json", job / "perturbed.json", "--format", "json").stdout, "numbers")
        first = report["first_difference"]
        self.assertEqual(first["made_in_a"]["op"], "aten::gelu")
        self.assertEqual(first["made_in_a"]["module"], "Gpt.blocks.1")
        self.assertEqual(first["made_in_b"]["op"], "aten::mul.Tensor")
        self.assertTrue(first["alone_in_b"])
        given = ("--weights", job / "model.safetensors", "--batch", job / "batch.safetensors")
        report = valid(self.ends(1, "numbers", job / "model.pt2", job / "perturbed.json", *given, "--format", "json").stdout, "numbers")
        made = report["first_difference"]["made_in_a"]
        self.assertEqual((made["op"], made["trace_op"]), ("aten::gelu", "torch.ops.aten.gelu.default"))
        self.assertIn("blocks.1", made["module"])
        self.good("numbers", job / "model.pt2", job / "clean.json", *given)

    def test_J11_a_repro_folder_opens_and_shrinks(self):
        self.good("run", JOBS / "repro" / "repro.py")
        self.good("run", JOBS / "repro")
        self.good("check", JOBS / "repro")
        self.good("save", JOBS / "repro", "-o", self.path / "repro.retrograd")
        self.good("run", self.path / "repro.retrograd")
        self.good("compare", JOBS / "repro" / "repro.py", "--double", "--tolerance", "1e-3")
        out = self.path / "small"
        report = valid(self.good("shrink", JOBS / "repro" / "repro.py", "--command", "! grep -q 'aten.relu' {}", "-o", out, "--format", "json").stdout, "shrink")
        self.assertLessEqual(len(report["ops"]), 3)
        self.assertIn("torch.ops.aten.relu.default", [op["op"] for op in report["ops"]])
        self.assertTrue(pathlib.Path(report["script"]).exists())
        self.good("run", report["session"])
        self.good("check", report["model"])

    def test_J11_a_folder_above_says_what_can_be_opened(self):
        for command in ("run", "check", "graphs"):
            with self.subTest(command=command):
                told = self.bad(command, JOBS / "repro_real").stderr
                self.assertIn("repro_real/torch_compile_debug/tlparse", told)
                self.assertIn("torchinductor/model__0_forward_1.0", told)

    def test_J11_what_is_drawn_is_one_note(self):
        script = next(JOBS.glob("repro_real/**/model__0_backward_3.1/fx_graph_runnable.py"))
        told = self.good("run", script).stderr
        self.assertEqual(told.count("drawn from seed"), 1)
        self.assertRegex(told, r"note: arguments primals_2, primals_4, primals_6 and \d+ more: the script holds no data: drawn from seed 0")

    def test_J15_the_compiles_that_are_left_out_are_named(self):
        self.assertIn("this is the first compile alone; there are more: --compile 2/0\n", self.good("check", JOBS / "graph_break" / "trace").stdout)
        self.assertIn("there are more: --compile 6/0; --rank 1\n", self.good("check", JOBS / "ranks" / "trace").stdout)

    def test_J11_scripts_with_storages_beside_them(self):
        for script in sorted(JOBS.glob("repro_real/**/fx_graph_runnable.py")):
            with self.subTest(script=script.parent.name):
                self.good("run", script)


if __name__ == "__main__":
    support.PROGRAM = sys.argv.pop(1)
    unittest.main()
