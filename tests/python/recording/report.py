"""What the sweep found, as text."""

import json


KNOWN = {  # docs/limits.md names these
    "linalg.pinv, autocast": "PyTorch refuses it under autocast, and not torch.pinverse, which calls the same op: which of them called is not seen",
    "linalg.pinv.hermitian, autocast": "as linalg.pinv",
    "linalg.pinv.singular, autocast": "as linalg.pinv",
}


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def text(records):
    total = {key: sum(one[key] for one in records) for key in ("calls", "raises", "unstable")}
    differ = [(one["case"], call, what) for one in wrong(records) for call, what in one["differ"].items()]
    known = [one["case"] for one in records if one["differ"] and one["case"] in KNOWN]
    lines = [
        f"{len(records)} cases, {total['calls']:,} calls: {len(differ)} differ with the recorder; {total['raises']} raise, with it and without; "
        f"{total['unstable']} differ from run to run without it; {sum('not made' in one for one in records)} not made"
    ]
    lines += [f"  {case}, {call}: {what}" for case, call, what in differ]
    return "\n".join([*lines, *(f"  known: {case}: {KNOWN[case]}" for case in known)])


def wrong(records):
    """Those that differ, and are not known to."""
    return [one for one in records if one["differ"] and one["case"] not in KNOWN]


HEAD = """# Recording changes nothing

`scripts/check-recording` runs PyTorch's own samples of each differentiable op (`op_db`: forward, backward, second derivative, in place; float32, bfloat16 under autocast, complex), of modules and
optimizers, and loops with scalers that skip, custom ops, Functions and checkpoints: twice without `retrograd.record` and once with it. Results, strides, generators and exceptions have to be the same,
bit for bit. What differs from run to run without the recorder is not compared.
"""


def page(records):
    import torch

    kinds = {}
    for one in records:
        kind = one["case"].split(", ")[1] if ", " in one["case"] else one["case"]
        found = kinds.setdefault(kind, [0, 0, 0, 0])
        for place, value in enumerate((1, one["calls"], len(one["differ"]), one["unstable"])):
            found[place] += value
    rows = [f"| {kind} | " + " | ".join(f"{value:,}" for value in found) + " |" for kind, found in kinds.items()]
    first, *differ = text(records).splitlines()
    table = ["| Kind | Cases | Calls | Differ | Not compared |", "| --- | ---: | ---: | ---: | ---: |", *rows]
    lines = [f"- {line.strip()}" for line in differ] + [f"- {one['case']} is not made: {one['not made'].splitlines()[0]}" for one in records if "not made" in one]
    return "\n".join([HEAD, "## Result", "", f"PyTorch {torch.__version__} on a CPU. {first}.", "", *table, "", *lines]).rstrip() + "\n"
