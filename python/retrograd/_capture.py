"""capture(): one step of a model, into a folder."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import torch

from ._export import Call, GraphValues, devices_of, line_of, step_of, tensor_leaves, write_graph
from ._folder import Folder, FolderWriter, Limits, NoSpace, first_line, quoted, say
from ._lines import caller
from ._state import Autocast, Generators


class CaptureError(RuntimeError):
    """The model could not be captured. The message names the line and the next way."""


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The module inside torch.compile's and DistributedDataParallel's wrappers."""
    while True:
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            model = model.module
        elif isinstance(inner := model.__dict__.get("_modules", {}).get("_orig_mod"), torch.nn.Module):
            model = inner
        else:
            return model


def loss_in(output: Any) -> Optional[torch.Tensor]:
    """The loss in what a model returns: itself where it is a scalar, or what it calls `loss`."""
    found = output if isinstance(output, torch.Tensor) else output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    scalar = isinstance(found, torch.Tensor) and found.numel() == 1 and found.is_floating_point()
    return found if scalar else None


def capture(model: torch.nn.Module, *args: Any, loss: Optional[Callable[[Any], torch.Tensor]] = None, path: Union[str, Path, None] = None,
            limits: Limits = Limits(), **kwargs: Any) -> Folder:
    """Writes the step `loss(model(*args, **kwargs))` into a folder that Retrograd opens.

    The folder has the graph, the weights, the batch, the state of the random generators, and outputs and gradients of PyTorch to compare with. Model, generators
    and gradients stay as they are. Without `loss`, the model's own loss is taken (a scalar, or `.loss`), else all its outputs, with gradients drawn from seed 0.

    path: the folder (default: retrograd-capture/MODEL). A number is added to the name where it is taken.
    Raises CaptureError where torch.export cannot follow the model, and where the folder would exceed `limits`.
    """
    model = unwrapped(model)
    call = Call.of(model.forward, args, kwargs)

    def pick(output: Any, *_: Any) -> Sequence[torch.Tensor]:
        if loss is not None:
            return [loss(output)]
        own = loss_in(output)
        if own is not None:
            return [own]
        leaves = tensor_leaves(output)
        if not leaves:
            raise CaptureError("the model returns no tensor, so there is nothing to differentiate. Give loss=FUNCTION, which gets what the model returns.")
        return [leaf for leaf in leaves if leaf.requires_grad] or leaves

    devices = devices_of(model, call.tensors)
    values = GraphValues(dict(call.tensors), Generators.now(devices), Autocast.now(devices), line=caller())
    target = Path(path) if path is not None else Path("retrograd-capture") / type(model).__name__
    writer = FolderWriter(target.absolute(), limits)
    try:
        written = write_graph(writer, "step", step_of(model, call, pick), values, describe={"module": type(model).__name__, "location": None})
        writer.graphs.append(written.entry)
        folder = writer.finish({"kind": "capture", "open": {"graph": "step", "at": "start"}, "source": written.source})
        for line in folder.manifest["cannot_replay"]:
            say(f"retrograd: {quoted(folder.path)} cannot replay {line}.")
        return folder
    except (CaptureError, NoSpace) as error:
        writer.abandon()
        raise CaptureError(str(error)) from error
    except Exception as error:
        writer.abandon()
        line = line_of(error)
        raise CaptureError(f"torch.export cannot follow {type(model).__name__}" + (f" at {line}" if line else "") + f"\n{type(error).__name__}: {first_line(str(error), 1000)}\n"
                           'Next way: torch.compile(model, backend="retrograd") runs the model eagerly and saves the graphs on both sides of such lines.') from error
    except BaseException:
        writer.abandon()
        raise
