"""torch.ops.aten: PyTorch's operators by name and overload, as calls of this package's functions.

The declarations in aten_schemas.txt are recorded from PyTorch for the operators that exist here
(tests/python/overrides/record_schemas.py). An overload passes its arguments to the function or method of the same name.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._layouts import contiguous_format
from ..overrides import signature_of
from . import attention, gradients, kernels
from .handlers import call_handlers
from .operators import OpOverload, OpOverloadPacket
from .places import REDUCTIONS, functional, public
from .schema import Schema, parse

# Operators whose function is in torch.nn.functional, and those of them that have another name there.
_IN_FUNCTIONAL = frozenset((
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy_loss", "gelu", "glu", "hardsigmoid",
    "hardswish", "hardtanh", "huber_loss", "l1_loss", "leaky_relu", "linear", "log_sigmoid", "mish", "mse_loss", "nll_loss",
    "nll_loss_nd", "one_hot", "pad", "relu6", "silu", "smooth_l1_loss", "soft_margin_loss", "softplus", "softshrink",
    "multi_margin_loss", "multilabel_margin_loss", "nll_loss2d", "embedding", "scaled_dot_product_attention", "avg_pool2d",
    "avg_pool3d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
))  # fmt: skip
_FUNCTIONAL_NAMES = {
    "cross_entropy_loss": "cross_entropy", "log_sigmoid": "logsigmoid", "nll_loss2d": "nll_loss", "nll_loss_nd": "nll_loss",
}  # fmt: skip
_RENAMED = {"self": "input", "indices": "input"}  # arguments that have another name there
# Arguments that Python functions accept as keywords only, although the operator has them in order.
_KEYWORDS = ("alpha", "beta")


def _to_copy(self: Tensor, *, dtype=None, device=None, non_blocking=False, memory_format=None, **_) -> Tensor:
    return self.to(dtype=dtype, device=device, non_blocking=non_blocking, copy=True, memory_format=memory_format)


def _softmax(function: Callable) -> Callable:
    def call(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
        return function(self, dim, dtype=_C.float32 if half_to_float else None)

    return call


def _unique_dim(self: Tensor, dim: int, sorted=True, return_inverse=False, return_counts=False) -> tuple:  # noqa: A002
    """Always returns the unique slices, the inverse indices and the counts."""
    return public("unique")(self, sorted, True, True, dim)


def _unique_consecutive(self: Tensor, return_inverse=False, return_counts=False, dim=None) -> tuple:
    """Always returns the first values of runs, the inverse indices and the counts."""
    return public("unique_consecutive")(self, True, True, dim)


def _max_pool2d_with_indices(self: Tensor, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False) -> tuple:
    pool = functional("max_pool2d")
    return pool(self, kernel_size, stride or None, padding, dilation, ceil_mode=ceil_mode, return_indices=True)


def _batch_norm_of_statistics(input: Tensor, weight, bias, running_mean, running_var, momentum, eps) -> tuple:  # noqa: A002
    result = public("native_batch_norm")(input, weight, bias, running_mean, running_var, False, momentum, eps)
    return result[0], input.new_empty(0), input.new_empty(0)


def _batch_norm_functional(input: Tensor, weight, bias, running_mean, running_var, training, momentum, eps) -> tuple:  # noqa: A002
    """Batch norm that returns the new running statistics instead of writing them."""
    mean, var = running_mean.clone(), running_var.clone()
    results = public("native_batch_norm")(input, weight, bias, mean, var, training, momentum, eps)
    return (*results, mean, var)


def _upsample(mode: str, is_aligned: bool = True) -> Callable:
    """An upsampling operator of one mode. Its overload `vec` has factors in place of a scale of each dimension."""

    def call(input: Tensor, output_size, *rest: Any, scale_factors=None, **named: Any) -> Tensor:  # noqa: A002
        interpolate = functools.partial(functional("interpolate"), input, mode=mode)
        scales = list(rest)
        if is_aligned:
            interpolate.keywords["align_corners"] = scales.pop(0) if scales else named.pop("align_corners")
        scales += named.values()
        if scales and isinstance(scales[0], (list, tuple)):
            scale_factors = scales.pop(0)
        if output_size is None:
            return interpolate(scale_factor=tuple(scale_factors))
        if scale_factors is not None:
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        if all(scale is None for scale in scales):
            return interpolate(size=tuple(output_size))
        if None in scales or [int(n * s) for n, s in zip(input.shape[2:], scales)] != list(output_size):
            raise NotImplementedError(f"[torch.ops.aten.upsample_{mode}] expected scales that lead to the output size, got {scales}")
        return interpolate(scale_factor=tuple(scales))

    return call


def _assert_scalar(self: Any, assert_msg: str) -> None:
    """Raises RuntimeError with a message unless a number or comparison is true."""
    if getattr(type(self), "is_condition", False):  # a recording of the graph
        self.require(assert_msg)
    elif not self:
        raise RuntimeError(assert_msg)


def _assert_tensor_metadata(a: Tensor, size=None, stride=None, dtype=None, *, device=None, layout=None) -> None:
    """Raises RuntimeError if a tensor has not these sizes, strides, dtype, device and layout."""
    for name, found, expected in (
        ("sizes", tuple(a.shape), size and tuple(size)), ("strides", tuple(a.stride()), stride and tuple(stride)),
        ("dtype", a.dtype, dtype), ("device", a.device, device and _C.device(device)), ("layout", a.layout, layout),
    ):  # fmt: skip
        if expected is not None and found != expected and not (name == "device" and "meta" in (found.type, expected.type)):
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {expected}, Got: {found}")


def _adaptive_max_pool(name: str) -> Callable:
    return lambda self, output_size: functional(name)(self, tuple(output_size), return_indices=True)


def _factor(normalization: int, count: int) -> float:
    return (1.0, count**-0.5, 1 / count)[normalization]


def _count(sizes, dim) -> int:
    return math.prod(sizes[d] for d in dim)


def _fft_r2c(self: Tensor, dim, normalization: int, onesided: bool) -> Tensor:
    scale = _factor(normalization, _count(self.shape, dim))
    if not onesided:
        return _C.ops.fft_c2c(self.to(_C.complex128 if self.dtype == _C.float64 else _C.complex64), list(dim), scale, True)
    return _C.ops.fft_r2c(self, list(dim), scale)


def _fft_c2r(self: Tensor, dim, normalization: int, last_dim_size: int) -> Tensor:
    sizes = list(self.shape)
    sizes[dim[-1]] = last_dim_size
    return _C.ops.fft_c2r(self, list(dim), _factor(normalization, _count(sizes, dim)), last_dim_size)


def _fft_c2c(self: Tensor, dim, normalization: int, forward: bool) -> Tensor:
    return _C.ops.fft_c2c(self, list(dim), _factor(normalization, _count(self.shape, dim)), forward)


def _sparse(name: str) -> Callable:
    """An operator of sparse tensors, which libraries look up to override it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"[aten::{name}] sparse layouts are not implemented")

    return call


def _method(name: str) -> Callable:
    """A call of the argument's own method, which its class may override."""
    return lambda self, *args, **kwargs: getattr(self, name)(*args, **kwargs)


# Functions with the parameters of the operator, in its order.
_IN_ORDER: dict[str, Callable] = {**attention.OPERATORS, **gradients.OPERATORS, **kernels.OPERATORS}

_OWN: dict[str, Callable] = {
    **{name: _method(name) for name in ("is_contiguous", "item", "numel", "size", "storage_offset", "stride")},
    "sym_is_contiguous": lambda self, memory_format=contiguous_format: self.is_contiguous(memory_format=memory_format),
    "sym_numel": lambda self: self.numel(),
    "sym_size": lambda self, dim=None: self.shape if dim is None else self.shape[dim],
    "sym_storage_offset": lambda self: self.storage_offset(),
    "sym_stride": lambda self, dim=None: self.stride() if dim is None else self.stride(dim),
    "_pin_memory": lambda self, device=None: self.pin_memory(),
    "_sparse_addmm": _sparse("_sparse_addmm"),
    "_sparse_mm_reduce_impl": _sparse("_sparse_mm_reduce_impl"),
    "alias": _C.ops.alias,
    "unique_consecutive": _unique_consecutive, "unique_dim": _unique_dim,
    "max_pool2d_with_indices": _max_pool2d_with_indices,
    "_adaptive_avg_pool2d": lambda self, output_size: functional("adaptive_avg_pool2d")(self, output_size),
    "_native_batch_norm_legit_functional": _batch_norm_functional,
    "_native_batch_norm_legit_no_training": _batch_norm_of_statistics,
    **{f"upsample_{m}{n}d": _upsample(m) for m, n in (("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3))},
    **{f"upsample_nearest{n}d": _upsample("nearest", False) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": _upsample("nearest-exact", False) for n in (1, 2, 3)},
    "_assert_scalar": _assert_scalar,
    "_assert_tensor_metadata": _assert_tensor_metadata,
    "adaptive_max_pool2d": _adaptive_max_pool("adaptive_max_pool2d"),
    "adaptive_max_pool3d": _adaptive_max_pool("adaptive_max_pool3d"),
    "im2col": lambda self, kernel_size, dilation, padding, stride: _C.ops.im2col(self, kernel_size, dilation, padding, stride),
    "col2im": lambda self, output_size, *rest: _C.ops.col2im(self, output_size, *rest),
    "_fft_r2c": _fft_r2c,
    "_fft_c2r": _fft_c2r,
    "_fft_c2c": _fft_c2c,
    "_to_copy": _to_copy,
    **_IN_ORDER,
    "_softmax": _softmax(_C.ops.softmax),
    "_log_softmax": _softmax(_C.ops.log_softmax),
    "_unsafe_view": lambda self, size: self.reshape(size),
    "lift_fresh": lambda self: self,
    "lift_fresh_copy": lambda self: self.clone(),
    "_reshape_alias": lambda self, size, stride: self.as_strided(size, stride, self.storage_offset()),
    "_local_scalar_dense": lambda self: self.item(),
    "_conj": lambda self: self.conj(),
    "slice": lambda self, dim=0, start=None, end=None, step=1: _C.ops.slice(self, dim, start, end, step),
    "constant_pad_nd": lambda self, pad, value=0: _C.ops.pad(self, list(pad), value),
    "index": lambda self, indices: self[tuple(slice(None) if i is None else i for i in indices)],
    "numpy_T": lambda self: self.T,
    "block_diag": lambda tensors: public("block_diag")(*tensors),
    "broadcast_tensors": lambda tensors: public("broadcast_tensors")(*tensors),
    "cartesian_prod": lambda tensors: public("cartesian_prod")(*tensors),
    "einsum": lambda equation, tensors, path=None: public("einsum")(equation, *tensors),
    "expand": lambda self, size, implicit=False: self.expand(size),
    "tensordot": lambda self, other, dims_self, dims_other: public("tensordot")(self, other, (dims_self, dims_other)),
    "result_type": lambda a, b: public("result_type")(a, b),
}  # fmt: skip


def implementation(name: str) -> Callable | None:
    """The function or method that computes an operator; None if there is none."""
    import teletensor

    if name in _OWN:
        return _OWN[name]
    if name in _IN_FUNCTIONAL:
        return functional(_FUNCTIONAL_NAMES.get(name, name))
    for place in ("linalg", "fft", "special"):
        if name.startswith(f"{place}_"):
            return getattr(importlib.import_module(f"teletensor.{place}"), name.removeprefix(f"{place}_"), None)
    found = getattr(Tensor, name, None) if name.endswith("_") else None
    if found is None:
        found = getattr(teletensor, name, None) or getattr(Tensor, name, None)
    return found if callable(found) and not isinstance(found, type) else None


class AtenOverload(OpOverload):
    """An overload of an operator of PyTorch. Called with its arguments in the operator's order."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        del self.tags  # PyTorch's are not known here
        self.has_out = any(a.is_write and a.kwarg_only for a in schema.arguments)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        # The function asks dispatch handlers, unless DTensors have a rule for the whole call.
        result = call_handlers(self, args, kwargs, dispatches=self.sharded is not None)
        if result is not NotImplemented:
            return result
        function = implementation(self._opname)
        if function is None:
            raise NotImplementedError(f"[torch.ops.{self}] there is no function for this operator")
        names = [a.name for a in self._schema.arguments]
        if len(args) > len(names):
            raise RuntimeError(f"{self.name()}() expected at most {len(names)} argument(s) but received {len(args)}")
        if self._opname in _IN_ORDER:
            return self._in_order(function, args, kwargs)
        if self.has_out:
            targets = [kwargs.pop(a.name) for a in self._schema.arguments if a.is_write and a.name in kwargs]
            kwargs["out"] = targets[0] if len(targets) == 1 else tuple(targets)
        if self._opname in _IN_FUNCTIONAL:
            return function(**self._functional(function, args, kwargs))
        if self._opname not in _OWN:
            moved = {n: v for n, v in zip(names, args) if n in _KEYWORDS}
            if moved and self._schema.arguments[names.index(next(iter(moved)))].kwarg_only is False:
                args, kwargs = tuple(v for n, v in zip(names, args) if n not in moved), {**moved, **kwargs}
        if "reduction" in names[len(args) :] and "reduction" not in kwargs:  # torch's functions have another default
            kwargs["reduction"] = self._schema.arguments[names.index("reduction")].default
        kwargs = {n: v for n, v in kwargs.items() if v is not None}
        if "self" in kwargs:  # Python's functions call it input
            args = (kwargs.pop("self"), *args)
        result = function(*args, **kwargs)
        return None if self._schema.returns == "()" else result

    def _in_order(self, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Calls a function that has the operator's parameters in its order, and writes the results that have targets."""
        values = {**{a.name: v for a, v in zip(self._schema.arguments, args)}, **kwargs}
        targets, listed, named = [], [], {}
        for a in self._schema.arguments:
            is_target = a.is_write and a.kwarg_only
            if a.name not in values and (is_target or not a.has_default):
                raise RuntimeError(f"{self.name()}() is missing value for argument '{a.name}'. Declaration: {self._schema}")
            value = values.pop(a.name, a.default)
            if is_target:
                targets.append(value)
            elif not a.kwarg_only:
                listed.append(value)
            elif value is not None or not a.has_default:
                named[a.name] = value
        if values:
            raise RuntimeError(f"Unknown keyword argument '{next(iter(values))}' for operator '{self.name()}'. Schema: {self._schema}")
        result = function(*listed, **named)
        if not targets:
            return result
        results = (result,) if isinstance(result, Tensor) else result
        for target, value in zip(targets, results, strict=True):
            target.resize_(value.shape).copy_(value)
        return targets[0] if len(targets) == 1 else tuple(targets)

    def _functional(self, function: Callable, args: tuple, kwargs: dict) -> dict[str, Any]:
        """The arguments by the names of a function's parameters."""
        known = signature_of(function).parameters
        values = dict(zip((a.name for a in self._schema.arguments), args)) | kwargs
        found, rest = {}, []
        for a in self._schema.arguments:
            if a.name not in values:
                continue
            value, name = values[a.name], _RENAMED.get(a.name, a.name)
            if a.has_default and not isinstance(value, Tensor) and value == a.default:
                continue  # the default may have another spelling there: padding_idx=-1 is None
            if name in known:
                found[name] = value
            else:
                rest.append(a.name)
        if rest:
            raise NotImplementedError(f"[torch.ops.{self}] expected the default values of {sorted(rest)}")
        if "reduction" in found:
            found["reduction"] = REDUCTIONS[found["reduction"]]
        return found


class AtenPacket(OpOverloadPacket):
    """The overloads of an operator of PyTorch. A call is passed to the function, which selects the overload by the
    arguments.
    """

    def __init__(self, name: str, declarations: list[str]) -> None:
        super().__init__(f"aten::{name}")
        self._declarations = {_overload_name(d): d for d in declarations}

    def overloads(self) -> list[str]:
        return list(self._declarations)

    def __getattr__(self, name: str) -> OpOverload:
        declarations = self.__dict__.get("_declarations", {})
        if name not in declarations:
            return super().__getattr__(name)
        found = AtenOverload(parse(f"aten::{declarations[name]}"))
        found.overloadpacket = self
        self._overloads[name] = found
        setattr(self, name, found)
        return found

    def _call_matching(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        return select(self, args, kwargs)(*args, **kwargs)


def _overload_name(declaration: str) -> str:
    return declaration.partition("(")[0].partition(".")[2] or "default"


@functools.cache
def _declarations() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    path = os.path.join(os.path.dirname(__file__), "aten_schemas.txt")  # noqa: PTH118, PTH120 - pathlib takes 3 ms to import
    with open(path) as file:
        lines = file.read().splitlines()
    for line in lines:
        if line and not line.startswith("#"):
            found.setdefault(line.partition("(")[0].partition(".")[0], []).append(line)
    return found


@functools.cache
def packet(name: str) -> AtenPacket | None:
    """Returns the operator aten::name, or None if it does not exist here."""
    declarations = _declarations().get(name)
    return None if declarations is None else AtenPacket(name, declarations)


def names() -> list[str]:
    """The names of all operators."""
    return sorted(_declarations())


def accepts(kind: str, value: Any, numbers_as_tensors: bool = False) -> bool:
    """Whether an argument of a declaration's type accepts the value."""
    if value is None:
        return kind.endswith("?")
    kind = kind.rstrip("?")
    is_number = isinstance(value, (int, float, complex)) and not isinstance(value, Tensor)
    if kind == "Tensor":
        return isinstance(value, Tensor) or (numbers_as_tensors and is_number)
    if kind.endswith("[]"):
        is_list = isinstance(value, (list, tuple))
        return is_list and all(accepts(kind[:-2], v) for v in value) or (kind in ("SymInt[]", "int[]") and type(value) is int)
    if kind in ("Scalar", "number"):
        return is_number
    expected = {
        "int": int, "SymInt": int, "float": (int, float), "bool": bool, "str": str, "ScalarType": _C.dtype, "Device": (_C.device, str),
    }.get(kind)  # fmt: skip
    if expected is None:
        return True
    return isinstance(value, expected) and not (kind in ("int", "SymInt", "float") and isinstance(value, bool))


def select(packet: AtenPacket, args: tuple, kwargs: dict[str, Any], numbers_as_tensors: bool = False) -> OpOverload:
    """Returns the packet's first overload that accepts the arguments. Raises RuntimeError if there is none."""
    for name in packet.overloads():
        overload = getattr(packet, name)
        arguments = overload._schema.arguments
        positional = [a for a in arguments if not a.kwarg_only]
        if len(args) > len(positional):
            continue
        values = {**{a.name: v for a, v in zip(positional, args)}, **kwargs}
        if set(values) - {a.name for a in arguments}:
            continue
        if all(accepts(a.type, values[a.name], numbers_as_tensors) if a.name in values else a.has_default for a in arguments):
            return overload
    raise RuntimeError(f"{packet._qualified_op_name}() has no overload for these arguments: {', '.join(packet.overloads())}")
