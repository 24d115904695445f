"""Damaged files of each kind, through the subcommands that take that kind."""

import os
import pathlib
import random
import signal
import time

import mutants
from scenarios import DATA, MLP, contents, restore

MOST_MEMORY = 1 << 30  # bytes, for files below 10 MB


# {kind: (file name, command lines with FILE for it, how it is damaged)}
MODEL_COMMANDS = [
    ["trace", "FILE"],
    ["trace", "FILE", "--format", "json"],
    ["run", "FILE"],
    ["run", "FILE", "--save", "o.safetensors"],
    ["check", "FILE"],
    ["check", "FILE", "--report", "o.json"],
    ["save", "FILE", "-o", "o.retrograd"],
    ["save", "FILE", "--embed", "--values", "-o", "o.retrograd"],
    ["report", "FILE", "-o", "o.html"],
    ["export", "FILE", "--to", "python"],
    ["notes", "FILE"],
    ["debug", "FILE", "-c", "step 3", "-c", "continue"],
    ["diff", "FILE", "good.pt2"],
    ["compare", "FILE"],
    ["trace", "FILE", "--partition", "min-cut"],
    ["bench", "FILE"],
]
PT2_COMMANDS = [
    *MODEL_COMMANDS,
    ["pipeline", "split", "FILE", "--stages", "2"],
    ["pipeline", "split", "FILE", "--stages", "2", "--out", "stages"],
    ["pipeline", "check", "FILE", "--stages", "2"],
    ["pipeline", "schedule", "1F1B", "--ranks", "2", "--microbatches", "2", "--model", "FILE"],
    ["trace", "FILE", "--order", "2"],
]
KINDS = {
    "pt2": ("f.pt2", PT2_COMMANDS, mutants.damaged_zip),
    "TorchScript": ("f.pt", MODEL_COMMANDS, mutants.damaged_zip),
    "session": ("f.retrograd", MODEL_COMMANDS, mutants.damaged_zip),
    "safetensors": (
        "f.safetensors",
        [
            ["run", "good.pt2", "--inputs", "FILE"],
            ["check", "good.pt2", "--reference", "FILE"],
            ["trace", "good.pt2", "--inputs", "FILE"],
            ["save", "good.pt2", "--inputs", "FILE", "-o", "o.retrograd"],
            ["debug", "good.pt2", "--inputs", "FILE", "-c", "continue"],
        ],
        mutants.damaged_safetensors,
    ),
    "printed trace": ("f.txt", MODEL_COMMANDS, mutants.damaged_text),
    "schedule CSV": (
        "f.csv",
        [
            ["pipeline", "schedule", "FILE"],
            ["pipeline", "schedule", "FILE", "--format", "json"],
            ["pipeline", "schedule", "FILE", "--lower"],
            ["pipeline", "schedule", "FILE", "--format", "svg", "-o", "o.svg"],
            ["pipeline", "schedule", "FILE", "--format", "csv", "--spaced", "--merge"],
        ],
        mutants.damaged_text,
    ),
    "notes": (
        "good.notes.json",
        [
            ["notes", "good.pt2"],
            ["notes", "good.pt2", "--at", "#1", "--comment", "new"],
            ["notes", "good.pt2", "--format", "json"],
            ["save", "good.pt2", "-o", "o.retrograd"],
            ["export", "good.pt2", "-o", "o.txt"],
            ["debug", "good.pt2", "-c", "notes"],
        ],
        mutants.damaged_json,
    ),
}


LOG_COMMANDS = [
    ["graphs", "FILE"],
    ["graphs", "FILE", "--format", "json", "--nodes"],
    ["trace", "FILE", "--show", "joint"],
    ["run", "FILE"],
    ["check", "FILE"],
    ["check", "FILE", "--compile", "0/0"],
    ["save", "FILE", "-o", "o.retrograd"],
    ["report", "FILE", "-o", "o.html"],
    ["debug", "FILE", "-c", "step 3", "-c", "continue"],
]
KINDS |= {
    "job log": ("f.log", LOG_COMMANDS, mutants.damaged_log),
    "TORCH_LOGS text": ("f.log", LOG_COMMANDS, mutants.damaged_text),
    "repro script": ("f.py", [*MODEL_COMMANDS[:9], ["shrink", "FILE", "--nan", "-o", "o.shrunk"]], mutants.damaged_text),
    "checkpoint": (
        "f.pth",
        [
            ["run", "good.pt2", "--weights", "FILE"],
            ["run", "good.pt2", "--weights", "FILE", "--partial-weights"],
            ["trace", "good.pt2", "--weights", "FILE", "--partial-weights"],
            ["run", "good.pt2", "--batch", "FILE", "--partial-weights"],
            ["save", "good.pt2", "--weights", "FILE", "--partial-weights", "-o", "o.retrograd"],
        ],
        mutants.damaged_zip,
    ),
    "recorded numbers": (
        "f.json",
        [["numbers", "FILE", "good.pt2"], ["numbers", "FILE", "FILE"], ["numbers", "good.pt2", "FILE", "--format", "json"]],
        mutants.damaged_json,
    ),
}


WEIGHTS = {"l1.weight": (16, 8), "l1.bias": (16,), "l2.weight": (16, 16), "l2.bias": (16,), "l3.weight": (4, 16), "l3.bias": (4,)}  # of MLP
INPUTS = {}  # of a TorchScript file, by its content


def seeds(program, folder):
    """Good files of each kind."""
    folder.mkdir(exist_ok=True)
    restore(folder, {"good.pt2": (MLP / "model.pt2").read_bytes()})
    made = {kind: [] for kind in KINDS}
    small = lambda paths: [p.read_bytes() for p in sorted(paths) if p.stat().st_size < 300_000]
    made["pt2"] = small(DATA.glob("models/*/*.pt2")) + small(DATA.glob("dynamic/*/model.pt2")) + small(DATA.glob("pipeline/*/model.pt2"))
    made["TorchScript"] = small(DATA.glob("torchscript/*.pt"))
    for path in DATA.glob("torchscript/*.safetensors"):  # without inputs it is hardly looked at
        INPUTS[path.with_suffix(".pt").read_bytes()] = path.read_bytes()
    samples, fuzzed = DATA.parents[1] / "resources" / "samples", DATA.parent / "fuzz" / "seeds"
    made["job log"] = [p.read_bytes() for p in sorted(samples.glob("*/trace/*.log"))]
    made["TORCH_LOGS text"] = [(fuzzed / "jobs" / "text.log").read_bytes()]
    made["repro script"] = small(fuzzed.glob("repro/*.txt")) + [(fuzzed / "fx" / "repro.txt").read_bytes()]
    made["checkpoint"] = [mutants.saved_weights(WEIGHTS)]
    made["recorded numbers"] = small(fuzzed.glob("recorded/*.json"))
    made["session"] = small(DATA.glob("sessions/*.retrograd"))
    made["safetensors"] = [(MLP / "ref.safetensors").read_bytes()]
    made["printed trace"] = small(DATA.glob("texts/*.txt")) + small(DATA.glob("planted/*.txt"))
    made["schedule CSV"] = small(DATA.glob("schedules/*.csv"))
    for arguments in (
        ["save", "good.pt2", "--embed", "-o", "a.retrograd"],
        ["save", "good.pt2", "--embed", "--values", "-o", "b.retrograd"],
        ["run", "good.pt2", "--save", "a.safetensors"],
        ["notes", "good.pt2", "--at", "#1", "--comment", "a comment", "--bookmark"],
        ["notes", "good.pt2", "--at", "#2", "--name", "mine", "--comment", "another"],
    ):
        result = program.run(arguments, folder)
        if result.code != 0:
            raise RuntimeError(f"{arguments}: {result.err}")
    now = contents(folder)
    made["session"] += [now["a.retrograd"], now["b.retrograd"]]
    made["safetensors"].append(now["a.safetensors"])
    made["printed trace"].append(program.run(["trace", "good.pt2"], folder).out.encode())
    made["notes"] = [content for name, content in now.items() if name.endswith(".json")]
    notes = next(name for name in now if name.endswith(".json"))
    return made, notes


def jobs(program, folder, findings, count, seed, only=None):
    """`only`: files of these kinds."""
    made, notes = seeds(program, folder)
    all_jobs = []
    for kind, (name, commands, damage) in KINDS.items():
        if only and kind not in only:
            continue
        draw = random.Random(f"{seed} {kind}")
        for i in range(count):
            source, command, own = draw.choice(made[kind]), commands[i % len(commands)], draw.random()
            all_jobs.append(
                lambda p, f, a=(kind, notes if kind == "notes" else name, command, damage, source, own, i): abuse(p, f, findings, *a)
            )
    return all_jobs


def window_jobs(program, folder, findings, count, seed):
    """Through the window: each file is drawn into a picture, or opened and its window closed by the clock."""
    made, notes = seeds(program, folder)
    kinds = ["pt2", "TorchScript", "session", "printed trace", "notes"]
    draw = random.Random(f"{seed} window")
    all_jobs = []
    for i in range(count):
        kind = kinds[i % len(kinds)]
        name, _, damage = KINDS[kind]
        name, opened = (notes, "good.pt2") if kind == "notes" else (name, name)
        command, closes = ([opened], True) if i // len(kinds) % 2 else (["picture", opened, "o.png"], False)
        all_jobs.append(
            lambda p, f, a=("window", name, command, damage, draw.choice(made[kind]), draw.random(), i, closes): abuse(p, f, findings, *a)
        )
    return all_jobs


def close_later(process):
    """Ends a window as whoever closes the session does."""
    end = time.monotonic() + 4
    while time.monotonic() < end:
        time.sleep(0.05)
        if not pathlib.Path(f"/proc/{process}").exists():
            return
    try:
        os.kill(process, signal.SIGTERM)
    except ProcessLookupError:
        pass


def abuse(program, folder, findings, kind, name, command, damage, source, own, number, closes=False):
    content = damage(random.Random(own), source)
    start = {"good.pt2": (MLP / "model.pt2").read_bytes(), name: content}
    if source in INPUTS:
        start[f"{pathlib.Path(name).stem}.inputs.safetensors"] = INPUTS[source]
    restore(folder, start)
    arguments = [name if word == "FILE" else word for word in command]
    result = program.run(arguments, folder, during=close_later if closes else None)
    if closes and result.signal == signal.SIGTERM:
        result = result._replace(signal=0, code=0)
    now = contents(folder)
    problems = [f"{n} is {'changed' if n in now else 'gone'}" for n in start if now.get(n) != start[n] and not (n.endswith(".notes.json"))]
    problems += [
        f"{n} is left behind" for n in now if n not in start and not n.startswith(("o.", "stages/")) and not n.endswith(".notes.json")
    ]
    problems += [f"{n} is left behind" for n in now if n.startswith(("o.", "stages/")) and n.count(".") > 1]
    known = sum(count for count, _ in findings.families.values())
    findings.judge(
        f"damaged {kind}",
        " ".join(command[:2]),
        result,
        f"mutant {number}",
        problems,
        most_memory=MOST_MEMORY if len(content) < 10_000_000 else None,
    )
    findings.count(f"damaged {kind}", "accepted", result.code == 0)
    if sum(count for count, _ in findings.families.values()) > known and findings.keep:
        folder = pathlib.Path(findings.keep)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{kind.replace(' ', '_')}-{number}-{name}").write_bytes(content)
        (folder / f"{kind.replace(' ', '_')}-{number}.command").write_text(" ".join(arguments) + "\n" + result.err[-2000:])
