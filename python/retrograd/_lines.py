"""Lines of the user's own files: which frames of a stack are theirs, and how to make torch.export and Dynamo keep only these."""
from __future__ import annotations

import contextlib
import os
import re
import sys
import sysconfig
import traceback
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, Callable, Iterable, Iterator, Optional

import torch

_HERE = str(Path(__file__).resolve().parent) + os.sep
_TORCH = str(Path(torch.__file__).resolve().parent) + os.sep
_STANDARD = tuple(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib"))
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n\s*(.*)')
_RESUMED = re.compile(r"^torch_dynamo_resume_in_|(?<=.)_at_\d+$")  # Dynamo's name for the rest of a function after a graph break
_known: dict[str, str] = {}  # file -> whose it is


def owner(file: str) -> str:
    """Whose a file is: "user", "torch", "package" (this one), or "python" (its library, and code without a file)."""
    found = _known.get(file)
    if found is None:
        real = os.path.realpath(file)
        standard = real.startswith(_STANDARD) and "-packages" + os.sep not in real
        found = "package" if real.startswith(_HERE) else "torch" if real.startswith(_TORCH) else "python" if standard or _has_no_file(file) else "user"
        _known[file] = found
    return found


def _has_no_file(file: str) -> bool:
    """Whether code was made by exec. A notebook cell (<ipython-input-...>) and a script from standard input are the user's."""
    return file.startswith("<") and not file.startswith(("<ipython", "<stdin", "<string", "<cell"))


def is_users(file: str) -> bool:
    return owner(file) == "user"


def users_frame(frame: Optional[FrameType]) -> Optional[traceback.FrameSummary]:
    """The innermost line of the user's at or above a running frame."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return traceback.FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame is not None else None


def line_text(frame: traceback.FrameSummary) -> str:
    """"model.py:12 in forward: y = x.item()"."""
    return f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line or ''}".rstrip(": ")


def caller() -> Optional[traceback.FrameSummary]:
    """The user's line that is calling this package."""
    return users_frame(sys._getframe(1))


def line_now() -> str:
    """"train.py:12", the user's line that runs now."""
    line = caller()
    return f"{Path(line.filename).name}:{line.lineno}" if line is not None else "a line that is not known"


# ---- Stacks of graphs ------------------------------------------------------------------------------------------------------------------------------------


def shown(frames: Iterable[traceback.FrameSummary], otherwise: Optional[traceback.FrameSummary] = None) -> list[traceback.FrameSummary]:
    """Of an op's stack, outermost first: the user's frames below the innermost one of this package, which ran them again. Where there is none, the line `otherwise`
    called the op, unless it is an op of the loss, whose line is then unknown. Where no line is known, the layers of PyTorch are shown."""
    below: list[traceback.FrameSummary] = []
    of_the_loss = False
    for frame in frames:
        if owner(frame.filename) == "package":
            below, of_the_loss = [], frame.filename.endswith(("_between.py", "_lines.py"))
        else:
            below.append(frame)
    if of_the_loss:
        otherwise = None
    mine = [frame for frame in below if is_users(frame.filename)]
    if mine:
        return mine
    return [otherwise] if otherwise is not None else [frame for frame in below if frame.filename.startswith(os.path.join(_TORCH, "nn"))]


def cleaned(stack: str, otherwise: Optional[traceback.FrameSummary] = None) -> str:
    """A stack as text (as in Dynamo graphs), with only the frames that `shown` keeps."""
    frames = [traceback.FrameSummary(file, int(line), _RESUMED.sub("", name), line=code.strip(), lookup_line=False) for file, line, name, code in _FRAME.findall(stack)]
    return text_of_stack(shown(frames, otherwise)) if frames else stack


def text_of_stack(frames: Iterable[traceback.FrameSummary]) -> str:
    return "".join(traceback.StackSummary.from_list(list(frames)).format()).strip()


class Exported:
    """What is noticed while torch.export follows a model: `line` is the user's for ops that no line of the user's calls below this package; `checkpointed` is set
    once an op ran within torch.utils.checkpoint, which the export does not keep."""

    def __init__(self, line: Optional[traceback.FrameSummary]):
        self.line = line
        self.checkpointed = False

    def frames(self, stack: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
        kept = list(stack)
        self.checkpointed |= any(frame.filename.endswith(os.path.join("torch", "utils", "checkpoint.py")) for frame in kept)
        return shown(kept, self.line)


# One line of code, so that the line it is given holds for the call in it.
_CALL = (lambda function, args, kwargs: function(*args, **kwargs)).__code__


def called_from(line: Optional[traceback.FrameSummary]) -> Callable[..., Any]:
    """A function (function, args, kwargs) that calls `function`, and whose code has the file, line and name of `line`. torch.export and Dynamo find that line in the
    stacks of the ops, as if the user's line called them."""
    if line is None or line.lineno is None:
        return lambda function, args, kwargs: function(*args, **kwargs)  # `shown` knows it by its file
    return FunctionType(_CALL.replace(co_filename=line.filename, co_firstlineno=line.lineno, co_name=line.name), globals(), line.name)


@contextlib.contextmanager
def users_lines(line: Optional[traceback.FrameSummary]) -> Iterator[Exported]:
    """Has torch.export keep the user's frames of each op. By itself it keeps frames of functions that are called "forward" alone, so that a helper's op gets the
    line that called the helper. `TracerBase._filter_traceback_frames` is PyTorch's place for that; without it (tests find its absence) its own choice stays."""
    from torch.fx.proxy import TracerBase

    exported = Exported(line)
    own: Any = getattr(TracerBase, "_filter_traceback_frames", None)
    if own is not None:
        setattr(TracerBase, "_filter_traceback_frames", lambda _, stack: traceback.StackSummary.from_list(exported.frames(stack)))
    try:
        yield exported
    finally:
        if own is not None:
            setattr(TracerBase, "_filter_traceback_frames", own)
