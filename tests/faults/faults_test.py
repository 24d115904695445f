#!/usr/bin/env python3
"""Faults on purpose: runs the program while calls fail, processes are killed and files are damaged, and looks at what it says and what it
leaves. Exit 1 on any finding. See scripts/faults."""

import argparse
import concurrent.futures
import pathlib
import queue
import random
import sys
import tempfile
import time

import abuse
import calls
import kills
from findings import Findings
from program import KINDS, Program, Symbols
from scenarios import all_scenarios, window_scenarios

PARTS = ("calls", "small", "kills", "children", "abuse", "window")


class Pool:
    """Runs jobs at the same time, each with a program and a folder of its own."""

    def __init__(self, make, count, until=None):
        self.until = until
        self.places = queue.Queue()
        self.all = []
        for _ in range(count):
            folder = tempfile.TemporaryDirectory(prefix="faults-work-")
            self.all.append((make(), folder))
            self.places.put(self.all[-1])
        self.executor = concurrent.futures.ThreadPoolExecutor(count)

    def run(self, jobs, name):
        begin = self.told = time.monotonic()
        self.done = 0
        left = list(self.executor.map(lambda job: self.one(job), jobs)).count(False)
        print(
            f"{name}: {len(jobs) - left} runs in {time.monotonic() - begin:.0f} s"
            + (f", {left} left out for lack of time" if left else ""),
            flush=True,
        )

    def one(self, job):
        if self.until and time.monotonic() > self.until:
            return False
        place = self.places.get()
        try:
            job(place[0], pathlib.Path(place[1].name))
        finally:
            self.places.put(place)
        self.done += 1
        if time.monotonic() > self.told + 60:
            self.told = time.monotonic()
            print(f"  {self.done} runs", flush=True)
        return True

    def close(self):
        for program, folder in self.all:
            program.close()
            folder.cleanup()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--window", help="the program with its window, for the parts that draw one")
    parser.add_argument("--quick", action="store_true", help="a sample of everything, in a minute and a half")
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--scenario", action="append", help="these scenarios, or kinds of damaged files, only")
    parser.add_argument("--kind", action="append", choices=KINDS, help="calls of these kinds only")
    parser.add_argument("--share", type=float, default=1.0, help="0 to 1: run so much of all, sampled evenly")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=400, help="calls of a kind that fail in a scenario, one a run; more are sampled evenly")
    parser.add_argument("--small", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--child-kills", type=int, default=50)
    parser.add_argument("--mutants", type=int, default=500, help="damaged files of each kind")
    parser.add_argument("--window-mutants", type=int, default=50, help="damaged files through the window")
    parser.add_argument("--seconds", type=float, help="leave out what is not begun by then; the table says what was run")
    parser.add_argument("--keep", help="a folder for the damaged files that were findings")
    parser.add_argument("--log", help="a file to which findings are appended as they come")
    options = parser.parse_args()
    parts = options.only or list(PARTS)
    if options.quick:
        options.small, options.kills, options.child_kills, options.mutants, options.window_mutants = 40, 40, 3, 20, 6
    if not 0 < options.share <= 1:
        parser.error("--share: more than 0, 1 at most")
    for name in ("small", "kills", "child_kills", "mutants", "window_mutants"):
        setattr(options, name, max(1, round(getattr(options, name) * options.share)))
    findings = Findings(Symbols(options.program), options.log, options.keep)
    begin = time.monotonic()
    options.until = begin + options.seconds if options.seconds else None

    def make():
        return Program(options.program, options.library)

    if parts != ["window"]:
        run_parts(options, parts, findings, make)
    if "window" in parts and (options.window or parts == ["window"]):
        run_window(options, findings)
    print("\n" + findings.table())
    print(f"\n{time.monotonic() - begin:.0f} s; {len(findings.families)} families of findings")
    for family, (count, _) in findings.families.items():
        print(f"  {count:5} {family}")
    for function, count in findings.library_ends.most_common():
        print(f"  {count:5} ended by a library: {function}")
    return 1 if findings.families else 0


def run_parts(options, parts, findings, make):
    pool = Pool(make, options.jobs, options.until)
    try:
        if set(parts) - {"abuse", "window"}:
            run_scenarios(options, parts, findings, pool)
        if "abuse" in parts:
            with tempfile.TemporaryDirectory(prefix="faults-seeds-") as folder:
                jobs = abuse.jobs(pool.all[0][0], pathlib.Path(folder), findings, options.mutants, options.seed, options.scenario)
            pool.run(jobs, "damaged files")
    finally:
        pool.close()


def run_scenarios(options, parts, findings, pool):
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faults-make-") as folder:
        program = pool.all[0][0]
        scenarios = [s for s in all_scenarios(program, folder) if not options.scenario or s.name in options.scenario]
        counted, jobs = {}, []
        for scenario in scenarios:
            scenario.prepare(program, folder)
            if "calls" in parts or "small" in parts:
                made, counted[scenario.name] = calls.jobs(program, folder, scenario, findings, options.most, 10 if options.quick else 0, options.kind, options.share)
                jobs += made
    random.Random(options.seed).shuffle(jobs)
    print(f"{len(scenarios)} scenarios in {time.monotonic() - begin:.0f} s", flush=True)
    if "calls" in parts:
        print(f"{len(jobs)} calls to fail", flush=True)
        pool.run(jobs, "calls that fail")
    if "small" in parts:
        pool.run(calls.small_jobs(scenarios, counted, findings, options.small, options.seed), "small allocations")
    if "kills" in parts:
        pool.run(kills.kill_jobs(scenarios, findings, options.kills, options.seed), "kill -9")
    if "children" in parts:
        pool.run(kills.child_jobs(scenarios, findings, options.child_kills, options.seed), "children killed")


def run_window(options, findings):
    program = options.window or options.program
    findings.symbols = Symbols(program)
    pool = Pool(lambda: Program(program, options.library, {"QT_QPA_PLATFORM": "offscreen"}), options.jobs, options.until)
    try:
        with tempfile.TemporaryDirectory(prefix="faults-window-") as folder:
            first, folder = pool.all[0][0], pathlib.Path(folder)
            scenarios, jobs = list(window_scenarios()), []
            for scenario in scenarios:
                scenario.prepare(first, folder)
                jobs += calls.jobs(first, folder, scenario, findings, 40, 4 if options.quick else 0, options.kind, options.share)[0]
            mutants = abuse.window_jobs(first, folder / "seeds", findings, options.window_mutants, options.seed)
        pool.run(jobs, "calls that fail, pictures")
        pool.run(kills.child_jobs(scenarios, findings, options.child_kills, options.seed), "layout helper killed")
        pool.run(mutants, "damaged files in the window")
    finally:
        pool.close()


if __name__ == "__main__":
    sys.exit(main())
