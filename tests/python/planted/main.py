#!/usr/bin/env python3
"""Training scripts that a seed draws, a quarter with one planted fault of 20 kinds: K14.

Each runs without the recorder and with it, in a process of its own, and `retrograd check` judges the recording. Right:
the training is the same bit for bit, `check` raises no alarm for a right script (no fault, no suspicion), and names the
fault of another at its line or by its parameter, first. FOLDER/results.jsonl has a line for each; a run goes on after
the last one. The script and the recording of what is wrong stay in FOLDER/SEED-PLACE.
"""

import argparse
import json
import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import report
import script

TOP = Path(__file__).resolve().parent.parent.parent.parent
STEPS, FEW = 200, 8


def planned(seed, count):
    draw = random.Random(seed)
    kinds = [kind for _ in range(count) for kind in draw.sample(sorted(script.FAULTS), len(script.FAULTS))]
    return [{"seed": seed, "place": place, "fault": kinds[place // 4] if place % 4 == 3 else None} for place in range(count)]


def ran(path, *arguments):
    """What a script prints last. It runs in a process of its own, which has PyTorch already."""
    out = path.parent / "out"
    process = os.fork()
    if not process:
        try:
            os.chdir(path.parent)
            log = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            sys.argv = [str(path), *arguments]
            signal.alarm(300)
            try:
                runpy.run_path(str(path), run_name="__main__")
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    last = [line for line in out.read_text().splitlines() if line.startswith('{"losses"')]
    return json.loads(last[-1]) if last else {"failed": out.read_text().strip()[-300:]}


def judged(folder, program):
    done = subprocess.run([program, "check", "rec", "--format", "json"], capture_output=True, text=True, cwd=folder, timeout=600)
    if "{" not in done.stdout:
        return done.returncode, [], (done.stderr or done.stdout).strip()[-300:]
    said = json.loads(done.stdout)
    return done.returncode, [one for one in said["claims"] if one["severity"] in ("fault", "suspicion")], said.get("reason") or ""


def text_of(claim):
    """All that a claim says, as a person reads it."""
    return " ".join(str(claim.get(key, "")) for key in ("subject", "sentence", "line", "remedy", "parameters", "kind")) + " "


def tried(spec, folder, program):
    """The record of one script."""
    made = script.drawn(f"{spec['seed']}-{spec['place']}", spec["fault"])
    record = {**spec, "said": made.said, "found": []}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = folder / "step.py"
    path.write_text(made.text)
    without, within = ran(path), ran(path, "rec")
    unable = without.get("failed") or ("" if made.raises else without["error"])  # of PyTorch itself, as a layer of oneDNN in half precision
    if unable:
        return record | {"not made": unable}
    if within != without:
        record["found"].append(f"the training is another: {within.get('failed') or [key for key in without if within.get(key) != without[key]]}")
    begin = time.perf_counter()
    code, claims, reason = judged(folder, program)
    record |= {"code": code, "check": round(time.perf_counter() - begin, 2), "claims": [text_of(one)[:300] for one in claims[:4]]}
    if spec["fault"] is None:
        if code == 2 and not claims:
            record["found"].append(f"not judged whole: {reason[:300]}")
        elif code or claims:
            record["found"].append(f"an alarm on a right step: exit code {code}: {(claims and text_of(claims[0]) or reason)[:300]}")
    else:
        record["first"] = bool(claims) and any(one in text_of(claims[0]) for one in made.expects)
        record["named"] = any(one in text_of(claim) for claim in claims for one in made.expects)
        if not record["first"]:
            record["found"].append(f"expected {made.expects}, {'named later' if record['named'] else 'missed'}: exit code {code}: {(claims and text_of(claims[0]) or reason)[:300]}")
    if not record["found"]:
        shutil.rmtree(folder)
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=STEPS)
    parser.add_argument("--few", action="store_true", help=f"{FEW} scripts")
    parser.add_argument("--only", nargs="*", type=int, help="places in the plan")
    parser.add_argument("--folder", type=Path, default=TOP / "build/planted", help="where results are")
    parser.add_argument("--fresh", action="store_true", help="starts over")
    parser.add_argument("--report", type=Path, help="writes tables, for docs/reports/planted-steps.md")
    options = parser.parse_args()
    import torch

    import retrograd._record  # noqa: F401  each script finds them imported

    torch.set_num_threads(1)
    program = os.path.abspath(os.environ["RETROGRAD"])
    options.folder.mkdir(parents=True, exist_ok=True)
    results = options.folder / "results.jsonl"
    if options.fresh:
        results.unlink(missing_ok=True)
    plan = planned(options.seed, FEW if options.few else options.count)
    if options.only:
        plan = [spec for spec in plan if spec["place"] in options.only]
    done = {(one["seed"], one["place"]): one for one in report.read(results)}
    for spec in plan:
        if (spec["seed"], spec["place"]) in done:
            continue
        record = tried(spec, options.folder / f"{spec['seed']}-{spec['place']}", program)
        done[spec["seed"], spec["place"]] = record
        with open(results, "a") as file:
            file.write(json.dumps(record) + "\n")
        print(report.line_of(record), flush=True)
    records = [done[spec["seed"], spec["place"]] for spec in plan]
    print(report.summary(records))
    if options.report:
        options.report.write_text(report.page(records))
    return 1 if report.wrong(records) else 0


if __name__ == "__main__":
    sys.exit(main())
