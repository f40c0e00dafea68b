"""The result of torch.library.custom_op: a function with methods that register its kernels and derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import registrations, registry
from .compiled import CompiledKernel
from .dispatch import EngineOverload
from .loaded import LoadedOverload, LoadedPacket
from .operators import OpOverload, OpOverloadPacket
from .schema import infer_schema, parse


class CustomOpDef:
    """A custom operator; calling it calls the operator. See torch.library for the methods."""

    def __init__(self, operator: OpOverload, function: Callable) -> None:
        self._opoverload, self._init_fn = operator, function
        self._namespace, self._name = operator.namespace, operator._opname
        self.__name__, self.__doc__ = self._name, function.__doc__

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Any:
        """torch.library.register_kernel for this operator."""
        return registrations.register_kernel(self, device_types, fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """torch.library.register_fake for this operator."""
        self._opoverload.fake = fn
        return fn

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """torch.library.register_autograd for this operator."""
        registrations.register_autograd(self, backward, setup_context=setup_context)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """torch.library.register_autocast for this operator."""
        registrations.register_autocast(self, device_type, cast_inputs)

    def register_vmap(self, func: Callable | None = None) -> Any:
        """torch.library.register_vmap for this operator."""
        return registrations.register_vmap(self, func)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable | None = None, /) -> Any:
        """torch.library.register_torch_dispatch for this operator."""
        return registrations.register_torch_dispatch(self, torch_dispatch_class, fn)

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Any:
        """Enables or disables the kernel of a device type; the kernel for all devices then applies. Also works as a
        context manager.
        """
        import contextlib

        disabled, key = self._opoverload.disabled, device_type.upper()
        previous = key in disabled
        (disabled.discard if enabled else disabled.add)(key)
        stack = contextlib.ExitStack()
        stack.callback(disabled.add if previous else disabled.discard, key)
        return stack


COMPOSED = "_consists_of_engine_operators"  # an attribute of functions that call operators of the engine, and read no values


def is_operator(obj: Any) -> bool:
    """Whether an object is an operator of torch.ops or of torch.library.custom_op, but not of a library of the engine."""
    return isinstance(obj, (CustomOpDef, OpOverload, OpOverloadPacket)) and not isinstance(obj, (LoadedOverload, LoadedPacket))


def consists_of_engine_operators(operator: Any) -> bool:
    """Whether calls of an operator only compute results in the engine: those of torch.ops.aten and torch.ops.teletensor, of
    compile=True, and those whose kernels are marked with COMPOSED.

    The functions of other custom operators are Python code that each call must run, with its side effects.
    """
    overload = getattr(operator, "_opoverload", operator)
    if overload.__module__ == "torch._ops.aten" or isinstance(overload, EngineOverload):
        return True
    if isinstance(overload, OpOverloadPacket):
        overload = getattr(overload, "default", None)
    if overload is None or overload._schema.is_mutable or not overload.kernels:
        return False
    return all(isinstance(kernel, CompiledKernel) or hasattr(kernel, COMPOSED) for kernel in overload.kernels.values())


def overload_with_fake(operator: Any) -> OpOverload | None:
    """The overload of a custom operator that writes to no argument and has a function for fake tensors; None for others."""
    overload = getattr(operator, "_opoverload", operator)
    if isinstance(overload, OpOverloadPacket):
        overload = getattr(overload, "default", None)
    if not isinstance(overload, OpOverload) or overload._schema.is_mutable or not overload.kernels:
        return None
    return overload if overload.fake is not None else None


def define_custom_op(name: str, fn: Callable, mutates_args: Any, device_types: Any, schema: str | None, compiled: bool) -> CustomOpDef:
    """Defines the operator "namespace::name" by a function; see torch.library.custom_op."""
    if "::" not in name:
        raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {name}")
    text = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
    namespace, _, base = name.partition("::")
    previous = registry.packet(namespace, base)
    if previous is not None:  # PyTorch replaces a custom operator that is defined again, as notebooks do
        registry.remove(previous.default)
    operator = CustomOpDef(registry.define(parse(name + text)), fn)
    operator.register_kernel(device_types, CompiledKernel(name, fn) if compiled else fn)
    return operator
