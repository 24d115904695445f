"""Writes one graph of a folder: model.pt2 by torch.export, and ref.safetensors with its inputs and results."""
from __future__ import annotations

import contextlib
import copy
import inspect
import logging
import io
import re
import traceback
import warnings
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

import torch

from . import _safetensors
from ._custom import custom_backward, nodes_behind, noticed_hooks
from ._folder import FolderWriter, NoSpace, first_line, number, readable, source_lines, text_of
from ._lines import is_users, line_text, users_lines
from ._state import Autocast, Generators
from ._tree import Tree, tensor_leaves


# ---- Calls: the arguments of a model as named tensors ----------------------------------------------------------------------------------------------------


@dataclass
class Call:
    """Arguments of one call. `tensors` has the tensors by name, in order; everything else is fixed."""

    tensors: dict[str, torch.Tensor]
    tree: Tree
    places: dict[str, int]  # name -> its place among the leaves

    @staticmethod
    def of(forward: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> "Call":
        tree = Tree((tuple(args), dict(kwargs)))
        tensors: dict[str, torch.Tensor] = {}
        places: dict[str, int] = {}
        for place, (name, leaf) in enumerate(_named(forward, tree, len(args))):
            if isinstance(leaf, torch.Tensor):
                name = free_name(name, tensors)
                tensors[name] = leaf
                places[name] = place
        return Call(tensors, tree, places)

    def arguments(self, tensors: Mapping[str, torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call's arguments with `tensors` instead of its own."""
        leaves = list(self.tree.leaves)
        for name, place in self.places.items():
            leaves[place] = tensors[name]
        args, kwargs = self.tree.with_leaves(leaves)
        return args, kwargs


def names_of(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The leaves of a call's arguments, each named after its parameter."""
    return _named(function, Tree((tuple(args), dict(kwargs))), len(args))


def _named(function: Callable[..., Any], tree: Tree, count: int) -> list[tuple[str, Any]]:
    names = _argument_names(function, count)
    return [(_leaf_name(path, names), leaf) for path, leaf in zip(tree.paths, tree.leaves)]


def _argument_names(forward: Callable[..., Any], count: int) -> list[str]:
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return (names + [f"arg{i}" for i in range(len(names), count)])[:count]


def _leaf_name(path: Sequence[Any], names: Sequence[str]) -> str:
    """(0, 1, 'x') as the name of the second argument, then x."""
    def text(key: Any) -> str:
        return str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", key))))

    first = names[int(text(path[1]))] if text(path[0]) == "0" else text(path[1])
    return clean("_".join([first, *(text(key) for key in path[2:])]))


def clean(name: str) -> str:
    name = re.sub(r"\W+", "_", name).strip("_").lower() or "x"
    return f"x_{name}" if name[0].isdigit() else name


def free_name(name: str, taken: Mapping[str, Any]) -> str:
    n, free = 1, name
    while free in taken:
        n += 1
        free = f"{name}_{n}"
    return free


# ---- The module that is exported -------------------------------------------------------------------------------------------------------------------------


def step_of(model: torch.nn.Module, call: Call, pick: Callable[[Any, Mapping[str, torch.Tensor], torch.nn.Module], Sequence[torch.Tensor]]) -> torch.nn.Module:
    """A module with the model's own parameters, buffers and submodules, under their own names, that takes the call's tensors by name and
    returns the tensors that `pick` takes of the output, the inputs and the module."""
    step = copy.copy(model)
    for hooks in ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks"):
        step.__dict__[hooks] = type(model.__dict__.get(hooks, {}))()  # hooks of `catch` and of users: these see calls of the model alone
    patched = model.__dict__.get("forward")

    def forward(**inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args, kwargs = call.arguments(inputs)
        output = patched(*args, **kwargs) if patched is not None else type(model).forward(step, *args, **kwargs)
        ends = tuple(pick(output, inputs, step))
        if not ends:
            raise TypeError(f"{type(model).__name__} returns an object of class {type(output).__name__}, in which no tensor is found")
        return ends

    step.__dict__["forward"] = forward
    return step


# ---- One graph -------------------------------------------------------------------------------------------------------------------------------------------


@dataclass
class GraphValues:
    """What a graph ran on: `inputs` of the module by name; `cotangents` by position of an output (None: chosen here: 1 for a scalar, else drawn from seed 0)."""

    inputs: dict[str, torch.Tensor]
    generators: Generators
    autocast: Autocast
    cotangents: Optional[dict[int, torch.Tensor]] = None
    original_buffers: dict[str, torch.Tensor] = field(default_factory=dict)  # as they were before the step, where it has written them
    cannot_replay: list[str] = field(default_factory=list)
    line: Optional[traceback.FrameSummary] = None  # of the user, that called the model: the line of ops that have none
    log: io.StringIO = field(default_factory=io.StringIO)  # what torch.export prints


@dataclass
class Written:
    """The result of writing a graph."""

    entry: dict[str, Any]
    source: list[dict[str, Any]]
    outputs: list[torch.Tensor]
    names: dict[str, str]  # an input's name -> its name in model.pt2
    with_weights: bool
    notes: list[str] = field(default_factory=list)  # what the export left out
    compared: bool = False  # PyTorch ran it once more, backward included, so that its values are known to be finite or not


def devices_of(module: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> list[torch.device]:
    found = {tensor.device for tensor in inputs.values()} | {p.device for p in module.parameters()} | {b.device for b in module.buffers()}
    return sorted(found, key=str)


def size_of(tensors: Any) -> int:
    """Bytes of the tensors; shared memory counts once."""
    storages = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        storages[storage._cdata] = storage.nbytes()
    return sum(storages.values())


@contextlib.contextmanager
def quietly(log: Optional[io.StringIO] = None) -> Iterator[None]:
    """Hides what torch.export warns, logs and prints, which users need not act on. Printed text goes to `log`."""
    loggers = [logging.getLogger(name) for name in ("torch.export", "torch._export", "torch.fx", "torch._dynamo")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    printed = log if log is not None else io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


# A reentrant checkpoint whose inputs need no gradient gives its parameters none either. The code belongs to PyTorch's file, so that stacks look as with the real one.
_RUN = eval(compile("lambda function, preserve, *args: function(*args) if any(getattr(one, 'requires_grad', False) for one in args) else no_grad(function)(*args)",
                    torch.utils.checkpoint.__file__, "eval"), {"no_grad": torch.no_grad()})


@contextlib.contextmanager
def _checkpoints_differentiated() -> Iterator[None]:
    """Regions of checkpoint(use_reentrant=True) run under no_grad, and autograd knows them by a Function of PyTorch's that no graph holds: torch.export would cut the
    gradients there. Meanwhile they run as if there were no checkpoint."""
    setattr(torch.utils.checkpoint.CheckpointFunction, "apply", staticmethod(_RUN))
    try:
        yield
    finally:
        delattr(torch.utils.checkpoint.CheckpointFunction, "apply")  # the inherited one is back


def _is_reentrant(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether a reentrant checkpoint is behind the outputs: torch.autograd.grad refuses these, backward() does not."""
    return any(str(node.name()).startswith("CheckpointFunction") for node in nodes_behind(outputs))


@contextlib.contextmanager
def _other_leaves(module: torch.nn.Module) -> Iterator[None]:
    """The module with other parameters that share the memory of its own, and get the gradients of a backward instead."""
    kept = [(one._parameters, dict(one._parameters)) for one in module.modules()]
    others: dict[int, torch.nn.Parameter] = {}
    try:
        for table, own in kept:
            for name, p in own.items():
                if p is not None:
                    table[name] = others.setdefault(id(p), torch.nn.Parameter(p.detach(), p.requires_grad))
        yield
    finally:
        for table, own in kept:
            table.update(own)


@contextlib.contextmanager
def with_buffers(module: torch.nn.Module, buffers: Mapping[str, torch.Tensor]) -> Iterator[None]:
    """Replaces the module's buffers with `buffers`, by name, and puts the old ones back."""
    kept: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, tensor in buffers.items():
            path, _, own = name.rpartition(".")
            table = module.get_submodule(path)._buffers
            kept.append((table, own, table[own]))
            table[own] = tensor
        yield
    finally:
        for table, own, tensor in reversed(kept):
            table[own] = tensor


def write_graph(writer: FolderWriter, name: str, module: torch.nn.Module, values: GraphValues, *, reference: bool = True,
                describe: Optional[Mapping[str, Any]] = None) -> Written:
    """Writes the graph `module(**values.inputs)`. Raises what torch.export raises, and NoSpace.

    Weights that do not fit into the folder are replaced by zeros that need no space, and the entry says so.
    """
    devices = devices_of(module, values.inputs)
    weights = size_of([*module.parameters(), *module.buffers()])
    batch = size_of(values.inputs.values())
    writer.require(2 * batch + (1 << 20), "the batch")
    with_weights = weights + 2 * batch + (1 << 20) <= writer.room()
    inputs = {key: _leaf(tensor) for key, tensor in values.inputs.items()}
    _enter(module, values.autocast, devices)
    with quietly(values.log), _as_before(module, values), values.generators.again(), _checkpoints_differentiated(), \
            users_lines(values.line) as exported:
        program = torch.export.export(module, (), inputs, strict=False)
    given = [str(spec.arg.name) for spec in program.graph_signature.input_specs if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT]
    if not with_weights:
        _without_weights(program)
    folder = writer.graph_folder(name)
    with quietly():
        torch.export.save(program, folder / "model.pt2")
    entry: dict[str, Any] = {"name": name, "model": f"{name}/model.pt2", "values": f"{name}/ref.safetensors",
                             "ops": sum(node.op == "call_function" for node in program.graph.nodes), "mode": "train" if module.training else "eval"}
    if values.autocast.text():
        entry["autocast"] = values.autocast.text()
    writer.weights |= set(program.state_dict)
    source = source_lines(node.meta.get("stack_trace") for node in program.graph.nodes)
    entry["devices"] = [str(device) for device in devices]
    if values.generators.gpus:
        entry["generators"] = values.generators.philox()
    notes = ["checkpointing: torch.export leaves torch.utils.checkpoint out. The graph keeps for the backward what the step computes again: its saved tensors and its memory "
             "are those of the model without checkpointing"] if exported.checkpointed else []
    written = Written(entry | dict(describe or {}), source, [], dict(zip(inputs, given)), with_weights, notes)
    write_values(writer, written, module, values, reference=reference)
    return written


def _enter(module: torch.nn.Module, autocast: Autocast, devices: Sequence[torch.device]) -> None:
    """Lets the module's forward enter autocast itself: torch.export puts autocast into the graph only from inside."""
    if not autocast.on:
        return
    forward = module.forward

    def within(**inputs: torch.Tensor) -> Any:
        with autocast.again(devices):
            return forward(**inputs)

    module.__dict__["forward"] = within


def write_values(writer: FolderWriter, written: Written, module: torch.nn.Module, values: GraphValues, *, reference: bool = True) -> None:
    """Writes ref.safetensors of a graph that has its model.pt2: its inputs, and PyTorch's results."""
    names, entry = written.names, written.entry
    cannot = [*values.cannot_replay, *written.notes]
    if not written.with_weights:
        cannot.append(f"the weights ({readable(size_of([*module.parameters(), *module.buffers()]))}): they exceed the limit; load a checkpoint to replay")
    inputs = {key: _leaf(tensor) for key, tensor in values.inputs.items()}
    tensors = {f"cot.{i}": tensor for i, tensor in (values.cotangents or {}).items()}
    metadata: dict[str, str] = {}
    if reference and written.with_weights:
        with quietly(), _as_before(module, values):
            with noticed_hooks() as hooks:
                written.outputs, tensors, left_out = _reference(module, inputs, names, values, writer.room(), hooks)
        if left_out:
            metadata["gradients"] = "none"  # that one is missing says nothing then
        cannot += left_out
        written.compared = not left_out
        if hooks:
            entry["custom_backward"] = hooks
    for key, tensor in inputs.items():
        if _safetensors.storable(tensor):
            tensors[f"in.{names[key]}"] = tensor
        else:
            cannot.append(f"input {names[key]} is {tensor.dtype}: only model.pt2 has it")
    tensors["generator.cpu"] = values.generators.cpu
    for index, state in values.generators.gpus.items():
        tensors[f"generator.cuda.{index}"] = state
    differentiated = ",".join(names[key] for key, tensor in inputs.items() if tensor.requires_grad)
    _safetensors.write(writer.folder / entry["values"], tensors, {"requires_grad": differentiated, **metadata})
    entry["numbers"] = {f"out.{i}": number(float(output)) for i, output in enumerate(written.outputs) if output.numel() == 1 and not output.is_complex()}
    entry["not_finite"] = [name for name, tensor in tensors.items() if name.startswith(("out.", "cot.", "grad.")) and not bool(torch.isfinite(tensor).all())][:100]
    entry["cannot_replay"] = cannot


@contextlib.contextmanager
def _as_before(module: torch.nn.Module, values: GraphValues) -> Iterator[None]:
    """The module with its buffers from before the step, in grad mode, without hooks of its parameters; restores the modes that torch.export changes."""
    with with_buffers(module, values.original_buffers), torch.enable_grad(), _kept_mode(module), without_hooks(module), torch.autograd.set_detect_anomaly(False):
        yield


@contextlib.contextmanager
def without_hooks(module: torch.nn.Module) -> Iterator[None]:
    """Takes hooks off the parameters: they belong to the loop, and gradients computed here must not reach them."""
    kept = [(p._backward_hooks, dict(p._backward_hooks)) for p in module.parameters() if p._backward_hooks]
    for hooks, _ in kept:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, before in kept:
            hooks.update(before)


@contextlib.contextmanager
def _kept_mode(module: torch.nn.Module) -> Iterator[None]:
    """Restores what torch.export changes: whether inputs require gradients, and the modes of modules."""
    modes = [(one, one.training) for one in module.modules()]
    try:
        yield
    finally:
        for one, training in modes:
            one.training = training


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    """A leaf of autograd with the same contents."""
    return tensor.detach().requires_grad_(tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) or not tensor.is_leaf else tensor


def _without_weights(program: "torch.export.ExportedProgram") -> None:
    for name, tensor in list(program.state_dict.items()):
        flat = torch.zeros((), dtype=tensor.dtype).expand(tensor.shape)
        program.state_dict[name] = torch.nn.Parameter(flat, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else flat


def _reference(module: torch.nn.Module, inputs: Mapping[str, torch.Tensor], names: Mapping[str, str], values: GraphValues,
               room: int, custom: list[dict[str, Any]]) -> tuple[list[torch.Tensor], dict[str, torch.Tensor], list[str]]:
    """Runs forward and backward a second time, eagerly. Returns outputs, gradients and written buffers by their names in a reference file, and what was left out."""
    cannot: list[str] = []
    buffers = {name: buffer.detach().clone() for name, buffer in module.named_buffers()}
    own: dict[str, torch.Tensor] = {}
    given: dict[str, torch.Tensor] = {}

    def forward() -> list[torch.Tensor]:
        own.update({name: buffer.clone() for name, buffer in buffers.items()})
        given.update({key: _leaf(tensor.detach().clone().requires_grad_(tensor.requires_grad)) for key, tensor in inputs.items()})
        with with_buffers(module, own):
            # What the forward writes in place must not be a leaf that requires a gradient, as in the loop itself.
            return list(module(**{key: tensor.view_as(tensor) if tensor.requires_grad else tensor for key, tensor in given.items()}))

    def ends_of(outputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        ends = [(outputs[i], cotangents[i].to(outputs[i].device, outputs[i].dtype)) for i in cotangents if outputs[i].requires_grad]
        return [end for end, _ in ends], [cotangent for _, cotangent in ends]

    def sources() -> dict[str, torch.Tensor]:
        return {f"grad.p.{name}": p for name, p in module.named_parameters() if p.requires_grad} | \
            {f"grad.in.{names[key]}": tensor for key, tensor in given.items() if tensor.requires_grad}

    found: dict[str, Optional[torch.Tensor]] = {}
    with values.generators.again():
        outputs = forward()
        cotangents = values.cotangents if values.cotangents is not None else _chosen(outputs)
        ends, flowing = ends_of(outputs)
        fits = size_of([p for p in module.parameters() if p.requires_grad]) + size_of(outputs) + 2 * size_of(inputs.values()) <= room
        custom += [one for one in custom_backward(module, outputs) if one not in custom]
        if ends and sources() and fits:
            try:
                if not _is_reentrant(outputs):
                    found = dict(zip(sources(), torch.autograd.grad(ends, list(sources().values()), flowing, allow_unused=True)))
                else:
                    values.generators.restore()
                    with _other_leaves(module):
                        torch.autograd.backward(*ends_of(forward()))
                        found = {name: leaf.grad for name, leaf in sources().items()}
            except Exception as error:  # the step's own, which is why its folder is written
                cannot.append(f"gradients of PyTorch to compare with: backward raises {first_line(text_of(error))}")
        elif not fits:
            cannot.append("gradients of PyTorch to compare with: they did not fit into the folder")
    tensors = {f"out.{i}": output.detach() for i, output in enumerate(outputs) if fits and _safetensors.storable(output)}
    tensors |= {f"cot.{i}": cotangents[i] for i in cotangents}
    dense = {name: gradient if gradient.layout == torch.strided else gradient.to_dense() for name, gradient in found.items() if gradient is not None}
    tensors |= {name: gradient for name, gradient in dense.items() if _safetensors.storable(gradient)}
    before = {name: values.original_buffers.get(name, buffer) for name, buffer in module.named_buffers()}
    tensors |= {f"mut.b.{name}": buffer for name, buffer in own.items() if fits and not torch.equal(buffer, before[name]) and _safetensors.storable(buffer)}
    return [output.detach() for output in outputs], tensors, cannot


def _chosen(outputs: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
    """Cotangents if none were recorded: 1 for a scalar, else drawn from seed 0."""
    generator = torch.Generator().manual_seed(0)
    chosen = {}
    for i, output in enumerate(outputs):
        if output.requires_grad:
            real = torch.ones(()) if output.numel() == 1 else torch.randn(output.shape, generator=generator)
            chosen[i] = real.reshape(output.shape).to(output.device, output.dtype)
    return chosen


def differentiated(outputs: Sequence[torch.Tensor], values: GraphValues, module: torch.nn.Module) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    """The arguments of a step's backward: outputs, parameters and output gradients."""
    chosen = values.cotangents if values.cotangents is not None else _chosen(outputs)
    ends = [(outputs[i], chosen[i].to(outputs[i].device, outputs[i].dtype)) for i in chosen if outputs[i].requires_grad]
    return [end for end, _ in ends], [p for p in module.parameters() if p.requires_grad], [cotangent for _, cotangent in ends]


# ---- Failures --------------------------------------------------------------------------------------------------------------------------------------------


def line_of(error: BaseException) -> Optional[str]:
    """The innermost line outside of torch and this package that raised `error`: "model.py:12 in forward: y = x.item()"."""
    frames = traceback.extract_tb(error.__traceback__)
    told = re.findall(r'File "([^"]+)", line (\d+), in (\S+)\n\s*(.*)', str(error))
    for file, line, function, code in reversed(told):
        if is_users(file):
            return f"{file}:{line} in {function}: {code.strip()}"
    for frame in reversed(frames):
        if is_users(frame.filename):
            return line_text(frame)
    return None


def raised_in_autograd(trace: Optional[TracebackType]) -> bool:
    """Whether an exception came out of a backward."""
    while trace is not None:
        if trace.tb_frame.f_code.co_name == "_engine_run_backward" or trace.tb_frame.f_code.co_filename.endswith(("torch/_tensor.py", "torch/autograd/__init__.py")) \
                and trace.tb_frame.f_code.co_name == "backward":
            return True
        trace = trace.tb_next
    return False


__all__ = ["Call", "GraphValues", "differentiated", "NoSpace", "Written", "clean", "devices_of", "free_name", "line_of", "names_of", "quietly", "raised_in_autograd", "size_of", "step_of", "tensor_leaves", "with_buffers", "without_hooks", "write_graph", "write_values"]
