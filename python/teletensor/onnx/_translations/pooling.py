"""Pooling: maxima and averages of windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _C
from .._builder import Builder, Value
from .._registry import TRANSLATIONS, Untranslatable


def _each(value: Any, n: int) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * n if len(values) == 1 else values


def _output_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int:
    """The number of windows: with `ceil`, the last one begins within the tensor or its left padding."""
    reach = dilation * (kernel - 1) + 1
    span = size + 2 * padding - reach
    count = (-(-span // stride) if ceil else span // stride) + 1
    return count - 1 if ceil and (count - 1) * stride >= size + padding else count


def _overhang(
    x: Value, n: int, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int]
) -> list[int] | None:
    """How far windows reach beyond the right padding, with ceil_mode; None if sizes are dynamic."""
    sizes = x.shape[-n:]
    if any(type(s) is not int for s in sizes):
        return None
    found = []
    for i, size in enumerate(sizes):
        count = _output_size(size, kernel[i], stride[i], padding[i], dilation[i], True)
        reach = (count - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1
        found.append(max(reach - size - 2 * padding[i], 0))
    return found


def _max_pooled(
    b: Builder, self: Value, n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: bool,
) -> Any:  # fmt: skip
    kernel = _each(kernel_size, n)
    stride, padding, dilation = _each(stride or kernel, n), _each(padding, n), _each(dilation, n)
    unbatched = self.rank == n + 1
    x = b.unsqueeze(self, [0]) if unbatched else self
    ends = list(padding)
    if ceil_mode:
        overhang = _overhang(x, n, kernel, stride, padding, dilation)
        if overhang is not None:
            ends = [p + o for p, o in zip(padding, overhang)]
            ceil_mode = False
            if any(e >= k for e, k in zip(ends, kernel)):
                if indices:
                    raise Untranslatable("indices of max_pool whose windows reach far beyond the tensor (ceil_mode)")
                pads = [0, 0, *([0] * n), 0, 0, *overhang]
                x = b.op("Pad", x, b.ints(pads), b.const(-math.inf, x.dtype), mode="constant")
                ends = list(padding)
    work = x if x.dtype.is_floating_point else b.cast(x, _C.float64)
    options = {
        "kernel_shape": kernel, "strides": stride, "pads": [*padding, *ends], "dilations": dilation, "ceil_mode": int(ceil_mode),
    }  # fmt: skip
    if not indices:
        made = b.cast(b.op("MaxPool", work, **options), self.dtype)
        return b.op("Squeeze", made, b.const([0], _C.int64)) if unbatched else made
    values, places = b.op("MaxPool", work, outputs=2, dtype=[work.dtype, _C.int64], **options)
    plane: Any = 1
    for d in range(2, 2 + n):
        plane = b.arithmetic("Mul", plane, b.size(x, d))
    made = [b.cast(values, self.dtype), b.op("Mod", places, b.value(plane, _C.int64))]
    return [b.op("Squeeze", v, b.const([0], _C.int64)) for v in made] if unbatched else made


def _max_pool(n: int, indices: bool) -> Any:
    def translate(
        b: Builder, self: Value, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        return _max_pooled(b, self, n, kernel_size, stride, padding, dilation, ceil_mode, indices)

    return translate


for _n in (1, 2, 3):
    TRANSLATIONS[f"aten.max_pool{_n}d.default"] = _max_pool(_n, False)
    TRANSLATIONS[f"aten.max_pool{_n}d_with_indices.default"] = _max_pool(_n, True)


def _avg_pool(n: int) -> Any:
    def translate(
        b: Builder, self: Value, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        kernel = _each(kernel_size, n)
        steps, pads = _each(stride or kernel, n), _each(padding, n)
        unbatched = self.rank == n + 1
        x = b.unsqueeze(self, [0]) if unbatched else self
        made = _averaged(b, x, n, kernel, steps, pads, ceil_mode, count_include_pad, divisor_override)
        return b.op("Squeeze", made, b.const([0], _C.int64)) if unbatched else made

    return translate


def _averaged(
    b: Builder, x: Value, n: int, kernel: list[int], stride: list[int], padding: list[int], ceil_mode: bool, count_include_pad: bool,
    divisor: int | None,
) -> Value:  # fmt: skip
    overhang = _overhang(x, n, kernel, stride, padding, [1] * n) if ceil_mode else [0] * n
    if overhang is None:
        raise Untranslatable("ceil_mode of an average over dynamic sizes")
    if not any(overhang) and divisor is None:
        return b.op(
            "AveragePool",
            x,
            kernel_shape=kernel,
            strides=stride,
            pads=padding * 2,
            count_include_pad=int(count_include_pad),
        )
    pads = [0, 0, *padding, 0, 0, *(p + o for p, o in zip(padding, overhang))]
    wide = b.op("Pad", x, b.ints(pads), b.const(0, x.dtype), mode="constant") if any(pads) else x
    mean = b.op("AveragePool", wide, kernel_shape=kernel, strides=stride)
    area = math.prod(kernel)
    if divisor is not None:
        return mean * (area / divisor)
    counts = np.ones((1,) * n)
    for i, size in enumerate(x.shape[-n:]):
        outputs = _output_size(size, kernel[i], stride[i], padding[i], 1, True)
        starts = np.arange(outputs) * stride[i] - padding[i]
        if count_include_pad:
            line = np.minimum(starts + kernel[i], size + padding[i]) - starts
        else:
            line = np.minimum(starts + kernel[i], size) - np.maximum(starts, 0)
        counts = counts * line.reshape([-1 if d == i else 1 for d in range(n)])
    return b.op("Mul", mean, b.const(area / counts, x.dtype))


for _n in (1, 2, 3):
    TRANSLATIONS[f"aten.avg_pool{_n}d.default"] = _avg_pool(_n)


# ---- Adaptive


def _windows(size: int, count: int) -> list[tuple[int, int]]:
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _adaptive_avg(n: int) -> Any:
    def translate(b: Builder, self: Value, output_size: Any) -> Value:
        """Averages of each dimension alone: equal windows by AveragePool, others by a product with a matrix."""
        wanted = [self.shape[-n + i] if v is None else v for i, v in enumerate(_each(output_size, n))]
        sizes = self.shape[-n:]
        if wanted == [1] * n:
            return b.op("ReduceMean", self, b.const(list(range(-n, 0)), _C.int64), keepdims=1)
        if any(type(s) is not int for s in sizes):
            raise Untranslatable("adaptive pooling of dynamic sizes to other sizes than 1")
        if all(s % w == 0 for s, w in zip(sizes, wanted)):
            kernel = [s // w for s, w in zip(sizes, wanted)]
            return _avg_pool(n)(b, self, kernel, kernel)
        x = self
        for i, (size, count) in enumerate(zip(sizes, wanted)):
            if size == count:
                continue
            matrix = np.zeros((size, count))
            for j, (start, end) in enumerate(_windows(size, count)):
                matrix[start:end, j] = 1 / (end - start)
            moved = b.moved(x, -n + i, -1)
            product = b.op("MatMul", moved, b.const(matrix, x.dtype), shape=(*moved.shape[:-1], count))
            x = b.moved(product, -1, -n + i)
        return x

    return translate


def adaptive_max(n: int) -> Any:
    def translate(b: Builder, self: Value, output_size: Any) -> list[Value | None]:
        wanted = [self.shape[-n + i] if v is None else v for i, v in enumerate(_each(output_size, n))]
        sizes = self.shape[-n:]
        if wanted == [1] * n and any(type(s) is not int for s in sizes):
            return [b.op("ReduceMax", self, b.const(list(range(-n, 0)), _C.int64), keepdims=1), None]
        if any(type(s) is not int for s in sizes):
            raise Untranslatable("adaptive pooling of dynamic sizes to other sizes than 1")
        if all(s % w == 0 for s, w in zip(sizes, wanted)):
            kernel = [s // w for s, w in zip(sizes, wanted)]
            return _max_pooled(b, self, n, kernel, kernel, 0, 1, False, True)
        x = self
        for i, (size, count) in enumerate(zip(sizes, wanted)):
            dim = -n + i
            parts = [
                b.op("ReduceMax", b.slice(x, dim, s, e), b.const([dim], _C.int64), keepdims=1)
                for s, e in _windows(size, count)
            ]
            shape = tuple(count if d == x.rank + dim else m for d, m in enumerate(x.shape))
            x = b.op("Concat", *parts, axis=dim, shape=shape)
        return [x, None]  # indices of unequal windows

    return translate


for _n in (1, 2, 3):
    for _prefix in ("", "_"):
        TRANSLATIONS[f"aten.{_prefix}adaptive_avg_pool{_n}d.default"] = _adaptive_avg(_n)
    TRANSLATIONS[f"aten.adaptive_max_pool{_n}d.default"] = adaptive_max(_n)


def _max_unpool(n: int) -> Any:
    def translate(b: Builder, self: Value, indices: Value, output_size: Any, *_: Any) -> Value:
        """Values written to the places of each plane."""
        wanted = _each(output_size, n)
        lead = [b.size(self, d) for d in range(self.rank - n)]
        plane: Any = 1
        for s in wanted[-n:]:
            plane = b.arithmetic("Mul", plane, s)
        flat = b.filled([*lead, plane], 0, self.dtype)
        values, places = b.reshape(self, [*lead, -1]), b.reshape(indices, [*lead, -1])
        made = b.op("ScatterElements", flat, places, values, axis=-1)
        return b.reshape(made, [*lead, *wanted[-n:]], b.shape)

    return translate


for _n in (1, 2, 3):
    TRANSLATIONS[f"aten.max_unpool{_n}d.default"] = _max_unpool(_n)
