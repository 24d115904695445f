"""One kind of step: its loop without the recorder, with the first update recorded, with the fifth, and what the program says of both recordings."""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch
from links import Links
from loop import UPDATES, nothing

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "package"))
from replayer import read_records

RECORDED = {"first": 0, "fifth": UPDATES - 1}
LIMIT = 400  # seconds for a run


def digest(tensor):
    """Of a tensor's bytes."""
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.layout != torch.strided:
        tensor = tensor.coalesce().values() if tensor.layout == torch.sparse_coo else tensor.values()
    raw = tensor.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(raw.view(torch.uint8).numpy().tobytes() if raw.numel() else b"").hexdigest()[:16]


def state_of(loop):
    """Digests by name: parameters, buffers, gradients, states of optimizers, generators."""
    found = {name: digest(value) for name, value in loop.model.state_dict().items() if isinstance(value, torch.Tensor)}
    for name, p in loop.model.named_parameters():
        if p.grad is not None:
            found[f"gradient of {name}"] = digest(p.grad)
    for number, optimizer in enumerate(loop.optimizers):
        for place, state in enumerate(optimizer.state.values()):
            for key, value in state.items():
                if isinstance(value, torch.Tensor):
                    found[f"optimizer {number}, {place}, {key}"] = digest(value)
    return found | {"torch's generator": digest(torch.get_rng_state()), "Python's generator": repr(random.random())}


def seeded(spec):
    import numpy

    torch.manual_seed(spec["seed"] * 1000 + spec["place"])
    random.seed(spec["seed"])
    numpy.random.seed(spec["seed"])
    return random.Random(f"{spec['seed']}/{spec['place']}")


def made(spec):
    draw = seeded(spec)
    if spec.get("architecture"):
        import families

        return families.make(draw, families.by_name(spec["architecture"]))
    import kinds
    import more_kinds
    import ranks

    return {**kinds.NAMED, **kinds.DRAWN, **more_kinds.MORE, **ranks.KINDS, **ranks.MORE}[spec["kind"]](draw)


def run(spec, folder, recorded, rank, store):
    """The loop, in this process."""
    import retrograd

    if spec["world"] > 1:
        import ranks

        ranks.begin(rank, spec["world"], store)
    loop = made(spec)

    def around(number):
        return torch.compiler.set_stance("force_eager") if loop.own_eager and number == recorded else nothing(number)

    begin = time.perf_counter()
    if folder is None:
        losses = loop.run(around)
    else:
        with retrograd.record(folder, model=loop.model, optimizer=loop.optimizers or None, steps=recorded):
            losses = loop.run(nothing)
    seconds = time.perf_counter() - begin
    return {"state": state_of(loop), "losses": repr(losses), "said": loop.said, "seconds": round(seconds, 2)}


def child(spec, folder, recorded, rank, store, out):
    """`run` in a process of its own, which writes what came of it into a file."""
    process = os.fork()
    if process:
        return process
    try:
        signal.alarm(LIMIT)
        log = os.open(f"{out}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            result = run(spec, folder, recorded, rank, store)
        except BaseException as error:
            traceback.print_exc()
            result = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        Path(f"{out}.json").write_text(json.dumps(result))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)


class Trial:
    """`record` is what is kept: `found` lists what is wrong."""

    def __init__(self, spec, folder, program):
        self.spec, self.folder, self.program = spec, folder, program
        self.record = {**spec, "found": []}

    def wrong(self, text):
        self.record["found"].append(text)

    def go(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        without = self.looped("without")
        if "error" in without[0]:
            self.record["not made"] = without[0]["error"]
            return self.record
        self.record["said"] = without[0]["said"]
        for name, number in RECORDED.items():
            base = self.looped(f"without-{name}", eager_at=number) if self.spec["kind"] == "compiled" else without
            self.recorded(name, number, base)
        if not self.record["found"]:
            shutil.rmtree(self.folder)
        return self.record

    def looped(self, name, folder=None, recorded=None, eager_at=None):
        """The results of all ranks."""
        with tempfile.TemporaryDirectory() as store:
            outs = [self.folder / f"{name}-{rank}" for rank in range(self.spec["world"])]
            number = recorded if recorded is not None else eager_at
            given = [(self.spec, folder, number, rank, f"{store}/store", out) for rank, out in enumerate(outs)]
            for process in [child(*one) for one in given]:
                os.waitpid(process, 0)
        found = []
        for out in outs:
            path = Path(f"{out}.json")
            found.append(json.loads(path.read_text()) if path.exists() else {"error": f"the process ended: {out}.log"})
        return found

    def recorded(self, name, number, base):
        folder = self.folder / name
        results = self.looped(f"with-{name}", folder, number)
        report = self.record[name] = {"seconds": results[0].get("seconds"), "without": base[0].get("seconds")}
        for rank, (one, before) in enumerate(zip(results, base)):
            at = f"{name}, rank {rank}" if len(base) > 1 else name
            if "error" in one:
                self.wrong(f"{at}: the loop fails with the recorder: {one['error']}")
                continue
            self.unchanged(at, one, before)
        parts = sorted(folder.glob("rank*")) or [folder]
        for part in parts:
            at = f"{name}, {part.name}" if len(parts) > 1 else name
            with contextlib.suppress(FileNotFoundError):
                self.judged(at, part, report)

    def unchanged(self, at, one, before):
        other = [key for key in before["state"] if one["state"].get(key) != before["state"][key]]
        if one["losses"] != before["losses"]:
            other.append("losses")
        if other or one["state"].keys() != before["state"].keys():
            self.wrong(f"{at}: the recorder changed {', '.join(other[:3]) or 'which states there are'}")

    def judged(self, at, folder, report):
        manifest = json.loads((folder / "retrograd.json").read_text())
        links = manifest["links"]
        for key in ("linked", "ambiguous", "unlinked"):
            report[key] = report.get(key, 0) + links[key]
        report["ops"] = report.get("ops", 0) + manifest["ops"]
        if not manifest["complete"] or manifest["notes"]:
            self.wrong(f"{at}: complete: {manifest['complete']}; {'; '.join(manifest['notes'])}")
        if links["unlinked"]:
            self.wrong(f"{at}: {links['unlinked']} backward ops have no link: {links['without']}")
        if links["ambiguous"] >= max(1, 0.005 * links["linked"]):
            self.wrong(f"{at}: {links['ambiguous']} of {links['linked']} links are ambiguous")
        found = Links(read_records(folder))
        report["wrong links"] = report.get("wrong links", 0) + len(found.wrong)
        report["names"] = {**report.get("names", {}), **found.names}
        for number, text in found.wrong[:3]:
            self.wrong(f"{at}: link of op {number}: {text}")
        if found.without > links["ambiguous"] + links["unlinked"]:
            self.wrong(f"{at}: {found.without} backward ops without a link: {dict(found.nodes_without)}; counted: {links}")
        self.asked(at, folder, report)

    def asked(self, at, folder, report):
        """What the program says."""
        begin = time.perf_counter()
        done = subprocess.run(
            [self.program, "check", str(folder), "--format", "json"], capture_output=True, text=True, timeout=LIMIT
        )
        report["check"] = round(report.get("check", 0) + time.perf_counter() - begin, 2)
        if "{" not in done.stdout:
            self.wrong(f"{at}: check ends with {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
            return
        said = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
        counted, claims = said["details"], said["claims"]
        for key, name in (("compared", "hashes"), ("differing", "differing"), ("after_uninitialized", "after_uninitialized")):
            report[key] = report.get(key, 0) + counted[name]
        report["opaque"] = sorted({*report.get("opaque", []), *counted["opaque"]})
        unhealthy = [claim["sentence"] for claim in claims if claim["by"] in ("health", "books") and claim["severity"] == "fault"]
        report["not sound"] = sorted({*report.get("not sound", []), *unhealthy})
        if counted["differing"]:
            first = next(claim["sentence"] for claim in claims if claim["kind"] == "hash-differs")
            self.wrong(f"{at}: {counted['differing']} hashes differ, first {first}")
        if counted["ran"] + counted["not_run"] != counted["ops"]:
            self.wrong(f"{at}: {counted['ran']} of {counted['ops']} ops ran: {said.get('reason')}")
        elif done.returncode == 1 and not counted["differing"] and not unhealthy:
            self.wrong(f"{at}: check ends with {done.returncode}: {said.get('reason')}")
