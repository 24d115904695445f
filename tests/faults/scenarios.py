"""What is run while faults come: commands on small files, what they may change, and how to see that it is whole."""

import json
import pathlib
import re
import struct
import xml.etree.ElementTree

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
MLP = DATA / "models" / "mlp"


class Scenario:
    """A command in a folder of `files` {name: path or bytes}; `outputs` are the names it may write (a folder's: NAME/), `before` is a
    command that makes their old content. `who` are the processes in which faults come."""

    def __init__(self, name, arguments, files, outputs=(), before=None, who=("first",), seconds=60):
        self.name, self.arguments, self.outputs, self.before, self.who, self.seconds = name, arguments, tuple(outputs), before, who, seconds
        self.files = {n: f if isinstance(f, bytes) else pathlib.Path(f).read_bytes() for n, f in files.items()}
        self.start = self.after = self.out = None  # files before and after, and standard output where it is always the same
        self.written = set()  # names of the files that a run without faults writes

    def is_output(self, name):
        return any(name == o or (o.endswith("/") and name.startswith(o)) for o in self.outputs)

    def prepare(self, program, folder):
        """Makes the old content of the outputs, and learns what a run without faults leaves."""
        restore(folder, self.files)
        if self.before:
            made = program.run(self.before, folder)
            if made.code != 0:
                raise RuntimeError(f"{self.name}: {self.before} ends with {made.code}: {made.err}")
        self.start = contents(folder)
        runs = []
        for _ in range(2):
            restore(folder, self.start)
            before = stamps(folder)
            result = program.run(self.arguments, folder)
            if result.code != 0:
                raise RuntimeError(f"{self.name}: ends with {result.code or result.signal} without a fault: {result.err}{result.out}")
            runs.append((result, contents(folder)))
            self.written = written(before, folder)
        self.after = runs[0][1]
        self.out = same(runs[0][0].out) if same(runs[0][0].out) == same(runs[1][0].out) else None
        self.seconds_taken = max(result.seconds for result, _ in runs)
        unexpected = [n for n in self.after if n not in self.start and not self.is_output(n)]
        if unexpected or not set(n for n in self.after if self.is_output(n)) and self.outputs:
            raise RuntimeError(f"{self.name}: leaves {sorted(self.after)}")


def same(out):
    """Output without its numbers: times differ from run to run."""
    return re.sub(r" *-?[0-9][0-9.e+-]*", "0", out)


def contents(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(pathlib.Path(folder).rglob("*")) if p.is_file() and not p.is_symlink()
    }


def stamps(folder):
    """What shows that a file was written, even when it holds what it held."""
    return {
        str(p.relative_to(folder)): (p.stat().st_ino, p.stat().st_mtime_ns)
        for p in pathlib.Path(folder).rglob("*")
        if p.is_file() and not p.is_symlink()
    }


def written(before, folder):
    """The files that were written since `before`, stamps() of the folder."""
    return {name for name, stamp in stamps(folder).items() if before.get(name) != stamp}


def restore(folder, files):
    folder = pathlib.Path(folder)
    now = contents(folder)
    for name in now.keys() - files.keys():
        (folder / name).unlink()
    for name, content in files.items():
        if now.get(name) != content:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


def is_whole(program, folder, name, content, like):
    """Whether a file that differs from `like`, what a run without a fault has written, is complete all the same."""
    try:
        if name.endswith(".retrograd"):
            return program.run(["trace", name], folder).code == 0
        if name.endswith(".json"):
            return type(json.loads(content)) is type(json.loads(like))
        if name.endswith((".svg", ".graphml")):
            return xml.etree.ElementTree.fromstring(content) is not None
        if name.endswith(".png"):
            return content.startswith(b"\x89PNG") and content.endswith(b"IEND\xaeB\x60\x82")
        if name.endswith(".pdf"):
            return content.startswith(b"%PDF") and content.rstrip().endswith(b"%%EOF")
        if name.endswith(".safetensors"):
            size = struct.unpack_from("<Q", content)[0]
            ends = [t["data_offsets"][1] for n, t in json.loads(content[8 : 8 + size]).items() if n != "__metadata__"]
            return max(ends) == len(content) - 8 - size
        digits = lambda raw: re.sub(rb"[0-9.e+-]+", b"0", raw)  # times differ from run to run
        return digits(content) == digits(like)
    except (ValueError, KeyError, struct.error, xml.etree.ElementTree.ParseError):
        return False


def lost_or_left(program, folder, scenario, ends_by_kill=False):
    """What is wrong with the files after a run: inputs changed, outputs neither old nor new, files left behind; and how
    many temporary ones there are."""
    problems, temporary = [], 0
    now = contents(folder)
    for name, old in scenario.start.items():
        if name not in now:
            problems.append(f"{name} is gone")
        elif now[name] != old and not scenario.is_output(name):
            problems.append(f"{name} is changed")
    for name, content in now.items():
        if name in scenario.start and content == scenario.start[name]:
            continue
        if name in scenario.after:
            if content != scenario.after[name] and not is_whole(program, folder, name, content, scenario.after[name]):
                problems.append(f"{name} is half-written ({len(content)} of {len(scenario.after[name])} bytes)")
        elif name not in scenario.start:
            temporary += 1
            if not ends_by_kill:
                problems.append(f"{name} is left behind")
    return problems, temporary


def all_scenarios(program, folder):
    model = {"m.pt2": MLP / "model.pt2"}
    restore(folder, {"m.pt2": (MLP / "model.pt2").read_bytes()})
    for arguments in (["save", "m.pt2", "-o", "s.retrograd", "--embed"], ["notes", "m.pt2", "--at", "#1", "--comment", "an old comment"]):
        made = program.run(arguments, folder)
        if made.code != 0:
            raise RuntimeError(f"{arguments}: {made.err}")
    made = contents(folder)
    notes = next(name for name in made if name.endswith(".json"))
    session = {"s.retrograd": made["s.retrograd"]}
    marked = {**model, notes: made[notes]}
    staged = {"p.pt2": DATA / "pipeline" / "shared_2st" / "model.pt2"}
    script = {"t.pt": DATA / "torchscript" / "traced.pt"}
    suite = {f"suite/{n}/{f.name}": f for n in ("mlp", "multi_output") for f in (DATA / "models" / n).iterdir() if f.name != "core.pt2"}
    launch = ["pipeline", "launch", "--ranks", "2", "--grace", "1", "--", "pipeline", "run", "m.pt2", "--stages", "2"]
    yield Scenario("trace", ["trace", "m.pt2"], marked)
    yield Scenario("trace json", ["trace", "m.pt2", "--format", "json"], model)
    yield Scenario("run", ["run", "m.pt2"], model)
    yield Scenario(
        "run --inputs --save",
        ["run", "m.pt2", "--inputs", "i.safetensors", "--save", "o.safetensors"],
        {**model, "i.safetensors": MLP / "ref.safetensors"},
        ["o.safetensors"],
        ["run", "m.pt2", "--seed", "1", "--save", "o.safetensors"],
    )
    yield Scenario("debug", ["debug", "m.pt2", "--script", "c.txt"], {**model, "c.txt": b"step 3\nwhere\ncontinue\n"})
    yield Scenario("save", ["save", "m.pt2"], marked, ["m.retrograd"], ["save", "m.pt2", "--seed", "1"])
    yield Scenario(
        "save --embed",
        ["save", "m.pt2", "--embed", "-o", "o.retrograd"],
        model,
        ["o.retrograd"],
        ["save", "m.pt2", "--embed", "--seed", "1", "-o", "o.retrograd"],
    )
    yield Scenario("save --values", ["save", "m.pt2", "--values", "-o", "new.retrograd"], model, ["new.retrograd"])
    yield Scenario("session saved again", ["save", "s.retrograd", "--embed", "--seed", "2"], session, ["s.retrograd"])
    yield Scenario("session reopened", ["run", "s.retrograd"], session)
    yield Scenario("notes", ["notes", "m.pt2", "--at", "#1", "--comment", "a new comment"], marked, [notes])
    yield Scenario("notes list", ["notes", "m.pt2"], marked)
    formats = program.run(["help", "export"], folder).out
    for name in sorted(re.search(r"--format TEXT:\{([^}]*)\}", formats)[1].split(",")):
        if name in ("svg", "png", "pdf"):  # these need the window's painter: window_scenarios()
            continue
        output = f"o.{name}"
        beside = ["o.python.safetensors"] if name == "python" else []
        yield Scenario(
            f"export {name}",
            ["export", "m.pt2", "--to", name, "-o", output],
            model,
            [output, *beside],
            ["export", "m.pt2", "--to", name, "--seed", "1", "-o", output],
        )
    yield Scenario("export to standard output", ["export", "m.pt2", "--to", "text"], model)
    yield Scenario(
        "check --report",
        ["check", "m.pt2", "--reference", "ref.safetensors", "--report", "o.json"],
        {**model, "ref.safetensors": MLP / "ref.safetensors"},
        ["o.json"],
        ["check", "m.pt2", "--report", "o.json"],
    )
    yield Scenario("check --suite", ["check", "--suite", "suite", "--report", "o.json"], suite, ["o.json"])
    yield Scenario(
        "pipeline split",
        ["pipeline", "split", "p.pt2", "--out", "stages"],
        staged,
        ["stages/"],
        ["pipeline", "split", "p.pt2", "--out", "stages", "--seed", "1"],
    )
    for form in ("csv", "svg"):
        yield Scenario(
            f"schedule {form}",
            ["pipeline", "schedule", "g.csv", "--format", form, "-o", f"o.{form}"],
            {"g.csv": DATA / "schedules" / "GPipe_pp2_mb4.csv"},
            [f"o.{form}"],
            ["pipeline", "schedule", "1F1B", "--ranks", "2", "--microbatches", "4", "--format", form, "-o", f"o.{form}"],
        )
    yield Scenario(
        "pipeline run",
        [*launch, "--save", "grads"],
        model,
        ["grads/"],
        [*launch, "--save", "grads", "--seed", "1"],
        who=("first", "rank 0 ", "rank 1 "),
    )
    yield Scenario("TorchScript", ["run", "t.pt"], script, who=("first", "probe-torchscript"))


def window_scenarios():
    model = {"m.pt2": MLP / "model.pt2"}
    for name in ("svg", "png", "pdf"):
        yield Scenario(
            f"export {name}",
            ["export", "m.pt2", "--to", name, "-o", f"o.{name}"],
            model,
            [f"o.{name}"],
            ["export", "m.pt2", "--to", name, "--dark", "-o", f"o.{name}"],
        )
    yield Scenario(
        "picture",
        ["picture", "m.pt2", "o.png", "--graph", "--whole", "--open"],
        {"m.pt2": DATA / "models" / "inplace_views" / "model.pt2"},
        ["o.png"],
        ["picture", "m.pt2", "o.png"],
    )
