"""How much retrograd.catch adds to a step of gpt2 (124 million parameters, random weights): steps with and without it take turns in one run.

overhead.py [--device cuda] [--batch 4] [--length 256] [--pairs 5]. On the CPU processor time is compared. Steps differ by a few percent from one another, so the
time in catch's own hooks is measured too.
"""
import argparse
import statistics
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import retrograd
from retrograd import Catch

options = argparse.ArgumentParser()
options.add_argument("--device", default="cpu")
options.add_argument("--batch", type=int, default=4)
options.add_argument("--length", type=int, default=256)
options.add_argument("--pairs", type=int, default=5)
options = options.parse_args()
if options.device == "cpu":
    torch.set_num_threads(1)
model = GPT2LMHeadModel(GPT2Config()).to(options.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def clock():
    if options.device != "cpu":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def step():
    ids = torch.randint(0, 50257, (options.batch, options.length), device=options.device)
    begin = clock()
    optimizer.zero_grad()
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    return clock() - begin


def timed(hook):
    def run(*args, **kwargs):
        global hooks
        begin = clock()
        try:
            return hook(*args, **kwargs)
        finally:
            hooks += clock() - begin
    return run


for name in ("_before", "_after", "_after_backward", "_before_update", "_after_update"):
    setattr(Catch, name, timed(getattr(Catch, name)))


def plain():
    without.append(step())


def caught():
    with retrograd.catch(model, optimizer):
        if not within:
            step()  # the first step looks which buffers are written
        before = hooks
        within.append(step())
        in_hooks.append(hooks - before)


hooks = 0.0
step()
without, within, in_hooks = [], [], []
for pair in range(options.pairs):
    for side in (plain, caught) if pair % 2 == 0 else (caught, plain):  # neither always comes after the other
        side()
    print(f"without {without[-1]:.3f} s, with {within[-1]:.3f} s, of which hooks {in_hooks[-1]:.3f} s", flush=True)
a, b, c = statistics.median(without), statistics.median(within), statistics.median(in_hooks)
print(f"PyTorch {torch.__version__}, {options.device}, batch {options.batch} x {options.length}: a step takes {a:.3f} s without and {b:.3f} s with catch, {100 * (b / a - 1):+.1f} %; "
      f"its hooks take {c:.3f} s, {100 * c / a:.1f} %")
