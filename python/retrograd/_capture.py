"""capture(): one step of a model, into a folder."""
from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import torch

from ._again import NAME, export_failed, fits, lacks_something, record_again, recording_json
from ._export import Call, GraphValues, devices_of, step_of, tensor_leaves, write_graph
from ._folder import Folder, FolderWriter, Limits, NoSpace, quoted, say
from ._lines import caller
from ._state import Autocast, Generators


class CaptureError(RuntimeError):
    """The step could not be captured. The message says why."""


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
    """The loss in a model's result: the result itself if it is a scalar, or its `loss`."""
    found = output if isinstance(output, torch.Tensor) else output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    scalar = isinstance(found, torch.Tensor) and found.numel() == 1 and found.is_floating_point()
    return found if scalar else None


def capture(model: torch.nn.Module, *args: Any, loss: Optional[Callable[[Any], torch.Tensor]] = None, path: Union[str, Path, None] = None,
            limits: Limits = Limits(), export: bool = True, **kwargs: Any) -> Folder:
    """Writes the step `loss(model(*args, **kwargs))` into a folder that Retrograd opens.

    The folder has the graph, the weights, the batch, the state of the random generators, and PyTorch's outputs and gradients to compare with. If the graph lacks a part
    of the step (a custom backward, a hook, checkpointing), the step is recorded as well, op by op. If torch.export fails, or with export=False, it is only recorded.
    Model, generators and gradients stay as they are. Without `loss`, the loss is the model's result if that is a scalar, or its `.loss`; otherwise all outputs get random
    gradients, from seed 0.

    path: the folder (default: retrograd-capture/MODEL). A number is added if the name is taken.
    Raises CaptureError if the step itself cannot run, or if the folder would exceed `limits`.
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
    contents: dict[str, Any] = {"kind": "capture", "open": {"graph": "step", "at": "start"}}
    try:
        try:
            if export:
                written = write_graph(writer, "step", step_of(model, call, pick), values, describe={"module": type(model).__name__, "location": None})
                writer.graphs.append(written.entry)
                contents["source"] = written.source
        except (CaptureError, NoSpace, OSError):
            raise
        except Exception as error:
            shutil.rmtree(writer.folder / "step", ignore_errors=True)
            export_failed(contents, values, error)
            (writer.folder / "export.log").write_text(values.log.getvalue())
        if not writer.graphs or lacks_something(writer.graphs) and fits(writer, model):
            given, named = call.arguments({name: tensor.detach().clone().requires_grad_(tensor.requires_grad) for name, tensor in call.tensors.items()})
            again = record_again(writer.folder / NAME, model, None, lambda: pick(model(*given, **named)), values, writer.left())
            if again.error is not None and not writer.graphs:
                raise CaptureError(f"the step cannot run: {again.error}")
            contents |= recording_json(again, devices, [])
            if not writer.graphs:
                contents["open"] = {"recording": NAME, "at": "start"}
        folder = writer.finish(contents)
        if "export_failed" in contents:
            say(f"retrograd: {quoted(folder.path)} is recorded, as torch.export cannot follow {type(model).__name__}: {contents['export_failed']}.")
        for line in folder.manifest["cannot_replay"]:
            say(f"retrograd: in the recording in {quoted(folder.path)}, not in the graph: {line}.")
        return folder
    except (CaptureError, NoSpace) as error:
        writer.abandon()
        raise CaptureError(str(error)) from error
    except BaseException:
        writer.abandon()
        raise
