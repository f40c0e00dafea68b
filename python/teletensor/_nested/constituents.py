"""The engine's operators on nested tensors with layout=torch.strided: those that PyTorch has for them.

A pointwise operator is one call for all elements; others are computed for each constituent.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from .. import _C
from .._C import Tensor
from .base import not_implemented
from .engine import call, parameters, write
from .strided import StridedNested, from_list, handlers, made_of

_ELEMENTWISE = (
    "to_dtype clone detach alias bernoulli nan_to_num gelu celu to_device dropout relu6 div clamp float_power round logit max_other "
    "min_other frexp"
).split()
_LIKE = "zeros_like ones_like empty_like full_like rand_like randn_like uniform_like normal_like bernoulli_like".split()
# Operators of a tensor and a parameter `dim`, which is not that of the constituents.
_ALONG = "softmax log_softmax cumsum".split()


def _nested(arguments: Any) -> list[StridedNested]:
    found = []
    for a in arguments:
        if getattr(a, "is_nested", False):
            if not isinstance(a, StridedNested):
                raise RuntimeError("expected nested tensors of one layout, got torch.jagged and torch.strided")
            found.append(a)
        elif isinstance(a, (list, tuple)):
            found.extend(_nested(a))
    return found


def _same_sizes(name: str, tensors: list[StridedNested]) -> StridedNested:
    first = tensors[0]
    if any(t._sizes != first._sizes for t in tensors):
        raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
    return first


def _each(name: str, arguments: list) -> StridedNested:
    """Calls an operator for each constituent. Dense tensors are passed as they are, without their first dimension if that is
    the constituents'."""
    nested = _nested(arguments)
    count = len(nested[0]._sizes)

    def of(value: Any, i: int) -> Any:
        if isinstance(value, StridedNested):
            return value._constituents()[i]
        if isinstance(value, Tensor) and value.dim() == nested[0].dim() and value.shape[0] in (1, count):
            return value[i if value.shape[0] == count else 0]
        return value

    if any(len(t._sizes) != count for t in nested):
        raise RuntimeError(f"{name}: expected nested tensors of as many constituents, got {[len(t._sizes) for t in nested]}")
    return from_list([call(name, [of(a, i) for a in arguments]) for i in range(count)], None, None) if count else nested[0]


def _given(name: str, result: Any, into: list | None) -> Any:
    if into is None:
        return result
    if not isinstance(into[0], StridedNested) or into[0]._sizes != result._sizes:
        raise RuntimeError(f"[{name}] expected a nested tensor of the result's sizes to receive it")
    write(name, into[0]._elements, result._elements)
    return into[0]


def _pointwise(arguments: list, into: list | None) -> Any:
    name, values = arguments
    nested = _nested(values)
    if not nested:
        raise RuntimeError(f"[{name}] expected a nested argument for a nested tensor that receives the result")
    dense = [a for a in values if isinstance(a, Tensor) and not isinstance(a, StridedNested) and a.dim() > 0]
    if dense:
        return _given(name, _each(name, values), into)
    like = _same_sizes(name, nested)
    result = call(name, [a._elements if isinstance(a, StridedNested) else a for a in values])
    if isinstance(result, (list, tuple)):
        return type(result)(like._with(r) for r in result)
    return _given(name, like._with(result), into)


def _elementwise(name: str):
    return lambda arguments, into: _pointwise([name, arguments], into)


def _dense_only(name: str, values: list) -> None:
    if any(isinstance(v, StridedNested) for v in values):
        raise not_implemented(name, "only its input may be nested")


def _along(name: str):
    at = parameters(name)[0].index("dim")

    def handle(arguments: list, into: list | None) -> StridedNested:
        tensor = arguments[0]
        place = tensor._dim(arguments[at])
        if place == 0:
            raise RuntimeError(f"Cannot apply {name} across nested dimension 0")
        return _given(name, _each(name, [*arguments[:at], place - 1, *arguments[at + 1 :]]), into)

    return handle


def _reduce(name: str):
    names = parameters(name)[0]

    def handle(arguments: list, into: list | None) -> Any:
        tensor, dim, keepdim = (arguments[names.index(k)] for k in ("input", "dim", "keepdim"))
        if into is not None:
            raise not_implemented(f"{name}.out")
        if dim is None or (isinstance(dim, list) and not dim):
            return call(name, [tensor._elements, *arguments[1:]])
        dims = [tensor._dim(d) for d in (dim if isinstance(dim, list) else [dim])]
        if dims != [tensor._ndim]:
            raise RuntimeError(f"NestedTensor only allows reduction across the last dimension for {name}, got {dims}")
        if not keepdim and tensor._ndim > 0:
            raise RuntimeError("NestedTensor always requires keepdim=True for now.")
        last = [tensor._ndim - 1] if isinstance(dim, list) else tensor._ndim - 1
        return _each(name, [tensor, last, *arguments[2:]])

    return handle


def _linear(arguments: list, into: list | None) -> StridedNested:
    tensor, weight, bias = arguments
    _dense_only("linear", [weight, bias])
    if into is not None:
        raise not_implemented("linear.out")
    features = weight.shape[-1]
    if any(s[-1] != features for s in tensor._sizes):
        raise RuntimeError(f"linear: expected constituents with a last dimension of {features}, got sizes {tensor._sizes}")
    result = call("linear", [tensor._elements.view(-1, features), weight, bias])
    return made_of(result.reshape(-1), [(*s[:-1], weight.shape[0]) for s in tensor._sizes], tensor._ndim)


def _matmul(name: str):
    def handle(arguments: list, into: list | None) -> StridedNested:
        a, b = arguments
        if into is not None:
            raise not_implemented(f"{name}.out")
        if isinstance(b, Tensor) and not isinstance(b, StridedNested) and b.dim() == 2 and isinstance(a, StridedNested):
            return _linear([a, b.transpose(0, 1), None], None)
        return _each("matmul", arguments)

    return handle


def _layer_norm(name: str):
    def handle(arguments: list, into: list | None) -> StridedNested:
        tensor, shape, *rest = arguments
        _dense_only(name, rest)
        if into is not None or len(shape) > tensor._ndim or any(s[len(s) - len(shape) :] != tuple(shape) for s in tensor._sizes):
            raise RuntimeError(f"[{name}] expected constituents that end with the sizes {list(shape)}, got {tensor._sizes}")
        flat = tensor._elements.view(-1, *shape)
        return tensor._with(call(name, [flat, shape, *rest]).reshape(-1))

    return handle


def _embedding(arguments: list, into: list | None) -> StridedNested:
    weight, indices, *rest = arguments
    if into is not None or isinstance(weight, StridedNested):
        raise not_implemented("embedding", "only its indices may be nested")
    rows = call("embedding", [weight, indices._elements, *rest])
    return made_of(rows.reshape(-1), [(*s, weight.shape[1]) for s in indices._sizes], indices._ndim + 1)


def _transpose(arguments: list, into: list | None) -> StridedNested:
    tensor, *dims = arguments
    a, b = (tensor._dim(d) for d in dims)
    if into is not None or (0 in (a, b) and a != b):
        raise RuntimeError(f"Nested tensor dimension 0 cannot be transposed, got dims {dims}")
    return tensor if a == b else _each("transpose", [tensor, a - 1, b - 1])


def _shifted(name: str, *keys: str):
    """An operator for each constituent, of which the parameters `keys` are dimensions other than the first."""
    names = parameters(name)[0]

    def handle(arguments: list, into: list | None) -> StridedNested:
        tensor, moved = arguments[0], list(arguments)
        if into is not None:
            raise not_implemented(f"{name}.out")
        for at in map(names.index, keys):
            places = [tensor._dim(d) for d in (arguments[at] if isinstance(arguments[at], list) else [arguments[at]])]
            if 0 in places:
                raise RuntimeError(f"{name}(): not supported for nested tensors on dimension 0")
            moved[at] = [p - 1 for p in places] if isinstance(arguments[at], list) else places[0] - 1
        return _each(name, moved)

    return handle


def _narrow(arguments: list, into: list | None) -> StridedNested:
    """Part of a dimension; of the first one, some of the constituents, as a view."""
    tensor, dim, start, length = arguments
    if into is not None or tensor._dim(dim) != 0:
        return _shifted("narrow", "dim")(arguments, into)
    count = len(tensor._sizes)
    if not -count <= start <= count:
        raise IndexError(f"start out of range (expected to be in range of [{-count}, {count}], but got {start})")
    start += count if start < 0 else 0
    if length < 0 or start + length > count:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({count}).")
    ends = list(itertools.accumulate(map(math.prod, tensor._sizes), initial=0))
    elements = tensor._elements.narrow(0, ends[start], ends[start + length] - ends[start])
    return made_of(elements, tensor._sizes[start : start + length], tensor._ndim)


def _reshape_as(arguments: list, into: list | None) -> StridedNested:
    tensor, other = arguments
    if into is not None or not isinstance(tensor, StridedNested) or not isinstance(other, StridedNested):
        raise not_implemented("reshape_as", "expected two nested tensors of layout torch.strided")
    if list(map(math.prod, tensor._sizes)) != list(map(math.prod, other._sizes)):
        raise RuntimeError("reshape_as: expected nested tensors with as many elements in each constituent")
    return made_of(tensor._elements, other._sizes, other._ndim)


def _unsqueeze(arguments: list, into: list | None) -> StridedNested:
    tensor, dim = arguments
    place = dim % (tensor.dim() + 1)
    if into is not None or place == 0:
        raise RuntimeError("unsqueeze(): not supported for nested tensors on dimension 0")
    return _each("unsqueeze", [tensor, place - 1])


def _squeeze(arguments: list, into: list | None) -> StridedNested:
    """Removes a dimension of which each constituent has the size 1; others are kept, as of tensors that are not nested."""
    tensor, dims = arguments[0], [arguments[1]] if isinstance(arguments[1], int) else list(arguments[1])
    kept = [d for d in dims if tensor._dim(d) == 0 or all(size[tensor._dim(d) - 1] == 1 for size in tensor._sizes)]
    return _shifted("squeeze_dim", "dim")([tensor, kept], into) if kept else _each("alias", [tensor])


def _select(arguments: list, into: list | None) -> Any:
    tensor, dim, index = arguments
    if tensor._dim(dim) == 0:
        return tensor[index]
    return _shifted("select", "dim")(arguments, into)


def _unbind(arguments: list, into: list | None) -> tuple[Tensor, ...]:
    tensor, dim = arguments
    if into is not None or tensor._dim(dim) != 0:
        raise RuntimeError("NestedTensor can only be unbound along dimension 0 " + f"got dimension {dim} instead.")
    return tuple(tensor._constituents())


def _parts(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        tensor, sizes, dim = arguments
        if into is not None or tensor._dim(dim) != tensor._ndim:
            raise RuntimeError(f"{name} for nested tensors is currently only supported for the last dimension.")
        columns = zip(*(call(name, [t, sizes, -1]) for t in tensor._constituents()), strict=True)
        return tuple(from_list(list(c), None, None) for c in columns)

    return handle


def _cat(arguments: list, into: list | None) -> StridedNested:
    tensors, dim = arguments
    nested = _nested([tensors])
    if into is not None or len(nested) != len(tensors):
        raise not_implemented("cat", "all tensors must be nested")
    place = nested[0]._dim(dim)
    if place == 0:
        if len({t._ndim for t in nested}) > 1:
            raise RuntimeError("cat(): expected nested tensors of the same number of dimensions")
        return made_of(_C.torch.cat([t._elements for t in nested]), [s for t in nested for s in t._sizes], nested[0]._ndim)
    rows = zip(*(t._constituents() for t in nested), strict=True)
    return from_list([_C.torch.cat(list(row), place - 1) for row in rows], None, None)


def _view(arguments: list, into: list | None) -> StridedNested:
    tensor, size = arguments
    assert into is None
    size = list(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else list(size)
    if len(size) < 2 or size[0] not in (len(tensor._sizes), -1):
        raise RuntimeError(f"view: For now nested view cannot change or infer the implicit batch dimension, got {size}")
    sizes = []
    for own in tensor._sizes:
        wanted = [own[d] if s == -1 and d < len(own) else s for d, s in enumerate(size[1:])]
        known = math.prod(s for s in wanted if s != -1)
        if -1 in wanted and known and math.prod(own) % known == 0:
            wanted[wanted.index(-1)] = math.prod(own) // known
        if -1 in wanted or math.prod(wanted) != math.prod(own):
            raise RuntimeError(f"shape '{size}' is invalid for a constituent of sizes {list(own)}")
        sizes.append(tuple(wanted))
    return made_of(tensor._elements, sizes, len(size) - 1)


def _masked_fill(arguments: list, into: list | None) -> StridedNested:
    return _pointwise(["masked_fill", arguments], into)


def _fill(arguments: list, into: list | None) -> StridedNested:
    if into is None:
        return arguments[0]._with(call("fill", [arguments[0]._elements, arguments[1]]))
    into[0]._elements.fill_(arguments[1])
    return into[0]


def _like(name: str):
    def handle(arguments: list, into: list | None) -> StridedNested:
        if name == "full_like" and into is not None and into[0] is arguments[0]:
            return _fill(arguments[:2], into)
        return _given(name, arguments[0]._with(call(name, [arguments[0]._elements, *arguments[1:]])), into)

    return handle


def _assign(arguments: list, into: list | None) -> StridedNested:
    target, source = (into or [None])[0], arguments[1]
    if not isinstance(target, StridedNested) or not isinstance(source, StridedNested) or target._sizes != source._sizes:
        raise RuntimeError("copy_ only supports tensors that are the same size for Nested implementations")
    target._elements.copy_(source._elements)
    return target


def _attention(arguments: list, into: list | None) -> StridedNested:
    query, key, value, mask, *rest = arguments
    if into is not None or mask is not None:
        raise not_implemented("scaled_dot_product_attention", "attn_mask is not implemented for nested tensors")
    if not all(isinstance(t, StridedNested) for t in (query, key, value)):
        raise RuntimeError("scaled_dot_product_attention: expected query, key and value to be nested tensors, or none of them")
    return _each("attention", arguments)


def _attention_with_options(arguments: list, into: list | None) -> StridedNested:
    """scaled_dot_product_attention() of each constituent, by the function for dense tensors."""
    assert into is None
    query, key, value, mask, dropout_p, is_causal, scale, enable_gqa, _, function = arguments
    if mask is not None:
        raise not_implemented("scaled_dot_product_attention", "attn_mask is not implemented for nested tensors")
    if not all(isinstance(t, StridedNested) for t in (query, key, value)):
        raise RuntimeError("scaled_dot_product_attention: expected query, key and value to be nested tensors, or none of them")
    if len({len(t._sizes) for t in (query, key, value)}) > 1:
        raise RuntimeError("scaled_dot_product_attention: expected query, key and value of as many constituents")
    parts = zip(query._constituents(), key._constituents(), value._constituents(), strict=True)
    results = [function(q, k, v, None, dropout_p, is_causal, scale, enable_gqa) for q, k, v in parts]
    return from_list(results, None, None) if results else query


handlers["attention with options"] = _attention_with_options
for _name in _ELEMENTWISE:
    handlers[_name] = _elementwise(_name)
for _name in _LIKE:
    if hasattr(_C.ops, _name):
        handlers[_name] = _like(_name)
for _name in _ALONG:
    handlers[_name] = _along(_name)
for _name in ("sum", "mean"):
    handlers[_name] = _reduce(_name)
for _name in ("split", "split_with_sizes", "chunk"):
    handlers[_name] = _parts(_name)
for _name, _keys in {
    "unflatten": ("dim",), "flatten": ("start_dim", "end_dim"), "slice": ("dim",), "index_select": ("dim",),
}.items():  # fmt: skip
    handlers[_name] = _shifted(_name, *_keys)
handlers.update(
    pointwise=_pointwise, linear=_linear, matmul=_matmul("matmul"), bmm=_matmul("bmm"), layer_norm=_layer_norm("layer_norm"),
    rms_norm=_layer_norm("rms_norm"), embedding=_embedding, transpose=_transpose, unsqueeze=_unsqueeze, squeeze_dim=_squeeze,
    select=_select, narrow=_narrow, reshape_as=_reshape_as,
    unbind=_unbind, cat=_cat, view=_view, masked_fill=_masked_fill, fill=_fill, assign=_assign, attention=_attention,
)  # fmt: skip
