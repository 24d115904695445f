"""What a GPU has to show, as a list of jobs: commands with a time limit each, and how their output is read."""
import collections
import itertools
import json
import pathlib
import re
import shutil
import sys

# One command. `step`: the row of the table that it counts for. `alone`: nothing else runs at the same time (it is measured).
Job = collections.namedtuple("Job", "step key command limit read alone")

# What a job found. `passed` and `total` are cases; `failures` maps a case to its reason; `figures` are rows of a table of speeds.
Found = collections.namedtuple("Found", "passed total failures figures", defaults=(0, 0, None, None))

MODELS_FIRST = ("mlp", "gpt2", "nanogpt", "llama", "bert", "resnet18_train", "dropout_train", "lstm", "sdpa_dropout", "vit_tiny",
                "autocast_bf16")
GPU_TESTS = {"test_torch": "Gpu*:FakeDriver.*:NcclLibrary.*", "test_live": "Devices.*:OnAGpu.*:GpuStatistics.*"}


def read_check(text, code):
    """The lines of `retrograd check`: `pass  mlp  worst ...`."""
    failures, total, name = {}, 0, None
    for line in text.splitlines():
        match = re.match(r"(pass|fail|error|skip) {1,3}(\S+) +(.*)", line)
        if match:
            total += 1
            name = match[2]
            if match[1] != "pass":
                reason = match[3].split("; ", 1)[-1] if match[1] == "fail" else match[3]
                failures[name] = f"{match[1]}: {reason}"
        elif not total and "error" in line:
            failures["the command"] = line
    if not total and not failures:
        failures["the command"] = f"exit code {code}: {last_line(text)}"
    return Found(total - len([name for name in failures if name != "the command"]), max(total, 1), failures)


def read_tests(text, code):
    """The lines of GoogleTest. Skipped tests do not count."""
    good = re.findall(r"^\[       OK \] (\S+)", text, re.M)
    bad = [name for name in re.findall(r"^\[  FAILED  \] (\S+) \(", text, re.M)]
    begun = re.findall(r"^\[ RUN      \] (\S+)", text, re.M)
    skipped = set(re.findall(r"^\[  SKIPPED \] (\S+) \(", text, re.M))
    failures = {name: first_failure(text, name) for name in bad}
    if begun and begun[-1] not in [*good, *bad, *skipped]:
        failures[begun[-1]] = f"ended the program, exit code {code}: {last_line(text)}"
    if not begun:
        failures["the command"] = f"exit code {code}: {last_line(text)}"
    return Found(len(good), len(good) + len(failures), failures)


def first_failure(text, name):
    part = text.split(f"[ RUN      ] {name}\n", 1)[-1].split("[  FAILED  ]", 1)[0]
    return " ".join(part.split())[:400]


def read_exit(text, code):
    """One command that is right where it exits with 0."""
    return Found(int(code == 0), 1, {} if code == 0 else {"the command": f"exit code {code}: {last_line(text)}"})


def read_bench(text, code):
    """`retrograd bench --format json`, or what eager.py prints: rows of milliseconds."""
    start = text.find("{")
    if code or start < 0:
        return read_exit(text, code or 1)
    report = json.loads(text[start:])
    return Found(1, 1, {}, report.get("figures") or {key: value * 1e3 for key, value in report["seconds"].items()})


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"


def environment(program, base):
    """For our own programs, the folders of their libraries; Python keeps those of its machine."""
    ours = pathlib.Path(program).resolve().parent == pathlib.Path(__file__).resolve().parent / "program" or pathlib.Path(program).name == "retrograd"
    return {**base, "LD_LIBRARY_PATH": base["RETROGRAD_LIBRARIES"]} if ours and "RETROGRAD_LIBRARIES" in base else dict(base)


class Pack:
    """The folder that was packed: programs, cases, tests; and where jobs keep their files."""

    def __init__(self, folder, work, device, python, sample):
        self.folder, self.work, self.device, self.python, self.sample = folder, work, device, python, sample
        self.program = str(folder / "program" / "retrograd")

    def model(self, name):
        for place in ("cases/models", "cases/large", "tests/data/models"):
            path = self.folder / place / name / "model.pt2"
            if path.exists():
                return str(path)
        return None

    def cases(self, suite):
        """The folders of a suite with a model, the most telling ones first, the others in steps through the alphabet, so that any
        beginning of the list is a sample."""
        folder = self.folder / "cases" / suite
        found = sorted({path.parent for path in folder.rglob("*.pt2")}) if folder.exists() else []
        first = [one for name in MODELS_FIRST for one in found if one.name == name]
        rest = [one for one in found if one not in first]
        stride = 17
        spread = [rest[i] for start in range(stride) for i in range(start, len(rest), stride)]
        return (first + spread)[:self.sample or None]

    def suite_jobs(self, step, suite, options, chunk, limit):
        """Jobs of `chunk` cases each, so that one that hangs, or too little time, leaves the others."""
        cases = iter(self.cases(suite))
        for number in itertools.count():
            some = list(itertools.islice(cases, chunk))
            if not some:
                return
            key = f"{step} {number + 1}"
            folder = self.work / "suites" / re.sub(r"\W+", "-", key)
            link_cases(self.folder / "cases" / suite, some, folder)
            command = [self.program, "check", "--suite", str(folder), "--device", self.device, "--threads", "1", "--timeout", "60",
                       "--allow-skips", *options]
            yield Job(step, key, command, limit, read_check, False)


def link_cases(suite, cases, folder):
    """A suite of some cases: their folders, with links to the files (a suite does not follow links to folders)."""
    shutil.rmtree(folder, ignore_errors=True)
    for case in cases:
        target = folder / case.relative_to(suite)
        target.mkdir(parents=True)
        for file in case.iterdir():
            if file.is_file():
                (target / file.name).symlink_to(file.resolve())
    if (suite / "manifest.json").exists():
        (folder / "manifest.json").symlink_to((suite / "manifest.json").resolve())


def steps(pack):
    """All jobs, the most important first; those that are measured last, alone."""
    here = pathlib.Path(__file__).resolve().parent
    on = ["--device", pack.device]
    chunk = 8 if pack.sample is None else pack.sample
    for name, which in GPU_TESTS.items():
        test = pack.folder / "program" / name
        if test.exists():
            yield Job("GPU tests", f"GPU tests, {name}", [str(test), f"--gtest_filter={which}"], 90, read_tests, False)
    yield from pack.suite_jobs("check, models", "models", [], chunk, 90)
    if pack.python:
        yield Job("catch and replay", "catch and replay", [pack.python, str(here / "caught.py"), pack.program, pack.device,
                                                           str(pack.work / "caught")], 180, read_exit, False)
        yield Job("record and replay", "record and replay", [pack.python, str(here / "recorded.py"), pack.program, pack.device,
                                                             str(pack.work / "recorded")], 180, read_exit, False)
    for name in ("gpt2", "dropout_train"):
        if pack.model(name):
            command = [sys.executable, str(here / "both_ways.py"), pack.program, pack.model(name), pack.device, str(pack.work)]
            yield Job("stepping both ways", f"stepping {name}", command, 60, read_exit, False)
    for name in ("mlp", "nanogpt", "resnet18_train"):
        if pack.model(name):
            command = [pack.program, "compare", pack.model(name), "--device-b", pack.device]
            yield Job("compare with the CPU", f"compare {name}", command, 60, read_exit, False)
    for name in ("mlp", "dropout_train"):
        if pack.model(name):
            command = [pack.program, "pipeline", "launch", "--ranks", "2", "--", "pipeline", "run", pack.model(name), "--stages", "2",
                       "--schedule", "1F1B", "--microbatches", "4", "--check", *on]
            yield Job("two ranks share the GPU", f"ranks {name}", command, 60, read_exit, False)
    yield from pack.suite_jobs("check, min-cut", "models", ["--partition", "min-cut"], chunk, 90)
    yield from pack.suite_jobs("check, recompute all", "models", ["--recompute", "all"], chunk, 90)
    yield from pack.suite_jobs("check, order 2", "models", ["--order", "2"], chunk, 90)
    yield from pack.suite_jobs("check, ops", "ops", [], chunk * 3, 90)
    yield from pack.suite_jobs("check, models of PyTorch 2.9", "models_2.9", [], chunk, 90)
    yield from pack.suite_jobs("check, order 2 of ops", "ops", ["--order", "2"], chunk * 3, 90)
    kernels = pack.folder / "program" / "gpu_benchmarks"
    if kernels.exists() and pack.device != "cpu":
        yield Job("kernels", "kernels", [str(kernels)], 40, read_bench, True)
    names = ("gpt96", "resnet18_train", "gpt2", "mlp") if pack.sample is None else ("mlp",)
    for name in names:
        if pack.model(name):
            command = [pack.program, "bench", pack.model(name), "--repeat", "5", "--format", "json", *on]
            yield Job("bench", f"bench {name}", command, 60, read_bench, True)
            if pack.python:
                command = [pack.python, str(here / "eager.py"), pack.model(name), pack.device]
                yield Job("bench", f"eager {name}", command, 120, read_bench, True)
