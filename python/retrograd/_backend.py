"""torch.compile(model, backend="retrograd"): runs eagerly and saves each graph between graph breaks, with its real inputs, into one folder."""
from __future__ import annotations

import contextlib
import re
import shutil
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union

import torch

from ._export import GraphValues, Written, clean, devices_of, line_of, size_of, tensor_leaves, write_graph, write_values
from ._folder import Folder, FolderWriter, Limits, NoSpace, first_line, quoted, rank, ranks, say, text_of, write_manifest
from ._lines import cleaned, is_users, users_frame
from ._state import Autocast, Generators

_lock = threading.RLock()
_recordings: dict[str, "Recording"] = {}


class Recording:
    """The folder into which the graphs of a process are saved, one for each `path`. It has a manifest from the first graph on."""

    def __init__(self, target: Path, limits: Limits):
        target.parent.mkdir(parents=True, exist_ok=True)
        folder, n = target, 1
        while folder.exists():
            n += 1
            folder = target.parent / f"{target.name}-{n}"
        folder.mkdir()
        self.folder, self.limits = folder, limits
        self.writer = FolderWriter(folder / "graphs", limits)
        self.writer.folder.rmdir()
        self.writer.folder = folder
        self.source: dict[tuple[str, int], dict[str, Any]] = {}
        self.problems: list[str] = []
        self.count = 0
        self.said = False

    def name(self) -> str:
        self.count += 1
        return f"graph{self.count:03d}"

    def save(self) -> None:
        self.writer.graphs.sort(key=lambda graph: graph["name"])
        write_manifest(self.folder, self.writer.graphs,
                       {"kind": "compile", "open": {"graph": min((g["name"] for g in self.writer.graphs), default=""), "at": "start"},
                        "source": list(self.source.values()), "cannot_replay": list(self.problems)})

    def problem(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)
            say(f"retrograd: {text}")
            self.save()

    def add(self, written: Written) -> None:
        self.writer.graphs[:] = [graph for graph in self.writer.graphs if graph["name"] != written.entry["name"]] + [written.entry]
        for line in written.source:
            self.source.setdefault((line["file"], line["line"]), line)
        self.save()
        if not self.said:
            self.said = True
            say(f"retrograd: graphs of torch.compile are saved in {quoted(self.folder)}, with weights and batch. Open them: {Folder(self.folder).command}")


def recording(path: Union[str, Path, None], limits: Limits) -> Recording:
    """The process's recording for a path. Each rank has its own."""
    target = Path(path) if path is not None else Path("retrograd-compile")
    if ranks() > 1 or rank() > 0:
        target = target / f"rank{rank()}"
    key = str(target.absolute())
    with _lock:
        if key not in _recordings:
            _recordings[key] = Recording(target.absolute(), limits)
        return _recordings[key]


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Optional[Mapping[str, Any]] = None, **more: Any) -> Callable[..., Any]:
    """What torch.compile calls once for each graph. Options: path, limits (torch.compile(..., options={"path": "folder"}))."""
    _listen()
    settings = {**(options or {}), **{key: value for key, value in more.items() if key in ("path", "limits")}}
    into = recording(settings.get("path"), settings.get("limits") or Limits())
    with _lock:
        if into.count >= into.limits.graphs:
            into.problem(f"more than {into.limits.graphs} graphs: later ones run, but are not saved (Limits.graphs)")
            return graph.forward
        name = into.name()
    return SavedGraph(graph, into, name, _compile_id())


# ---- Frames that Dynamo leaves to Python --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeftToEager:
    """A function that Dynamo cannot trace."""

    frame: str  # "forward (model.py:5)"
    reason: str
    line: str  # "model.py:7 in forward: if x.sum() > 0:"
    compiler: Any  # the backend it would have called

    @property
    def text(self) -> str:
        at = f" at {self.line}" if self.line else ""
        return f"{self.frame} runs in Python, and none of its own ops are in a graph: torch.compile leaves it out ({self.reason}{at})"


def _callbacks() -> Any:
    try:
        from torch._dynamo.callback import callback_handler

        return callback_handler
    except ImportError:
        return None


def _watch_ends(seen: Callable[[LeftToEager], None]) -> Callable[..., None]:
    def end(*_: Any) -> None:
        error = sys.exc_info()[1]
        if error is None or type(error).__module__ != "torch._dynamo.exc" or "Restart" in type(error).__name__ or "SpeculationRestart" in type(error).__name__:
            return
        compiler, code = _being_compiled()
        if code is None or not is_users(code.co_filename):
            return
        stack = [one for one in getattr(error, "real_stack", None) or [] if is_users(one.filename)]
        line = f"{stack[-1].filename}:{stack[-1].lineno} in {stack[-1].name}: {stack[-1].line or ''}".rstrip(": ") if stack else ""
        reasons = [first_line(part).strip() for part in str(error).split("another graph break occurred: ***")]
        first = reasons[0] + (", in a loop" if any("in loop" in reason for reason in reasons[1:]) else "")
        seen(LeftToEager(f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})", first[:1].lower() + first[1:], line, compiler))

    return end


def _being_compiled() -> tuple[Any, Any]:
    """Backend and code of the compile that ends now, from the arguments of the Dynamo function that runs it."""
    frame = sys._getframe(1)
    while frame is not None:
        if "compiler_fn" in frame.f_locals and hasattr(frame.f_locals.get("code"), "co_firstlineno"):
            return frame.f_locals["compiler_fn"], frame.f_locals["code"]
        frame = frame.f_back  # type: ignore[assignment]
    return None, None


def _say_left_to_eager(one: LeftToEager) -> None:
    """Says which function the folder lacks, and how to record it instead."""
    compiler, options = one.compiler, None
    for _ in range(8):  # wrappers of Dynamo around the backend
        options = options or getattr(compiler, "kwargs", {}).get("options")
        inner = getattr(compiler, "_torchdynamo_orig_backend", None) or getattr(compiler, "compiler_fn", None)
        if compiler is backend or inner is None:
            break
        compiler = inner
    if compiler is backend:
        with _lock:
            recording((options or {}).get("path"), (options or {}).get("limits") or Limits()).problem(
                f"{one.text}. Next way: put the ops on both sides of that line into functions of their own, which torch.compile then takes one by one, or write the branch "
                "without Python (torch.where, torch.cond)")


_own_end = _watch_ends(_say_left_to_eager)


def _listen() -> None:
    """Called at import, and by each graph of this backend, because torch._dynamo.reset() forgets callbacks."""
    handler = _callbacks()
    if handler is not None and _own_end not in handler.end_callbacks:
        handler.register_end_callback(_own_end)


_listen()


def _compile_id() -> Optional[str]:
    try:
        from torch._guards import CompileContext

        current = CompileContext.current_compile_id()
        return str(current) if current is not None else None
    except Exception:
        return None


class SavedGraph:
    """A graph that saves itself the first time it runs, and runs eagerly each time."""

    def __init__(self, graph: torch.fx.GraphModule, into: Recording, name: str, compile_id: Optional[str]):
        _clean_stacks(graph, users_frame(sys._getframe(1)))
        self.graph, self.into, self.name, self.compile_id = graph, into, name, compile_id
        self.forward = graph.forward
        self.waiting = True
        self.written: Optional[Written] = None

    def __call__(self, *args: Any) -> Any:
        if not self.waiting:
            return _aliased(self.forward(*args))[0]
        self.waiting = False
        try:
            step = GraphStep(self.graph, args)
            before = {name: tensor.detach().clone().requires_grad_(tensor.requires_grad) for name, tensor in step.inputs.items()}
            buffers = {name: buffer.detach().clone() for name, buffer in step.named_buffers()}
            devices = devices_of(step, before)
            values = GraphValues(before, Generators.now(devices), Autocast.now(devices), {}, buffers)
            if size_of([*before.values(), *buffers.values()]) > self.into.limits.folder_bytes:
                raise NoSpace("its inputs are larger than Limits.folder_bytes")
        except Exception as error:
            self._failed(error)
            return self.forward(*args)
        output = self.forward(*args)
        with _lock:
            if not torch.is_grad_enabled() or not any(leaf.requires_grad for leaf in tensor_leaves(output)):
                self._write(step, values)
                return output
            self._write(step, GraphValues(values.inputs, values.generators, values.autocast, None, buffers, ["gradients of the outputs: no backward came; they are drawn"]))
        return self._with_cotangents(output, step, values)

    def _with_cotangents(self, output: Any, step: "GraphStep", values: GraphValues) -> Any:
        """The output, with hooks that collect its gradients; after the backward the graph is written again, with these."""
        cotangents: dict[int, torch.Tensor] = {}
        state = {"queued": False, "done": False}

        def finish() -> None:
            if state["done"]:
                return
            state["done"] = True
            for handle in handles:
                handle.remove()
            with _lock:
                values.cotangents = dict(cotangents)
                self._write(step, values)

        def hook(i: int) -> Callable[[Sequence[Optional[torch.Tensor]]], None]:
            def take(gradients: Sequence[Optional[torch.Tensor]]) -> None:
                if not state["done"] and gradients[0] is not None:
                    cotangents[i] = gradients[0].detach()
                    if not state["queued"]:
                        state["queued"] = True
                        torch.autograd.Variable._execution_engine.queue_callback(finish)
            return take

        output, aliases = _aliased(output)
        # On the node, not on the tensor: Dynamo looks at a tensor's hooks and would compile what follows once more.
        handles = [node.register_prehook(hook(position)) for position, alias in aliases.items() if (node := alias.grad_fn) is not None]
        return output

    def _write(self, step: "GraphStep", values: GraphValues) -> None:
        try:
            if self.written is None:
                describe = {"compile": self.compile_id, "location": step.location(), "module": None}
                with checkpoints_can_be_exported(self.graph):
                    self.written = write_graph(self.into.writer, self.name, step, values, describe=describe)
            else:
                write_values(self.into.writer, self.written, step, values)
            self.into.add(self.written)
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        shutil.rmtree(self.into.folder / self.name, ignore_errors=True)
        line = line_of(error)
        self.into.problem(f"{self.name} was not saved" + (f" ({line})" if line else "") + f": {first_line(text_of(error))}")


def _clean_stacks(graph: torch.fx.GraphModule, called: Optional[traceback.FrameSummary]) -> None:
    """Keeps only the user's lines in the stacks of a Dynamo graph. An op without one gets `called`, the user's line that called the graph."""
    for module in graph.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if node.meta.get("stack_trace"):
                    node.meta["stack_trace"] = cleaned(node.meta["stack_trace"], called)


@contextlib.contextmanager
def checkpoints_can_be_exported(graph: torch.fx.GraphModule) -> Iterator[None]:
    """Names the contexts of checkpointed regions: torch.export keeps only regions that do, and Dynamo leaves them out if there are none."""
    from torch.utils.checkpoint import noop_context_fn

    bodies = [graph.get_submodule(str(node.args[0].target)) for node in graph.graph.nodes
              if node.op == "call_function" and str(node.target).split(".")[-1] == "tag_activation_checkpoint" and isinstance(node.args[0], torch.fx.Node)]
    without = [body.meta for body in bodies if isinstance(body, torch.fx.GraphModule) and "_checkpoint_context_fn" not in body.meta]
    for meta in without:
        meta["_checkpoint_context_fn"] = noop_context_fn
    try:
        yield
    finally:
        for meta in without:
            meta.pop("_checkpoint_context_fn", None)


def _aliased(output: Any) -> tuple[Any, dict[int, torch.Tensor]]:
    """The outputs, with an alias instead of each that has a gradient, and these by position. The gradient of an alias is what comes from outside of the graph,
    which may use an output too. All calls return aliases: with one that does not, Dynamo would compile what follows once more."""
    results = list(output) if isinstance(output, (tuple, list)) else [output]
    aliases: dict[int, torch.Tensor] = {}
    position = 0
    for k, result in enumerate(results):
        if isinstance(result, torch.Tensor):
            if result.requires_grad and not result.is_leaf:
                results[k] = aliases[position] = result.view_as(result)
            position += 1
    return (type(output)(results) if isinstance(output, (tuple, list)) else results[0]), aliases


class GraphStep(torch.nn.Module):
    """A Dynamo graph as a module: parameters and buffers with their names in the user's model, all other tensors as inputs by name."""

    def __init__(self, graph: torch.fx.GraphModule, args: Sequence[Any]):
        super().__init__()
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        known = _names_in_callers()
        self.inputs: dict[str, torch.Tensor] = {}
        self.arguments: list[tuple[str, Any]] = []  # ("own", name), ("input", name), ("constant", value)
        taken: set[str] = set()
        for node, value in zip(placeholders, args):
            if not isinstance(value, torch.Tensor):
                self.arguments.append(("constant", value))
                continue
            source = _source(node)
            found = known.get(id(value)) or _name_in_source(source)
            is_own = isinstance(value, torch.nn.Parameter) or (id(value) in known) or "_buffers" in source
            if is_own and found and not value.requires_grad or isinstance(value, torch.nn.Parameter):
                name = _free(found or clean(str(node.name)), taken)
                self._adopt(name, value)
                self.arguments.append(("own", name))
            else:
                name = _free(clean(_input_name(source) or str(node.name)), taken)
                self.inputs[name] = value
                self.arguments.append(("input", name))
        self.__dict__["traced"] = graph
        if any(True for _ in graph.parameters()) or any(True for _ in graph.buffers()):
            self._adopt_all(graph)
        self.training = graph.training if placeholders == [] else self._was_training()

    def _was_training(self) -> bool:
        for one in _modules_in_callers():
            return one.training
        return True

    def _adopt(self, name: str, value: torch.Tensor) -> None:
        path, _, own = name.rpartition(".")
        holder: torch.nn.Module = self
        for part in filter(None, path.split(".")):
            if part not in holder._modules:
                holder.add_module(part, torch.nn.Module())
            holder = holder._modules[part]  # type: ignore[assignment]
        if isinstance(value, torch.nn.Parameter):
            holder.register_parameter(own, value)
        else:
            holder.register_buffer(own, value)

    def _adopt_all(self, graph: torch.fx.GraphModule) -> None:
        self.add_module("graph", graph)

    def forward(self, **inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args = [self._own(key) if kind == "own" else inputs[key] if kind == "input" else key for kind, key in self.arguments]
        with torch.fx.traceback.preserve_node_meta():  # the ops keep the user's lines
            output = torch.fx.Interpreter(self.__dict__["traced"]).run(*args)
        return tuple(tensor_leaves(output))

    def _own(self, name: str) -> torch.Tensor:
        path, _, own = name.rpartition(".")
        tensor: torch.Tensor = getattr(self.get_submodule(path), own)
        return tensor

    def location(self) -> Optional[str]:
        """The line of the first op."""
        for node in self.__dict__["traced"].graph.nodes:
            trace = node.meta.get("stack_trace")
            if node.op == "call_function" and trace:
                frames = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', trace)
                if frames:
                    file, line, function = frames[-1]
                    return f"{file}:{line} in {function}"
        return None


def _free(name: str, taken: set[str]) -> str:
    n, free = 1, name
    while free in taken or any(one.startswith(free + ".") for one in taken):
        n += 1
        free = f"{name}_{n}"
    taken.add(free)
    return free


def _modules_in_callers() -> Iterator[torch.nn.Module]:
    """Modules whose methods are running, the outermost first, without torch.compile's wrappers."""
    frames = []
    frame = sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    for frame in reversed(frames):
        one = frame.f_locals.get("self")
        if isinstance(one, torch.nn.Module) and not isinstance(one, (GraphStep, torch.fx.GraphModule)):
            inner = one.__dict__.get("_modules", {}).get("_orig_mod")
            yield inner if isinstance(inner, torch.nn.Module) else one


def _names_in_callers() -> dict[int, str]:
    """The names of parameters and buffers, by identity, in the outermost module that is running."""
    names: dict[int, str] = {}
    seen: set[int] = set()
    for one in _modules_in_callers():
        if id(one) in seen:
            continue
        seen.add(id(one))
        for name, tensor in [*one.named_parameters(), *one.named_buffers()]:
            names.setdefault(id(tensor), name.removeprefix("module.") if isinstance(one, torch.nn.parallel.DistributedDataParallel) else name)
    return names


def _source(node: torch.fx.Node) -> str:
    """Where Dynamo got an input from, as Python: "L['self']._modules['emb']._parameters['weight']"."""
    argument = node.meta.get("grapharg")
    source = getattr(argument, "source", None) or getattr(node, "_dynamo_source", None)
    name = getattr(source, "name", "")
    try:
        return str(name() if callable(name) else name)
    except Exception:
        return ""


def _name_in_source(source: str) -> str:
    parts = re.findall(r"\._(?:modules|parameters|buffers)\['([^']+)'\]", source)
    if parts:
        return ".".join(parts)
    attributes = re.match(r"[LG]\['[^']+'\]((?:\.\w+|\[\d+\])+)$", source)
    return re.sub(r"\[(\d+)\]", r".\1", attributes.group(1)).strip(".") if attributes else ""


def _input_name(source: str) -> str:
    """L['ids'] as "ids"; a deeper source keeps its path."""
    match = re.match(r"[LG]\['([^']+)'\](.*)$", source)
    return (match.group(1) + match.group(2)).replace("___stack0", "stack") if match else ""


__all__ = ["Recording", "SavedGraph", "backend", "recording"]
