"""More steps that are drawn: modes, kinds of tensors and parts of PyTorch that loops use now and then."""

import copy
import io

import torch
import torch.nn.utils.prune
from kinds import classified, layers, simple, words
from loop import F, Loop, optimizer_of, updates
from torch import nn


def forward_mode(draw):
    """A directional derivative in the loss, forwards and then backwards."""

    def loss(model):
        x, v = torch.randn(4, 6), torch.randn(4, 6)
        with torch.autograd.forward_ad.dual_level():
            out = model(torch.autograd.forward_ad.make_dual(x, v))
            slope = torch.autograd.forward_ad.unpack_dual(out).tangent
        return F.cross_entropy(out, words()) + slope.square().mean()

    return simple(draw, nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), loss)


def curvature(draw):
    """A Hessian times a vector, and a Hessian."""

    def loss(model):
        x = torch.randn(6)
        _, product = torch.autograd.functional.hvp(lambda x: model(x).sum(), x, torch.ones(6), create_graph=True)
        whole = torch.autograd.functional.hessian(lambda x: model(x).square().sum(), x, create_graph=True)
        return product.square().mean() + whole.diagonal().sum()

    return simple(draw, nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), loss)


def compressed_rows(draw):
    """A graph network on a sparse adjacency."""
    model = nn.ModuleList([nn.Linear(6, 8), nn.Linear(8, 3)])
    adjacency = (torch.rand(4, 4) > 0.4).float()
    by_rows = draw.random() < 0.5
    adjacency = adjacency.to_sparse_csr() if by_rows else adjacency.to_sparse()

    def loss(model):
        h = torch.relu(torch.sparse.mm(adjacency, model[0](torch.randn(4, 6))))
        weights = torch.sparse.softmax(adjacency, 1) if not by_rows else adjacency
        return F.cross_entropy(torch.sparse.mm(weights, model[1](h)), words())

    return simple(draw, model, loss, rows=by_rows)


@torch.library.custom_op("steps::scaled_tanh", mutates_args=())
def scaled_tanh(x: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.from_numpy((x.detach().numpy() * scale)).tanh()


@scaled_tanh.register_fake
def _(x, scale):
    return torch.empty_like(x)


def _kept(ctx, inputs, output):
    ctx.save_for_backward(output)
    ctx.scale = inputs[1]


def _slope(ctx, gradient):
    (out,) = ctx.saved_tensors
    return gradient * (1 - out * out) * ctx.scale, None


scaled_tanh.register_autograd(_slope, setup_context=_kept)


def own_op(draw):
    """An op of a library, whose kernel is numpy's."""
    return simple(draw, layers(draw), lambda model: classified(lambda x: model(scaled_tanh(model[0](x) @ model[0].weight, 0.7))))


def scripted(draw):
    """TorchScript."""
    model = layers(draw)
    script = torch.jit.script(model) if draw.random() < 0.5 else torch.jit.trace(model, torch.randn(4, 6))
    return simple(draw, model, lambda _: classified(script))


def branches(draw):
    """torch.cond, and a loop that runs as a higher-order op."""
    from torch._higher_order_ops.while_loop import while_loop

    def loss(model):
        x = torch.randn(4, 6)
        out = torch.cond(x.sum() > 0, lambda x: model(x).sin(), lambda x: model(x).cos(), (x,))
        with torch.no_grad():
            _, rest = while_loop(lambda n, y: n < 3, lambda n, y: (n + 1, y * 0.5), (torch.tensor(0), x))
        return F.cross_entropy(out, words()) + model(rest).square().mean()

    return simple(draw, layers(draw), loss)


class Tagged(torch.Tensor):
    """A tensor with a note, as data pipelines have them."""

    note = None


class Doubled(torch.Tensor):
    """A wrapper that adds up two tensors."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, requires_grad=a.requires_grad)

    def __init__(self, a, b):
        self.a, self.b = a, b

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        plain = torch.utils._pytree.tree_map(lambda x: x.a + x.b if isinstance(x, Doubled) else x, (args, kwargs or {}))
        return function(*plain[0], **plain[1])


def subclasses(draw):
    model = layers(draw)

    def loss(model):
        x = torch.randn(4, 6).as_subclass(Tagged)
        two = Doubled(torch.randn(4, 6), torch.randn(4, 6))
        return F.cross_entropy(model(x).as_subclass(torch.Tensor), words()) + model(two * 1).square().mean()

    return simple(draw, model, loss)


def watched(draw):
    """Anomaly mode, and hooks on several gradients."""
    model = layers(draw)
    seen = []

    def loss(model):
        handle = torch.autograd.graph.register_multi_grad_hook(
            tuple(model.parameters()), lambda gradients: seen.append(sum(g.norm() for g in gradients if g is not None))
        )
        with torch.autograd.detect_anomaly(check_nan=True):
            value = classified(model)
        return value + 0 * (seen[-1].item() if seen else 0) if handle else value

    return simple(draw, model, loss)


def evaluated(draw):
    """Evaluates, saves, loads and copies in the middle of the loop."""
    model = nn.Sequential(layers(draw, 6, 6), nn.BatchNorm1d(6), nn.Dropout(0.2), nn.Linear(6, 3))
    best = {}

    def loss(model):
        model.eval()
        with torch.inference_mode():
            score = classified(model).item()
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        model.load_state_dict(torch.load(file))
        if score < best.get("score", 1e9):
            best.update(score=score, model=copy.deepcopy(model))
        model.train()
        return classified(model) + best["model"](torch.randn(4, 6)).mean().detach()

    return simple(draw, model, loss)


def swapped(draw):
    """Averaged weights take the place of the others for a while, by `.data`; a flat buffer holds all gradients."""
    model = layers(draw)
    average = [p.detach().clone() for p in model.parameters()]
    flat = torch.zeros(sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(number):
        at = 0
        flat.zero_()
        for p in model.parameters():
            p.grad = flat[at : at + p.numel()].view_as(p)
            at += p.numel()
        loss = classified(model)
        loss.backward()
        flat.mul_(flat.norm().clamp(min=1).reciprocal())
        optimizer.step()
        for p, kept in zip(model.parameters(), average):
            kept.lerp_(p.detach(), 0.2)
            p.data, kept.data = kept.data.clone(), p.data.clone()
        score = classified(model).item()
        for p, kept in zip(model.parameters(), average):
            p.data.copy_(kept)
        return loss.item(), score

    return Loop(model, [optimizer], updates(step), {"optimizer": "SGD on one buffer of gradients"})


def overflowing(draw):
    """float16 whose gradients overflow at first: the scaler leaves updates out."""
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer, name = optimizer_of(draw, model.parameters(), draw.choice(("foreach", "fused")), ("Adam", "AdamW", "SGD"))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=2)

    def step(number):
        for _ in range(3):
            with torch.autocast("cpu", torch.float16):
                loss = classified(model) * 50
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=draw.random() < 0.5)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        return loss.item(), scaler.get_scale()

    return Loop(model, [optimizer], updates(step), {"optimizer": name})


def reshaped_weights(draw):
    """Orthogonal and pruned weights, tied ones, and a layer that is frozen."""
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, 3))
    nn.utils.parametrizations.orthogonal(model[0])
    nn.utils.prune.l1_unstructured(model[2], "weight", 0.4)
    model[4].weight = model[2].weight_orig
    model[5].bias.requires_grad_(False)
    return simple(draw, model, classified)


def rounded(draw):
    """bfloat16 weights that are rounded by chance, through views of their bits."""
    model = layers(draw).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(number):
        loss = F.cross_entropy(model(torch.randn(4, 6, dtype=torch.bfloat16)).float(), words())
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                wide = p.float() - 0.1 * p.grad.float()
                bits = wide.view(torch.int32) + torch.randint(0, 1 << 16, p.shape, dtype=torch.int32)
                p.copy_((bits & -65536).view(torch.float32))
                p.grad.zero_()
        optimizer.step()
        return loss.item()

    return Loop(model, [optimizer], updates(step, [optimizer]), {"optimizer": "rounding by chance"})


def lazy(draw):
    """Modules that learn their sizes in the first step."""
    model = nn.Sequential(nn.LazyConv1d(4, 3), nn.LazyBatchNorm1d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
    model(torch.randn(2, 2, 6))
    return simple(draw, model, lambda model: F.cross_entropy(model(torch.randn(4, 2, 6)), words()))


def fetched(draw):
    """A data loader with a process of its own, and a loss on named outputs."""
    data = torch.utils.data.TensorDataset(torch.randn(64, 6), torch.randint(0, 3, (64,)))
    there = []

    def loss(model):
        if not there:
            there.append(iter(torch.utils.data.DataLoader(data, 4, shuffle=True, num_workers=1)))
        x, y = next(there[0])
        return F.multi_margin_loss(model(x), y) + F.huber_loss(model(x), F.one_hot(y, 3).float())

    return simple(draw, layers(draw), loss)


MORE = {
    "forward mode": forward_mode, "curvature": curvature, "sparse adjacency": compressed_rows, "op of a library": own_op,
    "TorchScript": scripted, "torch.cond": branches, "subclasses": subclasses,
    "anomaly mode": watched, "evaluation and copies": evaluated, "swapped weights": swapped, "overflow": overflowing,
    "parametrized weights": reshaped_weights, "rounding by chance": rounded, "lazy modules": lazy, "data loader": fetched,
}  # fmt: skip
