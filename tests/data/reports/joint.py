"""joint.pt2 was exported with its backward: forward, loss and gradients are one graph. In joint_exchanged.pt2 the gradients of two weights have each other's name."""
import json
import zipfile

import torch
from torch.export.experimental import _export_forward_backward


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4)

    def forward(self, x):
        return (self.b(torch.tanh(self.a(x))) * x).sum()


torch.manual_seed(0)
program = _export_forward_backward(torch.export.export(M(), (torch.randn(3, 4),)), 0)
torch.export.save(program, "joint.pt2")

with zipfile.ZipFile("joint.pt2") as right, zipfile.ZipFile("joint_exchanged.pt2", "w") as wrong:
    for entry in right.infolist():
        content = right.read(entry)
        if entry.filename.endswith("model.json"):
            model = json.loads(content)
            for output in model["graph_module"]["signature"]["output_specs"]:
                gradient = output.get("gradient_to_parameter")
                if gradient and gradient["parameter_name"].endswith(".weight"):
                    gradient["parameter_name"] = {"a.weight": "b.weight", "b.weight": "a.weight"}[gradient["parameter_name"]]
            content = json.dumps(model).encode()
        wrong.writestr(entry.filename, content)
