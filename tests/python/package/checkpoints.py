"""K3: training steps around checkpoints: right ones of each kind, and ones whose recomputation is not their forward."""
import torch
import torch.nn.functional as F
from opinion_programs import Cube
from support import retrograd, told
from torch import nn
from torch.utils.checkpoint import checkpoint


class Rms(torch.autograd.Function):
    """Several ops, one of whose intermediate results it keeps."""

    @staticmethod
    def forward(ctx, x):
        r = x.square().mean(-1, keepdim=True).add(1e-5).rsqrt()
        ctx.save_for_backward(x, r)
        return x * r

    @staticmethod
    def backward(ctx, gradient):
        x, r = ctx.saved_tensors
        return gradient * r - x * r.pow(3) * (gradient * x).mean(-1, keepdim=True)


class Net(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.block = block
        self.first, self.inner, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.w, self.norm, self.drop = nn.Parameter(torch.randn(8, 8) * 0.3), nn.LayerNorm(8), nn.Dropout(0.3)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        self.recurrent, self.gated = nn.LSTM(8, 8, batch_first=True), nn.GRU(8, 8, batch_first=True)
        self.calls, self.cache = 0, torch.rand(8) + 1

    def forward(self, x):
        h = torch.tanh(self.first(x))
        return self.last(self.block(self, h)), self.cache.zero_()


def once(run, *inputs, reentrant=True, **options):
    return checkpoint(run, *inputs, use_reentrant=reentrant, **options)


def several(net, h):
    a, b, c = once(lambda z: (net.inner(z), z @ net.w, z.sum(1)), h)
    return a * torch.sigmoid(b) + c[:, None]


def written(net, z):
    q = net.inner(z).clone()
    q[:, :2] *= 2
    return q.relu_() + z


def nested(net, h, outer=True, inner=True):
    return once(lambda z: z + once(lambda q: F.gelu(net.inner(net.norm(q))) @ net.w, torch.sin(z), reentrant=inner), h, reentrant=outer)


def views(net, h):
    return once(lambda z: (net.norm(z).transpose(1, 2).reshape(4, 8, 5).unflatten(1, (2, 4)).permute(0, 3, 1, 2).flatten(2) @ net.w).view(4, 5, 8), h)


def cast(run, h, dtype=torch.float16):
    with torch.autocast("cpu", dtype):
        return once(run, h).float()


RIGHT = {
    "matmul": lambda net, h: once(lambda z: z + torch.relu(z @ net.w), h),
    "attention": lambda net, h: once(lambda z: z + F.scaled_dot_product_attention(net.inner(z), z, z, is_causal=True), h),
    "multihead attention": lambda net, h: once(lambda z: z + net.attention(z, z, z, need_weights=False)[0], h),
    "an encoder's fast path": lambda net, h: once(net.encoder, h),
    "lstm": lambda net, h: once(lambda z: net.recurrent(z)[0] + z, h),
    "einsum": lambda net, h: once(lambda z: torch.einsum("bti,ij->btj", z, net.w) + torch.einsum("bti,bsi->bts", z, z) @ z, h),
    "nested": nested,
    "nested, outer without reentry": lambda net, h: nested(net, h, outer=False),
    "nested, inner without reentry": lambda net, h: nested(net, h, inner=False),
    "several outputs": several,
    "several inputs": lambda net, h: once(lambda a, b: a * net.inner(b) + b @ net.w, h, torch.sin(h)),
    "views": views,
    "a custom function": lambda net, h: once(lambda z: 0.5 * Cube.apply(net.inner(z)) + z, h),
    "in place": lambda net, h: once(lambda z: written(net, z), h),
    "captured": lambda net, h: (lambda g: once(lambda z: z * net.norm(z) + z @ net.w, g) + h)(net.inner(h)),
    "dropout": lambda net, h: once(lambda z: net.drop(net.inner(z)) + z, h),
    "one after another": lambda net, h: once(lambda z: z + F.gelu(net.inner(z)), once(lambda z: z + F.gelu(net.inner(z)), h)),
    "a custom function of several ops, without reentry": lambda net, h: once(lambda z: Rms.apply(net.inner(z)) + z, h, reentrant=False),
    "in place on what autograd keeps, without reentry": lambda net, h: once(lambda z: net.gated(z)[0] + z, h, reentrant=False),
    "one cast where the forward makes two": lambda net, h: cast(lambda z: F.silu(net.inner(z)) * net.first(z), h),
    "lstm in half precision": lambda net, h: cast(lambda z: net.recurrent(z.half())[0], h),
    "lstm in bfloat16": lambda net, h: cast(lambda z: net.recurrent(z)[0], h, torch.bfloat16),
    "without reentry": lambda net, h: once(lambda z: net.drop(F.gelu(net.inner(z))) @ net.w, h, reentrant=False),
}


def branch(net, z):
    net.calls += 1
    return (torch.sigmoid if net.calls % 2 else torch.tanh)(net.inner(z)) * z


def leaves_out(net, z):
    net.calls += 1
    q = net.inner(z)
    return torch.tanh(q * 1.5 if net.calls % 2 else q) * z


WRONG = {  # what is said of it
    "other random numbers": (lambda net, h, reentrant: once(lambda z: net.drop(net.inner(z)) + z, h, reentrant=reentrant, preserve_rng_state=False),
                             "recomputes aten.bernoulli_.float with other random numbers", "checkpoints.py:"),
    "another branch": (lambda net, h, reentrant: once(lambda z: branch(net, z), h, reentrant=reentrant),
                       "the forward ran aten.sigmoid.default (checkpoints.py:", "the recomputation aten.tanh.default (checkpoints.py:"),
    "a value cleared in between": (lambda net, h, reentrant: once(lambda z: torch.tanh(net.inner(z) * net.cache) + z, h, reentrant=reentrant),
                                   "from another value than its forward read, because aten.zero_.default (checkpoints.py:"),
    "an op left out": (lambda net, h, reentrant: once(lambda z: leaves_out(net, z), h, reentrant=True), "the forward ran aten.mul.Tensor (checkpoints.py:"),
}


def record(path, block):
    torch.manual_seed(0)
    net = Net(block)
    x, y = torch.randn(4, 5, 8), torch.randint(0, 3, (4, 5))

    def step():
        net.cache.fill_(1.5)
        F.cross_entropy(net(x)[0].flatten(0, 1), y.flatten()).backward()

    step()
    used = [p for p in net.parameters() if p.grad is not None]
    optimizer = torch.optim.SGD(used, 0.1)
    optimizer.zero_grad()
    net.calls = 0
    with told():
        retrograd.record(path, lambda: (step(), optimizer.step()), model=net, optimizer=optimizer)
