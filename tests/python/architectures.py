#!/usr/bin/env python3
"""Exports architectures with random weights, runs them in eager PyTorch, and has `retrograd check` compare.

Each architecture is exported in a process of its own, with a limit on its time and memory, into FOLDER/NAME: model.pt2, ref.safetensors (outputs and
gradients of eager's autograd in float32 and, under f64/, in float64) and export.json. What torch.export refuses is listed and does not count.
"""
import argparse
import copy
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
import zlib
from collections import Counter
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.utils._pytree import tree_leaves

import architecture_list

TOP = Path(__file__).resolve().parent.parent.parent
WANTED = 100
MEMORY = 8 << 30  # bytes that the export of one architecture may allocate
WAITING = 10  # times the processor's time that it may take by the clock: others may use the machine, too


class TensorsOnly(torch.nn.Module):
    """A model as a function of tensors by position; what it returns, flattened to its tensors."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        named = dict(zip(self.names, inputs)) if self.names else {}
        outputs = self.model(**named) if named else self.model(*inputs)
        return tuple(leaf for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor))


def randomise(model):
    """Many architectures begin with layers that are scaled by zero; a gradient that is zero everywhere shows nothing."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(torch.randn_like(parameter), alpha=0.02)


def differentiable(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def as_stored(tensor):
    tensor = tensor.detach()
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).contiguous().clone()


def gradients_in_eager(module, inputs, names, cotangents, seed):
    """Outputs and gradients by their names in a reference file."""
    inputs = [tensor.detach().clone().requires_grad_(differentiable(tensor)) for tensor in inputs]
    torch.manual_seed(seed)
    outputs = module(*inputs)
    sources = {f"grad.in.{name}": tensor for name, tensor in zip(names, inputs) if tensor.requires_grad}
    sources |= {f"grad.p.{name}": parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    ends = [(output, cotangents(i, output)) for i, output in enumerate(outputs) if differentiable(output) and output.requires_grad]
    found = torch.autograd.grad([output for output, _ in ends], list(sources.values()), [cotangent for _, cotangent in ends], allow_unused=True)
    results = {f"out.{i}": as_stored(output) for i, output in enumerate(outputs)}
    return results | {name: as_stored(gradient) for name, gradient in zip(sources, found) if gradient is not None}


def unfaithful(in_eager, as_exported):
    """Where the exported program, run by PyTorch itself, does not have the model's gradients: torch.export loses what an autograd.Function of the
    model's own says of its backward. Rounding does not reach this far."""
    for name in in_eager.keys() | as_exported.keys():
        expected, actual = in_eager.get(name, torch.zeros(())).double(), as_exported.get(name, torch.zeros(())).double()
        off = (actual - expected).abs().max().item() if expected.numel() and actual.numel() else 0
        if off > 0.05 * expected.abs().max().item() and off > 1e-4:
            return f"{name} is off by {off:.2g}"
    return None


def export(architecture, folder):
    seed = zlib.crc32(architecture.name.encode())
    torch.manual_seed(seed)
    model, inputs = architecture.make()
    model.eval()
    randomise(model)
    module = TensorsOnly(model, list(inputs) if isinstance(inputs, dict) else [])
    inputs = list(inputs.values()) if isinstance(inputs, dict) else list(inputs)
    program = torch.export.export(module, tuple(inputs))
    torch.export.save(program, folder / "model.pt2")
    names = program.graph_signature.user_inputs

    def cotangents(i, output):
        """The same in both precisions: eighths of whole numbers are exact in each."""
        generator = torch.Generator().manual_seed(i)
        drawn = torch.randint(-8, 9, output.shape, generator=generator) / 8
        stored[f"cot.{i}"] = drawn.to(output.dtype if output.dtype != torch.float64 else torch.float32)
        return drawn.to(output.dtype)

    stored = {f"in.{name}": as_stored(tensor) for name, tensor in zip(names, inputs)}
    in_double = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs]
    try:
        exact = gradients_in_eager(copy.deepcopy(module).double(), in_double, names, cotangents, seed)
    except RuntimeError:  # it converts to float32 itself
        exact = {}
    in_eager = gradients_in_eager(module, inputs, names, cotangents, seed)
    as_exported = gradients_in_eager(program.module(), inputs, names, cotangents, seed)
    stored |= in_eager
    stored |= {f"f64/{name}": tensor for name, tensor in exact.items()}
    differentiated = ",".join(name for name, tensor in zip(names, inputs) if differentiable(tensor))
    save_file(stored, folder / "ref.safetensors", {"seed": str(seed), "requires_grad": differentiated})
    return {"status": "exported", "unfaithful": unfaithful(in_eager, as_exported), "ops": sum(node.op == "call_function" for node in program.graph.nodes), "in_double": bool(exact),
            "parameters": sum(parameter.numel() for parameter in model.parameters())}


def export_process(architecture, folder, seconds):
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with open(folder / "export.log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            result = export(architecture, folder)
        except BaseException as error:
            traceback.print_exc()
            lines = str(error).strip().splitlines()
            result = {"status": "not exported", "reason": f"{type(error).__name__}: {lines[0][:160] if lines else ''}"}
        (folder / "export.json").write_text(json.dumps(result))


def export_all(architectures, folder, options):
    """Exports those that are not there yet; returns what came of each, by name."""
    waiting = [one for one in architectures if options.again or not (folder / one.name / "export.json").exists()]
    running = {}
    context = multiprocessing.get_context("fork")  # PyTorch is imported once
    while waiting or running:
        while waiting and len(running) < options.jobs:
            one = waiting.pop(0)
            target = folder / one.name
            target.mkdir(parents=True, exist_ok=True)
            for old in ("model.pt2", "ref.safetensors", "export.json"):
                (target / old).unlink(missing_ok=True)
            process = context.Process(target=export_process, args=(one, target, options.timeout))
            process.start()
            running[one.name] = (process, time.monotonic())
        time.sleep(0.05)
        for name, (process, began) in list(running.items()):
            seconds = time.monotonic() - began
            if process.is_alive() and seconds > WAITING * options.timeout:
                process.kill()
            elif process.is_alive():
                continue
            process.join()
            del running[name]
            result = folder / name / "export.json"
            if not result.exists():
                late = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
                why = f"did not end within {options.timeout} s" if late else f"ended with {process.exitcode}"
                result.write_text(json.dumps({"status": "not exported", "reason": why}))
            if json.loads(result.read_text())["status"] != "exported":  # half a case is none
                (folder / name / "model.pt2").unlink(missing_ok=True)
            print(f"{name}: {json.loads(result.read_text())['status']} ({seconds:.0f} s)", flush=True)
    return {one.name: exported_as(folder, one.name) for one in architectures}


def exported_as(folder, name):
    path = folder / name / "export.json"
    return json.loads(path.read_text()) if path.exists() else {"status": "not exported", "reason": "not tried"}


def check_all(folder, names, options):
    """Runs `retrograd check` on these; what it reports joins the reports of earlier runs."""
    selection = folder.parent / (folder.name + "-suite")  # links to the cases asked for
    shutil.rmtree(selection, ignore_errors=True)
    for name in names:
        (selection / name).mkdir(parents=True)
        for file in ("model.pt2", "ref.safetensors"):
            (selection / name / file).symlink_to(folder / name / file)
    report = selection / "report.json"
    subprocess.run([os.environ["RETROGRAD"], "check", "--suite", selection, "--threads", "1", "--timeout", str(options.check_timeout), "--report", report], check=False)
    reports = stored_reports(folder) | {one["file"]: one for one in json.loads(report.read_text())}
    (folder / "reports.json").write_text(json.dumps(reports))


def stored_reports(folder):
    """By name."""
    path = folder / "reports.json"
    return json.loads(path.read_text()) if path.exists() else {}


def unknown_ops(report):
    """Names of the ops that `check` did not know and left out."""
    texts = [claim["sentence"] for claim in report["claims"] if claim.get("kind") == "opaque-ops"] if report else []
    found = re.search(r"did not run: ([^;]+)", "; ".join(texts))
    return [re.sub(r" \(\d+ times\)", "", op) for op in found[1].split(", ")] if found else []


def verdict_of(exported, report):
    if exported["status"] != "exported":
        return "not exported", exported["reason"]
    if not report:
        return "not checked", ""
    verdict, reason = report["verdict"], report.get("reason", "").splitlines()[:1]
    if verdict == "fail" and exported.get("unfaithful"):
        return "not exported", "the exported program has other gradients than the model: " + exported["unfaithful"]
    if verdict == "pass" and unknown_ops(report):
        return "refused", "unknown ops: " + ", ".join(unknown_ops(report))
    if any(claim.get("kind") == "error" for claim in report["claims"]):
        return "error", "".join(reason)
    words = {"pass": "pass", "fail": "differs", "not possible": "refused"}
    return words[verdict], "".join(reason)


def print_tables(architectures, rows):
    width = max(len(one.name) for one in architectures)
    print(f"\n{'architecture':{width}}  {'ops':>5}  verdict")
    for one in architectures:
        ops, verdict, reason = rows[one.name]
        print(f"{one.name:{width}}  {ops:>5}  {verdict}{': ' + reason if reason else ''}")
    columns = ["pass", "refused", "differs", "error", "not checked", "not exported"]
    by_family = {}
    for one in architectures:
        by_family.setdefault(one.family, Counter())[rows[one.name][1]] += 1
    print("\n| Family | " + " | ".join(columns) + " |\n| --- |" + " ---: |" * len(columns))
    by_family["All"] = sum(by_family.values(), Counter())
    for family, counts in by_family.items():
        print(f"| {family} | " + " | ".join(str(counts[column]) for column in columns) + " |")
    return by_family["All"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=TOP / "build" / "architectures")
    parser.add_argument("--again", action="store_true", help="export again what is there already")
    parser.add_argument("--export-only", action="store_true")
    parser.add_argument("--table-only", action="store_true", help="print what earlier runs found")
    parser.add_argument("--jobs", type=int, default=1, help="exports at a time")
    parser.add_argument("--timeout", type=int, default=120, help="seconds of processor time an export may take")
    parser.add_argument("--check-timeout", type=float, default=300, help="seconds a check may take")
    parser.add_argument("--family", help="those of this family alone, such as \"Mixtures of experts\"")
    parser.add_argument("names", metavar="NAME", nargs="*", help="these alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    known = architecture_list.architectures()
    if unknown := set(options.names) - {one.name for one in known}:
        parser.error("no such architecture: " + ", ".join(sorted(unknown)))
    chosen = [one for one in known if (not options.names or one.name in options.names) and options.family in (None, one.family)]
    if not chosen:
        parser.error("no such family; there are " + ", ".join(sorted({one.family for one in known})))
    folder = options.folder.resolve()
    if not options.table_only:
        exported = export_all(chosen, folder, options)
        ready = [name for name, result in exported.items() if result["status"] == "exported"]
        print(f"{len(ready)} of {len(chosen)} exported")
        if not options.export_only and ready:
            check_all(folder, ready, options)
    if options.export_only:
        return
    reports, rows = stored_reports(folder), {}
    for one in chosen:
        result = exported_as(folder, one.name)
        rows[one.name] = (result.get("ops", ""), *verdict_of(result, reports.get(one.name)))
    counts = print_tables(chosen, rows)
    unknown = Counter(op for one in chosen for op in unknown_ops(reports.get(one.name)))
    print("\nUnknown ops: " + (", ".join(f"{op} ({count} architectures)" for op, count in unknown.most_common()) or "none"))
    if counts["differs"] or counts["error"]:
        sys.exit(1)
    if not (options.names or options.family) and counts["pass"] + counts["refused"] < WANTED:
        sys.exit(f"{WANTED} architectures that are exported are wanted")


main()
