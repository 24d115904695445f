"""Two updates of a small model with an activation whose backward somebody wrote: train_swish.py FOLDER [fixed]."""
import sys

import torch

import retrograd


class Swish(torch.autograd.Function):
    """x * sigmoid(x), which keeps x alone for the backward."""

    fixed = "fixed" in sys.argv

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        if Swish.fixed:
            return gradient * (s + x * s * (1 - s))
        return gradient * s


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.last(Swish.apply(self.first(x)))


torch.manual_seed(2)
torch.set_num_threads(1)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
with retrograd.record(sys.argv[1], model=model, optimizer=optimizer):
    for _ in range(2):
        x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
