#!/usr/bin/env python3
"""What recording a training step costs, next to the same loop without: seconds, memory, and the size of the recording.

    recording_cost.py [--layers N] [--length N] [--repeats N]

K15: gpt2 at most 1.6 times the step, a toy under 5 times.

The model is gpt2 (124 M parameters; --layers makes it smaller), batch 1, AdamW, one thread. Each kind of loop runs in a process of its own, so that
the highest memory of one is not that of another. Seconds on a CPU are those of the processor.
"""
import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "python"))


def clock():
    """Processor time on a CPU, which others may share; the clock's on a GPU."""
    return time.perf_counter() if "torch" in sys.modules and sys.modules["torch"].cuda.is_available() else time.process_time()


def loop(kind, layers, length, folder):
    """Seconds of each step after the first, the highest memory, and what was written."""
    import torch
    import transformers

    import retrograd

    torch.set_num_threads(1)
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=layers)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    words = torch.randint(0, 50000, (1, length), device=device)
    seconds = []

    def step():
        begin = clock()
        model(input_ids=words, labels=words).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(clock() - begin)

    step()  # what is made once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if kind == "without":
        step()
    elif kind == "around":  # the recorder waits for an update that never comes
        with retrograd.record(folder, model=model, optimizer=optimizer, steps=1000):
            step()
    else:
        begin = clock()
        with retrograd.record(folder, model=model, optimizer=optimizer):
            step()
        seconds[-1] = clock() - begin
    ops = json.loads((Path(folder) / "retrograd.json").read_text())["ops"] if kind == "recorded" else 0
    data = sum(file.stat().st_size for file in Path(folder).rglob("*")) if kind == "recorded" else 0
    stream = (Path(folder) / "ops.jsonl").stat().st_size if kind == "recorded" else 0
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds[-1], "memory": after * 1024, "more": (after - before) * 1024, "ops": ops, "bytes": data, "stream": stream, "device": device}))


def written(count):
    """Seconds that writing so many small ops takes."""
    import torch

    import retrograd

    torch.set_num_threads(1)
    x = torch.ones(4)
    with tempfile.TemporaryDirectory() as folder:
        begin = clock()
        with retrograd.record(Path(folder) / "ops"):
            for _ in range(count):
                x + 1
        print(json.dumps({"seconds": clock() - begin}))


def toy():
    """Seconds of a step of a small model, without the recorder and with it: what each op costs."""
    import torch

    import retrograd

    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))

    def steps(count):
        begin = clock()
        for _ in range(count):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        return (clock() - begin) / count

    steps(20)
    without = steps(200)
    with tempfile.TemporaryDirectory() as folder:
        with retrograd.record(Path(folder) / "ops", model=model, optimizer=optimizer):
            steps(5)
            within = steps(100)
    print(json.dumps({"without": without, "recorded": within}))


def asked(*arguments):
    done = subprocess.run([sys.executable, __file__, *map(str, arguments)], capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", choices=["without", "around", "recorded"])
    parser.add_argument("--write", type=int)
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--folder")
    options = parser.parse_args()
    if options.write:
        return written(options.write)
    if options.toy:
        return toy()
    if options.one:
        return loop(options.one, options.layers, options.length, options.folder)
    found = {}
    for kind in ("without", "around", "recorded"):
        runs = []
        for _ in range(options.repeats):
            folder = Path(tempfile.mkdtemp()) / "step"
            runs.append(asked("--one", kind, "--layers", options.layers, "--length", options.length, "--folder", folder))
            shutil.rmtree(folder.parent)
        found[kind] = {key: statistics.median(run[key] for run in runs) if key != "device" else runs[0][key] for key in runs[0]}
    without = found["without"]
    print(f"gpt2 of {options.layers} layers, batch 1 x {options.length}, AdamW, one thread, {without['device']}; medians of {options.repeats}")
    print("| loop | seconds | times | memory, MB | more than without, MB |\n| --- | ---: | ---: | ---: | ---: |")
    for kind, one in found.items():
        print(f"| {kind} | {one['seconds']:.2f} | {one['seconds'] / without['seconds']:.2f} | {one['memory'] / 1e6:.0f} | {(one['memory'] - without['memory']) / 1e6:.0f} |")
    recorded = found["recorded"]
    print(f"{recorded['ops']:.0f} ops, {recorded['stream'] / 1e6:.1f} MB of records, {(recorded['bytes'] - recorded['stream']) / 1e6:.0f} MB of data")
    small = asked("--toy")
    print(f"a toy (4 layers, batch 32, AdamW): {small['without'] * 1e3:.2f} ms, recorded {small['recorded'] * 1e3:.2f} ms, {small['recorded'] / small['without']:.1f} times")
    print(f"20,000 small ops are recorded in {asked('--write', 20000)['seconds']:.2f} s")


if __name__ == "__main__":
    main()
