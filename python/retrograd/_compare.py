"""compare(): the first op at which two models differ on one batch."""
from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import torch

from . import _program
from ._capture import capture
from ._folder import Folder, Limits


@dataclass(frozen=True)
class Comparison:
    """Two captured models and the answer of `retrograd compare`."""

    a: Folder
    b: Folder
    equal: bool  # no value differs by more than the tolerance
    largest: float  # relative difference
    first_divergence: Optional[Mapping[str, Any]]  # the first op at which they differ: op, value, relative, norm_a, norm_b, ...
    report: Mapping[str, Any]  # all of it

    @property
    def command(self) -> str:
        return f"retrograd compare {self.a.opened} {self.b.opened}"

    def __str__(self) -> str:
        if self.first_divergence is None:
            return f"equal: largest relative difference {self.largest:.3g}"
        first = self.first_divergence
        return f"they differ first at {first['value']} of {first['op']} (relative difference {first['relative']})"


def compare(model_a: torch.nn.Module, model_b: torch.nn.Module, batch: Any, *, loss: Optional[Callable[[Any], torch.Tensor]] = None,
            tolerance: Optional[float] = None, path: Union[str, Path, None] = None, limits: Limits = Limits()) -> Comparison:
    """Runs both models on `batch` in Retrograd, op by op, and finds the first op at which they differ. If torch.export fails on one of them, compares recordings of both.

    batch: a tensor, a tuple or list of positional arguments, or a mapping of keyword arguments. Both models start from the same state of the random generators.
    path: where both are captured (default: a new temporary folder, which is kept).
    """
    kwargs = dict(batch) if isinstance(batch, Mapping) else {}
    args: Sequence[Any] = [] if isinstance(batch, Mapping) else list(batch) if isinstance(batch, (tuple, list)) else [batch]
    folder = Path(path) if path is not None else Path(tempfile.mkdtemp(prefix="retrograd-compare-"))
    a, b = (capture(model, *args, loss=loss, path=folder / name, limits=limits, **kwargs) for model, name in ((model_a, "a"), (model_b, "b")))
    if not a.manifest["graphs"] or not b.manifest["graphs"]:  # steps of a kind are compared
        a, b = (one if one.recording else capture(model, *args, loss=loss, path=folder / f"{name}-recorded", limits=limits, export=False, **kwargs)
                for one, model, name in ((a, model_a, "a"), (b, model_b, "b")))
        arguments = ["compare", str(a.recording), str(b.recording)]
    else:
        arguments = ["compare", f"{a}/step/model.pt2", f"{b}/step/model.pt2", "--inputs", f"{a}/step/ref.safetensors"]
    arguments += ["--format", "json"] + (["--tolerance", str(tolerance)] if tolerance is not None else [])
    done = _program.run(arguments)
    if done.returncode not in (0, 1) or not done.stdout.lstrip().startswith("{"):
        raise RuntimeError(f"retrograd {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    report = json.loads(done.stdout)
    return Comparison(a, b, report["first_divergence"] is None, float(report["largest"]), report["first_divergence"], report)
