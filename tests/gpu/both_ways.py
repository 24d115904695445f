#!/usr/bin/env python3
"""Runs a model to its end, back to its beginning and to its end again: both_ways.py PROGRAM MODEL.pt2 DEVICE FOLDER.

Exits with 0 where outputs and gradients have the same bits both times.
"""
import json
import os
import pathlib
import subprocess
import sys

import jobs

MOST_VALUES = 40


def results(program, model, device):
    """Names of the joint's outputs that are tensors."""
    done = subprocess.run([program, "trace", model, "--device", device, "--format", "json"], stdout=subprocess.PIPE, text=True,
                          env=jobs.environment(program, os.environ))
    if done.returncode:
        sys.exit(f"trace: exit code {done.returncode}")
    trace = json.loads(done.stdout)
    outputs = [trace["values"][str(output)] for output in trace["traces"]["joint"]["outputs"] if output is not None]
    return list(dict.fromkeys(value["name"] for value in outputs if value["dtype"]))[:MOST_VALUES]


def main():
    program, model, device, folder = sys.argv[1:]
    target = pathlib.Path(folder) / "both-ways" / pathlib.Path(model).parent.name
    target.mkdir(parents=True, exist_ok=True)
    names = results(program, model, device)
    commands = []
    for time in ("first", "again"):
        commands += ["run-to end", *(f"save-value {name} {target / f'{name}-{time}.npy'}" for name in names), "reverse-continue"]
    done = subprocess.run([program, "debug", model, "--device", device, *(part for command in commands for part in ("-c", command))],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=jobs.environment(program, os.environ))
    print(done.stdout)
    if done.returncode:
        sys.exit(f"debug: exit code {done.returncode}")
    other = [name for name in names if (target / f"{name}-first.npy").read_bytes() != (target / f"{name}-again.npy").read_bytes()]
    if other or not names:
        sys.exit(f"other bits the second time: {', '.join(other)}" if names else "the model has no results")
    print(f"{len(names)} results have the same bits both times")


main()
