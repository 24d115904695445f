"""Lets each call of a kind fail, one run a call, in every scenario."""

import random

from scenarios import lost_or_left, restore, stamps, written

# What a call of each kind fails with. With `+` all that follow fail too: a disk that stays full, memory that stays short.
FAILURES = {
    "read": ["EIO"],
    "write": ["ENOSPC", "+ENOSPC"],
    "sync": ["EIO"],
    "rename": ["EIO"],
    "mmap": ["ENOMEM"],
    "truncate": ["ENOSPC"],
    "open": ["EMFILE"],
    "spawn": ["EAGAIN"],
    "thread": ["EAGAIN"],
    "close": ["EIO"],
    "large": ["ENOMEM", "+ENOMEM"],
    "small": [],
}
BENIGN = {"read": ["EINTR", "SHORT"], "write": ["EINTR", "SHORT"]}
KILLING = {"open": ["KILLED"], "write": ["KILL", "KILLED"], "sync": ["KILLED"], "rename": ["KILL", "KILLED"], "truncate": ["KILLED"]}
SHARED = ("pipeline run",)  # more than one process: n differs a little from run to run


def spread(count, most):
    """1 to `count`, or `most` of them at even distances."""
    return list(range(1, count + 1)) if count <= most else sorted({1 + (i * (count - 1)) // max(1, most - 1) for i in range(most)})


def one(program, folder, scenario, findings, row, fault, benign=False, kills=False):
    restore(folder, scenario.start)
    before = stamps(folder)
    result = program.run(scenario.arguments, folder, fault=fault, timeout=scenario.seconds)
    now = written(before, folder)
    problems, temporary = lost_or_left(program, folder, scenario, kills)
    if kills:
        findings.count(row, "runs")
        findings.count(row, "temporary files left", temporary)
        for problem in problems:
            findings.add(row, "lost", f"{row}: {scenario.name}: {problem}", [problem, *findings.example(result, fault)])
        if not any(log.fired for log in result.logs):
            findings.count(row, "not reached")
        return
    findings.judge(row, scenario, result, fault, problems, now, benign)
    if not any(log.fired for log in result.logs):
        findings.count(row, "not reached")


def jobs(program, folder, scenario, findings, most, quick, kinds=None, share=1.0):
    """What there is to run: one function a fault, each taking a program and a folder. `kinds`: of calls, all if absent; `share`: of all that could be
    run, at even distances."""
    counted = {}
    for who in scenario.who:
        restore(folder, scenario.start)
        counted[who] = program.counts(scenario.arguments, folder, who)[1]
    made = []
    suffix = lambda who: "" if who == "first" else f" in {'a rank' if who.startswith('rank') else 'the probe'}"
    for who, counts in counted.items():
        for kind, count in counts.items():
            if kinds and kind not in kinds:
                continue
            for flavour in FAILURES[kind]:
                errno, on = flavour.lstrip("+"), "+" if flavour.startswith("+") else ""
                for n in spread(count, most):
                    made.append(
                        (f"{kind}, {errno}{' from there on' if on else ''}{suffix(who)}", f"{kind}:{n}{on}:{errno}:{who}", False, False)
                    )
            for errno in BENIGN.get(kind, []):
                for n in spread(count, most):
                    made.append(
                        (
                            f"{kind}, {'interrupted (EINTR)' if errno == 'EINTR' else 'half of it'}: no failure{suffix(who)}",
                            f"{kind}:{n}:{errno}:{who}",
                            True,
                            False,
                        )
                    )
            if who == "first" and scenario.outputs:
                for how in KILLING.get(kind, []):
                    for n in spread(count, most):
                        made.append(
                            (f"kill -9 {'before' if how == 'KILL' else 'after'} each {kind}", f"{kind}:{n}:{how}:{who}", False, True)
                        )
    made = [made[int(i / share)] for i in range(int(len(made) * share))]
    if quick:
        made = random.Random(scenario.name).sample(made, min(len(made), quick))
    return [lambda p, f, job=job: one(p, f, scenario, findings, *job) for job in made], counted


def small_jobs(scenarios, counted, findings, count, seed):
    """Allocations below 64 KiB that fail at random."""
    draw = random.Random(seed)
    places = [(s, who, counted[s.name][who]["small"]) for s in scenarios for who in s.who if counted[s.name][who]["small"]]
    made = []
    for i in range(count):
        scenario, who, there = places[i % len(places)]
        made.append(
            lambda p, f, s=scenario, fault=f"small:{draw.randint(1, there)}:ENOMEM:{who}": one(
                p, f, s, findings, "small allocation, random", fault
            )
        )
    return made
