#!/usr/bin/env python3
"""Random training functions are compiled to logs, and `retrograd check LOG` is asked of each: once as it is, once
with a fault in its backward.

A job is right where the gradients that its logged graphs give are those of eager PyTorch for the same draws, within ten
roundings. Of a right job the program may say "agrees" or "not possible", of a wrong one and of a planted fault never
"agrees". FOLDER/results.jsonl has a line for each seed; a run continues after the last one. Jobs with a wrong verdict
stay in FOLDER/jobs/SEED with all their files.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent.parent
CHUNK = 100  # seeds of one process: compiling leaves memory behind


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def work(folder, seeds):
    """The jobs of these seeds, in this process."""
    with tempfile.TemporaryDirectory() as trace:
        os.environ["TORCH_TRACE"] = trace
        import logging
        import warnings

        import torch

        from program import Program
        from trial import Trial

        warnings.filterwarnings("ignore")
        logging.disable(logging.WARNING)
        torch.set_num_threads(1)
        program = Program()
        with (folder / "results.jsonl").open("a") as results:
            for seed in seeds:
                begin = time.process_time()
                record = Trial(seed, folder / "jobs" / str(seed), program).run()
                record["processor"] = round(time.process_time() - begin, 3)
                results.write(json.dumps(record) + "\n")
                results.flush()
                for text in record.get("wrong verdicts", []):
                    print(f"seed {seed}: {text}", flush=True)


def run(folder, first, count):
    """Processes of some seeds each. A seed at which PyTorch ends the process is passed over."""
    results = folder / "results.jsonl"
    while True:
        done = {record["seed"] for record in read(results)}
        left = [seed for seed in range(first, first + count) if seed not in done]
        if not left:
            return
        chunk = left[:CHUNK]
        ended = subprocess.run(
            [sys.executable, __file__, "--folder", folder, "--seeds", ",".join(map(str, chunk))], check=False
        )
        if ended.returncode > 0:
            sys.exit(ended.returncode)
        done = {record["seed"] for record in read(results)}
        here = [seed for seed in chunk if seed not in done]
        if here:
            with results.open("a") as file:
                file.write(
                    json.dumps({"seed": here[0], "not made": f"the process ended with {ended.returncode}"}) + "\n"
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=TOP / "build" / "jobs")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1, help="of the first job; the others follow")
    parser.add_argument("--fresh", action="store_true", help="begin with no results")
    parser.add_argument("--report", type=Path, help="write the tables there, as Markdown")
    parser.add_argument("--seeds", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.seeds:
        work(folder, [int(seed) for seed in options.seeds.split(",")])
        return
    if options.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    run(folder, options.seed, options.count)
    import report

    wanted = range(options.seed, options.seed + options.count)
    records = [record for record in read(folder / "results.jsonl") if record["seed"] in wanted]
    text = report.tables(records)
    print(report.summary(records))
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(text)
    if any(record.get("wrong verdicts") for record in records):
        sys.exit(1)


main()
