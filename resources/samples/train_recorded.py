"""One update of a small model, recorded. A row of the batch makes every unit 0, so that its standard deviation is 0."""
import torch

import retrograd


class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 6)
        self.last = torch.nn.Linear(6, 3)

    def forward(self, x):
        h = torch.tanh(self.first(x))
        spread = h.var(dim=1, keepdim=True).sqrt()
        return self.last((h - h.mean(dim=1, keepdim=True)) / (spread + 1e-5))


torch.manual_seed(4)
model = Scorer()
torch.nn.init.zeros_(model.first.bias)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
batches = [(torch.randn(3, 4), torch.randint(0, 3, (3,))) for _ in range(2)]
batches[1][0][2] = 0

with retrograd.record("recorded", model=model, optimizer=optimizer):
    for x, y in batches:
        loss = torch.nn.functional.cross_entropy(model(x), y) / len(batches)
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print("loss", loss.item(), "first weight", model.first.weight[0, 0].item())
