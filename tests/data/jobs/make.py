"""make.py FOLDER NAME BACKEND: compiles one of the functions below with TORCH_TRACE, runs it and its backward, and compares with eager PyTorch.

The logs here are what was left, without records that a second opinion does not read (`pack`). `budget` and `seeds` are after
public bug reports: a small block under an activation memory budget of 0, and a checkpointed dropout compiled by Inductor.
`lostcast` has a pass of its own that takes a cast to bfloat16 and back for nothing.
"""

import json
import os
import sys

folder, name, backend = sys.argv[1:4]
os.environ["TORCH_TRACE"] = folder

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch._higher_order_ops import map as map_, scan  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

torch._dynamo.config.trace_autograd_ops = True
torch.manual_seed(3)


class STE(torch.autograd.Function):
    @staticmethod
    def forward(c, x):
        return x.round()

    @staticmethod
    def backward(c, g):
        return g


class Step(torch.autograd.Function):
    @staticmethod
    def forward(c, x):
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(c, g):
        return g * 0.5


def stepped(x, w, b):  # aot_eager: no op of the forward passes a gradient on
    return Step.apply(x @ w + b).sum()


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(c, x):
        noise = torch.rand_like(x)
        c.save_for_backward(noise)
        return x * noise

    @staticmethod
    def backward(c, g):
        return g * c.saved_tensors[0]


def drawdouble(x, w, b):  # inductor draws in float32 what the joint graph draws in float64
    return (Noisy.apply((x @ w).double()) * b).square().sum()


def nograd(x, w, b):  # aot_eager_decomp_partition
    h = torch.tanh(x @ w)
    with torch.no_grad():
        s = h.abs().amax()
    return (h / s + b).square().sum()


def both(x, w, b):  # aot_eager: one line with and without no_grad
    def f(t):
        return torch.sin(t)

    h = f(x @ w)
    with torch.no_grad():
        g = f(h)
    return (f(h * g) + b).square().sum()


def detach(x, w, b):  # aot_eager_decomp_partition: detach is an alias there
    h = torch.tanh(x @ w)
    return (h * h.detach() + b).exp().detach().mul(h).sum()


def nogradwrite(x, w, b):  # aot_eager
    h = x @ w
    with torch.no_grad():
        h.mul_(2)
    return (h + b).square().sum()


def ste(x, w, b):  # aot_eager
    return (STE.apply(x @ w * 3) * b).square().sum()


def innergrad(x, w, b):  # aot_eager
    e = (torch.tanh(x @ w) + b).exp().sum()
    g = torch.autograd.grad(e, x, create_graph=True)[0]
    return g.square().sum() + e


def gumbel(x, w, b):  # aot_eager: a torch function that detaches within
    return (F.gumbel_softmax(x @ w, hard=True) * b).square().sum()


def ckdrop(x, w, b):  # aot_eager
    def f(t):
        return F.dropout(torch.tanh(t @ w), 0.5)

    return checkpoint(lambda t: f(t).cos(), x, use_reentrant=False).add(b).square().sum()


def ck2(x, w, b):  # aot_eager_decomp_partition
    h = checkpoint(lambda t: (t + torch.rand_like(t)).sin(), x @ w, use_reentrant=False)
    h = checkpoint(lambda t: F.dropout(t.tanh() + torch.randn(6), 0.3), h, use_reentrant=False)
    return (h * b).sum()


def ckdynamic(x, w, b):  # aot_eager, with sizes that are symbols
    f = checkpoint(lambda t: F.dropout(torch.tanh(t @ w), 0.5).cos(), x, use_reentrant=False)
    return f.add(b).square().sum()


def drawdetach(x, w, b):  # inductor: its forward graph has neither the detach nor the joint graph's ops that draw
    h = torch.tanh(x @ w)
    return (F.dropout(h, 0.5) * h.detach() + b).square().sum()


def scanned(x, w, b):  # aot_eager
    def step(carry, u):
        carry = torch.tanh(carry * b + u @ w)
        return carry, carry.clone()

    last, each = scan(step, torch.zeros(6), x, dim=0)
    return each.square().sum() + last.sum()


def mapped(x, w, b):  # aot_eager
    return map_(lambda u, w, b: torch.tanh(u @ w) * b, x, w, b).square().sum()


def jagged(x, w, b):  # aot_eager: values() of a jagged tensor detaches within
    nested = torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 1, 4]))
    return F.silu(F.linear(nested, w.t(), b)).values().square().sum()


def tworesults(x, w, b):  # aot_eager: PyTorch describes no output of a forward whose draws are repeated
    h = checkpoint(lambda t: F.dropout(torch.tanh(t @ w), 0.5).cos(), x, use_reentrant=False)
    return (h * b).square().sum(), h.detach().sum()


def datapart(x, w, b):  # aot_eager_decomp_partition: a write into `.data` that is a scatter
    h = x @ w
    h.data[0] = 0.25
    return (h * b).square().sum()


def normzero(x, w, b):  # aot_eager_decomp_partition: the norm of zeros, whose decomposed ops have no derivative
    h = torch.tanh(x @ w)
    return ((torch.dist(h, h) + 1) * h * b).square().sum()


def zeroed(x, w, b):  # aot_eager_decomp_partition: zero_() passes on zeros, and the decomposed ops nothing
    h = x @ w
    h.zero_()
    return (h * x.sum() + b).square().sum()


def detachinplace(x, w, b):  # aot_eager: the ATen graphs have no node for it
    h = x @ w
    h.detach_()
    return (h * b + torch.tanh(x @ w)).square().sum()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.sin(x)

    @staticmethod
    def setup_context(c, inputs, output):
        c.save_for_backward(*inputs)

    @staticmethod
    def backward(c, g):
        return g * 0.5 * c.saved_tensors[0]


def innerown(x, w, b):  # aot_eager: wrong in PyTorch 2.15, whose second derivative takes the own backward for a constant
    inner = torch.func.grad(lambda t: Scaled.apply(t @ w).sum())(x)
    return inner.square().sum() + (x @ w + b).sum()


def nanmask(x, w, b):  # aot_eager: a row that is masked as a whole, whose NaN the forward hides and the backward does not
    hidden = (torch.arange(4) == 0)[:, None]
    return ((x @ w + torch.where(hidden, float("-inf"), 0.0)).softmax(-1).nan_to_num(0) * b).square().sum()


def dropped(x, w, b):  # aot_eager: a draw that drops half of what there is
    keep = torch.bernoulli(torch.full((), 0.5))
    return (x @ w).sin().sum() * keep + b.square().sum()


def lostcast(x, w, b):
    h = torch.tanh(x @ w + b)
    h = h.bfloat16().float()
    return (h * h).sum()


def drops_casts(graph):
    cast = torch.ops.prims.convert_element_type.default
    for narrow in [node for node in graph.nodes if node.target is cast and node.args[1] is torch.bfloat16]:
        for wide in [node for node in narrow.users if node.target is cast and node.args[1] is torch.float32]:
            wide.replace_all_uses_with(narrow.args[0])
            graph.erase_node(wide)
        if not narrow.users:
            graph.erase_node(narrow)


def gradients(function):
    torch.manual_seed(7)
    leaves = [t.clone().requires_grad_() for t in (x, w, b)]
    result = function(*leaves)
    (result[0] if isinstance(result, tuple) else result).backward()
    return [t.grad for t in leaves]


def pack(log, out):
    """Keeps the graphs and the descriptions of inputs, without the place of this checkout."""
    place = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../..")) + "/"
    packages = os.path.dirname(os.path.dirname(torch.__file__)) + "/"
    graphs = ("dynamo_output_graph", "aot_joint_graph", "aot_forward_graph", "aot_backward_graph")
    passes = ("before_post_grad_graph", "inductor_post_grad_graph")
    lines, keeps = [], False
    with open(log) as file:
        for line in file:
            if not (line.startswith("V") and "{" in line):
                if keeps:
                    lines.append(line)
                continue
            record = json.loads(line[line.index("{") :])
            known = ("describe_tensor", "describe_source", "create_symbol", *graphs)
            kind = next((k for k in known if k in record), None)
            keeps = kind in graphs
            if name == "lostcast" and record.get("artifact", {}).get("name") in passes:
                kind, keeps = "artifact", True
            if kind is None:
                continue
            if kind == "describe_tensor":
                wanted = ("id", "describer_id", "dtype", "size", "requires_grad")
                record[kind] = {k: v for k, v in record[kind].items() if k in wanted}
            if kind == "create_symbol":
                record[kind] = {k: v for k, v in record[kind].items() if k in ("symbol", "val")}
            if keeps and kind in graphs:
                record[kind] = {}
            record = {k: v for k, v in record.items() if k not in ("stack", "has_payload")}
            if keeps:
                record["has_payload"] = ""
            lines.append("V1126 08:20:21.133000 77 a/b.py:18] " + json.dumps(record) + "\n")
    with open(out, "w") as file:
        file.writelines(line.replace(place, "/job/").replace(packages, "/python/") for line in lines)


x, w, b = torch.randn(4, 5), torch.randn(5, 6) / 2, torch.randn(6)
function, dynamic = globals()[name], name == "ckdynamic" or None
if name == "lostcast":
    torch._inductor.config.post_grad_custom_post_pass = drops_casts
    torch._inductor.config.emulate_precision_casts = True
compiled = gradients(torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic))
eager = gradients(function)
print(name, [float((a - c).abs().max()) for a, c in zip(eager, compiled)])
torch._logging.set_logs()
pack(os.path.join(folder, os.listdir(folder)[0]), name + ".log")
