"""What catch() prints when the GPU's memory runs out: what held it, and what would free most."""
from __future__ import annotations

import json
import pickle
from pathlib import Path
from subprocess import SubprocessError
from typing import Any, Optional

import torch

from ._folder import first_line, rank, ranks, readable, say, text_of
from ._program import ProgramNotFound, run

_HINT = "torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks=\"python\") before the loop"
_SECONDS = 120  # for the program to read a snapshot


def ran_out(error: Optional[BaseException]) -> bool:
    return isinstance(error, torch.OutOfMemoryError)


def say_who_held_it(error: BaseException, target: Path) -> Optional[Path]:
    """Writes the allocator's history, if it is on, and prints what it shows. Returns the snapshot's path."""
    snapshot = torch.cuda.memory._snapshot()
    if not any(snapshot.get("device_traces", ())):
        say(f"retrograd: out of memory, and no history of the allocator to say who held it: call {_HINT}. {first_line(text_of(error))}")
        return None
    target.mkdir(parents=True, exist_ok=True)
    path = target / ("out-of-memory" + (f"-rank{rank()}" if ranks() > 1 else "") + ".pickle")
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)
    report = _report(path)
    lines = _lines(report) if report is not None else [first_line(text_of(error))]
    say("\n".join([f"retrograd: out of memory: {lines[0]}.", *lines[1:], f"  Kept: {path}. Look at it:\n    retrograd memory {path}{' --at oom' if report is not None else ''}"]))
    return path


def _report(path: Path) -> Optional[dict[str, Any]]:
    """The program's report on the request that failed; None without a program, or without such a request in the history."""
    try:
        done = run(["memory", str(path), "--at", "oom", "--format", "json"], timeout=_SECONDS)
        return json.loads(done.stdout) if done.returncode == 0 else None
    except (ProgramNotFound, OSError, SubprocessError, ValueError):
        return None


def _lines(report: dict[str, Any]) -> list[str]:
    failed = next((finding["text"] for finding in report["findings"] if finding["kind"] == "fragmentation"), "a request failed")
    held = ", ".join(f"{readable(category['bytes'])} {category['name']}" for category in report["categories"][:5])
    lines = [failed, f"  Held: {held}."]
    found = choices(report)
    if found:
        lines.append("  What would free most:")
        lines += [f"    {readable(size):>8}: {text}" for size, text in found]
    return lines


def choices(report: dict[str, Any]) -> list[tuple[int, str]]:
    """The three changes that free most, with the bytes that each frees at most."""
    sizes = {category["name"]: category["bytes"] for category in report["categories"]}
    found = [(finding["bytes"], f"let go what {finding['line']} keeps from step to step") for finding in report["findings"] if finding["kind"] == "leak"]
    saved = [group for group in report["groups"] if group["category"] == "activation"]
    if saved:
        found.append((saved[0]["bytes"], f"recompute what {saved[0]['name']} saves for the backward (torch.utils.checkpoint)"))
    found += [
        ((sizes.get("activation", 0) + sizes.get("temporary", 0)) // 2, "halve the batch, and accumulate two gradients"),
        (sizes.get("optimizer", 0), "keep the optimizer's states on the CPU, or in 8 bits"),
        (sizes.get("workspace", 0), "let cuBLAS work in less (CUBLAS_WORKSPACE_CONFIG=:4096:2)"),
    ]
    return sorted((choice for choice in found if choice[0] > 0), key=lambda choice: -choice[0])[:3]
