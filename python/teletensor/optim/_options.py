"""Checks of options that optimizers share."""

from __future__ import annotations

import struct
from typing import Any

from .. import _C
from .._C import Tensor

_FUSED_DEVICES = ("cuda", "cpu")
_CAPTURABLE_DEVICES = ("cuda",)


def require_non_negative(values: dict[str, float]) -> None:
    """Raises ValueError if an option is negative. The keys are PyTorch's names of the options."""
    for name, value in values.items():
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name}: {value}")


def check_lr(lr: Any, foreach: bool | None = None, capturable: bool = False) -> None:
    """Raises ValueError for a tensor whose size is not 1, and for tensors that PyTorch's implementation rejects."""
    if isinstance(lr, Tensor):
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")


def check_betas(betas: Any, foreach: bool | None = None, capturable: bool = False) -> None:
    """Raises ValueError unless the betas are in [0, 1), and both numbers or both tensors of one element."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
    if any(isinstance(b, Tensor) != isinstance(betas[0], Tensor) for b in betas):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if not capturable and foreach:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")


def implementation(**flags: Any) -> dict:
    """Checks and returns the options that select one of PyTorch's implementations of a step.

    There is one implementation here, so foreach and fused do not change it; combinations that PyTorch rejects raise its
    errors.
    """
    if flags.get("fused"):
        if flags.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")
        if flags.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    return flags


def recorded(group: dict, value: Any) -> float | Tensor:
    """An option as a number, or as the tensor whose gradient a differentiable step records."""
    is_recorded = isinstance(value, Tensor) and value.requires_grad and group.get("differentiable")
    return value if is_recorded else float(value)


def recorded_rate(group: dict) -> float | Tensor:
    """The learning rate, as recorded() returns it."""
    return recorded(group, group["lr"])


def check_implementation(group: dict, params: list[Tensor], recorded_options: tuple[str, ...]) -> None:
    """Raises PyTorch's errors for fused=True and capturable=True with parameters that PyTorch's implementation rejects, and
    NotImplementedError for options whose gradients a differentiable step would lose.
    """
    if group.get("differentiable"):
        if group.get("foreach"):
            raise AssertionError("_foreach ops don't support autograd")
        for name, value in group.items():
            values = value if isinstance(value, (tuple, list)) and name != "params" else (value,)
            if any(isinstance(v, Tensor) and v.requires_grad for v in values) and name not in recorded_options:
                raise NotImplementedError(f"[step] expected {name} to be a number: its gradient is not recorded")
    for p in params if group.get("fused") else ():
        if not p.is_floating_point():
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                f"{list(_FUSED_DEVICES)} but {p.dtype} and {p.device.type}"
            )
    is_loop = group.get("capturable") and not group.get("fused")  # PyTorch's fused kernels always are capturable
    if is_loop and any(p.device.type not in _CAPTURABLE_DEVICES for p in params):
        raise AssertionError(
            f"If capturable=True, params and state_steps must be on supported devices: {list(_CAPTURABLE_DEVICES)}."
        )


def state_dtype() -> _C.dtype:
    """The dtype of numbers in state dicts, as in PyTorch: float64 if it is the default dtype, otherwise float32."""
    return _C.float64 if _C.default_dtype() is _C.float64 else _C.float32


def as_saved(value: float) -> float:
    """The number rounded to the precision of state dicts, so that training resumed from a state dict gives the same
    result.
    """
    return value if state_dtype() is _C.float64 else struct.unpack("f", struct.pack("f", value))[0]
