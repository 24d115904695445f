import torch
class M(torch.nn.Module):
    def __init__(self): super().__init__(); self.a = torch.nn.Linear(4, 4); self.b = torch.nn.Linear(4, 4)
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            h = torch.relu(self.a(x))
            h = self.b(h)
        with torch.no_grad():
            s = h.float().abs().max() + 1
            s = s * 2
        return (h.float() / s).square().sum()
torch.manual_seed(0)
ep = torch.export.export(M(), (torch.randn(2, 4),))
print([str(n.target) for n in ep.graph.nodes if n.op == "call_function"])
torch.export.save(ep, "regions.pt2")
