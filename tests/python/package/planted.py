import torch, retrograd

class Net(torch.nn.Sequential):
    def forward(self, x):
        h = self[0](x)
        size = h.square().sum(1, keepdim=True).sqrt()
        return self[1](torch.dropout(h / (1 + size), 0.2, self.training))

model = Net(torch.nn.Linear(6, 16, bias=False), torch.nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters())
with retrograd.catch(model, optimizer) as c:
    for step in range(10):
        x, y = torch.randn(4, 6), torch.randint(3, (4,))
        x[2] *= step != 7  # the fault: a row of zeros. The loss stays finite; the derivative of sqrt at 0 does not
        optimizer.zero_grad()
        c.loss(torch.nn.functional.cross_entropy, model(x), y).backward()
        optimizer.step()
