"""Judges runs, counts them, and keeps what is found."""

import collections
import re
import threading

from scenarios import same

LIBRARIES = re.compile(r"^(libtorch|libc10|libgomp|libQt6|libq|libgloo|libshm)")
# Compiled into the program: functions of theirs that allocate and are noexcept end it (taking a JSON value down, looking an option up).
NOEXCEPT = re.compile(r": (nlohmann::.*::destroy|CLI::Option::check_\w*name)$")
SYSTEM = re.compile(r"^(libc\.|libstdc|libgcc|libfaults|faults\.so|ld-linux|libm\.)")


class Findings:
    def __init__(self, symbols, log=None, keep=None):
        self.symbols, self.log, self.keep = symbols, log, keep
        self.rows = collections.defaultdict(collections.Counter)  # row: runs, lost, crashed, ...
        self.families = collections.OrderedDict()  # family: [count, first example]
        self.library_ends = collections.Counter()
        self.lock = threading.Lock()

    def count(self, row, what, n=1):
        with self.lock:
            self.rows[row][what] += n

    def add(self, row, what, family, example):
        """`what`: lost, crashed, hung, silent, refused, memory, strays or left."""
        with self.lock:
            self.rows[row][what] += 1
            known = self.families.setdefault(f"{what}: {family}", [0, example])
            known[0] += 1
            if known[0] == 1:
                print(f"finding: {what}: {family}\n  " + "\n  ".join(example[:4]), flush=True)
                if self.log:
                    with open(self.log, "a") as out:
                        out.write(f"{what}: {family}\n  " + "\n  ".join(example) + "\n\n")

    def stack(self, result, part="where", most=24):
        for log in result.logs:
            if getattr(log, part):
                return self.symbols.named(getattr(log, part))[:most]
        return []

    def ours(self, stack):
        """The innermost function of the program's own in a stack, without its arguments."""
        for line in stack:
            if line.startswith(self.symbols.name + ": retrograd::"):
                return line.split(": ", 1)[1]
        return "main" if stack else "?"

    def example(self, result, fault):
        lines = [
            f"{' '.join(result.command)}   [{fault}]",
            f"exit {result.code}, signal {result.signal}, {result.seconds:.2f} s: {result.err.strip()[-300:]!r}",
        ]
        lines += [f"call: {log.call}" for log in result.logs if log.call][:1]
        lines += ["failed at:", *("  " + line for line in self.stack(result))] if self.stack(result) else []
        lines += ["ended at:", *("  " + line for line in self.stack(result, "end", 24))] if self.stack(result, "end") else []
        return lines

    def is_library_end(self, result):
        """Whether a process was ended by a library that cannot do without what was refused to it: the call that failed, or the
        function that let no exception through, is the library's."""
        if not any(log.fired and log.signal in (6, 11) for log in result.logs):
            return False
        if "Fatal glibc error" in result.err:  # the C library has no other answer, as where a thread's first destructor finds no memory
            return True
        for part in ("where", "end"):
            callers = self.callers(result, part)
            if callers and LIBRARIES.search(callers[0]):
                return True
            if callers and NOEXCEPT.search(callers[0]) and any("__gxx_personality" in line for line in self.stack(result, "end", 48)):
                return True
        return False

    def waits_for_a_thread_of_qt(self, result):
        """Qt's painter waits for good for a thread of its pool that could not be started."""
        called = any(log.call.startswith("pthread_create") for log in result.logs)
        return called and any(": QThreadPool" in line for line in self.stack(result, "where", 48))

    def callers(self, result, part):
        """A stack without what every failure goes through."""
        return [line for line in self.stack(result, part, 48) if not SYSTEM.match(line) and ": std::" not in line]

    def note_library_end(self, result, example):
        """Keeps, once for each function of a library, where it was that it ended the program."""
        inside = self.callers(result, "end")
        with self.lock:
            if self.library_ends[inside[0] if inside else "?"] == 0 and self.log:
                with open(self.log, "a") as out:
                    out.write("ended by a library\n  " + "\n  ".join(example) + "\n\n")
            self.library_ends[inside[0] if inside else "?"] += 1

    def judge(self, row, scenario, result, fault, problems, now=None, benign=False, most_memory=None):
        """Takes a run into account: exit 0, 1 or 2 with a message, and what is wrong with its files. `now`: names of the files that a run of a
        Scenario has written."""
        self.count(row, "runs")
        command = scenario if isinstance(scenario, str) else scenario.name
        example = self.example(result, fault)
        place = self.ours(self.stack(result, "where", 48))
        library_end = self.is_library_end(result)
        self.count(row, "exit 0", result.code == 0)
        self.count(row, "message and exit 1 or 2", result.code in (1, 2) and bool(result.err.strip() or says_why(result.out)))
        if result.timed_out and self.waits_for_a_thread_of_qt(result):
            self.count(row, "hung in a library")
        elif result.timed_out:
            self.add(row, "hung", f"{row}, in {place}" if place != "?" else f"{row}: {command}", example)
        elif library_end:
            self.count(row, "ended by a library")
            self.note_library_end(result, example)
        elif result.signal or (result.code > 128 and any(log.signal == result.code - 128 for log in result.logs)):
            end = self.ours(self.stack(result, "end", 48))
            self.add(row, "crashed", f"{row}, signal {result.signal or result.code - 128}, ended in {end}, failed in {place}", example)
        elif result.code not in (0, 1, 2):
            self.add(row, "refused", f"{row}, exit code {result.code} of {command}", example)
        elif result.code and not result.err.strip() and not says_why(result.out):
            self.add(row, "silent", f"{row}, exit {result.code} without a message: {command}, in {place}", example)
        elif benign and result.code != 0:
            self.add(row, "refused", f"{row}: no failure, yet {command} ends with {result.code}, in {place}", example)
        elif result.code == 0 and now is not None and scenario.out is not None and same(result.out) != scenario.out:
            self.add(row, "silent", f"{row}: exit 0 and another output: {command}, in {place}", example)
        elif result.code == 0 and not result.err.strip() and now is not None and not scenario.written <= now:
            self.add(row, "silent", f"{row}: exit 0 and nothing written: {command}, in {place}", example)
        if result.strays:
            self.add(row, "strays", f"{row}: {result.strays} processes left by {command}", example)
        if most_memory and result.peak > most_memory:
            self.add(row, "memory", f"{row}: {command}", [f"{result.peak >> 20} MB", *example])
        for problem in problems:
            left = problem.endswith("left behind")
            if left and (library_end or result.timed_out):
                self.count(row, "temporary files left")
                continue
            self.add(
                row,
                "left" if left else "lost",
                f"{row}: {command}: {re.sub('[.][A-Za-z0-9]{6} is left', '.?????? is left', problem)}, in {place}",
                [problem, *example],
            )

    def table(self):
        columns = ["runs", "not reached", "exit 0", "message and exit 1 or 2", "lost", "crashed", "hung", "silent", "refused", "left", "memory", "strays", "ended by a library"]
        used = [c for c in columns if c in ("runs", "lost", "crashed") or any(r[c] for r in self.rows.values())]
        used += sorted({c for r in self.rows.values() for c in r if r[c]} - set(columns))
        lines = ["| fault | " + " | ".join(used) + " |", "| --- |" + " ---: |" * len(used)]
        lines += [f"| {row} | " + " | ".join(f"{counts[c]:,}" for c in used) + " |" for row, counts in self.rows.items()]
        return "\n".join(lines)


def says_why(out):
    """A check says in its report what failed, and a diff what differs, both on standard output."""
    return re.search(r"error|FAIL|fail|not possible|differs|diverge at|\d+ changed, \d+ only in the first", out) is not None
