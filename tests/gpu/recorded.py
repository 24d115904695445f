#!/usr/bin/env python3
"""Records a training step on DEVICE and runs it again: recorded.py PROGRAM DEVICE FOLDER.

Exits with 0 where the loop's losses are those of a loop that is not recorded, and the program runs every op of the recording again to the recorded hashes
and finds nothing wrong.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import torch

import jobs
import retrograd


def train(device, folder=None):
    """The losses of three steps, of which the second is recorded into the folder, if there is one."""
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.LayerNorm(32), torch.nn.Linear(32, 5)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []

    def loop():
        for _ in range(3):
            x, y = torch.randn(16, 12, device=device), torch.randint(5, (16,), device=device)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())

    if folder is None:
        loop()
    else:
        with retrograd.record(folder, model=model, optimizer=optimizer, steps=1):
            loop()
    return losses


def main():
    program, device, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    shutil.rmtree(folder, ignore_errors=True)
    plain, recorded = train(device), train(device, str(folder))
    if plain != recorded:
        sys.exit(f"the losses are {plain}, and {recorded} where a step is recorded")
    done = subprocess.run([program, "check", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=jobs.environment(program, os.environ))
    print(done.stdout, flush=True)
    counted = re.search(r"(\d+) hashes of \d+ ops compared, (\d+) differ", done.stdout)
    if done.returncode != 0 or counted is None or int(counted[1]) < 50 or int(counted[2]) != 0:
        sys.exit(f"check ends with {done.returncode}: {done.stdout.strip().splitlines()[:1]}")


main()
