"""Makes a file like mlp.pt2: three linear layers, ready to be opened in Retrograd. Needs PyTorch 2.9 or later."""
import torch
import torch.nn.functional as F


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = torch.nn.Linear(8, 16)
        self.l2 = torch.nn.Linear(16, 16)
        self.l3 = torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.l3(torch.tanh(self.l2(F.relu(self.l1(x)))))


if __name__ == "__main__":
    torch.manual_seed(1234)
    program = torch.export.export(MLP(), (torch.randn(4, 8),))
    torch.export.save(program, "mlp.pt2")
