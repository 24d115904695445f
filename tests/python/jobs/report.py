"""Counts of what the program said of random jobs."""

import re
from collections import Counter


def grouped(records):
    """Rows of (word, records): all, by compiler, budget, form, sizes and feature."""
    rows = [("all", records)]
    for key, label in (("backend", "{}"), ("dtype", "{}"), ("form", "compiled: a {}")):
        for value in sorted({r[key] for r in records}):
            rows.append((label.format(value), [r for r in records if r[key] == value]))
    rows.append(("memory budget below 1", [r for r in records if r["budget"] < 1]))
    rows.append(("draws", [r for r in records if r.get("draws")]))
    features = Counter(feature for r in records for feature in r["features"])
    for feature in sorted(features):
        if feature != "memory budget below 1":
            rows.append((feature, [r for r in records if feature in r["features"]]))
    return rows


def said(record):
    """The verdict of a job: that of its worst compile."""
    verdicts = {v["verdict"] for v in record["verdicts"]}
    return next(word for word in ("failed", "differs", "not possible", "agrees") if word in verdicts)


def general(reason):
    """A reason without the names of one job."""
    reason = re.sub(r"/\S*/", "", reason)
    reason = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", reason)
    reason = re.sub(r"\b[a-z_]+_\d+\b|\d+", "N", reason)
    return reason[:140]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows] + [""]


def made(records):
    return [r for r in records if "not made" not in r]


def row(word, records):
    right = [r for r in records if r["job"] == "right"]
    wrong = [r for r in records if r["job"] == "wrong"]
    planted = [r for r in right if r.get("fault", {}).get("verdict")]
    by_job, by_fault = Counter(map(said, right)), Counter(r["fault"]["verdict"] for r in planted)
    return [
        word,
        len(right),
        by_job["agrees"],
        by_job["not possible"],
        by_job["differs"] + by_job["failed"],
        len(planted),
        by_fault["differs"],
        by_fault["not possible"],
        by_fault["agrees"] + by_fault["failed"],
        len(wrong),
        sum(said(r) == "agrees" for r in wrong),
    ]


HEAD = [
    "jobs",
    "right",
    "agrees",
    "not possible",
    "false alarm",
    "faults",
    "differs",
    "not possible",
    "agrees",
    "wrong in PyTorch",
    "agrees",
]


def tables(records):
    jobs = made(records)
    seeds = [r["seed"] for r in records]
    lines = [
        "# Random jobs",
        "",
        "What `retrograd check LOG --weights W --batch B` says of random training functions that PyTorch 2.15 compiled",
        "to a log (`scripts/fuzz jobs`).",
        "",
        f"Seeds {min(seeds)} to {max(seeds)}, {len(records)} tried: {summary(records)}",
        "",
        "- **Right**: the gradients of the logged graphs are those of eager PyTorch for the same draws, within ten",
        '  roundings. A false alarm is "differs".',
        "- **Fault**: an edit of the logged backward of a right job that moves a gradient beyond ten roundings.",
        "- **Wrong in PyTorch**: the logged graphs give other gradients than eager PyTorch, by more than a hundred",
        "  roundings.",
        "",
    ]
    lines += table(HEAD, [row(word, some) for word, some in grouped(jobs)])
    lines += ["## Faults by kind", ""]
    kinds = sorted({r["fault"]["kind"] for r in jobs if r.get("fault", {}).get("kind")})
    rows = []
    for kind in kinds:
        some = Counter(r["fault"]["verdict"] for r in jobs if r.get("fault", {}).get("kind") == kind)
        rows.append([kind, sum(some.values()), some["differs"], some["not possible"], some["agrees"] + some["failed"]])
    lines += table(["kind", "planted", "differs", "not possible", "agrees"], rows)
    lines += ["## Why it was not possible", ""]
    reasons = Counter(
        general(v.get("reason", ""))
        for r in jobs
        if r["job"] == "right" and said(r) == "not possible"
        for v in r["verdicts"]
        if v["verdict"] == "not possible"
    )
    lines += table(["reason, of right jobs", "compiles"], reasons.most_common())
    lines += ["## Seeds without a verdict", ""]
    nothing = Counter(general(r["not made"]) for r in records if "not made" in r)
    nothing += Counter(
        {
            f"job: {kind}": count
            for kind, count in Counter(r["job"] for r in jobs).items()
            if kind in ("other", "unclear")
        }
    )
    lines += table(["what happened", "seeds"], nothing.most_common())
    checked = Counter(r["finite differences"] for r in jobs)
    lines += [
        f"Finite differences in float64 agree with eager PyTorch's gradients in {checked['agree']} jobs and differ in "
        f"{checked['differ']}; {checked['not possible']} jobs have no derivative (a backward of their own, or writes "
        "that autograd does not see).",
        "",
    ]
    bad = [r for r in records if r.get("wrong verdicts")]
    if bad:
        lines += ["## Wrong verdicts", ""] + table(
            ["seed", "what"], [[r["seed"], "; ".join(r["wrong verdicts"])] for r in bad]
        )
    return "\n".join(lines)


def summary(records):
    jobs = made(records)
    values = row("", jobs)
    other = len(jobs) - values[1] - values[9]
    return (
        f"{values[1]} right jobs ({values[2]} agree, {values[3]} not possible, {values[4]} false alarms), "
        f"{values[5]} planted faults ({values[6]} found, {values[7]} not possible, {values[8]} agree), "
        f"{values[9]} jobs wrong in PyTorch ({values[10]} agree), {other} jobs not judged, "
        f"{len(records) - len(jobs)} seeds without a job."
    )
