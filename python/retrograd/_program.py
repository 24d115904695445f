"""Finds the Retrograd program and starts it."""
from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn, Optional, Sequence


class ProgramNotFound(RuntimeError):
    """The Retrograd program is neither in this Python package nor on PATH."""

    def __init__(self) -> None:
        super().__init__("the retrograd program was not found. Install a wheel that carries it (docs/installing.md), install the Debian package or the "
                         "portable archive, or set RETROGRAD to the program's path.")


class OtherPyTorch(ProgramNotFound):
    """The wheel has no program for the minor version of PyTorch that is installed: LibTorch's C++ interface differs between them."""

    def __init__(self, built_for: Sequence[str], installed: str) -> None:
        RuntimeError.__init__(self, f"this wheel is for PyTorch {', '.join(built_for)}, and PyTorch {installed} is installed. Install a wheel for that one "
                                    f"(docs/installing.md), or PyTorch again: pip install 'torch=={built_for[-1]}.*'")


def carried() -> Optional[Path]:
    """The program inside this package, if this is a wheel that carries it."""
    program = Path(__file__).resolve().parent / "program" / "bin" / "retrograd"
    return program if os.access(program, os.X_OK) else None


def _is_our_script(path: Path) -> bool:
    """True for the script that pip installed for this package: it would find itself again."""
    try:
        # The folder, not the interpreter: that is a link out of a virtual environment, which may itself be reached through a link.
        return path.resolve().parent == Path(sys.executable).parent.resolve() and path.read_bytes()[:2] == b"#!"
    except OSError:
        return False


def find() -> Path:
    """The program: $RETROGRAD, else the one in this package, else the first `retrograd` on PATH. Raises ProgramNotFound.

    Skips the script that pip installed for this package: it would start itself for ever."""
    chosen = os.environ.get("RETROGRAD")
    if chosen and not _is_our_script(Path(chosen)):
        return Path(chosen)
    own = carried()
    if own is not None:
        return own
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("retrograd", path=folder) if folder else None
        if found and not _is_our_script(Path(found)):
            return Path(found)
    raise ProgramNotFound()


def torch_libraries() -> Optional[Path]:
    """The folder of LibTorch in the installed torch, found without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "lib"
    return folder if folder.is_dir() else None


def _torch_version(program: Path, libraries: Path) -> Optional[str]:
    """The minor version of the installed torch, "2.15", if the wheel has a program for it; None where torch does not say.

    Raises OtherPyTorch. Reads files: importing torch takes a second."""
    try:
        found = re.search(r"__version__ = '(([0-9]+\.[0-9]+)[^']*)'", (libraries.parent / "version.py").read_text())
    except OSError:
        return None
    if found is None:
        return None
    own = program.parent.parent / "lib" / "retrograd"
    if not (own / f"torch-{found[2]}").is_dir():
        carried_for = (folder.name.partition("-")[2] for folder in own.glob("torch-*"))
        raise OtherPyTorch(sorted(carried_for, key=lambda name: [int(part) for part in name.split(".")]), found[1])
    return found[2]


def environment(program: Path) -> dict[str, str]:
    """The environment of the program. The program in a wheel uses the LibTorch of the installed torch, and there is one program for each minor version
    (RETROGRAD_TORCH, which app/front.cpp reads). Raises OtherPyTorch."""
    variables = dict(os.environ)
    if program == carried():
        libraries = torch_libraries()
        if libraries is not None:
            version = _torch_version(program, libraries)
            if version is not None:
                variables["RETROGRAD_TORCH"] = version
            variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(libraries), variables.get("LD_LIBRARY_PATH")]))
    return variables


def run(arguments: Sequence[str], *, timeout: Optional[float] = None) -> "subprocess.CompletedProcess[str]":
    """Runs the program to its end and returns its output."""
    program = find()
    return subprocess.run([str(program), *arguments], env=environment(program), capture_output=True, text=True, timeout=timeout, check=False)


def start(arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Starts the program and does not wait for it."""
    program = find()
    return subprocess.Popen([str(program), *arguments], env=environment(program), start_new_session=True)


def main() -> NoReturn:
    """`retrograd` on PATH: becomes the program."""
    try:
        program = find()
        variables = environment(program)
    except ProgramNotFound as error:
        sys.exit(f"retrograd: {error}")
    os.execve(program, ["retrograd", *sys.argv[1:]], variables)
