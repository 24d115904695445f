"""What a step depends on apart from weights and inputs: random generators and autocast."""
from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Iterable, Iterator, Optional

import torch


@dataclass
class Generators:
    """States of the default generators: the CPU's, and those of the GPUs that were named."""

    cpu: torch.Tensor
    gpus: dict[int, torch.Tensor] = field(default_factory=dict)

    @staticmethod
    def now(devices: Iterable[torch.device] = ()) -> "Generators":
        gpus = {device.index or 0: torch.cuda.get_rng_state(device) for device in devices if device.type == "cuda"}
        return Generators(torch.get_rng_state(), gpus)

    def philox(self) -> dict[str, dict[str, int]]:
        """Seed and offset of each GPU's generator. They are its whole state."""
        return {f"cuda:{index}": {"seed": int.from_bytes(bytes(state[:8].tolist()), "little", signed=True), "offset": int.from_bytes(bytes(state[8:16].tolist()), "little", signed=True)}
                for index, state in self.gpus.items() if state.numel() == 16}

    def restore(self) -> None:
        torch.set_rng_state(self.cpu)
        for index, state in self.gpus.items():
            torch.cuda.set_rng_state(state, index)

    def differs(self, other: "Generators") -> bool:
        return not torch.equal(self.cpu, other.cpu) or any(not torch.equal(state, other.gpus[i]) for i, state in self.gpus.items() if i in other.gpus)

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Repeats the draws since this state; afterwards the generators are as they were before."""
        before = Generators(torch.get_rng_state(), {i: torch.cuda.get_rng_state(i) for i in self.gpus})
        self.restore()
        try:
            yield
        finally:
            before.restore()


@dataclass(frozen=True)
class Autocast:
    """Autocast of each device type, as it was when a model was called."""

    on: tuple[tuple[str, torch.dtype], ...]

    @staticmethod
    def now(devices: Iterable[torch.device] = ()) -> "Autocast":
        kinds = sorted({"cpu", *(device.type for device in devices if device.type != "meta")})
        return Autocast(tuple((kind, torch.get_autocast_dtype(kind)) for kind in kinds if torch.is_autocast_enabled(kind)))

    @contextlib.contextmanager
    def again(self, devices: Iterable[torch.device] = ()) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            on = dict(self.on)
            for kind in sorted({"cpu", *on, *(device.type for device in devices if device.type != "meta")}):
                enabled = kind in on
                if enabled or torch.is_autocast_enabled(kind):
                    stack.enter_context(torch.autocast(kind, dtype=on.get(kind), enabled=enabled, cache_enabled=False))
            yield

    def text(self) -> Optional[str]:
        return ", ".join(f"{kind}: {str(dtype).removeprefix('torch.')}" for kind, dtype in self.on) or None
