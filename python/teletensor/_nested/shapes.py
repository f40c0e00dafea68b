"""Operators that rearrange, select, split and join jagged tensors."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .base import not_implemented
from .engine import call
from .padding import jagged_of
from .pointwise import common, inner_values, mismatch, without_holes
from .ragged import Ragged, offsets_of
from .tensor import NestedTensor, handlers, wrapped


def view_operator(name: str):
    """Registers a function (tensor, *arguments) as the handler of an operator that has no in-place form here."""

    def register(function):
        def handle(arguments: list, into: list | None) -> Any:
            if into is not None or not isinstance(arguments[0], NestedTensor):
                raise not_implemented(f"{name}.out" if into is not None else name)
            return function(*arguments)

        handlers[name] = handle
        return function

    return register


@view_operator("permute")
def permute(tensor: NestedTensor, dims: list[int]) -> NestedTensor:
    """Reorders dimensions; the batch stays first."""
    order = [tensor._dim(d) for d in dims]
    if len(order) != tensor.dim():
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({tensor.dim()}) does not match the length of the desired ordering "
            f"of dimensions ({len(order)})."
        )
    if len(set(order)) != len(order):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = tensor._elements.permute([d - 1 for d in order[1:]])
    return wrapped(values, tensor._ragged, order.index(tensor._ragged_idx))


@view_operator("transpose")
def transpose(tensor: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    """Exchanges two dimensions, neither of them the batch."""
    a, b = tensor._dim(dim0), tensor._dim(dim1)
    if 0 in (a, b) and a != b:
        if tensor._ragged_idx in (a, b):
            raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
        raise RuntimeError("transpose(): not supported for NestedTensor on dim=0")
    order = list(range(tensor.dim()))
    order[a], order[b] = b, a
    return permute(tensor, order)


@view_operator("movedim")
def movedim(tensor: NestedTensor, source: Any, destination: Any) -> NestedTensor:
    """Moves dimensions, none of them the batch."""
    sources = [source] if isinstance(source, int) else source
    targets = [destination] if isinstance(destination, int) else destination
    places = {tensor._dim(d): tensor._dim(s) for s, d in zip(sources, targets, strict=True)}
    rest = iter(d for d in range(tensor.dim()) if d not in places.values())
    return permute(tensor, [places[d] if d in places else next(rest) for d in range(tensor.dim())])


@view_operator("unsqueeze")
def unsqueeze(tensor: NestedTensor, dim: int) -> NestedTensor:
    """Adds a dimension of size 1 after the batch dimension."""
    inner = tensor._inner(dim, "unsqueeze", extra=1)
    return wrapped(tensor._elements.unsqueeze(inner), tensor._ragged, tensor._ragged_idx + (inner < tensor._ragged_idx))


@view_operator("squeeze_dim")
def squeeze(tensor: NestedTensor, dim: Any) -> NestedTensor:
    """Removes dimensions of size 1 other than the batch and the ragged one."""
    inner = sorted(tensor._inner(d, "squeeze") for d in ([dim] if isinstance(dim, int) else dim))
    values = tensor._elements
    removed = [d for d in inner if values.shape[d] == 1]
    return wrapped(values.squeeze(inner), tensor._ragged, tensor._ragged_idx - sum(d < tensor._ragged_idx - 1 for d in removed))


@view_operator("flatten")
def _flatten(tensor: NestedTensor, start_dim: int, end_dim: int) -> NestedTensor:
    return tensor.flatten(start_dim, end_dim)


@view_operator("unflatten")
def _unflatten(tensor: NestedTensor, dim: int, sizes: list[int]) -> NestedTensor:
    return tensor.unflatten(dim, sizes)


@view_operator("view_as")
def _view_as(tensor: NestedTensor, other: Tensor) -> NestedTensor:
    return tensor.view(*other.shape)


@view_operator("reshape_as")
def _reshape_as(tensor: NestedTensor, other: Tensor) -> NestedTensor:
    return tensor.reshape(*other.shape)


def _expand_as(arguments: list, into: list | None) -> NestedTensor:
    tensor, other = arguments
    if into is not None or not isinstance(other, NestedTensor):
        raise not_implemented("expand_as")
    if isinstance(tensor, NestedTensor):
        return tensor.expand(*other._size)
    return expanded(tensor, other)


def expanded(tensor: Tensor, like: NestedTensor) -> NestedTensor:
    """A dense tensor, expanded to the sizes of a jagged one."""
    return like._with(inner_values("expand", tensor, like).expand(like._elements.shape))


@view_operator("narrow")
def narrow(tensor: NestedTensor, dim: int, start: int, length: int) -> NestedTensor:
    """Part of a dimension that is neither the batch nor the ragged one."""
    return tensor._with(tensor._elements.narrow(tensor._inner(dim, "narrow"), start, length))


@view_operator("slice")
def slice_(tensor: NestedTensor, dim: int, start: Any, end: Any, step: int) -> NestedTensor:
    """Part of a dimension that is neither the batch nor the ragged one."""
    inner = tensor._inner(dim, "slice")
    return tensor._with(call("slice", [tensor._elements, inner, start, end, step]))


@view_operator("select")
def select(tensor: NestedTensor, dim: int, index: int) -> Tensor:
    """One sequence; or one entry of a dimension that is neither the batch nor the ragged one."""
    if tensor._dim(dim) == 0:
        n = tensor._ragged.batch
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {n}")
        return unbind(tensor, 0)[index]
    inner = tensor._inner(dim, "select")
    return wrapped(tensor._elements.select(inner, index), tensor._ragged, tensor._ragged_idx - (inner < tensor._ragged_idx - 1))


@view_operator("index_select")
def index_select(tensor: NestedTensor, dim: int, index: Tensor) -> NestedTensor:
    """Entries of a dimension that is neither the batch nor the ragged one."""
    return tensor._with(tensor._elements.index_select(tensor._inner(dim, "index_select"), index))


@view_operator("one_hot")
def one_hot(tensor: NestedTensor, num_classes: int) -> NestedTensor:
    """The classes as rows with a 1."""
    return tensor._with(call("one_hot", [tensor._elements, num_classes]))


@view_operator("diff")
def diff(tensor: NestedTensor, n: int, dim: int) -> NestedTensor:
    """Differences of adjacent elements of a dimension that is neither the batch nor the ragged one."""
    return tensor._with(call("diff", [tensor._elements, n, tensor._inner(dim, "diff")]))


@view_operator("unbind")
def unbind(tensor: NestedTensor, dim: int) -> tuple[Tensor, ...]:
    """The sequences, as views of the values. Waits for the offsets, unless they are known."""
    if tensor._dim(dim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    ragged, place = tensor._ragged, tensor._ragged_idx - 1
    ragged.check_within(tensor._total, "unbind")
    return tuple(tensor._elements.narrow(place, start, size) for start, size in zip(ragged.starts(), ragged.sizes(), strict=True))


def _parts(name: str):
    def split(tensor: NestedTensor, sizes: Any, dim: int) -> Any:
        parts = call(name, [tensor._elements, sizes, tensor._inner(dim, name)])
        return type(parts)(tensor._with(p) for p in parts)

    return split


for _name in ("split", "split_with_sizes", "tensor_split"):
    view_operator(_name)(_parts(_name))


@view_operator("chunk")
def chunk(tensor: NestedTensor, chunks: int, dim: int) -> Any:
    """Parts of a dimension: of the batch, which waits for the lengths, or of one after it that is not ragged."""
    if tensor._dim(dim) != 0:
        return _parts("chunk")(tensor, chunks, dim)
    packed = without_holes(tensor)
    sizes, r = packed._ragged.sizes(), packed._ragged_idx
    packed._ragged.check_within(packed._total, "chunk")
    step = max(-(-len(sizes) // chunks), 1)
    groups = [sizes[i : i + step] for i in range(0, max(len(sizes), 1), step)]
    values = packed._elements.narrow(r - 1, packed._ragged.starts()[0] if sizes else 0, sum(sizes))
    parts = values.split([sum(g) for g in groups], r - 1)
    return tuple(
        wrapped(part, Ragged(offsets_of(_C.tensor(group, dtype=_C.int64, device=tensor.device)), sizes=group), r)
        for part, group in zip(parts, groups, strict=True)
    )


def _cat(arguments: list, into: list | None) -> NestedTensor:
    tensors, dim = arguments
    if into is not None:
        raise not_implemented("cat.out")
    if not all(isinstance(t, NestedTensor) for t in tensors):
        raise RuntimeError("cat(): expected all tensors to be nested tensors of the jagged layout, got one that is not")
    like = common("cat", tensors)
    return like._with(_C.torch.cat([t._elements for t in tensors], like._inner(dim, "cat")))


def _stack(arguments: list, into: list | None) -> NestedTensor:
    tensors, dim = arguments
    if into is not None:
        raise not_implemented("stack.out")
    if not all(isinstance(t, NestedTensor) for t in tensors):
        raise RuntimeError("stack(): expected all nested tensors inputs")
    first = tensors[0]
    if any(t.dim() != first.dim() for t in tensors):
        raise RuntimeError("stack(): expected all nested tensors to have the same dim")
    if any(t._ragged != first._ragged or t._ragged_idx != first._ragged_idx for t in tensors):
        raise RuntimeError("stack(): expected all nested tensors to have the same nested structure")
    inner = first._inner(dim, "stack", extra=1)
    values = _C.torch.stack([t._elements for t in tensors], inner)
    return wrapped(values, first._ragged, first._ragged_idx + (inner < first._ragged_idx))


def _getitem(arguments: list, into: list | None) -> Any:
    tensor, index = arguments
    assert into is None
    items = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(i, (Tensor, list)) for i in items):
        raise not_implemented("index", "index its values(), or unbind() it")
    if Ellipsis in [i for i in items if i is Ellipsis]:
        place = next(n for n, i in enumerate(items) if i is Ellipsis)
        used = sum(i is not None and i is not Ellipsis for i in items)
        items[place : place + 1] = [slice(None)] * (tensor.dim() - used)
    if sum(i is not None for i in items) > tensor.dim():
        raise IndexError(f"too many indices for tensor of dimension {tensor.dim()}")
    if items and isinstance(items[0], int) and not isinstance(items[0], bool):
        sequence = select(tensor, 0, items[0])
        return sequence[tuple(items[1:])] if items[1:] else sequence
    result, dim = tensor, 0
    for item in items:
        if item is None:
            result, dim = result.unsqueeze(dim), dim + 1
        elif not isinstance(item, slice):
            result = result.select(dim, int(item))
        else:
            if item != slice(None):
                inner = result._inner(dim, "slice")
                result = result._with(result._elements[(slice(None),) * inner + (item,)])
            dim += 1
    return result


def _setitem(arguments: list, into: list | None) -> None:
    tensor, index, value = arguments
    assert into is None
    items = index if isinstance(index, tuple) else (index,)
    if items and all(isinstance(i, Tensor) for i in items):
        tensor.index_put_(items, _number(value, tensor))
        return
    target = _getitem([tensor, index], None)
    if isinstance(target, NestedTensor):
        if isinstance(value, NestedTensor):
            common("copy_", [target, value])
            target._elements.copy_(value._elements)
        else:
            target._elements.copy_(inner_values("copy_", _number(value, tensor), target))
        return
    target.copy_(_number(value, tensor))


def _number(value: Any, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else _C.tensor(value, dtype=like.dtype, device=like.device)


def _masked_select(arguments: list, into: list | None) -> NestedTensor:
    """The elements at which a mask is true; a dense one has the sizes of the padded tensor."""
    tensor, mask = arguments
    if into is not None or not isinstance(tensor, NestedTensor) or tensor._ragged_idx != 1 or tensor._ragged.lengths is not None:
        raise not_implemented("masked_select")
    if tensor.dim() > 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    if not isinstance(mask, NestedTensor):
        if mask.dim() != 2 or mask.shape[0] != tensor._ragged.batch:
            raise mismatch("masked_select", tensor, mask)
        mask = jagged_of(mask, tensor._ragged, tensor._total)
    common("masked_select", [tensor, mask])
    ragged = tensor._ragged
    counts = _C.ops.jagged_reduce(mask._elements.to(_C.int64), ragged.offsets, ragged.lengths, "sum")
    return wrapped(tensor._elements.masked_select(mask._elements), Ragged(offsets_of(counts)))


handlers.update(
    cat=_cat, stack=_stack, expand_as=_expand_as, masked_select=_masked_select, __getitem__=_getitem, __setitem__=_setitem,
)  # fmt: skip
