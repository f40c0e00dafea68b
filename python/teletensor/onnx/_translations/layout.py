"""Sizes and places of elements: reshapes, permutations, slices, concatenations, repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import TRANSLATIONS, Untranslatable, translates
from ._types import promoted

_END = 2**63 - 1


@translates("aten.view.default aten.reshape.default aten._unsafe_view.default aten.view_copy.default")
def _reshape(b: Builder, self: Value, size: Any = None, shape: Any = None) -> Value:
    return b.reshape(self, size if size is not None else shape, b.shape)


@translates("aten._reshape_alias.default")
def _reshape_alias(b: Builder, self: Value, size: Any, stride: Any) -> Value:
    del stride
    return b.reshape(self, size, b.shape)


@translates("aten.view_as.default aten.reshape_as.default")
def _view_as(b: Builder, self: Value, other: Value) -> Value:
    return b.reshape(self, b.shape_of(other), b.shape)


@translates("aten.view.dtype")
def _view_dtype(b: Builder, self: Value, dtype: Any) -> Value:
    del b, self
    raise Untranslatable(f"the bits of a tensor as {dtype}: ONNX's BitCast (opset 26) is not available in this opset")


@translates("aten.flatten.using_ints")
def _flatten(b: Builder, self: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if self.shape == ():
        return b.reshape(self, [1])
    start, end = start_dim % self.rank, end_dim % self.rank
    if start == end:
        return self
    sizes: list[Any] = (
        [b.size(self, d) for d in range(start)] + [-1] + [b.size(self, d) for d in range(end + 1, self.rank)]
    )
    if all(type(n) is int for n in self.shape[start : end + 1]):
        product = 1
        for n in self.shape[start : end + 1]:
            product *= n
        sizes[start] = product
    return b.reshape(self, sizes, b.shape)


@translates("aten.ravel.default")
def _ravel(b: Builder, self: Value) -> Value:
    return b.reshape(self, [-1], b.shape)


@translates("aten.unflatten.int")
def _unflatten(b: Builder, self: Value, dim: int, sizes: Sequence[Any]) -> Value:
    dim = dim % self.rank
    full = [*(b.size(self, d) for d in range(dim)), *sizes, *(b.size(self, d) for d in range(dim + 1, self.rank))]
    return b.reshape(self, full, b.shape)


@translates("aten.unsqueeze.default aten.unsqueeze_copy.default")
def _unsqueeze(b: Builder, self: Value, dim: int) -> Value:
    return b.unsqueeze(self, [dim])


@translates(
    "aten.squeeze.default aten.squeeze.dim aten.squeeze.dims aten.squeeze_copy.default aten.squeeze_copy.dim aten.squeeze_copy.dims"
)
def _squeeze(b: Builder, self: Value, dim: Any = None) -> Value:
    dims = range(self.rank) if dim is None else [dim] if isinstance(dim, int) else dim
    return b.squeeze(self, [d for d in dims if self.shape != () and self.shape[d] == 1])


@translates("aten.permute.default aten.permute_copy.default")
def _permute(b: Builder, self: Value, dims: Sequence[int]) -> Value:
    return b.transpose(self, list(dims))


@translates("aten.transpose.int aten.transpose_copy.int aten.swapaxes.default aten.swapdims.default")
def _transpose(b: Builder, self: Value, dim0: int, dim1: int) -> Value:
    if self.shape == ():
        return self
    order = list(range(self.rank))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return b.transpose(self, order)


@translates(
    "aten.t.default aten.t_copy.default aten.numpy_T.default aten.adjoint.default aten.mT.default aten.mH.default aten.matrix_H.default"
)
def _t(b: Builder, self: Value) -> Value:
    return self if self.rank < 2 else _transpose(b, self, -2, -1)


@translates("aten.movedim.int aten.moveaxis.int aten.movedim.intlist aten.moveaxis.intlist")
def _movedim(b: Builder, self: Value, source: Any, destination: Any) -> Value:
    sources = [s % self.rank for s in (source if isinstance(source, (list, tuple)) else [source])]
    places = [d % self.rank for d in (destination if isinstance(destination, (list, tuple)) else [destination])]
    rest = iter(d for d in range(self.rank) if d not in sources)
    at = dict(zip(places, sources))
    return b.transpose(self, [at[d] if d in at else next(rest) for d in range(self.rank)])


# ---- Parts


@translates("aten.slice.Tensor aten.slice_copy.Tensor")
def _slice(b: Builder, self: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    start, end = 0 if start is None else start, _END if end is None else end
    if (
        type(start) is int
        and start == 0
        and type(end) is int
        and step == 1
        and (end >= _END or (type(self.shape[dim]) is int and end >= self.shape[dim]))
    ):
        return self
    return b.slice(self, dim, start, end, step)


@translates("aten.narrow.default aten.narrow_copy.default")
def _narrow(b: Builder, self: Value, dim: int, start: Any, length: Any) -> Value:
    if type(start) is int and start < 0:
        start = b.arithmetic("Add", b.size(self, dim), start)
    return b.slice(self, dim, start, b.arithmetic("Add", start, length))


@translates("aten.select.int aten.select_copy.int")
def _select(b: Builder, self: Value, dim: int, index: Any) -> Value:
    shape = tuple(n for d, n in enumerate(self.shape) if d != dim % self.rank)
    return b.op("Gather", self, b.value(index, _C.int64), axis=dim, shape=shape)


@translates("aten.index_select.default aten.index_select_copy.default")
def _index_select(b: Builder, self: Value, dim: int, index: Value) -> Value:
    if self.shape == ():
        return self
    index = b.reshape(index, [1]) if index.shape == () else index
    return b.op("Gather", self, index, axis=dim)


@translates("aten.unbind.int aten.unbind_copy.int")
def _unbind(b: Builder, self: Value, dim: int = 0) -> list[Value]:
    return [_select(b, self, dim, i) for i in range(len(b.dtype))]


def _pieces(b: Builder, self: Value, dim: int, sizes: Sequence[Any]) -> list[Value]:
    if len(sizes) == 1:
        return [self]
    if self.shape[dim] == 0 or self.dtype is _C.bool or any(isinstance(n, Value) for n in sizes) or 0 in sizes:
        made, start = [], 0
        for n in sizes:
            end = b.arithmetic("Add", start, n)
            made.append(b.slice(self, dim, start, end))
            start = end
        return made
    shapes = [tuple(n if d == dim % self.rank else m for d, m in enumerate(self.shape)) for n in sizes]
    return list(b.op("Split", self, b.ints(list(sizes)), axis=dim, outputs=len(sizes), shape=shapes))


@translates("aten.split.Tensor aten.unsafe_split.Tensor aten.split_copy.Tensor")
def _split(b: Builder, self: Value, split_size: Any, dim: int = 0) -> list[Value]:
    count, size = len(b.dtype), b.size(self, dim)
    last = b.arithmetic("Sub", size, b.arithmetic("Mul", split_size, count - 1))
    return _pieces(b, self, dim, [split_size] * (count - 1) + [last])


@translates(
    "aten.split_with_sizes.default aten.split.sizes aten.split_with_sizes_copy.default aten.unsafe_split_with_sizes.default"
)
def _split_with_sizes(b: Builder, self: Value, split_sizes: Sequence[Any], dim: int = 0) -> list[Value]:
    return _pieces(b, self, dim, split_sizes)


@translates("aten.chunk.default aten.unsafe_chunk.default")
def _chunk(b: Builder, self: Value, chunks: int, dim: int = 0) -> list[Value]:
    size = b.size(self, dim)
    if type(size) is not int:
        size = b.arithmetic("Div", b.arithmetic("Add", size, chunks - 1), chunks)
        return _split(b, self, size, dim)
    return _split(b, self, max(-(-size // chunks), 1), dim)


@translates("aten.tensor_split.sections")
def _tensor_split(b: Builder, self: Value, sections: int, dim: int = 0) -> list[Value]:
    size = b.size(self, dim)
    if type(size) is not int:
        raise Untranslatable("tensor_split of a dynamic dimension")
    return _pieces(b, self, dim, [size // sections + (i < size % sections) for i in range(sections)])


@translates("aten.tensor_split.indices")
def _tensor_split_indices(b: Builder, self: Value, indices: Sequence[Any], dim: int = 0) -> list[Value]:
    ends = [*indices, _END]
    return [b.slice(self, dim, start, end) for start, end in zip([0, *indices], ends)]


@translates("aten.diagonal.default aten.diagonal_copy.default")
def _diagonal(b: Builder, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    first, second = dim1 % self.rank, dim2 % self.rank
    x = b.transpose(self, [*(d for d in range(self.rank) if d not in (first, second)), first, second])
    rows, columns = b.size(x, -2), b.size(x, -1)
    if type(rows) is not int or type(columns) is not int:
        n = b.op("Min", b.value(rows if offset >= 0 else b.arithmetic("Add", rows, offset), _C.int64),
                 b.value(columns if offset <= 0 else b.arithmetic("Sub", columns, offset), _C.int64), shape=())  # fmt: skip
    else:
        n = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    places = b.arange(n)
    flat = b.reshape(x, [*(b.size(x, d) for d in range(x.rank - 2)), -1], (*x.shape[:-2], None))
    index = b.op("Add", b.op("Mul", places + max(-offset, 0), b.value(columns, _C.int64)), places + max(offset, 0))
    return b.op("Gather", flat, index, axis=-1)


@translates("aten.unfold.default aten.unfold_copy.default")
def _unfold(b: Builder, self: Value, dimension: int, size: int, step: int) -> Value:
    length = b.size(self, dimension)
    count = b.arithmetic("Add", b.arithmetic("Div", b.arithmetic("Sub", length, size), step), 1)
    starts = b.arange(count) * step
    index = b.op("Add", b.unsqueeze(starts, [1]), b.const(list(range(size)), _C.int64))
    dim = dimension % self.rank
    shape = (*self.shape[:dim], None, size, *self.shape[dim + 1 :])
    made = b.op("Gather", self, index, axis=dim, shape=shape)
    return b.moved(made, dim + 1, -1)


# ---- Joined and repeated


@translates("aten.cat.default aten.concat.default aten.concatenate.default")
def _cat(b: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    rank = len(b.shape)
    kept = [t for t in tensors if not (t.shape == (0,) and rank != 1)]
    made = promoted(b, *kept, dtype=b.dtype)
    return made[0] if len(made) == 1 else b.op("Concat", *made, axis=dim)


@translates("aten.stack.default")
def _stack(b: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    rank = len(b.shape)
    return b.op("Concat", *(b.unsqueeze(b.cast(t, b.dtype), [dim % rank]) for t in tensors), axis=dim % rank)


@translates("aten.hstack.default")
def _hstack(b: Builder, tensors: Sequence[Value]) -> Value:
    made = [b.reshape(t, [1]) if t.shape == () else t for t in tensors]
    return _cat(b, made, 0 if made[0].rank == 1 else 1)


@translates("aten.vstack.default")
def _vstack(b: Builder, tensors: Sequence[Value]) -> Value:
    return _cat(b, [b.reshape(t, [1, -1]) if t.rank < 2 else t for t in tensors], 0)


@translates("aten.expand.default aten.expand_copy.default aten.broadcast_to.default")
def _expand(b: Builder, self: Value, size: Sequence[Any], implicit: bool = False) -> Value:
    del implicit
    added = len(size) - self.rank
    full = [1 if type(n) is int and n == -1 and d >= added else n for d, n in enumerate(size)]
    if (
        all(type(n) is int and (n == 1 or (d >= added and n == self.shape[d - added])) for d, n in enumerate(full))
        and not added
    ):
        return self
    return b.expand(self, full, b.shape)


@translates("aten.expand_as.default")
def _expand_as(b: Builder, self: Value, other: Value) -> Value:
    return b.expand(self, b.shape_of(other), b.shape)


@translates("aten.broadcast_tensors.default")
def _broadcast_tensors(b: Builder, tensors: Sequence[Value]) -> list[Value]:
    """A sum of zeros has the common sizes."""
    total = None
    for t in tensors:
        ones = b.expand(b.const(1, _C.int64), b.shape_of(t), t.shape)
        total = ones if total is None else b.op("Mul", total, ones)
    sizes = b.op("Shape", total)
    return [b.expand(t, sizes, shape) for t, shape in zip(tensors, b.shape)]


@translates("aten.repeat.default aten.tile.default")
def _repeat(b: Builder, self: Value, repeats: Any = None, dims: Any = None) -> Value:
    repeats = list(repeats if repeats is not None else dims)
    repeats = [1] * (self.rank - len(repeats)) + repeats
    x = b.unsqueeze(self, list(range(len(repeats) - self.rank))) if len(repeats) > self.rank else self
    if not repeats:
        return self
    return b.op("Tile", x, b.ints(repeats), shape=b.shape)


@translates("aten.repeat_interleave.self_int")
def _repeat_interleave(b: Builder, self: Value, repeats: Any, dim: int | None = None, output_size: Any = None) -> Value:
    del output_size
    x, dim = (b.reshape(self, [-1]), 0) if dim is None else (self, dim % self.rank)
    wide = b.unsqueeze(x, [dim + 1])
    sizes: list[Any] = [1] * wide.rank
    sizes[dim + 1] = repeats
    tiled = b.op("Tile", wide, b.ints(sizes))
    full: list[Any] = [b.size(x, d) for d in range(x.rank)]
    full[dim] = -1
    return b.reshape(tiled, full, b.shape)


@translates("aten.flip.default")
def _flip(b: Builder, self: Value, dims: Sequence[int]) -> Value:
    if self.shape == () or not dims:
        return self
    n = len(dims)
    starts, ends = [-1] * n, [-_END] * n
    return b.op("Slice", self, b.ints(starts), b.ints(ends), b.ints(list(dims)), b.ints([-1] * n), shape=self.shape)


@translates("aten.fliplr.default")
def _fliplr(b: Builder, self: Value) -> Value:
    return _flip(b, self, [1])


@translates("aten.flipud.default")
def _flipud(b: Builder, self: Value) -> Value:
    return _flip(b, self, [0])


@translates("aten.roll.default")
def _roll(b: Builder, self: Value, shifts: Any, dims: Any = ()) -> Value:
    shifts = [shifts] if not isinstance(shifts, (list, tuple)) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    x = self
    if not dims:
        x, dims = b.reshape(self, [-1]), [0]
    for shift, dim in zip(shifts, dims):
        size = b.size(x, dim)
        if type(size) is int and type(shift) is int:
            at: Any = (-shift) % size if size else 0
        else:
            at = b.op("Mod", b.op("Neg", b.value(shift, _C.int64)), b.value(size, _C.int64), shape=())
        shape = x.shape
        x = b.op("Concat", b.slice(x, dim, at, _END), b.slice(x, dim, 0, at), axis=dim, shape=shape)
    return x if len(dims) and self.rank == x.rank else b.reshape(x, b.shape_of(self), self.shape)


@translates("aten.rot90.default")
def _rot90(b: Builder, self: Value, k: int = 1, dims: Sequence[int] = (0, 1)) -> Value:
    first, second = dims
    k %= 4
    if k == 0:
        return self
    if k == 2:
        return _flip(b, self, [first, second])
    turned = _flip(b, self, [second if k == 1 else first])
    return _transpose(b, turned, first, second)


@translates("aten.pixel_shuffle.default")
def _pixel_shuffle(b: Builder, self: Value, upscale_factor: int) -> Value:
    if self.rank == 4:
        return b.op("DepthToSpace", self, blocksize=upscale_factor, mode="CRD")
    lead = [b.size(self, d) for d in range(self.rank - 3)]
    flat = b.reshape(self, [-1, *(b.size(self, d) for d in range(-3, 0))])
    made = b.op("DepthToSpace", flat, blocksize=upscale_factor, mode="CRD")
    c, h, w = (b.size(self, d) for d in range(-3, 0))
    sizes = [
        b.arithmetic("Div", c, upscale_factor**2),
        b.arithmetic("Mul", h, upscale_factor),
        b.arithmetic("Mul", w, upscale_factor),
    ]
    return b.reshape(made, [*lead, *sizes], b.shape)


@translates("aten.pixel_unshuffle.default")
def _pixel_unshuffle(b: Builder, self: Value, downscale_factor: int) -> Value:
    r = downscale_factor
    lead = [b.size(self, d) for d in range(self.rank - 3)]
    c, h, w = (b.size(self, d) for d in range(-3, 0))
    h, w = b.arithmetic("Div", h, r), b.arithmetic("Div", w, r)
    n = len(lead)
    x = b.reshape(self, [*lead, c, h, r, w, r], (*self.shape[:-3], None, None, r, None, r))
    x = b.transpose(x, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return b.reshape(x, [*lead, b.arithmetic("Mul", c, r * r), h, w], b.shape)


@translates("aten.channel_shuffle.default")
def _channel_shuffle(b: Builder, self: Value, groups: int) -> Value:
    sizes = b.sizes_of(self)
    x = b.reshape(
        self, [sizes[0], groups, b.arithmetic("Div", sizes[1], groups), *sizes[2:]], (None,) * (self.rank + 1)
    )
    return b.reshape(_transpose(b, x, 1, 2), sizes, self.shape)


@translates("aten.meshgrid.default aten.meshgrid.indexing")
def _meshgrid(b: Builder, tensors: Sequence[Value], indexing: str = "ij") -> list[Value]:
    lines = [b.reshape(t, [1]) if t.shape == () else t for t in tensors]
    order = list(range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        order[0], order[1] = 1, 0
    sizes = b.ints([b.size(lines[o], 0) for o in order])
    made = []
    for i, line in enumerate(lines):
        place = order.index(i)
        wide = b.reshape(line, [-1 if d == place else 1 for d in range(len(lines))])
        made.append(b.expand(wide, sizes, b.shape[i]))
    return made


@translates("aten.atleast_1d.default")
def _atleast_1d(b: Builder, self: Value) -> Value:
    return b.reshape(self, [1]) if self.shape == () else self


TRANSLATIONS["aten.concatenate.default"] = TRANSLATIONS["aten.cat.default"]


@translates("aten.tril.default")
def _tril(b: Builder, self: Value, diagonal: int = 0) -> Value:
    return _trilu(b, self, diagonal, 0)


@translates("aten.triu.default")
def _triu(b: Builder, self: Value, diagonal: int = 0) -> Value:
    return _trilu(b, self, diagonal, 1)


def _trilu(b: Builder, self: Value, diagonal: int, upper: int) -> Value:
    if self.dtype in (_C.float32, _C.float64, _C.int64, _C.bool):
        return b.op("Trilu", self, b.const(diagonal, _C.int64), upper=upper)
    return b.cast(
        b.op(
            "Trilu",
            b.cast(self, _C.int64 if not self.dtype.is_floating_point else _C.float32),
            b.const(diagonal, _C.int64),
            upper=upper,
        ),
        self.dtype,
    )


@translates("aten.diag.default")
def _diag(b: Builder, self: Value, diagonal: int = 0) -> Value:
    return _diagonal(b, self, diagonal) if self.rank == 2 else _diag_embed(b, self, diagonal)


@translates("aten.diag_embed.default")
def _diag_embed(b: Builder, self: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    size = b.arithmetic("Add", b.size(self, -1), abs(offset))
    line = b.arange(size)
    rows, columns = b.unsqueeze(line, [1]), b.unsqueeze(line, [0])
    on = b.op("Equal", b.op("Add", rows, b.const(offset, _C.int64)), columns)
    padded = self
    if offset:
        pad = [0] * (2 * self.rank)
        pad[self.rank - 1 if offset > 0 else -1] = abs(offset)
        zero = b.const(0, self.dtype)
        padded = b.op("Pad", self, b.ints(pad), zero, mode="constant", shape=(*self.shape[:-1], None))
    x = b.where(on, b.unsqueeze(padded, [-2]), 0, self.dtype)
    rank = self.rank + 1
    x.shape = (None,) * rank
    first, second = dim1 % rank, dim2 % rank
    rest = iter(range(rank - 2))
    order = [rank - 2 if d == first else rank - 1 if d == second else next(rest) for d in range(rank)]
    return b.transpose(x, order)
