"""What a step's numbers say: norms of the gradients and losses, taken on their device and read at once or late, and judged."""
from __future__ import annotations

import math
import statistics
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence

import torch

from ._folder import number
from ._norms import norms, values_of

REMEMBERED = 50  # steps
BUFFER = "buffer "  # begins what a message calls one
FEWEST_FOR_A_SPIKE = 10


@dataclass(frozen=True)
class Failure:
    """What went wrong."""

    kind: str  # nan_loss, nan_output, nan_gradient, nan_norm, nan_weight, nan_buffer, spike, exception
    message: str
    names: Sequence[str] = ()  # of parameters with a NaN or Inf in their gradient, or whose gradients overflow the norm
    loss: Optional[float] = None
    norm: Optional[float] = None

    @property
    def has_root(self) -> bool:
        """Whether the step has an op that made a first NaN or Inf."""
        return self.kind in ("nan_loss", "nan_output", "nan_gradient")


def on_gpu(model: torch.nn.Module) -> bool:
    return any(p.device.type == "cuda" for p in model.parameters())


class Reading:
    """Numbers of one backward: the norm of all gradients, of each, of tensors that are `apart` from these, and losses. On a GPU they are copied to the CPU in the background, so that taking them does not wait
    for the GPU; `values` waits where they are not there yet."""

    def __init__(self, gradients: Mapping[str, torch.Tensor], apart: Mapping[str, torch.Tensor], losses: Sequence[torch.Tensor], late: bool):
        each = norms(list(gradients.values()))
        total = [torch.linalg.vector_norm(torch.stack(each))] if each else []
        self._has_norm = bool(each)
        self.names = [name for some in (gradients, apart) for name, tensor in some.items() if tensor.numel()]
        parts = [*total, *each, *norms(list(apart.values())), *(loss.detach().reshape(()) for loss in losses)]
        self._count = len(losses)
        device = parts[0].device if parts else torch.device("cpu")
        wide = any(part.dtype == torch.float64 for part in parts)
        numbers = torch.stack([part.to(device, torch.float64 if wide else torch.float32) for part in parts]) if parts else torch.zeros(0)
        self._event = copied_in_background(numbers) if late else None
        self._numbers = self._event.numbers if self._event is not None else numbers

    @property
    def is_there(self) -> bool:
        return self._event is None or self._event.query()

    def values(self) -> tuple[Optional[float], dict[str, float], list[float]]:
        """The norm of all gradients (None without any), the norm of each by name, and the losses."""
        if self._event is not None:
            self._event.synchronize()
        read: list[float] = self._numbers.tolist()
        losses = read[len(read) - self._count:]
        each = read[self._has_norm:len(read) - self._count]
        return (read[0] if self._has_norm else None), dict(zip(self.names, each)), losses


class InBackground:
    """A copy of numbers on the CPU that the GPU writes in the background."""

    def __init__(self, numbers: torch.Tensor):
        self.numbers = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        self.numbers.copy_(numbers, non_blocking=True)
        self._event: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._event.record(torch.cuda.current_stream(numbers.device))

    def query(self) -> bool:
        return bool(self._event.query())

    def synchronize(self) -> None:
        self._event.synchronize()


def copied_in_background(numbers: torch.Tensor) -> InBackground:
    return InBackground(numbers)


def gradients_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: values_of(p.grad) for name, p in model.named_parameters() if p.grad is not None}


def judged(reading: Reading, scale: Optional[Scale], looked: Optional[Mapping[str, torch.Tensor]] = None) -> tuple[Optional[Failure], Optional[float], Optional[float]]:
    """What is wrong, if anything; the loss and the norm of all gradients. `looked`: the tensors of the reading, if they are unchanged."""
    norm, each, losses = reading.values()
    wrong = [loss for loss in losses if not math.isfinite(loss)]
    loss = wrong[0] if wrong else losses[-1] if losses else None
    suspects = [name for name, one in each.items() if not math.isfinite(one)]
    if not wrong and not suspects and (norm is None or math.isfinite(norm)):
        return None, loss, norm
    bad = [name for name in suspects if math.isnan(each[name]) or looked is None or not bool(torch.isfinite(looked[name]).all())]
    if wrong:
        return Failure("nan_loss", f"the loss is {loss}" + ("; a smaller scale cannot mend it" if scale is not None else ""), bad, loss, norm), loss, norm
    buffers = [name for name in bad if name.startswith(BUFFER)]
    if buffers:
        return Failure("nan_buffer", f"the forward wrote a NaN or Inf into {buffers[0]}{more(buffers)}", buffers, loss, norm), loss, norm
    falls = "" if scale is None else scale.no_longer_falls(bool(bad))
    if falls is None:
        return None, loss, norm  # the scaler leaves this step out and takes a smaller scale: nothing is wrong
    if bad:
        return Failure("nan_gradient", f"the gradient of {bad[0]}{more(bad)} has a NaN or Inf{falls}", bad, loss, norm), loss, norm
    large = suspects or sorted(each, key=lambda name: -each[name])[:3]
    largest = f", whose largest element is {float(looked[large[0]].abs().max()):.3g}" if looked is not None and large else ""
    return Failure("nan_norm", f"the norm of all gradients is {norm}, though each element is finite: the squares overflow in {large[0] if large else 'a gradient'}{more(large)}"
                   f"{largest}{falls}", large, loss, norm), loss, norm


class Scale:
    """The scale of a GradScaler, which falls while gradients overflow, until it cannot fall further. Watches what the loop does with the scaler."""

    def __init__(self, scaler: Any, scaled: Callable[[torch.Tensor], None]):
        """`scaled` is called with each loss before it is scaled."""
        self._scaler, self._scaled = scaler, scaled
        self._own = {name: getattr(scaler, name) for name in ("scale", "step") if callable(getattr(scaler, name, None))}
        self._overflows = False  # since the last step
        self._overflowed: Optional[float] = None  # the scale at the last step, where it had overflowed

    def start(self) -> None:
        for name, around in (("scale", self._scale), ("step", self._step)):
            if name in self._own:
                setattr(self._scaler, name, around)

    def stop(self) -> None:
        for name in self._own:
            self._scaler.__dict__.pop(name, None)

    def _scale(self, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        for loss in [outputs] if isinstance(outputs, torch.Tensor) else outputs if isinstance(outputs, (list, tuple)) else []:
            self._scaled(loss)
        return self._own["scale"](outputs, *args, **kwargs)

    def _step(self, *args: Any, **kwargs: Any) -> Any:
        self._overflowed = float(self._scaler.get_scale()) if self._overflows else None
        self._overflows = False
        return self._own["step"](*args, **kwargs)

    def no_longer_falls(self, elements: bool) -> Optional[str]:
        """Gradients are not finite (their elements, else their norm alone): what says that this is not for the scale; None where a smaller one may mend it."""
        scale = float(self._scaler.get_scale())
        self._overflows |= elements
        if not 1 < scale < math.inf:
            return ""
        return f", and the scale, {scale:g}, no longer falls" if elements and self._overflowed is not None and scale >= self._overflowed else None


def bad_weights(model: torch.nn.Module) -> list[str]:
    """Names of the parameters with a NaN or Inf."""
    return [name for name, p in model.named_parameters() if p.layout == torch.strided and not bool(torch.isfinite(p.detach()).all())]


def more(names: Sequence[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


@dataclass
class History:
    """The last steps: losses, norms, learning rates."""

    steps: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def add(self, step: int, microbatch: int, loss: Optional[float], norm: Optional[float], rates: Sequence[Any]) -> None:
        self.steps.append({"step": step, "microbatch": microbatch, "loss": loss, "gradient_norm": norm, "learning_rates": list(rates)})

    @property
    def accumulates(self) -> bool:
        """Whether an update had several backwards."""
        return any(step["microbatch"] for step in self.steps)

    def spike(self, loss: Optional[float], norm: Optional[float], times: Optional[float]) -> Optional[Failure]:
        """A loss or norm that is `times` the median of those before it."""
        for what, key, value in (("the loss", "loss", loss), ("the norm of all gradients", "gradient_norm", norm)):
            before = [step[key] for step in self.steps if step[key] is not None and math.isfinite(step[key])]
            if times is None or value is None or len(before) < FEWEST_FOR_A_SPIKE:
                continue
            middle = statistics.median(before)
            if middle > 0 and value > times * middle:
                return Failure("spike", f"{what} is {value:.6g}, {value / middle:.3g} times the median of the last {len(before)} ({middle:.6g})", (), loss, norm)
        return None

    def json(self) -> list[dict[str, Any]]:
        def plain(value: Any) -> Any:
            return [plain(one) for one in value] if isinstance(value, list) else number(float(value)) if isinstance(value, (float, torch.Tensor)) else value

        return [{key: plain(value) for key, value in step.items() if value not in (None, [])} for step in self.steps]


def optimizer_json(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The optimizer's kind and settings."""
    def plain(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return [plain(one) for one in value]
        if isinstance(value, (bool, str)) or value is None:
            return value
        return number(float(value)) if isinstance(value, (int, float)) or isinstance(value, torch.Tensor) and value.numel() == 1 else str(value)

    kind = type(optimizer)
    return {"kind": f"{kind.__module__}.{kind.__qualname__}", "groups": [{key: len(value) if key == "params" else plain(value) for key, value in group.items()}
                                                                       for group in optimizer.param_groups]}


class KeptWeights:
    """The weights from before the last update, for a failure that is read after it."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter]):
        self._parameters = list(parameters)
        self._copies = [torch.empty_like(p.detach()) for p in parameters]
        self.update = -1  # the update they are from before

    @staticmethod
    def size(parameters: Sequence[torch.nn.Parameter]) -> int:
        return sum(p.numel() * p.element_size() for p in parameters)

    def fit(self, parameters: Sequence[torch.nn.Parameter]) -> bool:
        return len(parameters) == len(self._parameters) and all(a is b for a, b in zip(parameters, self._parameters))

    def keep(self, update: int) -> None:
        with torch.no_grad():
            torch._foreach_copy_(self._copies, [p.detach() for p in self._parameters])
        self.update = update

    def exchange(self) -> None:
        """Swaps the copies with the model's own weights."""
        for i, p in enumerate(self._parameters):
            p.data, self._copies[i] = self._copies[i], p.data
