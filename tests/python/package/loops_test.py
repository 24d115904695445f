"""retrograd.catch in loops of others: transformers' Trainer, a notebook, two processes of DistributedDataParallel and of fully_shard."""
import json
import os
import subprocess
import sys
from pathlib import Path

from support import InFolder, PROGRAM, retrograd, told, torch, unittest

HERE = Path(__file__).resolve().parent


def in_processes(script, folder, count=2):
    """Runs a script as ranks of one job over gloo."""
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", WORLD_SIZE=str(count), OMP_NUM_THREADS="1",
                       PYTHONPATH=os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])))
    store = folder / "store"
    ranks = [subprocess.Popen([sys.executable, "-c", script, str(store)], cwd=folder, env=dict(environment, RANK=str(rank)), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) for rank in range(count)]
    texts = [rank.communicate(timeout=300)[0] for rank in ranks]
    return [rank.returncode for rank in ranks], "\n".join(texts)


START = """
import os, sys, torch, torch.distributed as dist, retrograd
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
torch.manual_seed(0)
from support import Net
F = torch.nn.functional
"""

DDP = START + """
model = torch.nn.parallel.DistributedDataParallel(Net(bad=7 if rank == 1 else None))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(rank)
with retrograd.catch(model, optimizer) as c:
    for step in range(9):
        optimizer.zero_grad()
        c.loss(F.cross_entropy, model(torch.randn(4, 6)), torch.randint(0, 3, (4,))).backward()
        optimizer.step()
dist.barrier()
"""

ACCUMULATED = START + """
import contextlib

class Distance(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 8)

    def forward(self, u, v):
        return (self.a(u) - self.a(v)).pow(2).sum(1).sqrt()

model = torch.nn.parallel.DistributedDataParallel(Distance())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(rank)
with retrograd.catch(model, optimizer):
    for step in range(3):
        optimizer.zero_grad()
        for micro in range(2):
            u, v = torch.randn(6, 4), torch.randn(6, 4)
            if step == 1 and rank == 1 and micro == 0:
                v[3] = u[3]  # the square root of 0 has an infinite gradient
            with model.no_sync() if micro == 0 else contextlib.nullcontext():
                (model(u, v).mean() / 2).backward()
        optimizer.step()
dist.barrier()
"""

FSDP2 = START + """
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 4))
whole = {name: p.detach().clone() for name, p in model.named_parameters()}
fully_shard(model[2], mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
torch.manual_seed(rank)
with retrograd.catch(model, optimizer) as c:
    for step in range(4):
        optimizer.zero_grad()
        x = torch.randn(4, 6) * (float("nan") if step == 2 and rank == 1 else 1)
        model(x).square().mean().backward()
        optimizer.step()
saved = torch.export.load(c.folder.path / "step" / "model.pt2").state_dict
assert saved.keys() == whole.keys(), saved.keys()
assert all(torch.equal(saved[name], whole[name]) for name in whole)
dist.barrier()
"""


class Ranks(InFolder):
    def test_ranks_of_ddp_write_apart(self):
        codes, text = in_processes(DDP, self.folder)
        self.assertEqual(codes, [0, 0], text)
        folders = {path.name: json.loads((path / "retrograd.json").read_text()) for path in (self.folder / "retrograd-catch").iterdir()}
        self.assertEqual(sorted(folders), ["step7-rank0", "step7-rank1"], text)
        self.assertEqual({name: one["failure"]["kind"] for name, one in folders.items()}, {"step7-rank0": "nan_gradient", "step7-rank1": "nan_loss"})
        self.assertEqual([one["ranks"] for one in folders.values()], [2, 2])
        self.assertIn("aten.log.default", self.walk(retrograd.Folder(self.folder / "retrograd-catch" / "step7-rank1")))

    def test_a_rank_knows_whether_it_made_the_nan(self):
        codes, text = in_processes(ACCUMULATED, self.folder)
        self.assertEqual(codes, [0, 0], text)
        own = next(line for line in text.splitlines() if "rank 1 of 2" in line)
        other = next(line for line in text.splitlines() if "rank 0 of 2" in line)
        self.assertRegex(own, r"step 1, microbatch 0, rank 1 of 2: the gradient of a.weight.* has a NaN or Inf; it was made on this rank, whose loss is finite")
        self.assertRegex(other, r"step 1, microbatch 1, rank 0 of 2: .*; it was made on another rank, since this rank's loss \(.*\) and gradients are finite: look at the other ranks")
        self.assertEqual(sorted(path.name for path in (self.folder / "retrograd-catch").iterdir()), ["step1-rank0", "step1-rank1"])
        self.assertNotIn("Cannot be replayed", text)

    def test_fsdp2_gathers_the_weights(self):
        codes, text = in_processes(FSDP2, self.folder)
        self.assertEqual(codes, [0, 0], text)
        self.assertEqual(sorted(path.name for path in (self.folder / "retrograd-catch").iterdir()), ["step2-rank0", "step2-rank1"])


class Loops(InFolder):
    def test_trainer_of_transformers(self):
        os.environ["HF_HUB_OFFLINE"] = "1"
        from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
        from transformers.trainer_callback import TrainerCallback

        model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2))

        class Spoil(TrainerCallback):
            def on_substep_end(self, args, state, control, **kwargs):
                if state.global_step == 7:
                    with torch.no_grad():
                        model.transformer.h[1].ln_1.weight[3] = float("inf")

        rows = [{"input_ids": torch.randint(0, 50, (12,)), "labels": torch.randint(0, 50, (12,))} for _ in range(40)]
        arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=2, gradient_accumulation_steps=2, max_steps=9, report_to=[], use_cpu=True, save_strategy="no", logging_steps=1000,
                                      disable_tqdm=True)
        trainer = Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[Spoil()])
        with told() as text, retrograd.catch(model) as c:
            trainer.train()
        manifest = c.folder.manifest
        self.assertEqual((manifest["step"], manifest["microbatch"], manifest["failure"]["kind"]), (7, 1, "nan_loss"))
        self.assertIn("step 7, microbatch 1: the loss is nan", text.getvalue())
        self.assertEqual(manifest["numbers"]["loss_again"], "nan")
        self.assertIn("layer_norm", self.walk(c.folder))

    def test_notebook(self):
        try:
            import nbclient, nbformat
        except ImportError:
            self.skipTest("nbclient is not installed")
        notebook = nbformat.read(HERE / "loop.ipynb", as_version=4)
        nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(self.folder)}}).execute()
        self.assertTrue((self.folder / "retrograd-catch" / "step3" / "retrograd.json").is_file())
        printed = "".join(output.get("text", "") for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
        self.assertIn("retrograd retrograd-catch/step3", printed)


if __name__ == "__main__":
    unittest.main()
