"""The functions of torch.library that add a kernel or a derivative to an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import registry
from .handlers import classes_with_rules
from .operators import OpOverload, OpOverloadPacket


def _overload(op: Any) -> OpOverload:
    op = getattr(op, "_opoverload", op)  # of a CustomOpDef
    if isinstance(op, OpOverloadPacket):
        return op.default
    return op if isinstance(op, OpOverload) else registry.find(op)


def _kernels(op: Any) -> dict[str, Callable]:
    """The kernels of an operator by dispatch key; of one given by its name also before it is defined."""
    return registry.kernels(op) if isinstance(op, str) else _overload(op).kernels


def _decorator(register: Callable, func: Callable | None) -> Any:
    def apply(f: Callable) -> Callable:
        register(f)
        return f

    return apply if func is None else apply(func)


_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "default": "CompositeExplicitAutograd", None: "CompositeExplicitAutograd"}


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Adds a kernel for the device types ("cpu", "cuda"), or for all with None. `lib` has no effect.

    An operator given by its name may be defined later.
    """
    kinds = [device_types] if device_types is None or isinstance(device_types, str) else device_types

    def register(f: Callable) -> None:
        for kind in kinds:
            if kind not in _KEYS:
                raise ValueError(f"[register_kernel] expected a device type of cpu, cuda or meta, got {kind!r}")
            _kernels(op)[_KEYS[kind]] = f

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
    """Sets how vmap computes the operator for all entries at once.

    `func(info, in_dims, *args, **kwargs)` receives tensors with the batch in the dimensions `in_dims` (None: not mapped; a list for a
    list of tensors) and returns (results, out_dims). `info` has `batch_size` and `randomness`. Without a rule, vmap calls the
    operator's function with mapped tensors. `lib` has no effect.
    """
    operator = _overload(op)

    def register(f: Callable) -> None:
        operator.vmap_rule = f

    return _decorator(register, func)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Sets the function that handles the operator's calls instead of the class's `__torch_dispatch__`.

    `func(mode, op, types, args, kwargs)` receives the mode, or the class of the tensors. The class must be the one of the tensor or
    mode itself: subclasses do not inherit the rule. `lib` has no effect.
    """
    operator = _overload(op)
    if not (isinstance(torch_dispatch_class, type) and hasattr(torch_dispatch_class, "__torch_dispatch__")):
        raise ValueError(f"[register_torch_dispatch] expected a class with __torch_dispatch__, got {torch_dispatch_class!r}")
    if torch_dispatch_class in operator.dispatch_rules:
        raise RuntimeError(f"{torch_dispatch_class} already has a `__torch_dispatch__` rule registered for {operator.name()}")

    def register(f: Callable) -> None:
        classes_with_rules.add(torch_dispatch_class)
        operator.dispatch_rules[torch_dispatch_class] = f

    return _decorator(register, func)


for _function in (register_autocast, register_autograd, register_kernel, register_torch_dispatch, register_vmap):
    _function.__module__ = "teletensor.library"
