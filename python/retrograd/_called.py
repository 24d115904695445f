"""The dispatcher's state at the call of an intercepted op: interception switches off the keys that come before it."""
from __future__ import annotations

from typing import Any, ContextManager

import torch

_C: Any = torch._C  # parts of it have no types
_KEYS = {"cpu": _C.DispatchKey.AutocastCPU, "cuda": _C.DispatchKey.AutocastCUDA}
_LAZY = _C.DispatchKeySet(_C.DispatchKey.Conjugate) | _C.DispatchKeySet(_C.DispatchKey.Negative) | _C.DispatchKeySet(_C.DispatchKey.ZeroTensor)
_CALLING = frozenset(("aten._trilinear", "aten.affine_grid_generator", "aten.linalg_polar"))  # whose kernels call ops that autocast casts
_OWN = frozenset(("aten", "prims", "_c10d_functional", "c10d"))


def as_called(function: Any) -> ContextManager[Any]:
    """For kernels that call other ops: keeps lazy conjugation and negation on for these, or they would read other numbers; and, for kernels of libraries and those that
    call what autocast casts, autocast as it was."""
    excluded = _C._dispatch_tls_local_exclude_set() - _LAZY
    if getattr(function, "namespace", "") not in _OWN or str(function).rpartition(".")[0] in _CALLING:
        for kind in casting():
            excluded = excluded - _C.DispatchKeySet(_KEYS[kind])
    guard: ContextManager[Any] = _C._ForceDispatchKeyGuard(_C._dispatch_tls_local_include_set(), excluded)
    return guard


def casting() -> list[str]:
    """Device types with autocast on at the call of the intercepted op; outside of an interception, with autocast on now."""
    try:
        with _C._RestorePythonTLSSnapshot():
            return [kind for kind in _KEYS if torch.is_autocast_enabled(kind)]
    except RuntimeError:  # a node or a higher-order op, which the dispatcher does not pass on
        return [kind for kind in _KEYS if torch.is_autocast_enabled(kind)]
