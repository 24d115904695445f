"""Two updates of a small attention model, as two commits have it: train_commits.py before|after writes a recording of this name."""
import sys

import torch

import retrograd

COMMIT = sys.argv[1]


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(8), torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        if COMMIT == "before":
            scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        else:
            scores = q @ k.transpose(1, 2) / q.shape[1] ** 0.5  # the length, not the width
        return x + self.out(torch.softmax(scores, -1) @ v)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.blocks = torch.nn.Embedding(12, 8), torch.nn.ModuleList([Attention(), Attention()])
        self.head = torch.nn.Linear(8, 12)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), 0.5)
ids = torch.randint(0, 12, (4, 6))
with retrograd.record(COMMIT, model=model, optimizer=optimizer):
    for step in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")
