#!/usr/bin/env python3
"""Measures an exported program in eager PyTorch: eager.py MODEL.pt2 DEVICE. Prints medians of forward and backward in milliseconds, as JSON."""
import json
import statistics
import sys
import time

import torch
from torch.utils import _pytree


def main():
    path, device = sys.argv[1:]
    program = torch.export.load(path)
    if device != "cpu":
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, device)
    module = program.module()
    to_device = lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf
    arguments, keywords = _pytree.tree_map(to_device, program.example_inputs)
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    times = {"forward": [], "backward": []}
    for _ in range(12):
        wait()
        start = time.perf_counter()
        leaves = _pytree.tree_leaves(module(*arguments, **keywords))
        outputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        wait()
        middle = time.perf_counter()
        torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])
        wait()
        times["forward"].append((middle - start) * 1e3)
        times["backward"].append((time.perf_counter() - middle) * 1e3)
    print(json.dumps({"figures": {name: statistics.median(some[2:]) for name, some in times.items()}}))


main()
