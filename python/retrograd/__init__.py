"""Captures training steps of PyTorch and opens them in Retrograd, a debugger for autograd.

    with retrograd.catch(model, optimizer): ...                    # the first step with a NaN or Inf, into a folder
    with retrograd.record("folder", model=model): ...              # every op of the steps within, into a folder
    retrograd.capture(model, batch, loss=loss_function).open()     # one step, into a folder
    torch.compile(model, backend="retrograd")                      # each graph between graph breaks, into one folder
    retrograd.compare(model_a, model_b, batch)                     # the first op at which two models differ

A folder holds the weights and the batch. Nothing is sent anywhere.
"""
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._capture import CaptureError, capture
    from ._catch import Catch, catch
    from ._compare import Comparison, compare
    from ._folder import Folder, Limits
    from ._program import ProgramNotFound
    from ._record import record

__version__ = "0.1.0"
__all__ = ["CaptureError", "Catch", "Comparison", "Folder", "Limits", "ProgramNotFound", "capture", "catch", "compare", "record"]

_MODULES = {"CaptureError": "_capture", "capture": "_capture", "Catch": "_catch", "catch": "_catch", "Comparison": "_compare", "compare": "_compare",
            "Folder": "_folder", "Limits": "_folder", "ProgramNotFound": "_program", "record": "_record"}


def __getattr__(name: str) -> Any:
    """Imports a name at its first use, so that the command `retrograd`, which is in this package too, need not wait seconds for torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("." + _MODULES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
