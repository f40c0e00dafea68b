"""Convolutions, transposed ones, and sliding blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import translates


def _each(value: Any, n: int) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * n if len(values) == 1 else values


def _convolved(
    b: Builder, x: Value, weight: Value, bias: Value | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Value:  # fmt: skip
    n = weight.rank - 2
    unbatched = x.rank == n + 1
    x = b.unsqueeze(x, [0]) if unbatched else x
    stride, dilation = _each(stride, n), _each(dilation, n)
    options: dict[str, Any] = {"strides": stride, "dilations": dilation, "group": groups}
    if all(type(k) is int for k in weight.shape[2:]):
        options["kernel_shape"] = list(weight.shape[2:])
    if isinstance(padding, str):
        totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])] if padding == "same" else [0] * n
        options["pads"] = [t // 2 for t in totals] + [t - t // 2 for t in totals]
    else:
        options["pads"] = _each(padding, n) * 2
    if transposed:
        made = b.op("ConvTranspose", x, weight, bias, output_padding=_each(output_padding, n), **options)
    else:
        made = b.op("Conv", x, weight, bias, **options)
    return b.op("Squeeze", made, b.const([0], _C.int64)) if unbatched else made


@translates("aten.convolution.default")
def _convolution(
    b: Builder, input: Value, weight: Value, bias: Value | None, stride: Any, padding: Any, dilation: Any, transposed: bool,  # noqa: A002
    output_padding: Any, groups: int,
) -> Value:  # fmt: skip
    return _convolved(b, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@translates(
    "aten.conv1d.default aten.conv2d.default aten.conv3d.default aten.conv1d.padding aten.conv2d.padding aten.conv3d.padding"
)
def _conv(
    b: Builder, input: Value, weight: Value, bias: Value | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,  # noqa: A002
    groups: int = 1,
) -> Value:  # fmt: skip
    return _convolved(b, input, weight, bias, stride, padding, dilation, False, 0, groups)


@translates("aten.conv_transpose1d.default aten.conv_transpose2d.input aten.conv_transpose3d.input")
def _conv_transpose(
    b: Builder, input: Value, weight: Value, bias: Value | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,  # noqa: A002
    groups: int = 1, dilation: Any = 1,
) -> Value:  # fmt: skip
    return _convolved(b, input, weight, bias, stride, padding, dilation, True, output_padding, groups)


@translates("aten.conv_tbc.default")
def _conv_tbc(b: Builder, self: Value, weight: Value, bias: Value, pad: int = 0) -> Value:
    made = b.op(
        "Conv", b.transpose(self, [1, 2, 0]), b.transpose(weight, [2, 1, 0]), bias, pads=[pad, pad], shape=(None,) * 3
    )
    return b.transpose(made, [2, 0, 1])


@translates("aten.im2col.default")
def blocks(b: Builder, self: Value, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Value:
    """Rows and columns of the blocks by Gather."""
    kernel, dilation, padding, stride = (_each(v, 2) for v in (kernel_size, dilation, padding, stride))
    unbatched = self.rank == 3
    x = b.unsqueeze(self, [0]) if unbatched else self
    if any(padding):
        pads = [0, 0, *padding, 0, 0, *padding]
        grown = tuple(n + 2 * p if type(n) is int else None for n, p in zip(x.shape[2:], padding))
        x = b.op("Pad", x, b.ints(pads), b.const(0, x.dtype), mode="constant", shape=(*x.shape[:2], *grown))
    channels = b.size(x, 1)
    for i in (0, 1):
        dim = 2 + 2 * i
        reach = dilation[i] * (kernel[i] - 1) + 1
        count = b.arithmetic("Add", b.arithmetic("Div", b.arithmetic("Sub", b.size(x, dim), reach), stride[i]), 1)
        starts = b.arange(count) * stride[i]
        offsets = b.const([[k * dilation[i]] for k in range(kernel[i])], _C.int64)
        blocks = count if type(count) is int else None
        x = b.op(
            "Gather",
            x,
            b.op("Add", starts, offsets),
            axis=dim,
            shape=(*x.shape[:dim], kernel[i], blocks, *x.shape[dim + 1 :]),
        )
    x = b.transpose(x, [0, 1, 2, 4, 3, 5])
    made = b.reshape(x, [b.size(x, 0), b.arithmetic("Mul", channels, kernel[0] * kernel[1]), -1], (None,) * 3)
    return b.squeeze(b.op("Identity", made, shape=(1, None, None)), [0]) if unbatched else made


@translates("aten.col2im.default")
def folded(
    b: Builder, self: Value, output_size: Sequence[Any], kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1,
) -> Value:  # fmt: skip
    kernel, dilation, padding, stride = (_each(v, 2) for v in (kernel_size, dilation, padding, stride))
    unbatched = self.rank == 2
    x = b.unsqueeze(self, [0]) if unbatched else self
    made = b.op(
        "Col2Im", x, b.ints(_each(output_size, 2)), b.ints(kernel), dilations=dilation, pads=padding * 2, strides=stride
    )
    return b.op("Squeeze", made, b.const([0], _C.int64)) if unbatched else made


@translates("aten.slow_conv3d.default aten.thnn_conv2d.default aten._slow_conv2d_forward.default")
def _slow(
    b: Builder, self: Value, weight: Value, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0
) -> Value:
    del kernel_size
    return _convolved(b, self, weight, bias, stride, padding, 1, False, 0, 1)
