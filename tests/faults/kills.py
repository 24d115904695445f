"""kill -9 at random moments: of the program while it writes, and of the processes that it starts."""

import os
import random
import re
import signal
import time

from program import children
from scenarios import contents, lost_or_left, restore

KILLED = ("save", "save --embed", "notes", "session saved again")


def kill_jobs(scenarios, findings, count, seed):
    chosen = [s for s in scenarios if s.name in KILLED]
    draw = random.Random(seed)
    return [lambda p, f, s=chosen[i % len(chosen)], part=draw.random(): kill_at(p, f, s, findings, part) for i in range(count)]


def kill_at(program, folder, scenario, findings, part):
    row = "kill -9 at random: " + scenario.name
    restore(folder, scenario.start)

    def during(process):
        time.sleep(part * scenario.seconds_taken * 1.05)
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass

    result = program.run(scenario.arguments, folder, during=during)
    problems, temporary = lost_or_left(program, folder, scenario, ends_by_kill=True)
    findings.count(row, "runs")
    findings.count(row, "killed in time", result.signal == signal.SIGKILL)
    now = contents(folder)
    findings.count(row, "new", any(n in now and now[n] != scenario.start.get(n) for n in scenario.after))
    findings.count(row, "temporary files left", temporary)
    for problem in problems:
        findings.add(row, "lost", f"{row}: {problem}", [problem, *findings.example(result, f"killed after {part:.3f} of its time")])
    if result.strays:
        findings.add(row, "strays", row, findings.example(result, "killed"))


class ChildKill:
    """A child process to be killed: `find` is a pattern for its command line, `named` what the program has to say of its end."""

    def __init__(self, name, find, named, codes):
        self.name, self.find, self.named, self.codes = name, find, named, codes


# The exit code of pipeline launch is that of the rank that failed first (docs/ranks.md): 128 + 9 for one that was killed.
CHILDREN = {
    "pipeline run": ChildKill("a rank", r"pipeline run", r"rank \d", (0, 1, 2, 137)),
    "TorchScript": ChildKill("the TorchScript probe", r"probe-torchscript", r"Killed", (0, 1, 2)),
    "check --suite": ChildKill("the suite's worker", r"", r"signal 9|Killed", (0, 1)),
    "picture": ChildKill("the layout helper", r"retrograd-layout", r"", (0,)),
}


def child_jobs(scenarios, findings, count, seed):
    draw = random.Random(seed)
    chosen = [s for s in scenarios if s.name in CHILDREN]
    return [
        lambda p, f, s=s, part=draw.random(): kill_child(p, f, s, CHILDREN[s.name], findings, part) for s in chosen for _ in range(count)
    ]


def matching(process, child):
    return [i for i, line in children(process) if re.search(child.find, line)]


def first_child(process, child):
    """Waits until a child is there; False where the program ends before."""
    end = time.monotonic() + 60
    while time.monotonic() < end and os.path.exists(f"/proc/{process}/cmdline") and not is_zombie(process):
        if matching(process, child):
            return True
        time.sleep(0.001)
    return False


def is_zombie(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def lifetime(program, folder, scenario, child):
    """Seconds from the first child's start to the last one's end."""
    if not hasattr(child, "seconds"):
        lived = []

        def during(process):
            if first_child(process, child):
                begin = time.monotonic()
                while not is_zombie(process) and matching(process, child):
                    time.sleep(0.001)
                lived.append(time.monotonic() - begin)

        restore(folder, scenario.start)
        program.run(scenario.arguments, folder, during=during)
        child.seconds = lived[0] if lived else 0.05
    return child.seconds


def kill_child(program, folder, scenario, child, findings, part):
    row = f"{child.name} killed at random"
    seconds = lifetime(program, folder, scenario, child)
    restore(folder, scenario.start)
    killed = []

    def during(process):
        if not first_child(process, child):
            return
        time.sleep(part * seconds)
        alive = matching(process, child)
        if alive:
            try:
                os.kill(alive[int(part * 7919) % len(alive)], signal.SIGKILL)
                killed.append(True)
            except ProcessLookupError:
                pass

    result = program.run(scenario.arguments, folder, during=during, timeout=60)
    problems, _ = lost_or_left(program, folder, scenario, ends_by_kill=True)
    findings.count(row, "runs")
    findings.count(row, "killed in time", bool(killed))
    example = findings.example(result, f"{child.name} killed" if killed else "nothing killed")
    if result.timed_out:
        findings.add(row, "hung", row, example)
    elif result.signal:
        findings.add(row, "crashed", row, example)
    elif result.code not in child.codes:
        findings.add(row, "refused", f"{row}: exit code {result.code}", example)
    elif killed and result.code and not re.search(child.named, result.err + result.out):
        findings.add(row, "silent", f"{row}: it is not named", example)
    if result.strays:
        findings.add(row, "strays", row, example)
    for problem in problems:
        findings.add(row, "lost", f"{row}: {problem}", [problem, *example])
