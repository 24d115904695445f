"""Loops whose optimizers, scalers and custom ops a sweep over ops lacks. Each gives its state after a few updates."""

import itertools

import torch
from torch import nn

UPDATES, FEW = 3, 3


def model():
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))


def state(module, optimizers, losses):
    kept = [value for one in optimizers for of in one.state.values() for value in of.values()]
    return {"losses": losses, "weights": list(module.parameters()), "gradients": [p.grad for p in module.parameters()], "states": kept}


def updated(make, scaler=None, spoilt=()):
    """A loop with an optimizer. In the updates `spoilt` the loss is infinite, and a scaler skips."""

    def run():
        module = model()
        optimizer = make(module)
        scale = scaler() if scaler is not None else None
        losses = []

        def closure():
            optimizer.zero_grad()
            loss = module(x).square().mean()
            loss.backward()
            return loss

        for number in range(UPDATES):
            x = torch.randn(4, 6) * (float("inf") if number in spoilt else 1.0)
            if isinstance(optimizer, torch.optim.LBFGS):
                losses.append(optimizer.step(closure))
                continue
            optimizer.zero_grad()
            loss = module(x).square().mean()
            if scale is None:
                loss.backward()
                optimizer.step()
            else:
                scale.scale(loss).backward()
                scale.unscale_(optimizer)
                losses.append(nn.utils.clip_grad_norm_(module.parameters(), 0.5))
                scale.step(optimizer)
                scale.update()
                losses.append(torch.tensor(scale.get_scale()))
            losses.append(loss)
        return state(module, [optimizer], losses)

    return run


def optimizers():
    """PyTorch's own samples of optimizers' settings."""
    from torch.testing._internal.common_optimizers import optim_db

    for info in optim_db:
        kind = info.optim_cls
        if kind is torch.optim.SparseAdam:
            continue
        for number, given in enumerate(info.optim_inputs_func(device="cpu")):
            ways = [{}, *({flag: True} for flag in info.supported_impls if flag in ("foreach", "fused"))]
            for way in ways:
                settings = {**given.kwargs, **way}
                yield f"{number} {given.desc} {way or ''}", lambda kind=kind, settings=settings: (
                    lambda module: kind([p for p in module.parameters() if kind is not torch.optim.Muon or p.ndim == 2], **settings)
                ), kind.__name__


def of_optimizers(most):
    for name, make, kind in itertools.islice(optimizers(), None if most > FEW else most):
        yield f"{kind}, {name}", updated(make())
        yield f"{kind}, {name}, scaled", updated(make(), lambda: torch.amp.GradScaler("cpu", init_scale=512.0), (1,))


def of_scalers(most):
    makers = {
        "SGD": lambda m: torch.optim.SGD(m.parameters(), 0.1, momentum=0.9),
        "AdamW": lambda m: torch.optim.AdamW(m.parameters(), 0.1),
        "AdamW fused": lambda m: torch.optim.AdamW(m.parameters(), 0.1, fused=True),
        "AdamW, a tensor lr": lambda m: torch.optim.AdamW(m.parameters(), torch.tensor(0.1), foreach=False),
    }
    for name, make in makers.items():
        for spoilt in ((), (0,), (1,), (2,), (0, 1, 2)):
            for scale in (1.0, 65536.0, 1e38):
                yield f"{name}, skips {spoilt}, scale {scale}", updated(make, lambda scale=scale: torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=1), spoilt)


@torch.library.custom_op("recording_sweep::mixed", mutates_args=())
def mixed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).float().softmax(-1) @ w.t().contiguous()


@torch.library.custom_op("recording_sweep::mixed_backward", mutates_args=())
def mixed_backward(grad: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    return [(grad.float() @ w @ w.t()).to(x.dtype), x.t() @ (grad.float() @ w).to(x.dtype)]


@torch.library.custom_op("recording_sweep::doubled", mutates_args=("x",))
def doubled(x: torch.Tensor) -> None:
    x.add_((x @ x.t()).float().sum())


@torch.library.custom_op("recording_sweep::nested", mutates_args=())
def nested(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return mixed(x, w) + mixed(x.sin(), w).prod(-1, keepdim=True)


torch.library.register_autograd("recording_sweep::mixed", lambda ctx, grad: tuple(mixed_backward(grad, *ctx.saved_tensors)),
                                setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x @ w).float().prod(-1, keepdim=True)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return (grad @ w.sum(1)[None]).to(x.dtype), (x.t() @ grad.to(x.dtype)).expand_as(w)


class OwnCast(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.t() @ grad


def with_writes(x, w):
    y = x.detach().clone()
    doubled(y)
    return y.sum() * (x @ w)


CUSTOM = {"custom op": mixed, "nested custom op": lambda x, w: nested(x.detach(), w.detach()) @ w.t(), "custom op that writes": with_writes,
          "affine_grid": lambda x, w: nn.functional.affine_grid(w[:4].reshape(4, 2, 3), (4, 1, 3, 3), align_corners=False) * x.sum(),
          "Function": Own.apply, "Function with custom_fwd": OwnCast.apply,
          "checkpoint": lambda x, w: torch.utils.checkpoint.checkpoint(lambda a, b: (a @ b).tanh().prod(-1), x, w, use_reentrant=False),
          "reentrant checkpoint": lambda x, w: torch.utils.checkpoint.checkpoint(lambda a, b: (a @ b).tanh().prod(-1), x, w, use_reentrant=True),
          "vmap": lambda x, w: torch.vmap(lambda one: (one @ w).prod(-1))(x),
          "torch.func": lambda x, w: torch.func.grad(lambda one: (x @ one).prod(-1).sum())(w) * w}


def of_custom(most):
    for name, function in CUSTOM.items():
        for kind in ("float32", "autocast", "autocast, backward within"):

            def run(function=function, kind=kind):
                x, w = torch.randn(4, 6, requires_grad=True), nn.Parameter(torch.randn(6, 6))
                with torch.autocast("cpu", torch.bfloat16, enabled=kind != "float32"):
                    out = function(x, w)
                    loss = out.float().square().sum()
                    if kind.endswith("within"):
                        loss.backward()
                if not kind.endswith("within"):
                    loss.backward()
                return {"forward": out, "backward": [x.grad, w.grad]}

            yield f"{name}, {kind}", run


def cases():
    yield "optimizers", of_optimizers
    yield "scalers", of_scalers
    yield "custom ops", of_custom
