"""Operators whose kernels are Python functions, and their call: autocast, autograd, device kernel.

A kernel belongs to a dispatch key: "CPU", "CUDA", "Meta", "CompositeExplicitAutograd" (every device),
"CompositeImplicitAutograd" (every device, differentiated through) or "Autograd" (called first; it calls the operator again
in `torch._C._AutoDispatchBelowAutograd`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from ..autograd import Function
from ..overrides import named_by_text
from . import fake_context
from .compiled import CompiledKernel
from .handlers import call_function_handlers, call_handlers, flat_arguments, kernel_takes
from .kept_results import run_kernel
from .schema import Schema

_below = threading.local()


class BelowAutograd:
    """A context in which operators skip their autograd kernels and record nothing."""

    def __enter__(self) -> None:
        _below.depth = getattr(_below, "depth", 0) + 1

    def __exit__(self, *exc: object) -> None:
        _below.depth -= 1


def tensors_in(values: Any) -> Iterator[Tensor]:
    """The tensors among values and in their lists and tuples."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def first_tensor(values: Any) -> Tensor | None:
    """The first of tensors_in()."""
    for value in values:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, (list, tuple)) and (found := first_tensor(value)) is not None:
            return found
    return None


def _requires_grad(values: Any) -> bool:
    """Whether one of tensors_in() does."""
    for value in values:
        if value.requires_grad if isinstance(value, Tensor) else isinstance(value, (list, tuple)) and _requires_grad(value):
            return True
    return False


def _contains(values: Any, tensor: Tensor) -> bool:
    """Whether the object is one of tensors_in()."""
    for value in values:
        if value is tensor or (isinstance(value, (list, tuple)) and _contains(value, tensor)):
            return True
    return False


_AUTOGRAD_KEYS = {"cpu": ("AutogradCPU", "Autograd"), "cuda": ("AutogradCUDA", "Autograd")}


class OpOverload:
    """One overload of a custom operator: its schema, kernels and derivative. Called like a function."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.namespace, _, self._opname = schema.name.partition("::")
        self._overloadname = schema.overload_name or "default"
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__module__ = f"torch._ops.{self.namespace}"
        self.kernels: dict[str, Callable] = {}
        self.disabled: set[str] = set()
        self.fake: Callable | None = None
        self.backward: Callable | None = None
        self.setup_context: Callable | None = None
        self.autocast: dict[str, _C.dtype] = {}
        self.vmap_rule: Callable | None = None  # (info, in_dims, *args, **kwargs) -> (results, out_dims)
        self.dispatch_rules: dict[type, Callable] = {}  # by class of a tensor or of a dispatch mode, instead of its __torch_dispatch__
        self.tags: list[Any] = []  # as given to library.define()
        self.sharded: Callable | None = None  # computes a call with DTensors: (positional, keyword) -> results

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __deepcopy__(self, _: dict[int, Any]) -> OpOverload:
        return self

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def name(self) -> str:
        """The qualified name, with the overload's name if it has one."""
        return f"{self._schema.name}{'.' + self._schema.overload_name if self._schema.overload_name else ''}"

    def has_kernel_for_dispatch_key(self, key: str) -> bool:
        """Whether a kernel was registered for the key itself."""
        return str(key).rpartition(".")[2] in self.kernels

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            positional, keyword = self._schema.bind(args, kwargs)
        except RuntimeError:  # an object that stands for a tensor, such as a Proxy
            result = call_function_handlers(self, args, kwargs)
            if result is NotImplemented:
                raise
            return result
        return self._call_bound(positional, keyword)

    def _call_bound(self, positional: list, keyword: dict) -> Any:
        """Calls the operator with the values that its schema has bound."""
        values = flat_arguments(positional, keyword)
        if not _C._has_torch_function(values) and (not _C._is_dispatched(values) or kernel_takes(self, values)):
            return self.run(positional, keyword)
        composed = self.kernels.keys() <= {"CompositeImplicitAutograd"} and self.fake is None
        result = call_handlers(self, *self._schema.without_defaults(positional, keyword), dispatches=not composed)
        return self.run(positional, keyword) if result is NotImplemented else result

    def run(self, positional: list, keyword: dict) -> Any:
        """Calls the kernel with all arguments, without handlers of the call itself."""
        first = first_tensor(positional) if not keyword else first_tensor([*positional, *keyword.values()])
        device = "cpu" if first is None else first.device.type
        if device in ("cpu", "cuda") and _C.autocast_dtype(device) is not None:
            if f"Autocast{device.upper()}" in self.kernels:
                return self.kernels[f"Autocast{device.upper()}"](*positional, **keyword)
            if device in self.autocast:
                return self._with_autocast(device, self.autocast[device], positional, keyword)
        return self._call(device, positional, keyword)

    def _with_autocast(self, device: str, dtype: _C.dtype, positional: list, keyword: dict) -> Any:
        from ..amp import autocast

        def cast(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(map(cast, value))
            floating = isinstance(value, Tensor) and value.is_floating_point() and value.dtype != _C.float64
            return value.to(dtype) if floating else value

        with autocast(device, enabled=False):
            return self._call(device, [cast(v) for v in positional], {k: cast(v) for k, v in keyword.items()})

    def _call(self, device: str, positional: list, keyword: dict) -> Any:
        below = getattr(_below, "depth", 0)
        if not below:
            for key in _AUTOGRAD_KEYS.get(device) or (f"Autograd{device.upper()}", "Autograd"):
                if key in self.kernels:
                    return self.kernels[key](*positional, **keyword)
        kernel = self._kernel(device)
        if kernel is self.kernels.get("CompositeImplicitAutograd"):
            return kernel(*positional, **keyword)
        if below or not (_C.is_grad_enabled() and (_requires_grad(positional) or _requires_grad(keyword.values()))):
            return self._checked(run_kernel(kernel, positional, keyword), positional)
        if isinstance(kernel, CompiledKernel) and self.backward is None and not self._schema.is_mutable:
            return self._checked(kernel(*positional, **keyword), positional)  # the Program's calls are recorded
        return _differentiated(self, kernel, positional, keyword)

    def _kernel(self, device: str) -> Callable:
        key = {"meta": "Meta"}.get(device, device.upper())
        if key == "Meta" and "Meta" not in self.kernels and self.fake is not None:
            return fake_context.in_context(self.name(), self.fake)
        for name in (key, "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
            if name in self.kernels and not (name is key and key in self.disabled):
                return self.kernels[name]
        raise NotImplementedError(
            f"Could not run '{self.name()}' with arguments from the '{key}' backend: kernels are registered for "
            f"{', '.join(self.kernels) or 'no dispatch key'}"
        )

    def _checked(self, result: Any, positional: Sequence[Any]) -> Any:
        """Raises RuntimeError if an output is an input, which PyTorch does not allow in operators that change nothing."""
        if self._schema.is_mutable:
            return result
        if isinstance(result, Tensor):
            is_input = _contains(positional, result)
        else:
            is_input = any(_contains(positional, r) for r in tensors_in([result]))
        if is_input:
            raise RuntimeError(
                f"{self._opname}: The output of this custom operator must not also be an input to this custom operator; "
                "return a clone of it (x.clone())"
            )
        return result


def _differentiated(op: OpOverload, kernel: Callable, positional: list, keyword: dict) -> Any:
    """Calls the kernel without recording and records the operator's own derivative."""
    places = [(i, j) for i, v in enumerate(positional) for j in _tensor_positions(v)]
    tensors = [positional[i] if j is None else positional[i][j] for i, j in places]
    lists = [isinstance(v, (list, tuple)) for v in positional]
    several = [False]

    class Recorded(Function):
        """The operator's derivative."""

        @staticmethod
        def forward(ctx: Any, *flat: Tensor) -> Any:
            values = [list(v) if many else v for v, many in zip(positional, lists)]
            for (i, j), t in zip(places, flat):
                if j is None:
                    values[i] = t
                else:
                    values[i][j] = t
            result = op._checked(run_kernel(kernel, values, keyword), values)
            needs = [[False] * len(v) if many else False for v, many in zip(positional, lists)]
            for (i, j), need in zip(places, ctx.needs_input_grad):
                if j is None:
                    needs[i] = need
                else:
                    needs[i][j] = need
            flat_needs, ctx.needs_input_grad = ctx.needs_input_grad, tuple(needs)
            if op.setup_context is not None:
                extra = {"keyword_only_inputs": keyword} if keyword else {}
                op.setup_context(ctx=ctx, inputs=tuple(values), output=result, **extra)
            ctx.structured_needs, ctx.needs_input_grad = ctx.needs_input_grad, flat_needs
            written = [t for (i, _), t in zip(places, flat) if op._schema.arguments[i].is_write]
            if written:
                ctx.mark_dirty(*written)
            several[0] = isinstance(result, list)
            return tuple(result) if several[0] else result

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> Any:
            if op.backward is None:
                raise RuntimeError(
                    f"Trying to backward through {op} but no autograd formula was registered. "
                    "Please use register_autograd to add one."
                )
            ctx.needs_input_grad = ctx.structured_needs
            found = op.backward(ctx, list(gradients)) if several[0] else op.backward(ctx, *gradients)
            found = found if isinstance(found, tuple) else (found,)
            if len(found) != len(positional):
                raise RuntimeError(f"{op}: expected backward to return {len(positional)} gradients, got {len(found)}")
            return tuple(found[i] if j is None or found[i] is None else found[i][j] for i, j in places)

    Recorded.__name__ = Recorded.__qualname__ = f"GeneratedBackwardFor_{op.namespace}_{op.__name__.replace('.', '_')}"
    result = Recorded.apply(*tensors)
    return list(result) if several[0] else result


def _tensor_positions(value: Any) -> list[int | None]:
    """The positions of tensors in an argument: None for the argument itself."""
    if isinstance(value, Tensor):
        return [None]
    return [j for j, v in enumerate(value) if isinstance(v, Tensor)] if isinstance(value, (list, tuple)) else []


class OpOverloadPacket:
    """The overloads of a custom operator. A call uses the first whose schema accepts the arguments."""

    def __init__(self, qualified_name: str) -> None:
        self._qualified_op_name = qualified_name
        namespace, _, self.__name__ = qualified_name.partition("::")
        self.__module__ = f"torch._ops.{namespace}"
        self._overloads: dict[str, OpOverload] = {}

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._overloads]

    def __deepcopy__(self, _: dict[int, Any]) -> OpOverloadPacket:
        return self

    def overloads(self) -> list[str]:
        """The overloads' names; "default" is that of one without a name."""
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        if name in self.__dict__.get("_overloads", ()):
            return self._overloads[name]
        raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        result = call_function_handlers(self, args, kwargs)
        return self._call_matching(args, kwargs) if result is NotImplemented else result

    def _call_matching(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Calls the first overload that accepts the arguments with the values bound there: iterators can be read only once."""
        if len(self._overloads) == 1:
            return next(iter(self._overloads.values()))(*args, **kwargs)
        errors = []
        for overload in self._overloads.values():
            try:
                bound = overload._schema.bind(args, kwargs)
            except RuntimeError as e:
                errors.append(str(e))
                continue
            return overload._call_bound(*bound)
        raise RuntimeError(
            "\n".join(["Overloaded torch operator invoked from Python failed to match any schema:", *errors])
        )


named_by_text += [OpOverload, OpOverloadPacket]
