"""A small training step, recorded for the tests: two layers, a checkpointed block, dropout, a hook, clipping, AdamW."""
import sys

import torch
from torch.utils.checkpoint import checkpoint

import retrograd


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.block, self.last = torch.nn.Linear(4, 6), torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        h = torch.relu(self.first(x))
        h = checkpoint(lambda one: torch.dropout(torch.tanh(self.block(one)), 0.5, True), h, use_reentrant=False)
        return self.last(h)


def step(model, optimizer, x, y):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss


torch.manual_seed(1)
model = Net()
model.last.weight.register_hook(lambda gradient: gradient * 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scale = float(sys.argv[2])
with retrograd.record(sys.argv[1], model=model, optimizer=optimizer):
    for _ in range(2):
        step(model, optimizer, torch.randn(5, 4) * scale, torch.randint(0, 3, (5,)))
