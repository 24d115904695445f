"""A run of the script to record one step: RETROGRAD_RECORD=STEP."""
from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Mapping, Optional

import torch

from . import _again
from ._folder import MANIFEST, Limits, quoted, rank, ranks, say
from ._record import Recording


class Rerun:
    """Records one step of the loop, and compares the losses before it with those of the first run."""

    def __init__(self, step: int, folder: Path, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], limits: Limits):
        self._step = step
        self._recording = Recording(folder / _again.NAME, model, optimizer, [step], limits, True, quiet=True)
        self._ended = False
        self._before = _numbers(folder)
        self._differs = False
        self._same = 0

    @staticmethod
    def asked(target: Path, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer], limits: Limits) -> Optional["Rerun"]:
        step = _again.asked()
        return Rerun(step, target / (f"step{step}" + (f"-rank{rank()}" if ranks() > 1 else "")), model, optimizer, limits) if step is not None else None

    def begin(self) -> None:
        say(f"retrograd: step {self._step} is recorded ({_again.VARIABLE}).")
        self._recording.__enter__()

    def is_at(self, step: int) -> bool:
        return step == self._step and not self._ended

    def ends_at(self, step: int) -> bool:
        """Whether the step is over after so many updates; then the recording is written."""
        if step > self._step and not self._ended:
            self.end(None)
            say("  The loop goes on without; Ctrl+C ends it.")
        return self._ended

    def end(self, error: Optional[BaseException]) -> None:
        if self._ended:
            return
        self._ended = True
        self._recording.__exit__(type(error) if error is not None else None, error, error.__traceback__ if error is not None else None)
        if not self._recording.ops:
            say(f"retrograd: nothing was recorded: the loop ended before step {self._step}.")
            return
        same = f" The {self._same} losses before it are those of the run before." if self._same and not self._differs else ""
        say(f"retrograd: step {self._step} is recorded in {quoted(self._recording.path)}, with its update.{same}\n"
            f"  Open it:\n    retrograd {quoted(self._recording.path)}\n  In a terminal:\n{_again.headless(self._recording.path)}")

    def compare(self, now: Mapping[str, Any]) -> None:
        """Compares the numbers of a backward with those of the same backward in the first run."""
        before = self._before.get((now["step"], now["microbatch"]))
        if before is None or self._ended or now["step"] >= self._step:
            return
        for name, what in (("loss", "loss"), ("gradient_norm", "norm of all gradients")):
            a, b = before.get(name), now.get(name)
            if a is None or b is None:
                continue
            if not math.isclose(float(a), float(b), rel_tol=1e-6) and not self._differs:
                self._differs = True
                say(f"retrograd: this run is not the one before: the {what} of step {now['step']} is {float(b):.9g}, and was {float(a):.9g}. "
                    "Where seeds, data or the number of threads differ, the recorded step may be another one.")
            self._same += name == "loss"


def _numbers(folder: Path) -> dict[tuple[int, int], dict[str, Any]]:
    """The numbers of the first run, from its folder."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        return {(one["step"], one["microbatch"]): one for one in manifest["history"]}
    except (OSError, ValueError, KeyError):
        return {}
