"""The same step twice under PyTorch's DebugMode: in eager mode, and compiled by a backend whose pass replaces gelu by its approximation."""
import torch
import torch.nn as nn
from torch.utils._debug_mode import DebugMode


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


def faster(graph, inputs):
    for node in graph.graph.nodes:
        if node.target is torch._C._nn.gelu:
            node.kwargs = {"approximate": "tanh"}
    graph.recompile()
    return graph


def record(model, path):
    with DebugMode(record_stack_trace=True, record_ids=True) as mode, DebugMode.log_tensor_hashes(hash_fn="norm"):
        model(x).square().mean().backward()
    DebugMode.save_logs(mode.logs, path)


torch.manual_seed(0)
model = nn.Sequential(Block(), Block())
x = torch.randn(4, 8)
record(model, "eager.json")
record(torch.compile(model, backend=faster), "compiled.json")
