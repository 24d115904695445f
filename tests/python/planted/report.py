"""What came of the drawn scripts, as text."""

import json

HEAD = """# Planted faults in drawn training steps

`scripts/check-planted --seed N` draws 200 training scripts: models of attention, gated and plain MLPs, convolutions, recurrent layers, custom Functions and LoRA, five losses, autocast, scaler, accumulation,
clipping, both kinds of checkpoints, tied weights, EMA, schedules, validation, and six optimizers in three ways. Every fourth has one planted fault of 20 kinds. Each runs three updates without the recorder
and with it. Right: training is the same bit for bit, `check` raises no alarm for a right script (no fault, no suspicion), and names a fault first, at its line or by its parameter.
"""


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wrong(records):
    """An alarm on a right step, or a training that the recorder changed."""
    return [one for one in records if any(text.startswith(("an alarm", "the training")) for text in one["found"])]


def line_of(record):
    begin = f"{record['seed']}-{record['place']} {record['fault'] or 'right'}: "
    return begin + (f"not made: {record['not made'][-200:]}" if "not made" in record else "; ".join(record["found"]) or "as it should be")


def summary(records):
    made = [one for one in records if "not made" not in one]
    right, faults = [one for one in made if one["fault"] is None], [one for one in made if one["fault"]]
    alarms, unjudged = (sum(any(text.startswith(words) for text in one["found"]) for one in right) for words in ("an alarm", "not judged"))
    changed = sum(any(text.startswith("the training") for text in one["found"]) for one in made)
    first, named = sum(one["first"] for one in faults), sum(one["named"] for one in faults)
    return (
        f"{len(made)} scripts, {len(records) - len(made)} not made: {changed} changed by the recorder; {alarms} alarms on {len(right)} right ones, {unjudged} of them not judged whole; "
        f"of {len(faults)} faults {first} named first, {named - first} later, {len(faults) - named} missed"
    )


def page(records):
    kinds = {}
    for one in records:
        if one["fault"] and "not made" not in one:
            found = kinds.setdefault(one["fault"], [0, 0, 0])
            for place, value in enumerate((1, one["first"], one["named"])):
                found[place] += value
    rows = [f"| {kind} | {count} | {first} | {named} |" for kind, (count, first, named) in sorted(kinds.items())]
    table = ["| Fault | Planted | Named first | Named |", "| --- | ---: | ---: | ---: |", *rows]
    lines = ["- " + line_of(one).replace("\n", " ").replace("|", "/")[:400] for one in records if one["found"]]
    seeds = ", ".join(sorted({str(one["seed"]) for one in records}))
    return "\n".join([HEAD, "## Result", "", f"Seed {seeds}: {summary(records)}.", "", *table, "", *(["Not as it should be:", "", *lines] if lines else [])]).rstrip() + "\n"
