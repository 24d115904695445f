"""Planted faults and pairs without one (Q6): is the guilty op named first, and nobody where nobody is guilty?"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import drawn
from drawn import FAULTS, depth_of

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent.parent
PROGRAM = os.environ["RETROGRAD"]
SOURCE = (HERE / "drawn.py").read_text().splitlines()
# Two ways to run the same model that are both right: what the second has besides, and what both have.
PAIRS = {
    "threads": (["--threads", "2"], []),
    "recomputation": (["--recompute", "plain"], ["--dropout", "0.1"]),
    "reentrant recomputation": (["--recompute", "reentrant"], ["--dropout", "0.1"]),
    "two kinds of recomputation": (["--recompute", "plain"], ["--recompute", "reentrant", "--dropout", "0.1"]),
    "order of a sum": (["--reorder"], []),
    "attention kernel": (["--attention", "math"], []),
    "bfloat16": (["--dtype", "bfloat16"], []),
    "batch": (["--batch", "8"], []),
}


def record(seed, out, *options):
    """In a process of its own, which begins with PyTorch imported."""
    child = os.fork()
    if child == 0:
        try:
            with open(os.devnull, "w") as nowhere:
                sys.stderr = nowhere
                drawn.main([str(seed), str(out), *map(str, options)])
            os._exit(0)
        except BaseException:
            sys.stderr = sys.__stderr__
            traceback.print_exc()
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError(f"seed {seed} could not be recorded: {options}")


def compare(a, b):
    done = subprocess.run([PROGRAM, "compare", a, b, "--format", "json"], capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1, 2) or not done.stdout:
        raise RuntimeError(done.stderr[-2000:])
    return done.returncode, json.loads(done.stdout)


def lines_of(fault):
    return {i + 1 for i, line in enumerate(SOURCE) if f"right: {fault}" in line or f"fault: {fault}" in line}


def number(line):
    place = line.split(" ")[0].rsplit(":", 1)
    return int(place[1]) if len(place) == 2 else 0


def planted(seed, fault, folder):
    at = random.Random(f"{seed} {fault}").randrange(depth_of(seed))
    common = ["--block-for", fault, "--at", at]
    record(seed, folder / "right", *common)
    record(seed, folder / "wrong", *common, "--fault")
    code, found = compare(folder / "right", folder / "wrong")
    claims = [claim for claim in found["report"]["claims"] if claim["severity"] == "fault"]
    first, divergence = claims[0] if claims else {}, found["first_divergence"] or {}
    # A stale buffer may be named where it was written or where it was read next.
    def is_it(line, module):
        return number(line) in lines_of(fault) and module.startswith(f"blocks.{at}")

    return {"blocks": depth_of(seed), "at": at, "code": code, "claims": len(claims),
            "named": code == 1 and is_it(first.get("line", ""), first.get("subject", "")),
            "by_divergence": is_it(divergence.get("line", ""), divergence.get("module", "")),
            "first": f"{first.get('subject', '')}: {first.get('sentence', 'nothing')}; {first.get('line', '')}"}


def right(seed, pair, folder):
    options, common = PAIRS[pair]
    record(seed, folder / "one", *common)
    record(seed, folder / "other", *common, *options)
    code, found = compare(folder / "one", folder / "other")
    claims = [claim for claim in found["report"]["claims"] if claim["severity"] in ("fault", "suspicion")]
    why = claims[0] if claims else {}
    return {"code": code, "claims": len(claims), "quiet": code == 0 and not claims, "largest": found["largest"],
            "first": f"{why.get('subject', '')}: {why.get('sentence', '')}; {why.get('line', '')}" if claims else found["report"].get("reason", "")}


def report(results, seeds, of):
    faults = [one for one in results if one["kind"] in FAULTS]
    pairs = [one for one in results if one["kind"] in PAIRS]
    text = ["# Which op is to blame: planted faults", "",
            "`scripts/check-compare` draws models of 3 to 8 blocks, plants six kinds of fault at a random depth in each, records two updates right and wrong, and asks `retrograd compare`. "
            "Then it records each model in two ways that are both right.", "",
            f"Seeds {min(seeds)} to {max(seeds)}, drawn after the code was fixed: {len(results)} of {of} pairs were asked.", "",
            "| Fault | Pairs | Guilty op named first | By first divergence |", "| --- | ---: | ---: | ---: |"]
    for kind in FAULTS:
        these = [one for one in faults if one["kind"] == kind]
        text.append(f"| {kind} | {len(these)} | {sum(one['named'] for one in these)} | {sum(one['by_divergence'] for one in these)} |")
    text += ["", "| Right in two ways | Pairs | Without a finding |", "| --- | ---: | ---: |"]
    for kind in PAIRS:
        these = [one for one in pairs if one["kind"] == kind]
        text.append(f"| {kind} | {len(these)} | {sum(one['quiet'] for one in these)} |")
    wrong = [one for one in results if not one.get("named", one.get("quiet"))]
    if wrong:
        text += ["", "What is not as it should be:", ""]
        text += [f"- seed {one['seed']}, {one['kind']}: {one['first']}" for one in wrong]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--only", nargs="*", help="these kinds of fault or pair")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the recordings of what went wrong")
    parser.add_argument("--report", action="store_true", help="write docs/reports/compare.md")
    parser.add_argument("--known", action="store_true", help="run nothing: what is in the folder already")
    parser.add_argument("--folder", type=Path, default=TOP / "build" / "compare")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    log = given.folder / "results.jsonl"
    if given.fresh and log.exists():
        log.unlink()
    known = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    done = {(one["seed"], one["kind"]) for one in known}
    seeds = range(given.seed, given.seed + given.models)
    kinds = given.only or [*FAULTS, *PAIRS]
    for seed in seeds:
        for kind in kinds:
            if given.known or (seed, kind) in done:
                continue
            folder = Path(tempfile.mkdtemp(prefix="compare-"))
            one = {"seed": seed, "kind": kind, **(planted if kind in FAULTS else right)(seed, kind, folder)}
            is_right = one.get("named", one.get("quiet"))
            if not is_right:
                print(f"seed {seed}, {kind}: {one}", flush=True)
            if given.keep and not is_right:
                shutil.rmtree(given.folder / f"{seed}-{kind}", ignore_errors=True)
                shutil.move(folder, given.folder / f"{seed}-{kind}")
            else:
                shutil.rmtree(folder)
            known.append(one)
            with log.open("a") as file:
                file.write(json.dumps(one) + "\n")
    chosen = [one for one in known if one["seed"] in seeds and one["kind"] in kinds]
    good = Counter(bool(one.get("named", one.get("quiet"))) for one in chosen)
    if given.report:
        (TOP / "docs" / "reports" / "compare.md").write_text(report(chosen, seeds, len(seeds) * len(kinds)))
    print(f"{len(chosen)} pairs: {good[True]} right, {good[False]} not")
    return 1 if good[False] else 0


if __name__ == "__main__":
    sys.exit(main())
