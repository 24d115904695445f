"""Steps that are not one model and one loss. Each function draws one and gives its loop."""

import copy

import torch
from loop import UPDATES, F, Loop, optimizer_of, schedule_of, updates
from torch import nn
from torch.utils.checkpoint import checkpoint


def words(count=3, size=4):
    return torch.randint(0, count, (size,))


def layers(draw, inside=6, outside=3, depth=2):
    width = draw.choice((8, 12, 16))
    activations = (nn.Tanh, nn.GELU, nn.SiLU, nn.ELU, nn.Softplus)
    body = []
    for _ in range(depth):
        body += [nn.Linear(inside, width), draw.choice(activations)()]
        inside = width
    return nn.Sequential(*body, nn.Linear(inside, outside))


def simple(draw, model, loss, how=None, **said):
    """Forward, loss, backward, perhaps clipping, update, schedule."""
    optimizer, name = optimizer_of(draw, model.parameters(), how)
    clipped, schedule = draw.random() < 0.5, schedule_of(draw, optimizer)

    def step(number):
        value = loss(model)
        value.backward()
        if clipped:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
        return value.item()

    return Loop(model, [optimizer], updates(step, [optimizer]), {"optimizer": name, **said})


def classified(model, inside=6):
    return F.cross_entropy(model(torch.randn(4, inside)), words())


def gan(draw):
    maker, judge = layers(draw, 5, 6), layers(draw, 6, 1)
    (first, a), (second, b) = optimizer_of(draw, judge.parameters()), optimizer_of(draw, maker.parameters())
    rounds = draw.choice((1, 2))

    def step(number):
        for _ in range(rounds):
            first.zero_grad()
            made = maker(torch.randn(4, 5)).detach()
            loss = F.softplus(judge(made)).mean() + F.softplus(-judge(torch.randn(4, 6))).mean()
            loss.backward()
            first.step()
        second.zero_grad()
        other = F.softplus(-judge(maker(torch.randn(4, 5)))).mean()
        other.backward()
        second.step()
        return loss.item(), other.item()

    return Loop(nn.ModuleList([maker, judge]), [first, second], updates(step), {"optimizer": f"{a}; {b}"})


def gradient_penalty(draw):
    judge = layers(draw, 6, 1)
    kept = draw.random() < 0.5

    def loss(model):
        x = torch.randn(4, 6, requires_grad=True)
        out = model(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True, retain_graph=kept or None)
        return -out.mean() + 10 * (slope.norm(2, dim=1) - 1).square().mean()

    return simple(draw, judge, loss)


class Routed(nn.Module):
    """Runs as many layers as its data says, each word through one expert."""

    def __init__(self, draw):
        super().__init__()
        self.experts = nn.ModuleList([layers(draw, 6, 6, 1) for _ in range(3)])
        self.gate, self.head = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x):
        for _ in range(4):
            weights = self.gate(x).softmax(-1)
            best = weights.argmax(-1)
            out = torch.zeros_like(x)
            for number, expert in enumerate(self.experts):
                rows = (best == number).nonzero().squeeze(1)
                if len(rows):
                    out.index_add_(0, rows, expert(x[rows]) * weights[rows, number, None])
            x = x + out
            if x.abs().max() > 3:
                break
        return self.head(x)


def data_dependent(draw):
    return simple(draw, Routed(draw), classified)


class Recurrent(nn.Module):
    def __init__(self, draw):
        super().__init__()
        kind = draw.choice((nn.LSTM, nn.LSTM, nn.GRU, nn.RNN))
        self.both, self.packed = draw.random() < 0.5, draw.random() < 0.5
        more = {"proj_size": 3} if kind is nn.LSTM and draw.random() < 0.3 else {}
        self.inner = kind(6, 5, 2, batch_first=True, dropout=0.2, bidirectional=self.both, **more)
        self.head = nn.Linear((3 if more else 5) * (1 + self.both), 3)

    def forward(self, x):
        x = x.unsqueeze(1).expand(-1, 4, -1).contiguous()
        if self.packed:
            x = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 3, 3, 1]), batch_first=True)
        out, _ = self.inner(x)
        if self.packed:
            out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return self.head(out[:, 0])


def recurrent(draw):
    model = Recurrent(draw)
    return simple(draw, model, classified, kind=type(model.inner).__name__, packed=model.packed)


class Unit(nn.Module):
    """A residual block of a U-Net, with a time embedding."""

    def __init__(self, inside, outside):
        super().__init__()
        self.norm, self.first = nn.GroupNorm(2, inside), nn.Conv2d(inside, outside, 3, padding=1)
        self.time, self.second = nn.Linear(8, outside), nn.Conv2d(outside, outside, 3, padding=1)
        self.drop = nn.Dropout(0.1)
        self.past = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x, t):
        h = self.first(F.silu(self.norm(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.past(x) + self.second(self.drop(F.silu(h)))


class UNet(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant
        self.enter, self.down, self.below = nn.Conv2d(3, 4, 3, padding=1), Unit(4, 8), Unit(8, 8)
        self.shrink = nn.Conv2d(8, 8, 3, 2, 1)
        self.look, self.up, self.leave = nn.MultiheadAttention(8, 2, batch_first=True), Unit(16, 4), nn.Conv2d(4, 3, 3, padding=1)

    def unit(self, unit, x, t):
        return unit(x, t) if self.reentrant is None else checkpoint(unit, x, t, use_reentrant=self.reentrant)

    def forward(self, x, t):
        angles = t[:, None] * torch.exp(-torch.arange(4))
        t = torch.cat([angles.sin(), angles.cos()], 1)
        a = self.unit(self.down, self.enter(x), t)
        b = self.unit(self.below, self.shrink(a), t)
        rows = b.flatten(2).transpose(1, 2)
        b = b + self.look(rows, rows, rows, need_weights=False)[0].transpose(1, 2).reshape(b.shape)
        b = F.interpolate(b, scale_factor=2, mode="nearest")
        return self.leave(self.unit(self.up, torch.cat([a, b], 1), t))


def diffusion(draw):
    reentrant = draw.choice((None, True, False))
    model = UNet(reentrant)
    if draw.random() < 0.5:
        model.to(memory_format=torch.channels_last)
    in_bfloat16 = draw.random() < 0.5
    averaged = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))

    def loss(model):
        x, noise, t = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8), torch.rand(2)
        kept = t.mul(torch.pi / 2).cos()[:, None, None, None]
        with torch.autocast("cpu", torch.bfloat16, enabled=in_bfloat16):
            made = model(kept * x + (1 - kept**2).sqrt() * noise, t * 100)
        value = F.mse_loss(made.float(), noise)
        averaged.update_parameters(model)
        return value

    return simple(draw, model, loss, checkpointing=str(reentrant), autocast=in_bfloat16)


class Table(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 6, sparse=True, mode=mode)
        self.table, self.head = nn.Embedding(20, 6, sparse=True), nn.Linear(6, 3)

    def forward(self, ids, many, offsets):
        return self.head(self.table(ids) * self.bag(many, offsets))


def sparse(draw):
    model = Table(draw.choice(("sum", "mean")))
    tables = [model.bag.weight, model.table.weight]
    kinds = (lambda p: torch.optim.SparseAdam(p), lambda p: torch.optim.SGD(p, 0.1), lambda p: torch.optim.Adagrad(p))
    first = draw.choice(kinds)(tables)
    second, name = optimizer_of(draw, model.head.parameters())
    scaled = draw.random() < 0.3

    def step(number):
        out = model(torch.randint(0, 20, (4,)), torch.randint(0, 20, (10,)), torch.tensor([0, 2, 2, 7]))
        loss = F.cross_entropy(out, words())
        (loss * 4 if scaled else loss).backward()
        first.step()
        second.step()
        return loss.item()

    return Loop(model, [first, second], updates(step, [first, second]), {"optimizer": f"{type(first).__name__}; {name}"})


class Ragged(nn.Module):
    def __init__(self, layout):
        super().__init__()
        self.layout, self.heads = layout, 2
        self.mix = nn.Linear(24, 8)
        self.three, self.out, self.norm = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        if self.layout == torch.strided:
            h = F.gelu(self.three(self.norm(x)))
            return torch.nested.to_padded_tensor(self.out(self.mix(h)) + x, 0.0)
        q, k, v = self.three(self.norm(x)).chunk(3, -1)
        q, k, v = (one.unflatten(-1, (self.heads, 4)).transpose(1, 2) for one in (q, k, v))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2))
        return torch.nested.to_padded_tensor(x, 0.0)


def nested(draw):
    layout = draw.choice((torch.jagged, torch.jagged, torch.strided))
    model = Ragged(layout)

    def loss(model):
        lengths = [draw.randint(1, 6) for _ in range(3)]
        ragged = torch.nested.nested_tensor([torch.randn(n, 8) for n in lengths], layout=layout)
        return model(ragged).square().mean()

    return simple(draw, model, loss, layout=str(layout))


def foreach(draw):
    return simple(draw, layers(draw, depth=4), classified, "foreach")


def fused(draw):
    return simple(draw, layers(draw, depth=4), classified, "fused")


class EightBit(torch.optim.Optimizer):
    """Adam whose moments are kept in 8 bits, block by block."""

    def __init__(self, parameters, lr=1e-3, block=16):
        super().__init__(parameters, {"lr": lr, "block": block})

    def pack(self, moment, block):
        flat = F.pad(moment.flatten(), (0, -moment.numel() % block)).view(-1, block)
        scale = flat.abs().amax(1, keepdim=True).clamp(min=1e-12)
        return (flat / scale * 127).round().to(torch.int8), scale

    def unpack(self, packed, like):
        values, scale = packed
        return (values.float() * scale / 127).flatten()[: like.numel()].view_as(like)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                first = self.unpack(state["first"], p) if state else torch.zeros_like(p)
                second = self.unpack(state["second"], p) if state else torch.zeros_like(p)
                first.lerp_(p.grad, 0.1)
                second.lerp_(p.grad.square(), 0.01)
                state["first"], state["second"] = self.pack(first, group["block"]), self.pack(second, group["block"])
                p.addcdiv_(first, second.clamp(min=0).sqrt() + 1e-4, value=-group["lr"])


def eight_bit(draw):
    model = layers(draw)
    optimizer = EightBit(model.parameters())

    def step(number):
        loss = classified(model)
        loss.backward()
        optimizer.step()
        return loss.item()

    return Loop(model, [optimizer], updates(step, [optimizer]), {"optimizer": "Adam with 8-bit moments"})


def saved_tensor_hooks(draw):
    ways = {
        "half": lambda: torch.autograd.graph.saved_tensors_hooks(
            lambda t: t.half() if t.dtype == torch.float32 else t, lambda t: t.float() if t.dtype == torch.float16 else t
        ),
        "numpy": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy().copy(), torch.from_numpy),
        "cpu": lambda: torch.autograd.graph.save_on_cpu(),
        "refused": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t + 0, lambda t: t * 1),
    }
    way = draw.choice(sorted(ways))

    def loss(model):
        with ways[way]():
            return classified(model)

    return simple(draw, layers(draw), loss, way=way)


def compiled(draw):
    model = layers(draw)
    backend = draw.choice(("aot_eager", "inductor"))
    quick = torch.compile(model, backend=backend)
    loop = simple(draw, model, lambda _: classified(quick), backend=backend)
    loop.own_eager = True
    return loop


# ---- Drawn with these -----------------------------------------------------------------------------------------------


class Clamped(torch.autograd.Function):
    """Two outputs, one of them not differentiable."""

    @staticmethod
    def forward(ctx, x, limit):
        out = x.clamp(-limit, limit)
        inside = x.abs() <= limit
        ctx.save_for_backward(inside)
        ctx.mark_non_differentiable(inside)
        return out, inside, x * 2

    @staticmethod
    def backward(ctx, a, _, b):
        (inside,) = ctx.saved_tensors
        return torch.where(inside, a, a * 0.1) + b * 2, None


def functions(draw):
    def loss(model):
        out, inside, twice = Clamped.apply(model(torch.randn(4, 6)), 0.3)
        return out.square().mean() + (twice * inside).mean()

    return simple(draw, layers(draw), loss)


def hooks(draw):
    model = layers(draw, depth=3)
    model[0].weight.register_hook(lambda gradient: gradient * 0.5)
    model[2].register_full_backward_hook(lambda module, given, got: (given[0].clamp(-0.1, 0.1),))
    model[4].register_full_backward_pre_hook(lambda module, got: (got[0] * 1.5,))
    model[1].register_forward_hook(lambda module, args, out: out + 0.1)

    def shrink(parameter):
        parameter.grad.mul_(0.9)

    model[-1].bias.register_post_accumulate_grad_hook(shrink)

    def loss(model):
        h = model[:3](torch.randn(4, 6))
        h.register_hook(lambda gradient: gradient + 0.01)
        h.grad_fn.register_hook(lambda given, got: (given[0] * 0.99, *given[1:]))
        h.retain_grad()
        return F.cross_entropy(model[3:](h), words())

    return simple(draw, model, loss)


def in_backward(draw):
    """Each parameter is updated as soon as its gradient is there."""
    model = layers(draw)
    optimizers = {p: torch.optim.AdamW([p], lr=1e-3) for p in model.parameters()}

    def update(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)

    def step(number):
        loss = classified(model)
        loss.backward()
        return loss.item()

    return Loop(model, list(optimizers.values()), updates(step), {"optimizer": "AdamW in backward"})


def second_order(draw):
    model = layers(draw)
    search = draw.choice((None, "strong_wolfe"))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3, line_search_fn=search)

    def step(number):
        x, y = torch.randn(4, 6), words()

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        return optimizer.step(closure).item()

    return Loop(model, [optimizer], updates(step), {"optimizer": f"LBFGS, {search}"})


def meta(draw):
    """A gradient of what a gradient step gives."""
    def loss(model):
        parameters = dict(model.named_parameters())
        total = 0
        for _ in range(2):
            x, y = torch.randn(4, 6), words()
            inner = F.cross_entropy(torch.func.functional_call(model, parameters, (x,)), y)
            slopes = torch.autograd.grad(inner, list(parameters.values()), create_graph=True)
            fast = {name: p - 0.1 * g for (name, p), g in zip(parameters.items(), slopes)}
            total = total + F.cross_entropy(torch.func.functional_call(model, fast, (torch.randn(4, 6),)), words())
        return total

    return simple(draw, layers(draw), loss)


def transforms(draw):
    """torch.func: gradients of each sample, and a Jacobian."""
    def loss(model):
        def one(parameters, x, y):
            return F.cross_entropy(torch.func.functional_call(model, parameters, (x[None],)), y[None])

        parameters = dict(model.named_parameters())
        each = torch.func.vmap(torch.func.grad(one), (None, 0, 0))(parameters, torch.randn(4, 6), words())
        slope = torch.func.vmap(torch.func.jacrev(lambda x: model(x)))(torch.randn(2, 6))
        return sum(g.square().mean() for g in each.values()) + slope.square().mean() + classified(model)

    return simple(draw, layers(draw), loss)


class Pictures(nn.Module):
    def __init__(self, draw):
        super().__init__()
        norm = draw.choice((nn.BatchNorm2d, nn.InstanceNorm2d, lambda n: nn.GroupNorm(2, n)))
        self.body = nn.Sequential(
            nn.Conv2d(3, 4, 3), norm(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, groups=2, bias=False),
            norm(8), nn.Hardswish(inplace=True), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(32, 6),
        )
        self.head = draw.choice((nn.utils.parametrizations.spectral_norm, nn.utils.parametrizations.weight_norm))(nn.Linear(6, 3))

    def forward(self, x):
        return self.head(self.body(x))


def convolutions(draw):
    model = Pictures(draw)
    if draw.random() < 0.5:
        model.to(memory_format=torch.channels_last)

    def loss(model):
        return F.cross_entropy(model(torch.randn(4, 3, 12, 12)), words(), label_smoothing=0.1)

    return simple(draw, model, loss)


def attention(draw):
    """nn.Transformer, with masks."""
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.1, batch_first=True, norm_first=draw.random() < 0.5)

    def loss(model):
        x, y = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
        mask = nn.Transformer.generate_square_subsequent_mask(4)
        hidden = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
        return model(x, y, tgt_mask=mask, tgt_is_causal=True, src_key_padding_mask=hidden).square().mean()

    return simple(draw, model, loss)


def policy(draw):
    """REINFORCE: what is drawn decides."""
    model = layers(draw)

    def loss(model):
        x, total = torch.randn(4, 6), 0
        for _ in range(3):
            chosen = torch.distributions.Categorical(logits=model(x))
            action = chosen.sample()
            reward = (action == 1).float() + torch.rand(4)
            total = total - (chosen.log_prob(action) * (reward - reward.mean())).mean() - 0.01 * chosen.entropy().mean()
            x = torch.where((action == 0)[:, None], x.roll(1, 1), x)
        return total

    return simple(draw, model, loss)


def variational(draw):
    model = nn.ModuleList([layers(draw, 6, 8), layers(draw, 4, 6)])
    generator = torch.Generator().manual_seed(5)

    def loss(model):
        x = torch.randn(4, 6, generator=generator)
        mean, spread = model[0](x).chunk(2, 1)
        normal = torch.distributions.Normal(mean, F.softplus(spread))
        z = normal.rsample()
        prior = torch.distributions.kl_divergence(normal, torch.distributions.Normal(0.0, 1.0)).sum(1).mean()
        return F.mse_loss(model[1](z), x) + 0.1 * prior

    return simple(draw, model, loss)


class Spectrum(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.head = nn.Parameter(torch.randn(3, 5, dtype=torch.complex64) * 0.3), nn.Linear(8, 3)

    def forward(self, x):
        f = torch.fft.rfft(x.view(4, 3, 8)) * self.weight
        return self.head(torch.fft.irfft(f.conj(), n=8).sum(1)) + f.abs().mean(-1) + torch.view_as_real(f)[..., 1].mean(-1)


def complex_numbers(draw):
    return simple(draw, Spectrum(), lambda model: classified(model, 24), "for-loop")


def heard(draw):
    """CTC on what a convolution hears."""
    model = nn.Sequential(nn.Conv1d(2, 8, 5, 2), nn.ReLU(), nn.ConvTranspose1d(8, 6, 3), nn.LogSoftmax(1))

    def loss(model):
        out = model(torch.randn(3, 2, 30)).permute(2, 0, 1)
        return F.ctc_loss(out, torch.randint(1, 6, (3, 4)), torch.full((3,), len(out)), torch.tensor([4, 2, 3]))

    return simple(draw, model, loss)


def written_in_place(draw):
    """Views that are written, masks, gathers, scatters, sorts."""
    def loss(model):
        h = model[0](torch.randn(4, 6))
        h = h * 2
        h[:, :3].mul_(3)
        h.t()[1].add_(1)
        h[h > 2] = 0.5
        h = h.index_put((torch.tensor([0, 0]), torch.tensor([1, 1])), torch.ones(2), accumulate=True)
        order = h.sort(dim=1, descending=True)
        h = torch.zeros_like(h).scatter_add(1, order.indices, order.values.cumsum(1))
        top = h.topk(2, dim=1).values
        out = model[2:](torch.tanh(h))
        return F.cross_entropy(out, words()) + top.var() + out.logsumexp(1).mean() + h.masked_fill(h < 0, 0).prod(1).mean()

    return simple(draw, nn.Sequential(*layers(draw, depth=1)), loss)


def momentum_contrast(draw):
    """A second network follows the first without gradients, and a queue is written in place."""
    model = layers(draw, 6, 4)
    follower, queue = copy.deepcopy(model).requires_grad_(False), F.normalize(torch.randn(4, 12), dim=0)

    def loss(model):
        x = torch.randn(4, 6)
        q = F.normalize(model(x + 0.1 * torch.randn(4, 6)), dim=1)
        with torch.no_grad():
            for a, b in zip(follower.parameters(), model.parameters()):
                a.data.mul_(0.9).add_(b.data, alpha=0.1)
            k = F.normalize(follower(x), dim=1)
        value = F.cross_entropy(torch.cat([(q * k).sum(1, keepdim=True), q @ queue.clone()], 1) / 0.2, torch.zeros(4).long())
        queue.copy_(torch.cat([k.t(), queue[:, :-4]], 1))
        return value

    return simple(draw, model, loss)


def recomputed(draw):
    """Checkpoints within checkpoints, and selective ones."""
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    model = nn.Sequential(layers(draw, 6, 6), nn.Dropout(0.2), layers(draw, 6, 3))
    way = draw.choice(("nested", "selective", "mixed"))

    def kept(context, op, *args, **kwargs):
        return CheckpointPolicy.MUST_SAVE if op is torch.ops.aten.addmm.default else CheckpointPolicy.PREFER_RECOMPUTE

    def loss(model):
        x = torch.randn(4, 6, requires_grad=True)
        if way == "nested":
            inner = lambda x: checkpoint(model[0], x, use_reentrant=False)  # noqa: E731
            h = checkpoint(lambda x: model[1](inner(x)), x, use_reentrant=False)
        elif way == "selective":
            contexts = lambda: create_selective_checkpoint_contexts(kept)  # noqa: E731
            h = checkpoint(lambda x: model[1](model[0](x)), x, use_reentrant=False, context_fn=contexts)
        else:
            h = checkpoint(model[1], checkpoint(model[0], x, use_reentrant=True), use_reentrant=False)
        return F.cross_entropy(model[2](h), words())

    return simple(draw, model, loss, way=way)


def partly(draw):
    """Several losses, several backwards through one graph, gradients that are taken, changed and given back."""
    model, head = layers(draw, 6, 6), nn.Linear(6, 3)
    both = nn.ModuleList([model, head])
    optimizer, name = optimizer_of(draw, both.parameters())

    def step(number):
        h = model(torch.randn(4, 6))
        kept = h.detach().requires_grad_()
        first = F.cross_entropy(head(kept), words())
        first.backward()
        h.backward(kept.grad * 0.5, retain_graph=True)
        second = h.square().mean()
        second.backward(inputs=list(model[0].parameters()), retain_graph=True)
        slopes = torch.autograd.grad(h.abs().mean(), list(model.parameters()))
        for p, slope in zip(model.parameters(), slopes):
            p.grad = p.grad + 0.1 * slope if p.grad is not None else slope
        optimizer.step()
        return first.item(), second.item()

    return Loop(both, [optimizer], updates(step, [optimizer]), {"optimizer": name})


def accelerated(draw):
    """Accelerate's loop."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, mixed_precision=draw.choice(("no", "bf16")), gradient_accumulation_steps=2)
    model = layers(draw)
    optimizer, name = optimizer_of(draw, model.parameters())
    data = torch.utils.data.TensorDataset(torch.randn(UPDATES * 8, 6), torch.randint(0, 3, (UPDATES * 8,)))
    model, optimizer, batches = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, 4, shuffle=True))

    def run(around):
        losses, there = [], iter(batches)
        for number in range(UPDATES):
            with around(number):
                for _ in range(2):
                    x, y = next(there)
                    with accelerator.accumulate(model):
                        loss = F.cross_entropy(model(x), y)
                        accelerator.backward(loss)
                        if accelerator.sync_gradients:
                            accelerator.clip_grad_norm_(model.parameters(), 1.0)
                        optimizer.step()
                        optimizer.zero_grad()
                    losses.append(loss.item())
        return losses

    return Loop(model, [optimizer.optimizer], run, {"optimizer": name})


class Solved(torch.autograd.Function):
    """A fixed point whose backward solves another one, by autograd within."""

    @staticmethod
    def forward(ctx, x, layer, *parameters):
        ctx.layer = layer
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(4):
                z = torch.tanh(layer(z) * 0.3 + x)
        ctx.save_for_backward(z, x)
        return z

    @staticmethod
    def backward(ctx, gradient):
        z, x = ctx.saved_tensors
        with torch.enable_grad():
            z, x = z.detach().requires_grad_(), x.detach().requires_grad_()
            out = torch.tanh(ctx.layer(z) * 0.3 + x)
            g = gradient
            for _ in range(3):
                g = gradient + torch.autograd.grad(out, z, g, retain_graph=True)[0]
            found = torch.autograd.grad(out, [x, *ctx.layer.parameters()], g)
        return found[0], None, *found[1:]


def implicit(draw):
    layer = nn.Linear(6, 6)
    model = nn.ModuleList([layer, nn.Linear(6, 3)])

    def loss(model):
        z = Solved.apply(torch.randn(4, 6), layer, *layer.parameters())
        return F.cross_entropy(model[1](z), words())

    return simple(draw, model, loss)


def precise(draw):
    """float64 and linear algebra."""
    model = layers(draw, 6, 9).double()

    def loss(model):
        a = model(torch.randn(2, 6, dtype=torch.float64)).view(2, 3, 3)
        s = a @ a.mT + 3 * torch.eye(3, dtype=torch.float64)
        values, vectors = torch.linalg.eigh(s)
        x = torch.linalg.solve(s, torch.ones(2, 3, 1, dtype=torch.float64))
        lengths = torch.linalg.cholesky(s).diagonal(0, 1, 2).log().sum() + torch.linalg.svdvals(a).sum()
        return torch.logdet(s).mean() + x.square().sum() + values.std() + lengths + vectors.abs().mean()

    return simple(draw, model, loss)


def quantised(draw):
    """Fake quantisation with a straight-through estimator, and parameters that a buffer scales."""
    class Fake(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = layers(draw)
            self.register_buffer("scale", torch.tensor(0.02))

        def forward(self, x):
            x = torch.fake_quantize_per_tensor_affine(x, 0.05, 0, -128, 127)
            out = self.inner(x)
            self.scale.lerp_(out.detach().abs().max() / 127, 0.1)
            return out + ((out / self.scale).round() * self.scale - out).detach()

    return simple(draw, Fake(), classified)


NAMED = {  # that every run has
    "gan": gan, "gradient penalty": gradient_penalty, "data-dependent loop": data_dependent, "recurrent": recurrent,
    "diffusion U-Net": diffusion, "sparse embeddings": sparse, "nested tensors": nested, "foreach": foreach, "fused": fused,
    "8-bit moments": eight_bit, "saved-tensor hooks": saved_tensor_hooks, "compiled": compiled,
}  # fmt: skip
DRAWN = {
    "functions": functions, "hooks": hooks, "update in backward": in_backward, "LBFGS": second_order, "meta-learning": meta,
    "torch.func": transforms, "convolutions": convolutions, "nn.Transformer": attention, "policy gradient": policy,
    "variational": variational, "complex": complex_numbers, "CTC": heard, "in place": written_in_place,
    "momentum contrast": momentum_contrast, "checkpoints in checkpoints": recomputed, "several backwards": partly,
    "Accelerate": accelerated, "implicit layer": implicit, "linear algebra": precise, "fake quantisation": quantised,
}  # fmt: skip
