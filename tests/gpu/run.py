#!/usr/bin/env python3
"""Runs on a machine with a GPU what only a GPU can show, prints one table and writes it as gpu-NAME.md.

  python3 run.py [--seconds 300] [--output FOLDER] [--report FOLDER] [--name NAME] [--device cuda] [--sample N] [--python INTERPRETER] [--again STEP]

The folder of this file is what `scripts/on-gpu pack` packed. It needs a driver and a Python with the PyTorch that the pack was made for; nothing is
installed and nothing is fetched. Each command has a time limit, and a failure does not end the rest. What has run is kept in FOLDER/done.json (default:
results/ here), so that a second call goes on where the first one stopped: when the time is over, call it again. --again STEP runs the step with
this name, or all, once more. --device cpu tries the script without a GPU, --sample N with at most N cases of each suite. A folder played_gpu here
(`scripts/on-gpu try --device cuda`) takes the place of driver and GPU for our own programs.
Exits with 0 where all that ran was right and nothing is left to run.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import jobs
import table

HERE = pathlib.Path(__file__).resolve().parent
PLAYED = HERE / "played_gpu"


def torch_folder(python):
    """Where the PyTorch of this interpreter is, without importing it, and its version; (None, None) where it has none."""
    code = ("import importlib.util as u, pathlib, re; s = u.find_spec('torch'); f = s and pathlib.Path(s.origin).parent;"
            "print(f, re.search(r\"__version__ = '(.*)'\", (f / 'version.py').read_text())[1]) if f else print()")
    try:
        words = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60).stdout.split()
    except OSError:
        words = []
    return (pathlib.Path(words[0]), words[1]) if len(words) == 2 else (None, None)


def libraries(torch):
    """The folders that the program's libraries are in: those that were packed, PyTorch's, and NVIDIA's next to it."""
    found = [*([PLAYED] if PLAYED.exists() else []), HERE / "program"]
    if torch:
        found += [torch / "lib", *sorted({path.parent for path in (torch.parent / "nvidia").rglob("lib*.so*")})]
    return ":".join(map(str, found))


def gpu():
    """What nvidia-smi says: name, driver, memory."""
    try:
        command = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        line = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=30).stdout.strip().splitlines()
    except (OSError, subprocess.TimeoutExpired):
        line = []
    return [part.strip() for part in line[0].split(",")] if line else []


class Record:
    """What has run, kept in a file."""

    def __init__(self, path, again):
        self.path, self.lock = path, threading.Lock()
        self.done = json.loads(path.read_text()) if path.exists() else {}
        self.done = {key: entry for key, entry in self.done.items() if again not in ("all", entry["step"])}

    def add(self, job, seconds, code, found):
        with self.lock:
            self.done[job.key] = {"step": job.step, "seconds": seconds, "code": code, **found._asdict()}
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.done, indent=1))
            new.replace(self.path)


class Runner:
    """Runs jobs until the time is over."""

    def __init__(self, work, record, environment, end):
        self.work, self.record, self.environment, self.end = work, record, environment, end
        (work / "logs").mkdir(parents=True, exist_ok=True)

    def run(self, job, end):
        """Runs a job; leaves it for the next call where less than 10 seconds are left, or where they end before its own limit."""
        left = end - time.monotonic()
        if job.key in self.record.done or left < 10:
            return
        log = self.work / "logs" / (re.sub(r"\W+", "-", job.key) + ".txt")
        start = time.monotonic()
        with log.open("w") as out:
            try:
                process = subprocess.Popen(job.command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                           env=jobs.environment(job.command[0], self.environment), start_new_session=True)
            except OSError as error:
                return self.record.add(job, 0, 127, jobs.Found(0, 1, {"the command": str(error)}))
            code, late = self.wait(process, min(job.limit, left))
        text = log.read_text(errors="replace")
        if late and left < job.limit:
            return print(f"  {job.key}: the time is over", flush=True)
        found = job.read(text, code)
        if late:
            found = found._replace(failures={**(found.failures or {}), "the command": f"took longer than {job.limit} s"})
        seconds = round(time.monotonic() - start, 1)
        self.record.add(job, seconds, code, found)
        print(f"  {job.key}: {found.passed} of {found.total}, {seconds} s", flush=True)

    @staticmethod
    def wait(process, seconds):
        """The exit code, and whether it had to be ended, with all that it started."""
        try:
            return process.wait(seconds), False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait(), True

    def run_all(self, all_jobs, workers):
        """Those that run next to others first; a quarter of the time, or less where less is needed, is kept for those that are measured."""
        measured = [job for job in all_jobs if job.alone and job.key not in self.record.done]
        together = [job for job in all_jobs if not job.alone]
        kept = min(12 * len(measured), (self.end - time.monotonic()) / 4)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda job: self.run(job, self.end - kept), together))
        for job in measured:
            self.run(job, self.end)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "results")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--name")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--again", default="")
    parser.add_argument("--workers", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)))
    return parser.parse_args()


def main():
    arguments = parse()
    end = time.monotonic() + arguments.seconds
    about = json.loads((HERE / "about.json").read_text())
    torch, version = torch_folder(arguments.python)
    fits = bool(version) and version.startswith(about["torch"] + ".")
    if not fits and not about.get("own_libtorch"):
        sys.exit(f"on-gpu: this pack is for PyTorch {about['torch']}; {arguments.python} has {version or 'none'}. Name another "
                 "interpreter with --python, or make a pack for that version: scripts/on-gpu pack VERSION")
    machine = ["a played GPU", "none", "memory of the host"] if PLAYED.exists() else gpu() if arguments.device != "cpu" else []
    if arguments.device != "cpu" and not machine:
        print("on-gpu: nvidia-smi finds no GPU; running anyway, to show what the program says", flush=True)
    work = arguments.output.resolve()
    work.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "RETROGRAD_LIBRARIES": libraries(torch if fits else None), "OMP_NUM_THREADS": "1",
                   "PYTHONPATH": str(HERE / "python"), "RETROGRAD_TEST_SOURCE": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
    python = arguments.python if fits and not PLAYED.exists() else None  # PyTorch itself has no simulated GPU
    pack = jobs.Pack(HERE, work, arguments.device, python, arguments.sample)
    record = Record(work / "done.json", arguments.again)
    all_jobs = list(jobs.steps(pack))
    start = time.monotonic()
    Runner(work, record, environment, end).run_all(all_jobs, arguments.workers)
    facts = {**about, "gpu": machine, "device": arguments.device, "pytorch": version, "seconds": round(time.monotonic() - start),
             "cases_left_out": arguments.sample is not None}
    text = table.report(all_jobs, record.done, facts)
    name = arguments.name or re.sub(r"\W+", "-", (machine[0] if machine else arguments.device).lower().replace("nvidia", "")).strip("-")
    page = (arguments.report or work) / f"gpu-{name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text)
    print(f"\n{text}\nwritten: {page}")
    right = all(entry["passed"] == entry["total"] and not entry["failures"] for entry in record.done.values())
    sys.exit(0 if right and all(job.key in record.done for job in all_jobs) else 1)


if __name__ == "__main__":
    main()
