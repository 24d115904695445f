"""A training script with a bug: after some steps every gradient is NaN, though the loss is finite.

    python twins.py             # PyTorch 2.9 or later; stops at the bad step and writes twins.pt2
    python twins.py --mended    # trains to the end with the bug mended and writes twins_mended.pt2

The model learns to place two views of one thing close together and two different things apart.
docs/tutorials/nan.md hunts the bug from twins.pt2 to the line.
"""
import sys

import torch
import torch.nn.functional as F
from torch import nn


class Distance(nn.Module):
    def __init__(self, mended):
        super().__init__()
        self.mended = mended

    def forward(self, a, b):
        squared = ((a - b) ** 2).sum(dim=1)
        if self.mended:
            return torch.sqrt(squared.clamp(min=1e-12))
        return torch.sqrt(squared)


class Twins(nn.Module):
    def __init__(self, mended=False):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
        self.distance = Distance(mended)

    def forward(self, left, right, same):
        distance = self.distance(self.encoder(left), self.encoder(right))
        near = distance ** 2
        far = F.relu(1 - distance) ** 2
        return torch.where(same, near, far).mean()


def batches(count, size=4):
    for step in range(count):
        left = torch.randn(size, 16)
        right = left + 0.1 * torch.randn(size, 16)
        same = torch.rand(size) < 0.5
        right[~same] = torch.randn(int((~same).sum()), 16)
        if step == 6:  # the data set holds one picture twice
            right[2], same[2] = left[2], True
        yield step, (left, right, same)


def main():
    torch.manual_seed(1)
    mended = "--mended" in sys.argv
    model = Twins(mended)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in batches(10):
        loss = model(*batch)
        optimizer.zero_grad()
        loss.backward()
        finite = all(p.grad.isfinite().all() for p in model.parameters())
        print(f"step {step}: loss {loss.item():.4f}{'' if finite else ', a gradient is NaN'}")
        if step == 6:  # the model and the batch of this step, before the optimizer changes the weights
            torch.export.save(torch.export.export(model, batch), "twins_mended.pt2" if mended else "twins.pt2")
        if not finite:
            sys.exit(1)
        optimizer.step()


if __name__ == "__main__":
    main()
