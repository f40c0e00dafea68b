"""The functions of torch.library that add a kernel or a derivative to an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import registry
from .operators import OpOverload, OpOverloadPacket


def _overload(op: Any) -> OpOverload:
    op = getattr(op, "_opoverload", op)  # of a CustomOpDef
    if isinstance(op, OpOverloadPacket):
        return op.default
    return op if isinstance(op, OpOverload) else registry.find(op)


def _decorator(register: Callable, func: Callable | None) -> Any:
    def apply(f: Callable) -> Callable:
        register(f)
        return f

    return apply if func is None else apply(func)


_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "default": "CompositeExplicitAutograd", None: "CompositeExplicitAutograd"}


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Adds a kernel for the device types ("cpu", "cuda"), or for all with None. `lib` has no effect."""
    operator = _overload(op)
    kinds = [device_types] if device_types is None or isinstance(device_types, str) else device_types

    def register(f: Callable) -> None:
        for kind in kinds:
            if kind not in _KEYS:
                raise ValueError(f"[register_kernel] expected a device type of cpu, cuda or meta, got {kind!r}")
            operator.kernels[_KEYS[kind]] = f

    return _decorator(register, func)


def register_autograd(op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None) -> None:
    """Sets an operator's derivative: `backward(ctx, *gradients)` returns a gradient or None for each positional argument.

    `setup_context(ctx, inputs, output)` runs after the kernel and may save tensors. `lib` has no effect.
    """
    operator = _overload(op)
    if operator._schema.is_mutable and operator._schema.returns != "()":
        raise RuntimeError(f"Cannot register autograd formula for non-functional operator {operator} with schema {operator._schema}.")
    operator.backward, operator.setup_context = backward, setup_context


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Casts the operator's floating-point tensors to a dtype while autocast is enabled. `lib` has no effect."""
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    _overload(op).autocast[device_type] = cast_inputs


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Raises NotImplementedError: vmap calls custom operators' functions on batched tensors."""
    raise NotImplementedError("[register_vmap] vmap has no rules for custom operators")


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Raises NotImplementedError: the __torch_dispatch__ of the class itself is called, also for custom operators."""
    raise NotImplementedError("[register_torch_dispatch] define the class's __torch_dispatch__ instead")


for _function in (register_autocast, register_autograd, register_kernel, register_torch_dispatch, register_vmap):
    _function.__module__ = "teletensor.library"
