"""Captures training steps of PyTorch and opens them in Retrograd, a debugger for autograd.

    retrograd.capture(model, batch, loss=loss_function).open()     # one step, into a folder
    torch.compile(model, backend="retrograd")                      # each graph between graph breaks, into one folder
    with retrograd.catch(model, optimizer): ...                    # the first step with a NaN or Inf, into a folder
    retrograd.compare(model_a, model_b, batch)                     # the first op at which two models differ

A folder holds the weights and the batch. Nothing is sent anywhere.
"""
from ._capture import CaptureError, capture
from ._catch import Catch, catch
from ._compare import Comparison, compare
from ._folder import Folder, Limits
from ._program import ProgramNotFound

__version__ = "0.1.0"
__all__ = ["CaptureError", "Catch", "Comparison", "Folder", "Limits", "ProgramNotFound", "capture", "catch", "compare"]
