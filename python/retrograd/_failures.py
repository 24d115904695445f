"""What catch() does with a failure: it writes the folder, and prints the command that opens it."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from . import _again
from ._checks import Failure, KeptWeights, bad_weights, more
from ._folder import Folder, first_line, rank, ranks, readable, say, text_of
from ._loop import Loop
from ._step import Step
from ._write import OF_ANOTHER_RANK, write_failure, write_folder_without_graph

_writing = False


def is_writing() -> bool:
    """Whether a folder is being written: calls of the model are then not steps of the loop."""
    return _writing


@contextmanager
def _while_writing() -> Iterator[None]:
    global _writing
    _writing = True
    try:
        yield
    finally:
        _writing = False


class Failures:
    def __init__(self, loop: Loop):
        self._loop = loop
        self._held: list[Failure] = []
        self._holds = False
        self.weights: Optional[KeptWeights] = None  # from before the last update, where numbers are read after it

    def keep_weights(self) -> None:
        parameters = list(self._loop.inner.parameters())
        if self.weights is None or not self.weights.fit(parameters):
            self.weights = KeptWeights(parameters)
        self.weights.keep(self._loop.updates)

    # -- a step that the loop calls as a function, which can run again

    @contextmanager
    def held(self) -> Iterator[list[Failure]]:
        """Collects failures, and writes no folder meanwhile."""
        self._holds, self._held = True, []
        try:
            yield self._held
        finally:
            self._holds = False

    def write_whole(self, failure: Failure, index: int, kept: "_again.Kept", step: Callable[[], Any]) -> None:
        """Runs the step a second time, from the kept state of the loop, and records it. Afterwards the loop is as it was after the first run."""
        loop = self._loop
        with _while_writing():
            loop.failures += 1
            after = _again.Kept(loop.inner, loop.optimizer, loop.scaler)
            try:
                kept.put_back()
                with loop.watch.paused():
                    folder = write_folder_without_graph(loop, index, failure, lambda path: _again.record_whole(path, loop.inner, loop.optimizer, step, loop.limits, index))
                self._say_written(folder, f"step {index}")
            finally:
                after.put_back()

    # -- any other

    def write(self, steps: Sequence[Step], failure: Failure, update: Optional[int] = None) -> None:
        """Writes a folder, with the weights from before `update` if the model has been updated since."""
        loop = self._loop
        if _writing or not loop.wanted:
            return
        if self._holds:
            self._held.append(failure)
            return
        kept = self.weights if update is not None and update < loop.updates and self.weights is not None and self.weights.update == update else None
        step = steps[0]
        if kept is not None:
            kept.exchange()
        spoilt = self._spoilt_before(step) if failure.has_root else None
        if spoilt is not None:
            if kept is not None:
                kept.exchange()
            return self._write_numbers(*spoilt)
        with _while_writing():
            loop.failures += 1
            try:
                with loop.watch.paused():
                    folder, step = write_failure(loop, steps, failure, kept is not None)
                counted = step.microbatch > 0 or loop.history.accumulates
                self._say_written(folder, f"step {step.index}" + (f", microbatch {step.microbatch}" if counted else ""))
            except Exception as error:  # the training loop is not disturbed
                say(f"retrograd: step {step.index}: {first_line(failure.message)}. It could not be saved: {first_line(text_of(error))}")
            finally:
                if kept is not None:
                    kept.exchange()

    def look_at_weights(self) -> None:
        """At the end of the loop: whether an update or the loop itself made a weight NaN or Inf, which no later step has shown."""
        loop = self._loop
        if loop.wanted and loop.updates > 0 and not loop.folders and loop.sharding.kind != "fsdp2" and (bad := bad_weights(loop.inner)):
            self._write_numbers(*self._spoilt(loop.updates, bad, loop.versions_now()))

    def _spoilt_before(self, step: Step) -> Optional[tuple[int, Failure]]:
        """If the weights were not finite before the first forward of a step: the step that made them so, which is the one before if its update did."""
        if step.index == 0 or step.microbatch or self._loop.folders or self._loop.sharding.kind == "fsdp2":
            return None
        bad = bad_weights(self._loop.inner)
        return self._spoilt(step.index, bad, {id(p): version for p, version in step.parameter_versions}) if bad else None

    def _spoilt(self, index: int, bad: Sequence[str], versions: Mapping[int, int]) -> tuple[int, Failure]:
        parameters = dict(self._loop.inner.named_parameters())
        after = self._loop.versions
        if any(after.get(id(parameters[name])) != versions.get(id(parameters[name])) for name in bad):
            return index, Failure("nan_weight", f"before the forward, code of the loop wrote a NaN or Inf into {bad[0]}{more(bad)}", bad)
        return index - 1, spoilt_by_update(bad)

    def _write_numbers(self, index: int, failure: Failure) -> None:
        """What made the weights NaN or Inf is gone: writes the numbers, so that the script can run again and record it."""
        self._loop.failures += 1
        self._say_written(write_folder_without_graph(self._loop, index, failure), f"step {index}")

    def _say_written(self, folder: Folder, where: str) -> None:
        self._loop.folders.append(folder)
        say("\n".join(_report(folder, where)))


def spoilt_by_update(bad: Sequence[str]) -> Failure:
    return Failure("nan_weight", f"the update made a NaN or Inf in {bad[0]}{more(bad)}", bad)


def _report(folder: Folder, where: str) -> list[str]:
    """The message about a folder."""
    manifest = folder.manifest
    recording = manifest.get("recording")
    lacks = recording["lacks"] if recording is not None else manifest["cannot_replay"]
    lines = [f"retrograd: {where}{f', rank {rank()} of {ranks()}' if ranks() > 1 else ''}: {first_line(manifest['failure']['message'])}."]
    if recording is not None and "answer" in recording:
        lines.append(f"  {recording['answer']}.")
    if "open" in manifest:
        lines.append(f"  Written: {folder} ({readable(sum(file.stat().st_size for file in folder.path.rglob('*') if file.is_file()))}). {manifest['inside']}")
    for line in manifest["cannot_replay"]:
        if not line.endswith(OF_ANOTHER_RANK):  # the message says it
            lines.append(f"  Cannot be replayed: {line}." if line in lacks else f"  In the recording, not in the graph: {line}.")
    if recording is not None and "export_failed" in manifest:
        lines.append(f"  Recorded, as torch.export cannot follow the step: {manifest['export_failed']}.")
    if manifest.get("outside", "open" not in manifest):
        lines.append(f"  This runs the script again and records step {manifest['step']} as it runs, with its update:\n    {_again.command(manifest['step'])}")
    if manifest["graphs"] or recording is not None:
        at_root = manifest["open"]["at"] == "root"
        lines.append(f"  Open it{' at the op that made the first NaN or Inf' if at_root else ''}:\n    {folder.command}\n  In a terminal:\n{folder.headless()}")
    return lines
