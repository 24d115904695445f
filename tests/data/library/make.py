"""Writes custom_ops.pt2 and no_rule.pt2: models with the ops of my_ops.cpp. In this folder: python3 make.py libmyops.so (PyTorch 2.15)"""
import pathlib, sys, torch

torch.ops.load_library(sys.argv[1])
like = lambda x: torch.empty_like(x)
for name in ("cube", "no_rule", "doubled"):
    torch.library.register_fake(f"myops::{name}", like)
torch.library.register_fake("myops::clipped", lambda x, limit: (torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.limit = torch.nn.Parameter(torch.full((2, 3), 0.25))

    def forward(self, x):
        hidden = torch.ops.myops.swish(self.linear(x), 1.5)
        clipped, over = torch.ops.myops.clipped(hidden, self.limit)
        return torch.ops.myops.doubled(torch.ops.myops.cube(clipped)), over


class WithoutRule(torch.nn.Module):
    def forward(self, x):
        return torch.ops.myops.no_rule(x * 2)


torch.manual_seed(0)
here = pathlib.Path(__file__).parent
for name, model in (("custom_ops", Model()), ("no_rule", WithoutRule())):
    torch.export.save(torch.export.export(model, (torch.randn(2, 4),)), here / f"{name}.pt2")
