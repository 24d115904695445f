"""Runs of the program under the preloaded library of faults.cpp: many a second, each in a process of its own."""

import bisect
import collections
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

KINDS = ("read", "write", "sync", "rename", "mmap", "truncate", "open", "spawn", "thread", "close", "large", "small")
LAYOUT = struct.Struct(f"<{len(KINDS)}QQQ256s256s6144s6144s")  # struct Log
MEMORY = 3 << 30  # bytes of its own a run may ask for: more would be everybody's loss on this machine

Log = collections.namedtuple("Log", "counts fired signal command call where end")
Result = collections.namedtuple("Result", "code signal timed_out out err seconds peak strays logs command")


def text(raw):
    return raw.split(b"\0", 1)[0].decode(errors="replace")


def read_log(path):
    raw = path.read_bytes()
    if len(raw) < LAYOUT.size:
        return None
    fields = LAYOUT.unpack_from(raw)
    n = len(KINDS)
    return Log(dict(zip(KINDS, fields[:n])), fields[n], fields[n + 1], *map(text, fields[n + 2 :]))


class Program:
    """A program that waits before its main() and forks for each run."""

    def __init__(self, path, library, environment=None):
        self.path, self.library = pathlib.Path(path).resolve(), pathlib.Path(library).resolve()
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
        self.environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
        self.environment |= {
            "OMP_NUM_THREADS": "1",
            "LD_PRELOAD": str(self.library),
            "HOME": str(self.scratch / "home"),
            **(environment or {}),
        }
        (self.scratch / "home").mkdir()
        self.server = self.socket = None
        self.start()

    def start(self):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server = subprocess.Popen(
            [self.path],
            env=self.environment | {"RETROGRAD_FAULTS_SERVER": str(theirs.fileno())},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

    def close(self):
        self.socket.close()
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def run(self, arguments, cwd, fault=None, environment=None, stdin="/dev/null", out=None, timeout=60, during=None, memory=MEMORY):
        """One run. `fault`: KIND:N[+]:WHAT[:WHO]. `during(process id)` is called as soon as it has started."""
        logs = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        out_path = out or logs / "out"
        fields = [
            f"@in={stdin}",
            f"@out={out_path}",
            f"@err={logs / 'err'}",
            f"@cwd={cwd}",
            f"@memory={memory}",
            f"@env=RETROGRAD_FAULTS_LOG={logs}",
            f"@env=XDG_DATA_HOME={logs / 'data'}",
        ]
        fields += [f"@env=RETROGRAD_FAULTS={fault}"] if fault else []
        fields += [f"@env={k}={v}" for k, v in (environment or {}).items()]
        fields += [str(a) for a in arguments]
        self.socket.settimeout(timeout)
        self.socket.send(b"\0".join(f.encode() for f in fields) + b"\0")
        process = int(self.socket.recv(128))
        if during:
            during(process)
        answer, timed_out = self.answer(process, timeout)
        status, peak, seconds, strays = answer.decode().split()
        status = int(status)
        files = {int(path.name): read_log(path) for path in logs.iterdir() if path.name.isdigit()}
        read = lambda path: path.read_text(errors="replace") if path.is_file() else ""
        result = Result(
            os.waitstatus_to_exitcode(status) if not os.WIFSIGNALED(status) else None,
            os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            timed_out,
            read(logs / "out") if not out else "",
            read(logs / "err"),
            float(seconds),
            int(peak) * 1024,
            int(strays),
            [log for _, log in sorted(files.items()) if log],
            [str(a) for a in arguments],
        )
        shutil.rmtree(logs, ignore_errors=True)
        return result

    def answer(self, process, timeout):
        """Waits for the end of a run. It hangs when it has had that much of a processor's time, or none for as long: on a busy machine
        the clock alone says nothing."""
        before = -1.0
        while True:
            try:
                return self.socket.recv(128), False
            except TimeoutError:
                used = processor_time(process)
                if used < timeout and used > before + 0.05:
                    before = used
                    continue
                kill(process)
                self.socket.settimeout(60)
                return self.socket.recv(128), True

    def counts(self, arguments, cwd, who="first", **options):
        """How often each kind of call is made by the processes that match `who`, when nothing fails."""
        result = self.run(arguments, cwd, **options)
        chosen = [log for log in result.logs if who in log.command]
        return result, {kind: max((log.counts[kind] for log in chosen), default=0) for kind in KINDS}


def kill(process):
    for target in (os.killpg, os.kill):
        try:
            target(process, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def processor_time(process):
    """Seconds that a process and those below it have run."""
    total = 0.0
    for one in (process, *(i for i, _ in children(process))):
        try:
            fields = pathlib.Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass
    return total


def children(process):
    """Process ids below a process, at any depth, with their command lines."""
    found = []
    try:
        tasks = list(pathlib.Path(f"/proc/{process}/task").iterdir())
    except OSError:
        return found
    for task in tasks:
        try:
            ids = (task / "children").read_text().split()
        except OSError:
            continue
        for one in ids:
            try:
                line = pathlib.Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                line = ""
            found += [(int(one), line), *children(int(one))]
    return found


class Symbols:
    """Names of the program's own functions, which it does not export."""

    def __init__(self, path):
        listing = subprocess.run(["nm", "-C", "--defined-only", str(path)], capture_output=True, text=True).stdout
        self.table = sorted((int(m[1], 16), m[2]) for m in re.finditer(r"^([0-9a-f]+) [tTwWiV] (.*)$", listing, re.M))
        self.name = pathlib.Path(path).name

    def named(self, stack):
        """The stack with our functions by name, one a line."""
        lines = []
        for line in stack.splitlines():
            m = re.match(r"(\S+)\+0x([0-9a-f]+) ?(.*)", line)
            if m and m[1] == self.name:
                at = bisect.bisect_right(self.table, (int(m[2], 16), "\x7f")) - 1
                line = f"{m[1]}: {short(self.table[at][1]) if at >= 0 else '?'}"
            elif m and m[3]:
                line = f"{m[1]}: {short(demangled(m[3]))}"
            lines.append(line)
        return lines


def demangled(name):
    if not name.startswith("_Z"):
        return name
    return subprocess.run(["c++filt", name], capture_output=True, text=True).stdout.strip()


def short(name):
    """A function's name without arguments and parameters."""
    name = re.sub(
        r"operator(<=>|<<|>>|<=|>=|<|>|->\*?|\(\))", "operator", name.replace("(anonymous namespace)::", "").replace("[abi:cxx11]", "")
    )
    name = re.sub(r" \[clone [^\]]*\]", "", name)
    name = re.sub(r"\{lambda\(.*?\)#\d+\}", "lambda", name)
    while True:
        shorter = re.sub(r"<[^<>]*>|\([^()]*\)", "", name)
        if shorter == name:
            return (
                re.sub(r"\b(const|noexcept)\b| +&+|\bnlohmann::json_abi_\w+", lambda m: "nlohmann" if m[0].startswith("nl") else "", name)
                .strip()
                .split(" ")[-1]
            )
        name = shorter
