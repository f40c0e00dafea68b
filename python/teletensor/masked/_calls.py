"""The engine's operators on masked tensors: those that PyTorch has for them, with its results, and all that move elements."""

from __future__ import annotations

import functools
from typing import Any

from .. import _C
from .._C import Tensor
from .._functions import broadcast_shapes, can_cast
from . import _functions
from ._tensor import MaskedTensor, handlers, not_supported, of_sparse, same_masks, values_of, with_values, wrapped
from ._tensor import is_masked_tensor as is_masked_tensor

# Operators of one tensor that compute each element.
_UNARY = (
    "abs acos acosh angle asin asinh atan atanh bitwise_not ceil clamp conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 "
    "expm1 floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num neg rad2deg reciprocal round rsqrt sigmoid sign sgn signbit "
    "sin sinc sinh sqrt square tan tanh trunc trunc_decimals round_decimals"
).split()
_BINARY = (
    "add atan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div true_divide floor_divide fmod logaddexp "
    "logaddexp2 mul nextafter pow remainder sub eq ne le ge gt lt maximum minimum fmax fmin"
).split()
# Operators that move elements, or select them: applied to the data and to the mask.
_MOVING = (
    "select transpose split split_with_sizes chunk t slice index index_masked expand broadcast_to view reshape flatten unflatten unsqueeze "
    "squeeze squeeze_dim squeeze_dims permute unbind unfold im2col movedim swapaxes narrow diagonal flip roll repeat tile index_select "
    "masked_select take_along_dim gather tensor_split ravel view_as_shape alias"
).split()
_REDUCTIONS = {"sum": "dtype", "mean": "dtype", "prod": "dtype", "amin": "", "amax": "", "argmin": "", "argmax": ""}


@functools.cache
def _parameters(name: str) -> tuple[int, list[str]]:
    """The number of an operator's positional parameters, and the names of the others."""
    parameters = _C._declaration(name)[0]
    count = sum(not keyword_only for _, keyword_only, *_ in parameters)
    return count, [p[0] for p in parameters[count:]]


def _call(name: str, arguments: list) -> Any:
    """Calls an operator of the engine with a value for each of its parameters."""
    count, keywords = _parameters(name)
    return getattr(_C.ops, name)(*arguments[:count], **dict(zip(keywords, arguments[count:], strict=True)))


def _given(name: str, data: Tensor, mask: Tensor, into: list | None) -> MaskedTensor:
    """The result as a masked tensor, or as the new value of the one that receives it."""
    if into is None:
        return wrapped(data, mask)
    (target,) = into
    if not isinstance(target, MaskedTensor):
        raise TypeError(f"[{name}_] expected a MaskedTensor that receives the masked result, got a Tensor")
    old = target._masked_data
    if old.is_leaf and old.requires_grad and _C.is_grad_enabled():
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if data.shape != old.shape:
        raise RuntimeError(f"output with shape {list(old.shape)} doesn't match the broadcast shape {list(data.shape)}")
    if not can_cast(data.dtype, old.dtype):
        raise RuntimeError(f"result type {data.dtype} can't be cast to the desired output type {old.dtype}")
    target._masked_data = data.to(old.dtype)
    return target


def _receives(name: str, arguments: list, into: list | None) -> list | None:
    """The tensor that an in-place call writes. Raises ValueError for out=, which PyTorch does not have either."""
    if into is not None and (not isinstance(arguments[0], Tensor) or into[0] is not arguments[0]):
        raise ValueError(f"[{name}] MaskedTensor operators require that out is not given, and len(kwargs) == 0")
    return into


def _unary(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        tensor, *rest = arguments
        if any(isinstance(a, Tensor) for a in rest):
            raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
        data = with_values(tensor._masked_data, _call(name, [values_of(tensor._masked_data), *rest]))
        return _given(name, data, tensor._masked_mask, _receives(name, arguments, into))

    return handle


def _without_gradient_of_masked_out(operand: Any, mask: Tensor) -> Any:
    """A plain operand whose gradient is zero where the other operand is masked out, so that its data there has no influence."""
    if not (isinstance(operand, Tensor) and operand.requires_grad and _C.is_grad_enabled()):
        return operand
    shape = broadcast_shapes(operand.shape, mask.shape)
    operand = operand.expand(shape)
    return _C.torch.where(mask.expand(shape), operand, operand.detach())


def _binary(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        a, b, *rest = arguments
        into = _receives(name, arguments, into)
        masked = [x for x in (a, b) if isinstance(x, MaskedTensor)]
        if any(x.is_sparse for x in masked):
            return _sparse_binary(name, arguments, masked, into)
        if len(masked) == 2 and not same_masks(*masked):
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
        mask = masked[0]._masked_mask
        data = [x._masked_data if isinstance(x, MaskedTensor) else _without_gradient_of_masked_out(x, mask) for x in (a, b)]
        result = _call(name, [*data, *rest])
        return _given(name, result, mask if mask.shape == result.shape else mask.expand_as(result), into)

    return handle


def _sparse_binary(name: str, arguments: list, masked: list[MaskedTensor], into: list | None) -> Any:
    """A binary operator of sparse data with numbers, or with data of the same layout and mask: one operator on the values."""
    first, last = masked[0], masked[-1]
    if first.layout != last.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {first.layout} and {last.layout}")
    if any(isinstance(x, Tensor) and not isinstance(x, MaskedTensor) and x.dim() for x in arguments):
        raise RuntimeError(f"[{name}] expected a number or a MaskedTensor beside one of layout {first.layout}, got a Tensor")
    if not same_masks(first, last):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    values = _call(name, [values_of(_part(x, "_masked_data")) if isinstance(x, Tensor) else x for x in arguments])
    return _given(name, with_values(first._masked_data, values), first._masked_mask, into)


def _part(value: Any, attribute: str) -> Any:
    """The arguments of a call with the data or masks of masked tensors."""
    if isinstance(value, MaskedTensor):
        return getattr(value, attribute)
    return [_part(v, attribute) for v in value] if isinstance(value, (list, tuple)) else value


def _both(data: Any, mask: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return tuple(map(_both, data, mask))
    return wrapped(data.clone(), mask)


def _moving(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        if into is not None or not isinstance(arguments[0], MaskedTensor):
            raise not_supported(name)
        rest = arguments[1:]
        if any(isinstance(v, MaskedTensor) for v in (rest[0] if rest and isinstance(rest[0], (list, tuple)) else rest)):
            raise TypeError(f"[{name}] expected indices without a mask, got a MaskedTensor: use get_data() or to_tensor(value)")
        return _both(*(_call(name, [getattr(arguments[0], part), *rest]) for part in ("_masked_data", "_masked_mask")))

    return handle


def _joining(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        tensors, *rest = arguments
        if into is not None:
            raise ValueError(f"[{name}] expected no out= for masked tensors")
        if not all(isinstance(t, MaskedTensor) for t in tensors):
            raise TypeError(f"[{name}] expected only MaskedTensors, got a Tensor too: mask must have dtype bool.")
        return _both(*(_call(name, [[getattr(t, part) for t in tensors], *rest]) for part in ("_masked_data", "_masked_mask")))

    return handle


def _left(mask: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """Which results of a reduction are of an unmasked element."""
    dims = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return mask.any(dims, keepdim) if dims else mask.any()


def _reduction(name: str):
    function = getattr(_functions, name)

    def handle(arguments: list, into: list | None) -> Any:
        tensor, dim, keepdim, *rest = arguments
        if into is not None:
            raise ValueError(f"[{name}] expected no out= for a MaskedTensor")
        dtype = rest[0] if rest else None
        if tensor.is_sparse and dim not in (None, []):
            raise not_supported(f"{name} over dimensions of sparse data")
        data, mask = values_of(tensor._masked_data), values_of(tensor._masked_mask)
        result = function(data, dim, keepdim=keepdim, dtype=dtype, mask=mask)
        return wrapped(result, _left(mask, dim, keepdim))

    return handle


def _all(arguments: list, into: list | None) -> Any:
    tensor, dim, keepdim = arguments
    if into is not None:
        raise ValueError("[all] expected no out= for a MaskedTensor")
    kept = tensor._masked_data.to(_C.bool) | ~tensor._masked_mask
    return wrapped(_call("all", [kept, dim, keepdim]), _left(tensor._masked_mask, dim, keepdim))


def _moment(name: str):
    function = getattr(_functions, name)

    def handle(arguments: list, into: list | None) -> Any:
        tensor, dim, correction, keepdim = arguments
        if into is not None:
            raise ValueError(f"[{name}] expected no out= for a MaskedTensor")
        correction = 1 if correction is None else correction
        result = function(tensor._masked_data, dim, correction=correction, keepdim=keepdim, mask=tensor._masked_mask)
        return wrapped(result, _left(tensor._masked_mask, dim, keepdim))

    return handle


def _norm(arguments: list, into: list | None) -> Any:
    tensor, p, dim, keepdim, dtype = arguments
    if into is not None:
        raise ValueError("[norm] expected no out= for a MaskedTensor")
    if p == "fro":
        p = 2.0
    if isinstance(p, str):
        raise not_supported(f"norm with p={p!r}")
    result = _functions.norm(tensor._masked_data, p, dim, keepdim=keepdim, dtype=dtype, mask=tensor._masked_mask)
    return wrapped(result, _left(tensor._masked_mask, dim, keepdim))


def _softmax(arguments: list, into: list | None) -> Any:
    tensor, dim, dtype = arguments
    if into is not None:
        raise ValueError("[softmax] expected no out= for a MaskedTensor")
    data, mask = tensor._masked_data, tensor._masked_mask
    # A row without unmasked elements has finite results, so that no NaN reaches the gradients of others.
    kept = mask | ~mask.any(dim, True)
    return wrapped(_functions.softmax(data, dim, dtype=dtype, mask=kept), mask)


def _where(arguments: list, into: list | None) -> Any:
    condition, *sides = arguments
    if into is not None:
        raise ValueError("[where] expected no out= for a MaskedTensor")
    if isinstance(condition, MaskedTensor):
        raise TypeError("[where] expected a condition without a mask, got a MaskedTensor")
    data = _C.torch.where(condition, *(_part(s, "_masked_data") for s in sides))
    masks = (s._masked_mask if isinstance(s, MaskedTensor) else _C.torch.ones([], dtype=_C.bool, device=data.device) for s in sides)
    mask = _C.torch.where(condition, *masks)
    return wrapped(data, mask if mask.shape == data.shape else mask.expand_as(data))


def _on_data(name: str):
    """An operator of which the result has the argument's mask, such as a copy or a cast."""

    def handle(arguments: list, into: list | None) -> Any:
        tensor, *rest = arguments
        if into is not None:
            raise not_supported(name)
        result = _call(name, [tensor._masked_data, *rest])
        mask = tensor._masked_mask
        return wrapped(result, mask if mask.device == result.device else mask.to(result.device))

    return handle


def _assign(arguments: list, into: list | None) -> Any:
    target, source = arguments
    if into is None or not isinstance(target, MaskedTensor):
        raise not_supported("copy_")
    if isinstance(source, MaskedTensor) and not same_masks(target, source):
        raise ValueError("args[0] mask and args[1] mask must match but do not")
    data = _part(source, "_masked_data")
    return _given("copy", data.to(target.dtype).expand(target.shape).clone(), target._masked_mask, [target])


def _install() -> None:
    for names, make in ((_UNARY, _unary), (_BINARY, _binary), (_MOVING, _moving), (_REDUCTIONS, _reduction)):
        handlers.update({name: make(name) for name in names})
    handlers.update({name: _moment(name) for name in ("var", "std")})
    handlers.update({name: _joining(name) for name in ("cat", "stack")})
    handlers.update({name: _on_data(name) for name in ("detach", "clone", "contiguous", "to_dtype", "to_device", "ones_like")})
    handlers.update({"all": _all, "norm": _norm, "norm_named": _norm, "vector_norm": _norm, "softmax": _softmax, "where": _where})
    handlers["assign"] = _assign
    of_sparse.update(_UNARY, _BINARY, _MOVING, _REDUCTIONS, ("detach", "clone", "to_dtype", "to_device", "ones_like"))
    of_sparse.difference_update(("argmin", "argmax"))  # PyTorch returns a place among the values


_install()
