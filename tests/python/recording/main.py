#!/usr/bin/env python3
"""Compares results with the recorder and without it, bit for bit: K19.

Samples of PyTorch's own tests for each differentiable op (float32, bfloat16 under autocast, complex; forward, backward,
second derivative, in place), for its modules and optimizers, scalers that skip, custom ops and Functions. Each runs
twice without the recorder and once with it. FOLDER/results.jsonl has a line for each case; a run goes on after the last.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import report
import torch

TOP = Path(__file__).resolve().parent.parent.parent.parent
FEW = 60  # cases in ./test


def compared(name, case, most):
    """A case's record."""
    from compared import differing

    record = {"case": name, "calls": 0, "raises": 0, "unstable": 0, "differ": {}}
    try:
        calls = list(case(most))
    except Exception as error:  # PyTorch's samples need what this machine lacks
        return record | {"not made": f"{type(error).__name__}: {str(error)[:200]}"}
    for call, text, raises in differing(calls):
        record["calls"] += 1
        record["raises"] += raises
        record["unstable"] += text is None
        if text:
            record["differ"][call] = text
    return record


def child(work):
    """Runs `work` in a process of its own, as some samples end one; what it prints is dropped."""
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1]
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        work()
    finally:
        os._exit(0)


def wanted(options):
    import sweep

    found = [(name, case) for name, case in sweep.cases() if not options.only or any(word in name for word in options.only)]
    return found[options.seed % 7 :: max(1, len(found) // FEW)] if options.few else found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=TOP / "build/recording", help="where results are")
    parser.add_argument("--fresh", action="store_true", help="starts over")
    parser.add_argument("--few", action="store_true", help=f"about {FEW} cases")
    parser.add_argument("--seed", type=int, default=0, help="which few")
    parser.add_argument("--samples", type=int, default=8, help="most samples of an op")
    parser.add_argument("--only", nargs="*", help="cases whose name has one of these words")
    parser.add_argument("--report", type=Path, help="writes what was found as a page, for docs/reports/recording.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.folder.mkdir(parents=True, exist_ok=True)
    results = options.folder / "results.jsonl"
    if options.fresh:
        results.unlink(missing_ok=True)
    done = {one["case"]: one for one in report.read(results)}
    cases = wanted(options)
    left = [(name, case) for name, case in cases if name not in done]

    def keep(record):
        with open(results, "a") as file:
            file.write(json.dumps(record) + "\n")

    while left:
        child(lambda: [keep(compared(name, case, options.samples)) for name, case in left])
        done = {one["case"]: one for one in report.read(results)}
        left = [(name, case) for name, case in left if name not in done]
        if left:  # the process ended within the first that is left
            keep({"case": left[0][0], "calls": 0, "raises": 0, "unstable": 0, "differ": {}, "not made": "the process ended"})
            left = left[1:]
    records = [one for one in report.read(results) if one["case"] in dict(cases)]
    print(report.text(records))
    if options.report:
        options.report.write_text(report.page(records))
    return 1 if report.wrong(records) else 0


if __name__ == "__main__":
    sys.exit(main())
