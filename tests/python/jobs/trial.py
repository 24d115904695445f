"""One job from seed to verdicts: drawn, compiled to a log, judged by eager PyTorch, asked of the program, once
right and once with a fault."""

import json
import random
import shutil
import time

import torch
import torch._functorch.config
from safetensors.torch import save_file

import compiled
import faults
import truth
from draft import Draft

PLAIN = 10.0  # a gradient that is off by more roundings than this is wrong
SURE = 100.0  # and PyTorch's own is called wrong only beyond this
MOST_ROUNDING = 0.05  # of a gradient's largest element
ATTEMPTS = 8
MUTANTS = 12


class NotMade(Exception):
    """The seed has no job, for the reason that this says."""


def short(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


class Trial:
    def __init__(self, seed, folder, program):
        self.seed, self.folder, self.program = seed, folder, program
        self.record = {"seed": seed}
        self.seconds = {}

    def run(self):
        """The seed's record. The folder keeps the files where a verdict is wrong, and goes otherwise."""
        torch.manual_seed(self.seed)
        try:
            self.timed("drawing", self.draw)
            with compiled.log_in(self.folder / "trace"), torch._functorch.config.patch(
                activation_memory_budget=self.draft.budget, enable_autograd_cache=False
            ):
                self.timed("compiling", self.compile)
                self.timed("truth", self.judge)
                self.log = next((self.folder / "trace").iterdir()).read_text()
                if self.record["job"] == "right":
                    self.timed("fault", self.fault)
            self.timed("program", self.ask)
        except NotMade as reason:
            self.record["not made"] = str(reason)
        self.record["seconds"] = {name: round(value, 3) for name, value in self.seconds.items()}
        if not self.record.get("wrong verdicts"):
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.record

    def timed(self, name, step):
        begin = time.perf_counter()
        try:
            step()
        finally:
            self.seconds[name] = time.perf_counter() - begin

    def draw(self):
        """The first of a few drafts that eager PyTorch runs forward and backward."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "trace").mkdir(parents=True)
        path = self.folder / "job.py"
        for attempt in range(ATTEMPTS):
            try:
                self.draft = Draft(self.seed, attempt).draw()
                path.write_text(self.draft.text())
                self.job = compiled.Job(self.draft, path)
                module, arguments = self.job.state()
                called, args = self.job.call(module, arguments)
                loss, outputs, found = self.job.step(called, args, self.job.leaves(module, arguments))
                if not all(bool(torch.isfinite(t).all()) for t in [loss, *found.values()]) or all(
                    float(g.abs().max()) == 0 for g in found.values()
                ):
                    continue
                break
            except Exception as error:  # PyTorch throws errors of many types where a draft does not run
                self.record.setdefault("drawn again", []).append(short(error))
        else:
            raise NotMade("no draft runs in eager PyTorch")
        draft = self.draft
        self.record |= {
            "backend": draft.backend,
            "budget": draft.budget,
            "form": draft.form,
            "dynamic": draft.dynamic or "",
            "dtype": str(draft.dtype).split(".")[1],
            "features": sorted(draft.features),
            "lines": len(draft.lines),
        }

    def compile(self):
        """The step is run once as it is compiled, and its draws and gradients are kept."""
        self.compiled = compiled.Compiled(self.draft, self.folder)
        self.module, arguments = self.job.state()
        self.weights, self.batch = compiled.weights_of(self.module), {
            name: tensor.detach().clone() for name, tensor in arguments.items()
        }
        try:
            self.called, _ = self.job.call(self.module, arguments, self.compiled.compile)
            if self.draft.dynamic == "again":
                self.step_compiled(
                    {name: torch.cat([t, t[:2]]) if name in self.draft.batch else t for name, t in self.batch.items()}
                )
            _, self.outputs, self.gradients = self.step_compiled(self.batch)
        except Exception as error:
            raise NotMade(f"not compiled: {short(error)}") from None
        if not self.compiled.backwards:
            raise NotMade("no backward was compiled")

    def step_compiled(self, batch, seed=None):
        """The compiled step, from the same state and the same state of the generator."""
        self.compiled.draws.clear()
        self.compiled.redraws.clear()
        self.compiled.loose = 0
        arguments = {
            name: tensor.clone().requires_grad_(
                name in self.draft.with_gradient or (name in self.draft.parameters and name not in self.draft.frozen)
            )
            for name, tensor in batch.items()
        }
        if self.draft.dynamic == "marked":
            for name in self.draft.batch:
                torch._dynamo.maybe_mark_dynamic(arguments[name], 0)
        first = []
        if self.module is not None:
            self.module.load_state_dict(self.weights)
            first = [self.module] if self.draft.form == "model" else []
        torch.manual_seed(self.seed if seed is None else seed)
        return self.job.step(self.called, first + list(arguments.values()), self.job.leaves(self.module, arguments))

    def judge(self):
        """Sets `job`: right, wrong, unclear or other (its forward is not the text's)."""
        self.record["draws"] = len(self.compiled.draws)
        try:
            draws = truth.paired(self.job, list(self.compiled.draws), self.outputs)
            loss, outputs, self.truth = truth.gradients(self.job, draws)
            self.rounding = truth.roundings(self.job, draws, self.truth)
            exact = (
                self.truth if self.draft.dtype == torch.float64 else truth.gradients(self.job, draws, torch.float64)[2]
            )
        except truth.Unpaired as error:
            raise NotMade(f"draws are not paired: {error}") from None
        try:
            self.record["finite differences"] = "agree" if truth.differences_agree(self.job, draws, exact) else "differ"
        except truth.NoDerivative:
            self.record["finite differences"] = "not possible"
        self.loss = loss
        self.record["backward draws"] = self.compiled.loose
        off = self.moved(self.gradients, self.truth)
        for seed in (
            range(8) if self.compiled.loose and off <= SURE else ()
        ):  # one set of draws may be like another by chance
            _, outputs_again, again = self.step_compiled(self.batch, self.seed + 1 + seed)
            off = max(
                off,
                self.moved(
                    again,
                    truth.gradients(self.job, truth.paired(self.job, list(self.compiled.draws), outputs_again))[2],
                ),
            )
        self.record["off"] = float(f"{off:.3g}")
        same = truth.same_outputs(self.job, outputs, self.outputs)
        # Where a backward draws anew, gradients that are rounding for the most part cannot say that it is right.
        hidden = self.compiled.loose and any(
            self.rounding[name] > MOST_ROUNDING * float(gradient.abs().max()) for name, gradient in self.truth.items()
        )
        self.record["job"] = (
            "other" if not same else "wrong" if off > SURE else "unclear" if off > PLAIN or hidden else "right"
        )

    def moved(self, gradients, others):
        """How far gradients are from others, in roundings of the worst."""
        return max(truth.distance(gradients[name], others[name]) / max(self.rounding[name], 1e-300) for name in others)

    def fault(self):
        """Plants a fault that moves a gradient beyond ten roundings; `faulty` is the log with it, by compile."""
        self.faulty = None
        draw = random.Random(self.seed)
        runners = [
            runner
            for runner in self.compiled.backwards
            if compiled.digest(compiled.text_of(runner.module)) in compiled.compiles_of(self.log)
        ]
        if self.draft.dynamic == "again":
            runners = runners[-1:]
        if not runners:
            self.record["fault"] = {"not planted": "the log has another text of the backward"}
            return
        drawn = set()
        for forward in self.compiled.forwards:
            drawn |= faults.drawn_in(forward.module.graph, lambda target: compiled.kind_of_draw(target) is not None)
        _, _, base = self.step_compiled(self.batch)
        for _ in range(MUTANTS):
            runner = draw.choice(runners)
            old = compiled.text_of(runner.module)
            fault = faults.plant(runner.module, draw, drawn)
            if fault is None:
                continue
            try:
                _, _, found = self.step_compiled(self.batch)
                off = self.moved(found, base)
                if off > PLAIN and all(bool(torch.isfinite(g).all()) for g in found.values()):
                    self.faulty = (
                        compiled.compiles_of(self.log)[compiled.digest(old)],
                        compiled.exchanged(self.log, old, compiled.text_of(runner.module)),
                    )
                    self.record["fault"] = {"kind": fault.kind, "what": fault.text, "off": float(f"{off:.3g}")}
                    return
            except Exception:  # it does not run: no fault that one would meet
                continue
            finally:
                fault.undo(runner.module.graph)
        self.record["fault"] = {"not planted": "none of those tried moves a gradient"}

    # The program.

    def ask(self):
        record = self.record
        files = []
        weights = {name: tensor.contiguous().clone() for name, tensor in self.weights.items()}
        if weights:
            save_file(weights, self.folder / "weights.safetensors")
            files += ["--weights", self.folder / "weights.safetensors"]
        save_file(
            {name: tensor.contiguous().clone() for name, tensor in self.batch.items()},
            self.folder / "batch.safetensors",
        )
        files += ["--batch", self.folder / "batch.safetensors"]
        single = len([o for o in self.outputs if o.is_floating_point()]) == 1 and self.outputs[0].dim() == 0
        if single and not record["draws"] and self.seed % 2 == 0 and len(self.compiled.backwards) == 1:
            reference = {
                "loss": self.loss.clone(),
                **{
                    f"grad.{name}": g.contiguous().clone() for name, g in self.truth.items() if float(g.abs().max()) > 0
                },
            }
            save_file(reference, self.folder / "reference.safetensors")
            files += ["--reference", self.folder / "reference.safetensors"]
            record["reference"] = True
        path = next((self.folder / "trace").iterdir())
        names = list(compiled.compiles_of(self.log).values())
        if self.draft.dynamic == "again":  # of each function the last compile, for the sizes of the batch
            names = list({name.split("/")[0]: name for name in names}.values())
        wrong = []
        record["verdicts"] = [self.check(path, name, files) for name in names]
        for verdict in record["verdicts"]:
            said = verdict["verdict"]
            if said == "failed" or (record["job"] == "right" and said == "differs"):
                wrong.append(f"right job: {said}")
        if record["job"] == "wrong" and all(v["verdict"] == "agrees" for v in record["verdicts"]):
            wrong.append("wrong job: agrees")
        if getattr(self, "faulty", None):
            name, text = self.faulty
            faulty = self.folder / "faulty"
            faulty.mkdir()
            (faulty / path.name).write_text(text)
            record["fault"] |= self.check(faulty / path.name, name, files)
            if record["fault"]["verdict"] in ("agrees", "failed"):
                wrong.append(f"fault: {record['fault']['verdict']}")
        if wrong:
            record["wrong verdicts"] = wrong
            (self.folder / "record.json").write_text(json.dumps(record, indent=1))

    def check(self, log, name, files):
        code, out, errors = self.program.run("check", log, "--compile", name, *files, "--format", "json")
        try:
            said = json.loads(out)
            words = {"pass": "agrees", "fail": "differs", "not possible": "not possible"}
            verdict = {"compile": name, "verdict": words[said["verdict"]], "exit": code}
            if said.get("reason"):
                verdict["reason"] = said["reason"]
            faults = [claim["sentence"] for claim in said["claims"] if claim["severity"] == "fault"]
            if faults:
                verdict["findings"] = faults[:4]
            if {"pass": 0, "fail": 1, "not possible": 2}[said["verdict"]] != code:
                verdict["verdict"] = "failed"
            return verdict
        except ValueError:
            said = (errors.strip() or out.strip()).splitlines()
            ended = code == 2 and said
            return {
                "compile": name,
                "verdict": "not possible" if ended else "failed",
                "exit": code,
                "reason": said[-1][-300:] if said else "no word",
            }
