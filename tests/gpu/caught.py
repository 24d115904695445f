#!/usr/bin/env python3
"""Trains on DEVICE until a gradient is NaN, lets `retrograd.catch` write that step, and replays it: caught.py PROGRAM DEVICE FOLDER.

Exits with 0 where the program walks to the op that made the NaN, `check` says that the step agrees and is not healthy, and its loss has the bits of
the loop's.
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import torch

import jobs
import retrograd


class Net(torch.nn.Sequential):
    def forward(self, x):
        h = self[0](x)
        size = h.square().sum(1, keepdim=True).sqrt()
        return self[1](torch.dropout(h / (1 + size), 0.2, self.training))


def train(device, folder):
    torch.manual_seed(5)
    model = Net(torch.nn.Linear(6, 16, bias=False), torch.nn.Linear(16, 3)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    with retrograd.catch(model, optimizer, path=folder) as c:
        for step in range(10):
            x, y = torch.randn(4, 6, device=device), torch.randint(3, (4,), device=device)
            if step == 7:
                x[2] = 0  # the fault: the derivative of sqrt at 0 is infinite
            optimizer.zero_grad()
            c.loss(torch.nn.functional.cross_entropy, model(x), y).backward()
            optimizer.step()


def run(*command, code=0):
    environment = jobs.environment(command[0], os.environ)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    print(" ".join(command), "\n", done.stdout, flush=True)
    if done.returncode != code:
        sys.exit(f"{' '.join(command[1:3])}: exit code {done.returncode}, not {code}: {done.stdout.strip().splitlines()[-1:]}")
    return done.stdout


def main():
    program, device, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    shutil.rmtree(folder, ignore_errors=True)
    train(device, str(folder))
    steps = sorted(folder.glob("step7*"))
    if not steps:
        sys.exit("catch wrote no folder for step 7")
    step, loss = str(steps[0]), folder / "loss.npy"
    walk = run(program, "debug", step, "--device", device, "-c", "walk-nan", code=1)  # it finds one
    if "root: " not in walk or "aten.div" not in walk:
        sys.exit("walk-nan did not end at the division in sqrt's backward: " + walk.strip().splitlines()[-1])
    verdict = run(program, "check", step, "--device", device, code=1)
    if re.search(r"fault: .* tolerance ", verdict) or not re.search(r"first made by #\d+ torch.ops.aten.div.Tensor", verdict):
        sys.exit("check does not say that the step agrees and is not healthy: " + verdict)
    run(program, "debug", step, "--device", device, "-c", "continue", "-c", f"save-value cross_entropy_loss {loss}")
    caught = json.loads((steps[0] / "retrograd.json").read_text())["numbers"]["loss"]
    replayed, = struct.unpack("<f", loss.read_bytes()[-4:])
    if caught != replayed:
        sys.exit(f"the loss is {caught} in the loop and {replayed} in the replay")
    print("loss", caught, "in the loop and in the replay")


main()
