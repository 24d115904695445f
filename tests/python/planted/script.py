"""Draws a training script: layers, loss, context and optimizer of real loops, and perhaps one fault. The line of a fault ends with `# FAULT`."""

import random
from dataclasses import dataclass, field

HEAD = '''import contextlib, copy, hashlib, json, sys
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
torch.set_num_threads(1)
torch.manual_seed({seed})
OUT = sys.argv[1] if len(sys.argv) > 1 else None


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        grad_w = {grad_w}
        grad_x = {grad_x}
        return grad_x, grad_w


class Rms(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        r = x.square().mean(-1, keepdim=True).add(1e-5).rsqrt()
        ctx.save_for_backward(x, r)
        return x * r

    @staticmethod
    def backward(ctx, grad):
        x, r = ctx.saved_tensors
        return {rms}


class Gated(nn.Module):
    def __init__(self, width, drop):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        return self.down(self.drop(F.silu(self.gate(x)) * self.up(x)))


class Attention(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
            y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(-2))


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return Scale.apply(Rms.apply(x).flatten(0, -2), self.w).view_as(x)


class Lora(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.A, self.B = nn.Parameter(torch.randn(4, width) * 0.1), nn.Parameter(torch.randn(width, 4) * 0.1)

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.A), self.B)


class Convolved(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(width, width, 3, padding=1), nn.GroupNorm(2, width)

    def forward(self, x):
        return F.gelu(self.norm(self.conv(x.transpose(1, 2)))).transpose(1, 2)


class Recurrent(nn.Module):
    def __init__(self, width, kind):
        super().__init__()
        self.rnn = kind(width, width, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]
'''

BLOCKS = {
    "gated": "Gated({w}, {drop})",
    "mlp": "nn.Sequential(nn.Linear({w}, 2 * {w}), nn.{act}(), nn.Dropout({drop}), nn.Linear(2 * {w}, {w}))",
    "attention": "Attention({w}, {heads}, {fused})",
    "functions": "Scaled({w})",
    "lora": "Lora({w})",
    "convolution": "Convolved({w})",
    "recurrent": "Recurrent({w}, nn.{rnn})",
}
ACTIVATIONS = ("GELU", "SiLU", "Tanh", "ReLU", "ELU", "Softplus", "Mish")
OPTIMIZERS = {
    "SGD": "torch.optim.SGD({p}, 0.05, momentum=0.9{more})",
    "Adam": "torch.optim.Adam({p}, 1e-3{more})",
    "AdamW": "torch.optim.AdamW({p}, 1e-3, weight_decay=0.05{more})",
    "RMSprop": "torch.optim.RMSprop({p}, 1e-3{more})",
    "Adagrad": "torch.optim.Adagrad({p}, 1e-2{more})",
    "NAdam": "torch.optim.NAdam({p}, 1e-3{more})",
}


@dataclass
class Script:
    text: str
    said: dict
    fault: str | None = None
    expects: list = field(default_factory=list)  # any of these names it: ":LINE ", a parameter, a word

    @property
    def raises(self):
        return (self.fault or "").startswith("raises")

    @property
    def line(self):
        """The number of the faulty line, where there is one."""
        return next((n for n, line in enumerate(self.text.splitlines(), 1) if line.endswith("# FAULT")), None)


# What each fault needs of the draw, and what names it beside its line.
FAULTS = {
    "detach": {},
    "no_grad": {},
    "data": {},
    "hook": {},
    "dropped_loss": {"aux": True},
    "zero_grad": {"accumulation": 1, "expects": ["nothing cleared", "cleared", "of the step before", "last step"]},
    "missing": {"groups": False, "expects": ["head.weight"]},
    "frozen": {"groups": False, "expects": ["head.weight"]},
    "copied": {"groups": False, "expects": ["none of them is the model's"]},
    "replaced": {"groups": False, "tied": False, "expects": ["head.weight"]},
    "clip_scaled": {"precision": "scaler", "clip": "norm"},
    "clip_late": {"precision": "float32", "clip": None},
    "weight_written": {},
    "fn_factor": {"block": "functions", "expects": ["Scale"]},
    "fn_term": {"block": "functions", "expects": ["Rms"]},
    "fn_mean": {"block": "functions", "expects": ["Scale"]},
    "overwritten": {"checkpointed": False},
    "raises_inplace": {"checkpointed": False},
    "raises_twice": {},
    "nan": {"precision": "float32"},
}


def drawn(seed, fault=None):
    draw = random.Random(f"{seed}/{fault}")
    needs = FAULTS[fault] if fault else {}
    width = draw.choice((8, 12, 16))
    said = {
        "width": width,
        "input": draw.choice(("words", "numbers")),
        "precision": draw.choice(("float32", "float32", "bfloat16", "scaler")),
        "accumulation": draw.choice((1, 1, 2, 3)),
        "clip": draw.choice((None, "norm", "norm", "value")),
        "checkpointed": draw.choice((False, False, "reentrant", "not reentrant")),
        "optimizer": draw.choice(sorted(OPTIMIZERS)),
        "how": draw.choice(("", ", foreach=True", ", foreach=False", ", fused=True")),
        "groups": draw.random() < 0.3,
        "schedule": draw.random() < 0.4,
        "ema": draw.random() < 0.25,
        "validation": draw.random() < 0.25,
        "aux": draw.random() < 0.2,
        "tied": draw.random() < 0.3,
        "loss": draw.choice(("cross_entropy", "smoothed", "mse", "huber", "bce")),
    }
    said |= {key: value for key, value in needs.items() if key in said}
    if said["how"] == ", fused=True" and said["optimizer"] not in ("SGD", "Adam", "AdamW", "Adagrad"):
        said["how"] = ""
    if said["input"] == "numbers":
        said["tied"] = False
    kinds = [draw.choice(sorted(BLOCKS)) for _ in range(draw.choice((1, 2, 2, 3)))]
    if "block" in needs:
        kinds[draw.randrange(len(kinds))] = needs["block"]
    elif fault in ("detach", "no_grad", "data") and set(kinds) <= {"lora"}:
        kinds[0] = "mlp"
    said["blocks"] = kinds
    script = Script("\n".join(_lines(draw, said, fault, seed)) + "\n", said, fault, list(needs.get("expects", [])))
    if script.line is not None and fault not in ("missing", "frozen", "copied", "replaced", "zero_grad"):
        script.expects.append(f"step.py:{script.line} ")
    return script


def _lines(draw, said, fault, seed):
    w, words, accumulation = said["width"], said["input"] == "words", said["accumulation"]
    yield from HEAD.replace("{{", "{").format(
        seed=seed,
        grad_w="(grad * x).mean(0)  # FAULT" if fault == "fn_mean" else "(grad * x).sum(0)",
        grad_x="2 * grad * w  # FAULT" if fault == "fn_factor" else "grad * w",
        rms="grad * r  # FAULT" if fault == "fn_term" else "grad * r - x * r.pow(3) * (grad * x).mean(-1, keepdim=True)",
    ).splitlines()
    yield ""
    yield ""
    yield from _model(draw, said, fault, w, words)
    groups = "[{'params': [p for p in model.parameters() if p.requires_grad and p.ndim > 1]}, {'params': [p for p in model.parameters() if p.requires_grad and p.ndim < 2], 'weight_decay': 0.0}]"
    trained = groups if said["groups"] else "[p for p in model.parameters() if p.requires_grad]"
    yield "model = Model()"
    if fault == "frozen":
        yield "trained = list(model.parameters())"
        yield "model.head.weight.requires_grad_(False)  # FAULT"
        trained = "[p for p in trained if p.requires_grad or p is model.head.weight]"
    if fault == "missing":
        trained = "[p for n, p in model.named_parameters() if p.requires_grad and n != 'head.weight' and p is not model.head.weight]"
    if fault == "copied":
        trained = "[p for p in copy.deepcopy(model).parameters() if p.requires_grad]"
    tail = "  # FAULT" if fault in ("missing", "copied") else ""
    yield f"optimizer = {OPTIMIZERS[said['optimizer']].format(p=trained, more=said['how'])}{tail}"
    if fault == "replaced":
        yield "model.head.weight = nn.Parameter(model.head.weight.detach().clone())  # FAULT"
    if fault == "hook":
        yield "model.head.weight.register_hook(lambda grad: grad * 0.1)  # FAULT"
    if said["schedule"]:
        yield "schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)"
    if said["ema"]:
        yield "average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))"
    if said["precision"] == "scaler":
        yield "scaler = torch.amp.GradScaler('cpu', init_scale=256.0)"
    data = "torch.randint(0, 30, (4, 6))" if words else f"torch.randn(4, 6, {w})"
    target = "torch.randint(0, 30, (4, 6))" if said["loss"] in ("cross_entropy", "smoothed") else "torch.rand(4, 6, 30)"
    yield f"batches = [({data}, {target}) for _ in range({3 * accumulation})]"
    yield from _loss(said)
    yield ""
    yield ""
    yield from _loop(draw, said, fault, accumulation)
    yield ""
    yield ""
    yield from TAIL.splitlines()


def _model(draw, said, fault, w, words):
    yield "class Model(nn.Module):"
    yield "    def __init__(self):"
    yield "        super().__init__()"
    yield f"        self.enter = {f'nn.Embedding(30, {w})' if words else f'nn.Linear({w}, {w})'}"
    made = []
    for kind in said["blocks"]:
        made.append(BLOCKS[kind].format(w=w, drop=draw.choice((0.0, 0.1)), act=draw.choice(ACTIVATIONS), heads=draw.choice((1, 2)), fused=draw.random() < 0.5, rnn=draw.choice(("GRU", "LSTM", "RNN"))))
    yield f"        self.blocks = nn.ModuleList([{', '.join(made)}])"
    yield f"        self.norms = nn.ModuleList([nn.LayerNorm({w}) for _ in self.blocks])"
    yield f"        self.head = nn.Linear({w}, 30)"
    if said["tied"]:
        yield "        self.head.weight = self.enter.weight"
    yield ""
    yield "    def forward(self, x):"
    yield "        h = self.enter(x)"
    if fault == "detach":
        yield "        h = h.detach()  # FAULT"
    if fault == "data":
        yield "        h = h.data + 0  # FAULT"
    if fault == "no_grad":
        yield "        with torch.no_grad():"
        yield "            h = h.tanh() * 0.5 + h  # FAULT"
    if fault == "nan":
        yield "        h = h + (h.square() - h.square()).div(h.detach() - h.detach()).mul(0.5)  # FAULT"
    yield "        for norm, block in zip(self.norms, self.blocks):"
    run = {"reentrant": "checkpoint(block, norm(h), use_reentrant=True)", "not reentrant": "checkpoint(block, norm(h), use_reentrant=False)", False: "block(norm(h))"}[said["checkpointed"]]
    yield f"            h = h + {run}"
    if said["aux"]:
        yield "        self.aux = h.square().mean()"
    if fault in ("overwritten", "raises_inplace"):
        yield "        a = h.sigmoid()"
        yield f"        {'a.data.mul_(0.5)' if fault == 'overwritten' else 'a.mul_(0.5)'}  # FAULT"
        yield "        h = h + a"
    yield "        return self.head(h)"
    yield ""
    yield ""


def _loss(said):
    yield "def loss_of(batch):"
    yield "    x, y = batch"
    yield "    out = model(x)"
    kind = said["loss"]
    text = {
        "cross_entropy": "F.cross_entropy(out.flatten(0, 1), y.flatten(), ignore_index=0)",
        "smoothed": "F.cross_entropy(out.flatten(0, 1), y.flatten(), label_smoothing=0.1)",
        "mse": "F.mse_loss(out.float(), y)",
        "huber": "F.smooth_l1_loss(out.float(), y)",
        "bce": "F.binary_cross_entropy_with_logits(out.float(), y)",
    }[kind]
    yield f"    return {text}"


def _loop(draw, said, fault, accumulation):
    precision = said["precision"]
    yield "def train():"
    yield "    losses = []"
    yield "    for number in range(3):"
    if fault != "zero_grad":
        yield "        optimizer.zero_grad()"
    yield f"        for micro in range({accumulation}):"
    kind = {"bfloat16": "torch.bfloat16", "scaler": "torch.float16"}.get(precision)
    inner = "            "
    if kind:
        yield f"            with torch.autocast('cpu', {kind}):"
        inner += "    "
    yield f"{inner}loss = loss_of(batches[number * {accumulation} + micro]) / {accumulation}"
    if said["aux"]:
        yield f"{inner}{'extra = 0.1 * model.aux  # FAULT' if fault == 'dropped_loss' else 'loss = loss + 0.1 * model.aux'}"
    yield f"            {'scaler.scale(loss)' if precision == 'scaler' else 'loss'}.backward()"
    if fault == "raises_twice":
        yield "            loss.backward()  # FAULT"
    yield "            losses.append(loss.item())"
    if fault == "weight_written":
        yield "        with torch.no_grad():"
        yield "            model.head.weight.mul_(0.99)  # FAULT"
    clip = {"norm": "nn.utils.clip_grad_norm_(model.parameters(), 0.5)", "value": "nn.utils.clip_grad_value_(model.parameters(), 0.1)"}.get(said["clip"])
    if precision == "scaler" and fault != "clip_scaled":
        yield "        scaler.unscale_(optimizer)"
    if clip:
        yield f"        {clip}{'  # FAULT' if fault == 'clip_scaled' else ''}"
    if precision == "scaler":
        yield "        scaler.step(optimizer)"
        yield "        scaler.update()"
    else:
        yield "        optimizer.step()"
    if fault == "clip_late":
        yield "        nn.utils.clip_grad_norm_(model.parameters(), 0.01)  # FAULT"
    if said["schedule"]:
        yield "        schedule.step()"
    if said["ema"]:
        yield "        average.update_parameters(model)"
    if said["validation"]:
        yield "        model.eval()"
        yield "        with torch.no_grad():"
        yield "            losses.append(loss_of(batches[0]).item())"
        yield "        model.train()"
    yield "    return losses"


TAIL = '''losses, error = [], None
try:
    if OUT:
        import retrograd

        with retrograd.record(OUT, model=model, optimizer=optimizer):
            losses = train()
    else:
        losses = train()
except RuntimeError as raised:
    error = str(raised)[:80]
digest = hashlib.sha256()
state = [value for of in optimizer.state.values() for value in of.values() if isinstance(value, torch.Tensor)]
for tensor in [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters() if p.grad is not None), *state, torch.get_rng_state()]:
    digest.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
print(json.dumps({"losses": repr(losses), "error": error, "state": digest.hexdigest()}))
'''
