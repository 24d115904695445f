#!/usr/bin/env python3
"""Training steps that nobody tuned for are recorded in their first and in their fifth update, and run again.

A seed draws 40 kinds of steps: 20 families of transformers, with loops, optimizers, checkpointing, autocast, scaler,
clipping and schedules that are drawn too, and 20 others. For each: the loop's results are the same bit for bit with the
recorder and without, each hash is right when `retrograd check` runs the recording again, each backward op has a link,
and what it reads of the forward its forward op has. FOLDER/results.jsonl has a line for each; a run goes on after the
last one. What is wrong stays in FOLDER/SEED-PLACE with its recordings.
"""

import argparse
import json
import os
import random
import shutil
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent.parent
STEPS, FAMILIES, SPARE = 40, 20, 6
FEW = ("gan", "recurrent", "saved-tensor hooks", "compiled", "FSDP2")  # in ./test: the first update and the fifth of each


def planned(seed):
    """The 40 of a seed."""
    import families
    import kinds
    import more_kinds
    import ranks

    draw = random.Random(seed)
    listed = families.drawn(draw, FAMILIES + SPARE)
    models = [{"kind": "transformers", "architecture": one.name, "world": 1} for one in listed]
    plan = models[:FAMILIES] + [{"kind": name, "world": 1} for name in kinds.NAMED]
    plan += [{"kind": name, "world": draw.choice((2, 2, 4))} for name in ranks.KINDS]
    others = draw.sample(sorted({**kinds.DRAWN, **more_kinds.MORE, **ranks.MORE}), STEPS - len(plan) + SPARE)
    drawn = [{"kind": name, "world": draw.choice((2, 4)) if name in ranks.MORE else 1} for name in others]
    spare = models[FAMILIES:] + drawn[STEPS - len(plan) :]
    plan += drawn[: STEPS - len(plan)]
    return [{"seed": seed, "place": place, **one} for place, one in enumerate(plan + spare)]


def wanted(plan, done):
    """The steps of a plan that are left: spare ones take the place of those that PyTorch itself refuses."""
    refused = {place for place, record in done.items() if "not made" in record}
    models = [spec for spec in plan[STEPS:] if "architecture" in spec]
    others = [spec for spec in plan[STEPS:] if "architecture" not in spec]
    found = list(plan[:STEPS])
    for spec in found:
        spares = models if "architecture" in spec else others
        if spec["place"] in refused and spares:
            found.append(spares.pop(0))
    return found


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def line_of(record):
    name = record.get("architecture") or record["kind"]
    if "not made" in record:
        return f"{record['seed']}-{record['place']} {name}: not made: {record['not made'][:200]}"
    ops = " and ".join(str(record[one].get("ops", "-")) for one in ("first", "fifth") if one in record)
    return f"{record['seed']}-{record['place']} {name}: {ops} ops" + "".join(f"\n    {one}" for one in record["found"])


def work(folder, specs, results):
    import logging
    import warnings

    import torch
    from trial import Trial

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    program = os.environ["RETROGRAD"]
    for spec in specs:
        record = Trial(spec, folder / f"{spec['seed']}-{spec['place']}", program).go()
        with results.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(line_of(record), flush=True)


def chosen(spec, options):
    name = spec.get("architecture") or spec["kind"]
    return (not options.only or options.only.lower() in name.lower()) and (not options.few or name in FEW)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=TOP / "build" / "steps")
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--only", help="kinds or models whose names have this part")
    parser.add_argument("--few", action="store_true", help="a few of them, in under two minutes")
    parser.add_argument("--fresh", action="store_true", help="begin with no results")
    parser.add_argument("--report", type=Path, help="write the tables there, as Markdown")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.jsonl"
    for seed in options.seed:
        plan = planned(seed)
        while True:
            done = {record["place"]: record for record in read(results) if record["seed"] == seed}
            specs = plan if options.only else wanted(plan, done)
            left = [spec for spec in specs if chosen(spec, options) and spec["place"] not in done]
            if not left:
                break
            work(folder, left[:1], results)
    import report

    records = [record for record in read(results) if record["seed"] in options.seed and chosen(record, options)]
    print(report.summary(records))
    if options.report:
        options.report.write_text(report.tables(records))
    sys.exit(any(record["found"] for record in records))


main()
