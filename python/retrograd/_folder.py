"""Folders that Retrograd opens: graphs with their values, and retrograd.json, which says what is in them (docs/folders.md)."""
from __future__ import annotations

import datetime
import json
import math
import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Iterable, Optional, Union

import torch

from . import _program

MANIFEST = "retrograd.json"
NOTICE = "This folder holds weights of the model and the batch. Share it only with people who may see both."
GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """What may be written and kept.

    folder_bytes: largest size of one folder; what does not fit is left out, and the folder says so.
    folders: most folders that one `catch` writes for each rank.
    graphs: most graphs in one folder.
    copy_bytes: `catch` copies inputs and buffers of at most this size at each step; larger ones are kept without a copy.
    keep_bytes: `catch` keeps at most this many bytes of output gradients during a backward.
    weights_bytes: on a GPU, `catch` keeps a copy of the weights of at most this size, so that no update waits for a check. Without a copy, each update waits.
    ops: most ops that `record` writes.
    spike: `catch` treats a loss or a norm of all gradients of this many times the median of the last 50 steps as a failure (None: never).
    """

    folder_bytes: int = 16 * GIB
    folders: int = 1
    graphs: int = 256
    copy_bytes: int = 16 << 20
    keep_bytes: int = GIB
    weights_bytes: int = 4 * GIB
    ops: int = 2_000_000
    spike: Optional[float] = None


@dataclass(frozen=True)
class Folder:
    """A folder that was written."""

    path: Path

    @property
    def manifest(self) -> dict[str, Any]:
        """What retrograd.json says."""
        manifest: dict[str, Any] = json.loads((self.path / MANIFEST).read_text())
        return manifest

    @property
    def recording(self) -> Optional[Path]:
        """The recording of a second run of the step; None if there is only the graph."""
        recording = self.manifest.get("recording")
        return self.path / recording["path"] if recording is not None else None

    @property
    def opened(self) -> Path:
        """What to open: the folder, with its graph, or the recording in it."""
        return self.path / str(self.manifest.get("open", {}).get("recording", ""))

    @property
    def command(self) -> str:
        """The command that opens the folder."""
        return f"retrograd {quoted(self.opened)}"

    @property
    def _device(self) -> str:
        """The option that runs the step on its device."""
        return " --device cuda" if self.manifest.get("device") == "cuda" else ""

    def open(self) -> Optional[int]:
        """Opens the folder in the window and returns the process id. Without a display, prints the commands for a terminal and returns None."""
        if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")):
            _program.find()
            print(f"retrograd: there is no display. In a terminal:\n{self.headless()}")
            return None
        return _program.start([str(self.opened)]).pid

    def headless(self) -> str:
        """Commands for a terminal."""
        folder, manifest, device = quoted(self.opened), self.manifest, self._device
        walk = f"    retrograd debug {folder} -c walk-nan{device}\n" if manifest.get("open", {}).get("at") == "root" else ""
        if "recording" in manifest.get("open", {}):
            return f"{walk}    retrograd run {folder} --updates{device}\n    retrograd check {folder}{device}"
        return f"{walk}    retrograd trace {folder}\n    retrograd check {folder}{device}\n    retrograd run {folder}{device}"

    def __str__(self) -> str:
        return str(self.path)

    def __fspath__(self) -> str:
        return str(self.path)


def quoted(path: Union[str, Path]) -> str:
    """A path quoted for a shell, relative to the current folder if that is shorter."""
    import shlex

    text = str(path)
    relative = os.path.relpath(text)
    return shlex.quote(relative if len(relative) < len(text) else text)


def rank() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    return int(os.environ.get("RANK", "0") or 0) if os.environ.get("RANK", "0").isdigit() else 0


def ranks() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size()
    return 1


def number(value: Union[int, float]) -> Union[int, float, str]:
    """A number for JSON, which has no NaN and no infinity."""
    return value if isinstance(value, int) or math.isfinite(value) else ("nan" if math.isnan(value) else "inf" if value > 0 else "-inf")


def text_of(error: BaseException, limit: int = 2000) -> str:
    return f"{type(error).__name__}: {error}"[:limit]


def first_line(text: str, limit: int = 300) -> str:
    """The part of a text that fits into a message."""
    lines = text.strip().splitlines()
    return lines[0][:limit].rstrip(".:") if lines else ""


class NoSpace(RuntimeError):
    """A folder would exceed the limit or the disk."""


class FolderWriter:
    """Writes a folder under a temporary name and renames it when it is complete. Each rank has a folder of its own."""

    def __init__(self, target: Path, limits: Limits):
        self.target, self.limits = target, limits
        target.parent.mkdir(parents=True, exist_ok=True)
        self.folder = target.parent / f".{target.name}.{os.getpid()}.partial"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.graphs: list[dict[str, Any]] = []
        self.weights: set[str] = set()  # names of parameters and buffers that a graph has

    def room(self) -> int:
        """How many more bytes may be written: at most nine tenths of the free disk space."""
        written = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
        return max(0, min(self.limits.folder_bytes - written, shutil.disk_usage(self.folder).free * 9 // 10))

    def left(self) -> Limits:
        """The limits for what others may still write into the folder."""
        return replace(self.limits, folder_bytes=self.room())

    def require(self, size: int, what: str) -> None:
        if size > self.room():
            raise NoSpace(f"{what} would take {readable(size)}; {readable(self.room())} may be written (Limits.folder_bytes, and the disk's free space)")

    def graph_folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True)
        return folder

    def finish(self, contents: dict[str, Any]) -> Folder:
        """Writes the manifest and gives the folder its name, with a number if the name is taken."""
        write_manifest(self.folder, self.graphs, contents)
        target, n = self.target, 1
        while True:
            try:
                if not target.exists():
                    os.rename(self.folder, target)
                    return Folder(target)
            except OSError:
                if not target.exists():
                    raise
            n += 1
            target = self.target.parent / f"{self.target.name}-{n}"

    def abandon(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def write_manifest(folder: Path, graphs: list[dict[str, Any]], contents: dict[str, Any]) -> None:
    cannot = list(dict.fromkeys([*contents.pop("cannot_replay", []), *(line for graph in graphs for line in graph.get("cannot_replay", []))]))
    devices = {device.split(":")[0] for graph in graphs for device in graph.get("devices", [])}
    manifest = {
        "format": "retrograd.folder",
        "version": 1,
        "kind": contents.pop("kind"),
        "made": made(),
        "rank": rank(),
        "ranks": ranks(),
        "device": "cuda" if "cuda" in devices else "cpu",
        **contents,
        "graphs": graphs,
        "cannot_replay": cannot,
        "notice": NOTICE,
    }
    temporary = folder / (MANIFEST + ".new")
    temporary.write_text(json.dumps(manifest, indent=1, allow_nan=False) + "\n")
    os.replace(temporary, folder / MANIFEST)


def made() -> dict[str, str]:
    """What wrote a folder, and when."""
    return {"torch": torch.__version__, "python": platform.python_version(), "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def readable(size: int) -> str:
    value, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n\s*(.*)')


def source_lines(stack_traces: Iterable[Optional[str]], limit: int = 2000) -> list[dict[str, Any]]:
    """The lines of Python that made the ops, each once, as they are now: the source may change later."""
    lines: dict[tuple[str, int], dict[str, Any]] = {}
    for trace in dict.fromkeys(stack_traces):
        for file, line, function, code in _FRAME.findall(trace or ""):
            if len(lines) >= limit:
                break
            lines.setdefault((file, int(line)), {"file": file, "line": int(line), "function": function, "code": code.strip()[:500]})
    return [lines[key] for key in sorted(lines)]


def say(text: str) -> None:
    """A line for the person who runs the script."""
    print(text, file=sys.stderr, flush=True)
