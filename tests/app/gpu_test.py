#!/usr/bin/env python3
"""Runs the built `retrograd` (first argument) on a simulated GPU: tests/support/played_gpu in LibTorch's place, tests/support/fake_driver in the
driver's. The driver's log has every call, and each time that LibTorch waits for the GPU, in order."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

import support

PLAYED = None  # the folder of the played GPU
CASES = support.TOP.parent / "shared" / "cases"
SAMPLE = support.TOP / "resources" / "samples" / "tiny_gpt.pt2"
WAITS = re.compile(r"LibTorch waits|cuStreamSynchronize|cuEventSynchronize")
MEMORY = ("cuMemAlloc_v2", "cuMemFree_v2", "cuMemsetD8Async", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2")


class Case(support.Case):
    def setUp(self):
        super().setUp()
        if not (PLAYED / "libtorch_cuda.so").exists():
            self.skipTest("the played GPU is not built")
        self.log = self.path / "driver.log"

    def need_kernels(self):
        if not json.loads(support.run("version", "--format", "json").stdout)["gpu_kernels"]:
            self.skipTest("this build has no kernels: no nvcc")

    def on_gpu(self, *arguments, code=0):
        """What the command printed, and the lines of the driver's log."""
        self.log.unlink(missing_ok=True)
        environment = {**support.environment(), "LD_LIBRARY_PATH": str(PLAYED), "RETROGRAD_FAKE_DRIVER_LOG": str(self.log)}
        result = subprocess.run([support.PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, env=environment,
                                stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stdout[-2000:]}{result.stderr[-2000:]}")
        lines = self.log.read_text().splitlines() if self.log.exists() else []  # deriving asks the driver for nothing
        self.assertEqual([line for line in lines if line.startswith("fault")], [])
        return result.stdout, lines


def between(lines, first, last):
    """The lines from the first `first` to the last `last`."""
    begin = next(i for i, line in enumerate(lines) if re.match(first, line))
    end = max(i for i, line in enumerate(lines) if re.match(last, line))
    return lines[begin:end + 1]


class Calls(Case):
    def ops(self, model):
        printed, _ = self.on_gpu("run", model, "--device", "cuda", "--format", "json")
        return len(json.loads(printed)["steps"])

    def test_a_run_costs_an_event_for_each_op_and_waits_once(self):
        for model in (support.MODELS / "mlp" / "model.pt2", SAMPLE):
            ops = self.ops(model)
            _, lines = self.on_gpu("run", model, "--device", "cuda")
            run = between(lines, "cuEvent", "cuEventRecord")
            self.assertEqual(set(run), {"cuEventCreate", "cuEventRecord"}, "nothing but events, from the first op to the last")
            self.assertEqual(run.count("cuEventRecord"), ops + 1)
            self.assertEqual(lines.count("cuEventSynchronize"), 1)
            # Each weight and input goes to the GPU before the first op.
            self.assertEqual({line for line in lines if line.startswith("LibTorch")}, {"LibTorch waits: aten::copy_"})

    def test_statistics_of_a_whole_run_are_copied_once(self):
        self.need_kernels()
        for model in (support.MODELS / "mlp" / "model.pt2", SAMPLE):
            ops = self.ops(model)
            _, lines = self.on_gpu("bench", model, "--device", "cuda", "--repeat", "1")
            run = between(lines, "cuMemAlloc", "cuMemFree")
            self.assertEqual([run.count(call) for call in MEMORY], [1, 1, 1, 1, 0, 0])
            ran = between(run, "cuLaunchKernel", "cuLaunchKernel")
            self.assertEqual([line for line in ran if WAITS.match(line) or line in MEMORY], [])
            self.assertEqual(run.count("cuStreamSynchronize"), 1)
            self.assertLess(run.count("cuLaunchKernel"), 2 * ops)
            self.assertGreater(run.count("cuLaunchKernel"), ops // 4)
            self.assertLessEqual(run.count("cuEventRecord"), 2 * ops)

    def test_a_check_looks_for_nan_without_waiting_for_each_value(self):
        self.need_kernels()
        _, small = self.on_gpu("check", support.MODELS / "mlp" / "model.pt2", "--device", "cuda")
        _, large = self.on_gpu("check", SAMPLE, "--device", "cuda")
        for lines in (small, large):
            self.assertEqual(lines.count("cuMemcpyDtoHAsync_v2"), 1)
            watched = between(lines, "cuLaunchKernel", "cuLaunchKernel")
            self.assertEqual([line for line in watched if WAITS.match(line) or line in MEMORY], [])

    def test_debug_waits_for_the_ops_that_run_and_for_nothing_on_the_way_back(self):
        model = support.MODELS / "mlp" / "model.pt2"
        ops = self.ops(model)
        _, lines = self.on_gpu("debug", model, "--device", "cuda", "-c", "run-to end", "-c", "reverse-continue")
        self.assertEqual(lines.count("LibTorch waits: synchronizeDevice"), ops, "so that a failure names its op")
        self.assertEqual(lines.count("cuEventSynchronize"), ops)
        self.need_kernels()
        _, more = self.on_gpu("debug", model, "--device", "cuda", "-c", "run-to end", "-c", "print t41")
        self.assertEqual(more.count("cuLaunchKernel"), lines.count("cuLaunchKernel") + 1)


class Right(Case):
    def test_models_pass_a_check(self):
        for name in ("mlp", "batchnorm_train", "dropout_train", "inplace_views", "multi_output"):
            printed, _ = self.on_gpu("check", support.MODELS / name / "model.pt2", "--device", "cuda")
            self.assertIn("1 passed, 0 failed", printed)

    def test_draws_are_compared_with_the_cpu_by_shape(self):
        printed, _ = self.on_gpu("check", support.MODELS / "dropout_train" / "model.pt2", "--device", "cuda")
        self.assertIn("compared with the CPU by shape only: a GPU draws other random numbers", printed)

    def test_order_2_is_compared_with_the_cpu(self):
        printed, _ = self.on_gpu("check", support.MODELS / "mlp" / "model.pt2", "--device", "cuda", "--order", "2")
        self.assertIn("1 passed, 0 failed", printed)

    def test_stepping_back_gives_the_same_bits(self):
        model, files = support.MODELS / "dropout_train" / "model.pt2", [self.path / "first.npy", self.path / "again.npy"]
        printed, _ = self.on_gpu("trace", model, "--device", "cuda", "--format", "json")
        trace = json.loads(printed)
        name = trace["values"][str(trace["traces"]["joint"]["outputs"][0])]["name"]
        commands = [command for file in files for command in ("run-to end", f"save-value {name} {file}", "reverse-continue")]
        self.on_gpu("debug", model, "--device", "cuda", *(part for command in commands for part in ("-c", command)))
        self.assertEqual(files[0].read_bytes(), files[1].read_bytes())


    def test_what_does_not_run_in_double_precision_on_a_gpu_is_judged_without(self):
        case = CASES / "models" / "nanogpt"
        if not case.exists():
            self.skipTest(f"there is no {case}")
        folder = self.path / "suite" / "nanogpt"
        folder.mkdir(parents=True)
        for name in ("case.json", "model.pt2", "ref.safetensors"):
            (folder / name).symlink_to(case / name)
        printed, _ = self.on_gpu("check", "--suite", self.path / "suite", "--device", "cuda")
        self.assertIn("1 passed, 0 failed", printed)
        self.assertRegex(printed, r"not compared in double precision: it does not run so on a GPU \(.*aten\.view")

    def test_compare_says_that_TF32_is_on_and_goes_without(self):
        printed, _ = self.on_gpu("compare", support.MODELS / "mlp" / "model.pt2", "--device-b", "cuda")
        self.assertIn("note: TF32 is on, as in PyTorch by default; this comparison is made without it", printed)
        self.assertIn("34 values compared", printed)

    def test_a_refusal_names_the_version_of_libtorch(self):
        version = json.loads(support.run("version", "--format", "json").stdout)["libtorch"]
        (self.path / "view.txt").write_text('def computation(x):\n    # x: "f32[4, 3]"\n    t = aten.t(x)\n    y = aten.view(t, [12])\n    return y\n')
        self.assertIn(f"LibTorch {version} refuses it", support.run("trace", self.path / "view.txt", "--device", "cuda").stderr)


class Everywhere(Case):
    MODEL = support.MODELS / "mlp" / "model.pt2"

    def test_each_command_that_derives_or_runs_takes_a_device(self):
        made = self.path / "made"
        derives = (["trace", self.MODEL], ["diff", self.MODEL, self.MODEL], ["save", self.MODEL, "-o", f"{made}.retrograd"],
                   ["export", self.MODEL, "--format", "text", "-o", f"{made}.txt"])
        runs = (["run", self.MODEL], ["debug", self.MODEL, "-c", "run-to end"], ["bench", self.MODEL, "--repeat", "1"], ["check", self.MODEL],
                ["pipeline", "split", self.MODEL, "--stages", "2", "-o", made])
        for command in derives:
            self.on_gpu(*command, "--device", "cuda")
        for command in runs:
            _, lines = self.on_gpu(*command, "--device", "cuda")
            self.assertIn("cuEventRecord", lines, command)
        window = ["picture"] if "\n  picture " in support.run("help").stdout else []
        for command in ("numbers", "shrink", "compare", *window):
            self.assertRegex(support.run(*command.split(), "--help").stdout, "(?m)^  --device(-b)? TEXT", command)

    def test_nothing_is_warned_of(self):
        result = subprocess.run([support.PROGRAM, "check", str(self.MODEL), "--device", "cuda"], capture_output=True, text=True, timeout=300,
                                env={**support.environment(), "LD_LIBRARY_PATH": str(PLAYED)})
        self.assertNotIn("arning", result.stdout + result.stderr)


class Kept(Case):
    """What only a GPU can make, kept as files: read without one."""

    def test_logs_of_jobs_of_a_gpu_are_checked_without_one(self):
        jobs = sorted((CASES / "gpu" / "jobs").glob("*/trace"))
        if not jobs:
            self.skipTest("the cases of a GPU are not there")
        for trace in jobs:
            files = ["--weights", trace.parent / "model.safetensors", "--batch", trace.parent / "batch.safetensors"]
            self.assertTrue(self.good("check", trace, *files).stdout.startswith("pass"), trace)


if __name__ == "__main__":
    support.PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
    PLAYED = pathlib.Path(support.PROGRAM).parent / "played_gpu"
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
