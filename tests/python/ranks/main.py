"""Records training steps on several ranks, right ones and with a planted fault, and asks the program (scripts/check-ranks)."""
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROGRAM = os.environ.get("RETROGRAD", "retrograd")


@dataclass(frozen=True)
class Case:
    form: str
    fault: str
    ranks: int
    says: str = ""  # what the first claim has to say, of a fault
    line: str = ""  # and its place
    parameter: str = ""  # and one of its parameters

    @property
    def right(self) -> bool:
        return self.fault == "right"


OWN, MISSING = "rank 0 has its own part, the mean over .* is needed", "; no collective reduces it"
CASES = [
    *(Case(form, "right", ranks) for form in ("ddp", "ddp_buckets", "ddp_accumulating", "hand", "fsdp", "fsdp_mixed", "fsdp_accumulating", "tp", "tp_hand", "cp") for ranks in (2, 4)),
    Case("hand", "right", 3), Case("fsdp", "right", 3),
    Case("ddp", "inner", 2, OWN + MISSING, "in backward", "module.head.weight"),
    Case("ddp", "unused", 2, OWN + MISSING, "in backward", "module.head.weight"),
    Case("ddp", "twice", 4, "twice the mean; it goes through all_reduce", "in doubled", "module.head.weight"),
    Case("ddp", "group", 4, r"reduced over \[0, 1\], not \[0, 1, 2, 3\]", "in backward", "module.head.weight"),
    Case("ddp", "precision", 2, "reduced in bfloat16", "in backward", "module.head.weight"),
    Case("ddp", "branch", 2, r"the forward of rank 0 runs aten.abs.default", "in loss"),
    Case("ddp_accumulating", "no_sync", 2, "the part of the last backward is rank 0's own", "in backward", "module.head.weight"),
    Case("hand", "missing", 2, OWN + MISSING, "in backward", "blocks.0.up.weight"),
    Case("hand", "sum", 4, "the sum where the mean of 4 is needed", "in backward", "head.weight"),
    Case("hand", "twice", 4, "twice the mean", "in backward", "head.weight"),
    Case("hand", "group", 4, r"reduced over \[0, 1\], not \[0, 1, 2, 3\]", "in backward", "head.weight"),
    Case("hand", "precision", 2, "reduced in bfloat16", "in backward", "head.weight"),
    Case("hand", "branch", 2, r"the forward of rank 0 runs aten.abs.default", "in loss"),
    Case("fsdp", "twice", 2, "the sum where the mean of 2 is needed; it goes through reduce_scatter", "in backward", "head.weight"),
    Case("fsdp", "group", 4, r"reduced over \[0, 1\], not \[0, 1, 2, 3\]", "in backward", "head.weight"),
    Case("fsdp", "precision", 2, "reduced in bfloat16", "in backward", "head.weight"),
    Case("fsdp", "branch", 2, r"the forward of rank 0 runs aten.abs.default", "in loss"),
    Case("fsdp_accumulating", "no_sync", 2, "the last backward's part is missing", "in backward", "head.weight"),
    Case("tp_hand", "missing", 2, "rank 0 has its own part, the sum is needed", "in backward", "blocks.1.norm.weight"),
    Case("tp_hand", "twice", 2, "twice", "in backward", "blocks.1.norm.weight"),
    Case("tp_hand", "generator", 2, "draw differently", "in forward"),
    Case("tp_hand", "clip", 2, "equal before the update and differ after it", "in step"),
    Case("cp", "missing", 2, "of the norm from what it has to be", "in backward", "value.bias"),
    Case("cp", "twice", 2, "twice what it has to be", "in backward", "value.bias"),
    Case("cp", "sum", 2, "the sum where the mean of 2 is needed", "in backward", "head.weight"),
]
FEW = [("fsdp", "right"), ("ddp", "inner"), ("hand", "missing"), ("fsdp", "twice"), ("ddp_accumulating", "no_sync")]


def ask(case: Case, seed: int, folder: Path) -> dict[str, Any]:
    """Records the case and checks it: what came out, and whether that is as it should be."""
    target = folder / "recorded"
    shutil.rmtree(target, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(case.ranks), "--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint",
                           "localhost:0", HERE / "programs.py", case.form, case.fault, str(seed), target], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if made.returncode != 0:
        return {"result": "not made", "why": made.stderr[-2000:]}
    done = subprocess.run([PROGRAM, "check", target, "--format", "json"], capture_output=True, text=True, timeout=300)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return {"result": "not as it should be", "exit": done.returncode, "why": (done.stdout + done.stderr)[-2000:]}
    claims = [one for one in report["claims"] if one["severity"] in ("fault", "suspicion")]
    texts = [f"{one['sentence']}; {one.get('line', '')}" for one in claims]
    found: dict[str, Any] = {"exit": done.returncode, "claims": texts[:6], "not_judged": [one["reason"] for one in report.get("not_judged", [])]}
    if case.right:
        return found | {"result": "right" if done.returncode == 0 and not claims else "alarm" if claims else "not judged whole"}
    named = [i for i, one in enumerate(claims) if re.search(case.says, one["sentence"]) and case.line in one.get("line", "")
             and (not case.parameter or case.parameter in one.get("parameters", []))]
    return found | {"result": "missed" if done.returncode != 1 else "named first" if named and named[0] == 0 else "named" if named else "another claim"}


def page(results: dict[str, dict[str, Any]], seeds: int) -> str:
    right = {key: one for key, one in results.items() if " right " in key}
    planted = {key: one for key, one in results.items() if key not in right}
    count = lambda some, *what: sum(one["result"] in what for one in some.values())
    rows = []
    for case in CASES:
        mine = [results[key] for key in results if key.startswith(f"{case.form} {case.fault} {case.ranks} ")]
        if mine:
            said = next((one["claims"][0] for one in mine if one.get("claims")), "")
            kinds = ", ".join(f"{sum(one['result'] == kind for one in mine)} {kind}" for kind in sorted({one["result"] for one in mine}))
            rows.append(f"| {case.form} | {case.fault} | {case.ranks} | {kinds} | {said.replace('|', '/')[:200]} |")
    odd = [f"- {key}: {one['result']}: {'; '.join(one.get('not_judged') or one.get('claims') or [one.get('why', '')[-200:]])[:300]}" for key, one in sorted(results.items())
           if one["result"] not in ("right", "named first")]
    return "\n".join([
        "# Faults between ranks", "",
        "`scripts/check-ranks` records a training step on 2 to 4 Gloo ranks (`tests/python/ranks/programs.py`): DistributedDataParallel, gradients reduced by hand, FSDP2 (also in mixed precision, and accumulating), tensor parallelism (DTensor, and by hand), context parallelism by hand. Some are right, some have one planted fault. `retrograd check FOLDER` has to pass the right ones, and to name a fault first, with its relation, line and parameter.", "",
        "## Result", "",
        f"{len(results)} runs, {seeds} seed{'s' if seeds > 1 else ''}: of {len(right)} right ones {count(right, 'right')} pass, {count(right, 'not judged whole')} are not judged whole, {count(right, 'alarm')} raise an alarm; "
        f"of {len(planted)} faults {count(planted, 'named first')} are named first, {count(planted, 'named')} later, {count(planted, 'another claim')} fail for another claim, {count(planted, 'missed')} are missed.", "",
        "| Form | Fault | Ranks | Runs | First claim |", "| --- | --- | ---: | --- | --- |", *rows, "",
        *(["Not as it should be:", "", *odd, ""] if odd else [])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="of each case (1)")
    parser.add_argument("--few", action="store_true", help="five cases")
    parser.add_argument("--form", help="this form alone")
    parser.add_argument("--folder", type=Path, help="for results; those that are there are not made again")
    parser.add_argument("--fresh", action="store_true", help="make all of them again")
    parser.add_argument("--report", type=Path, help="write this page")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="retrograd-ranks-"))
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() and not options.fresh else {}
    for seed in range(1, options.seeds + 1):
        for case in CASES:
            if (options.few and (case.form, case.fault) not in FEW or options.few and case.ranks != 2) or (options.form and case.form != options.form):
                continue
            key = f"{case.form} {case.fault} {case.ranks} {seed}"
            if key not in results:
                results[key] = ask(case, seed, folder)
                kept.write_text(json.dumps(results, indent=1))
                print(f"{key}: {results[key]['result']}", flush=True)
    if options.report:
        options.report.write_text(page(results, options.seeds))
    good = sum(one["result"] in ("right", "named first") for one in results.values())
    print(f"{good} of {len(results)} as they should be")
    return 0 if good == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
