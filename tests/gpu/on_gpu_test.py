#!/usr/bin/env python3
"""Tests the script for a machine with a GPU (run.py): limits, failures and going on, with small commands in place of programs."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import jobs  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402


def job(key, code, limit=30, step="a step", alone=False):
    return jobs.Job(step, key, [sys.executable, "-c", code], limit, jobs.read_exit, alone)


class OnGpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)

    def run_all(self, all_jobs, seconds=60, again=""):
        record = run.Record(self.work / "done.json", again)
        run.Runner(self.work, record, dict(os.environ), time.monotonic() + seconds).run_all(all_jobs, 2)
        return record.done

    def test_a_failure_and_a_late_command_do_not_end_the_rest(self):
        done = self.run_all([job("bad", "import sys; sys.exit('no such kernel')"), job("late", "import time; time.sleep(60)", limit=1),
                             job("good", "print(1)"), job("last", "print(2)", alone=True)])
        self.assertEqual({key: entry["passed"] for key, entry in done.items()}, {"bad": 0, "late": 0, "good": 1, "last": 1})
        self.assertIn("no such kernel", done["bad"]["failures"]["the command"])
        self.assertIn("longer than 1 s", done["late"]["failures"]["the command"])

    def test_a_program_that_is_not_there_is_a_failure(self):
        done = self.run_all([jobs.Job("a step", "missing", ["./no-such-program"], 5, jobs.read_exit, False)])
        self.assertIn("no-such-program", done["missing"]["failures"]["the command"])

    def test_a_second_call_goes_on_where_the_time_ended(self):
        count = self.work / "count"
        write = f"open({str(count)!r}, 'a').write('x')"
        first, second = job("first", write), job("second", "import time; time.sleep(12)", limit=40)
        self.assertEqual(list(self.run_all([first, second], seconds=11)), ["first"])
        self.assertEqual(list(self.run_all([first, job("second", write)])), ["first", "second"])
        self.assertEqual(count.read_text(), "xx")
        self.run_all([first], again="a step")
        self.assertEqual(count.read_text(), "xxx")

    def test_lines_of_check(self):
        found = jobs.read_check("pass   mlp     worst out.0: off by 1, tolerance 2, 3 + 4 ops, 0.1 s\n"
                                "fail   gru     worst g: off by 9, tolerance 2, 3 + 4 ops, 0.1 s; it deviates\nskip   fft     refused by cuFFT\n", 1)
        self.assertEqual((found.passed, found.total), (1, 3))
        self.assertEqual(found.failures, {"gru": "fail: it deviates", "fft": "skip: refused by cuFFT"})
        self.assertIn("no driver", jobs.read_check("error: no driver\n", 2).failures["the command"])
        self.assertEqual(jobs.read_check("", 139).passed, 0)

    def test_lines_of_tests_that_crash(self):
        found = jobs.read_tests("[ RUN      ] Gpu.a\n[       OK ] Gpu.a (1 ms)\n[ RUN      ] Gpu.s\n[  SKIPPED ] Gpu.s (0 ms)\n"
                                "[ RUN      ] Gpu.b\nx.cpp:3: Failure\n[  FAILED  ] Gpu.b (1 ms)\n[ RUN      ] Gpu.c\n", -11)
        self.assertEqual((found.passed, found.total), (1, 3))
        self.assertIn("x.cpp:3", found.failures["Gpu.b"])
        self.assertIn("-11", found.failures["Gpu.c"])

    def test_the_table_has_every_step_and_each_reason_once(self):
        all_jobs = [job("one", ""), job("two", ""), job("bench m", "", step="bench"), job("left", "", step="other")]
        done = {key: {"step": step, "seconds": 1, "passed": 0, "total": 1, "failures": {"the command": "no driver"}, "figures": None}
                for key, step in (("one", "a step"), ("two", "a step"))}
        done["bench m"] = {"step": "bench", "seconds": 1, "passed": 1, "total": 1, "failures": {},
                           "figures": {"forward": 1, "backward": 2, "eager_forward": 1, "eager_backward": 1, "recorded": 3.75}}
        facts = {"gpu": ["NVIDIA H200", "580", "141 GB"], "device": "cuda", "torch": "2.11", "pytorch": "2.11.0", "commit": "abc", "seconds": 5,
                 "cases_left_out": False}
        text = table.report(all_jobs, done, facts)
        self.assertIn("| a step | 0 | 2 | 0 | 2 |", text)
        self.assertIn("| other | 0 | 0 | 1 | 0 |", text)
        self.assertEqual(text.count("no driver"), 1)
        self.assertIn("| m | - | 2.00 | 3.00 | 1.50 | 3.75 | 1.25 |", text)

    def test_a_pack_for_another_pytorch_is_refused(self):
        for script in HERE.glob("*.py"):
            (self.work / script.name).write_text(script.read_text())
        (self.work / "about.json").write_text(json.dumps({"torch": "1.0", "commit": "abc"}))
        done = subprocess.run([sys.executable, str(self.work / "run.py"), "--device", "cpu"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this pack is for PyTorch 1.0", done.stderr)


class Pack(unittest.TestCase):
    """scripts/on-gpu pack, with small files in place of a build."""

    def setUp(self):
        loader = importlib.machinery.SourceFileLoader("on_gpu", str(HERE.parent.parent / "scripts" / "on-gpu"))
        self.script = importlib.util.module_from_spec(importlib.util.spec_from_loader("on_gpu", loader))
        loader.exec_module(self.script)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name).resolve()
        self.script.TARGET = self.work / "on-gpu"
        self.script.SUITES = ()
        self.built = self.work / "built"
        self.built.mkdir()
        for name in ("retrograd", "retrograd-program", "test_torch", "test_live"):
            (self.built / name).write_bytes(pathlib.Path("/bin/true").read_bytes())
        (self.built / "retrograd_kernels.fatbin").write_bytes(b"kernels")

    def test_another_pytorch_is_fetched_and_built_in_a_folder_of_its_own(self):
        commands = []
        with unittest.mock.patch.dict(os.environ), unittest.mock.patch.object(self.script.subprocess, "run",
                                                                              lambda command, **options: commands.append((command, options))):
            os.environ.pop("RETROGRAD_BUILT", None)
            os.environ.pop("RETROGRAD_BUILD_FOLDER", None)
            folder = self.script.build("2.11")
        top = self.script.TOP
        (setup, _), (build, options) = commands
        self.assertEqual([str(part) for part in setup], [str(top / "scripts" / "setup"), "--libtorch", "2.11"])
        self.assertTrue((top / "scripts" / "libtorch-2.11.lock").exists())
        self.assertEqual([str(part) for part in build][1:], ["core", "retrograd", "test_torch", "test_live", "gpu_benchmarks"])
        self.assertEqual(folder, top / "build" / "core-2.11")
        self.assertEqual(options["env"]["RETROGRAD_LIBTORCH"], str(top / "external" / "libtorch-2.11"))
        self.assertEqual(options["env"]["RETROGRAD_BUILD_FOLDER"], str(folder))

    def test_a_pack_has_what_runs_and_nothing_of_pytorch_or_the_c_library(self):
        with unittest.mock.patch.dict(os.environ, RETROGRAD_BUILT="1", RETROGRAD_BUILD_FOLDER=str(self.built)), \
                unittest.mock.patch.object(self.script, "TOP", self.work), \
                unittest.mock.patch.object(self.script, "own_version", lambda: "2.11"), contextlib.redirect_stdout(io.StringIO()):
            (self.work / "tests" / "gpu").mkdir(parents=True)
            (self.work / "tests" / "gpu" / "run.py").write_text("")
            self.script.pack("2.11")
        with tarfile.open(self.work / "on-gpu" / "retrograd-gpu-2.11.tar.xz") as tar:
            names = tar.getnames()
            about = json.loads(tar.extractfile("retrograd-gpu/about.json").read())
        self.assertEqual(about["torch"], "2.11")
        for name in ("retrograd", "retrograd-program", "test_torch", "test_live", "retrograd_kernels.fatbin"):
            self.assertIn(f"retrograd-gpu/program/{name}", names)
        self.assertIn("retrograd-gpu/run.py", names)
        self.assertEqual([name for name in names if re.search(r"lib(c|m|torch|c10)[._]", name)], [])

    def test_a_pack_that_is_too_large_is_refused(self):
        self.script.MOST_BYTES = 100
        with unittest.mock.patch.dict(os.environ, RETROGRAD_BUILT="1", RETROGRAD_BUILD_FOLDER=str(self.built)), \
                self.assertRaisesRegex(SystemExit, "more than"):
            self.script.TOP = self.work
            self.script.own_version = lambda: "2.11"
            self.script.pack("2.11")
        self.assertEqual(list((self.work / "on-gpu").glob("*.xz")), [])


unittest.main()
