"""torch.ops.onednn: layers of 8-bit integers or floats on plain tensors, the operators of PyTorch's lowering for CPUs.

Scales and zero points are arguments; weights are symmetric, so that their zero points are not used, as in PyTorch. Packed
weights are ordinary tensors: the engine packs them itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from .._layouts import channels_last, channels_last_3d
from .._library import registry
from .._library.schema import parse
from .quantizer import single

_INTEGERS = {_C.uint8: (0, 255), _C.int8: (-128, 127)}
_FLOATS8 = {_C.float8_e4m3fn: 448.0, _C.float8_e5m2: 57344.0}
_WIDE = (_C.float32, _C.bfloat16, _C.float16)
_WEIGHTS = (_C.int8, _C.float8_e4m3fn)
_CONVOLUTIONS = {1: _C.ops.conv1d, 2: _C.ops.conv2d, 3: _C.ops.conv3d}


def _operator(*schemas: str) -> Callable[[Callable], Callable]:
    """Defines operators of the namespace whose kernel is the function."""

    def decorate(function: Callable) -> Callable:
        for schema in schemas:
            registry.define(parse(f"onednn::{schema}")).kernels["CompositeExplicitAutograd"] = function
        return function

    return decorate


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


# ---- what follows a product


def _hardtanh(x: Tensor, low: Any = -1.0, high: Any = 1.0) -> Tensor:
    _require(low is not None and high is not None, "hardtanh is expected to have two scalar input: min_val and max_val")
    return x.clamp(float(low), float(high))


_UNARY: dict[str, Callable] = {
    "none": lambda x: x,
    "relu": lambda x: _C.torch.relu(x),
    "hardtanh": _hardtanh,
    "hardswish": lambda x: _C.ops.hardswish(x),
    "swish": lambda x: _C.ops.silu(x),
}
_LINEAR_UNARY = {
    **_UNARY,
    "leaky_relu": lambda x, slope=0.01: _C.ops.leaky_relu(x, float(slope)),
    "tanh": lambda x: _C.torch.tanh(x),
    "gelu": lambda x, algorithm="none": _C.ops.gelu(x, approximate="tanh" if algorithm == "tanh" else "none"),
}


def _activated(x: Tensor, table: dict[str, Callable], name: str | None, scalars: Sequence, algorithm: str | None, error: str) -> Tensor:
    """The numbers after the unary operator."""
    name = name or "none"
    _require(name in table, error.format(name))
    if name == "gelu":
        return table[name](x, algorithm or "none")
    return table[name](x, *scalars) if name in ("hardtanh", "leaky_relu") else table[name](x)


def _check_output(kind: str, dtype: Any, scale: float, zero_point: int) -> None:
    _require(dtype in _INTEGERS or dtype in _FLOATS8 or dtype in _WIDE, f"onednn {kind}: unexpected output dtype {dtype}")
    if dtype in _WIDE:
        _require(
            scale == 1.0 and zero_point == 0,
            f"onednn {kind}: expect scale=1 and zero point=0 for {'fp32' if dtype is _C.float32 else dtype} output",
        )
    else:
        _require(math.isfinite(scale) and scale > 0, f"onednn {kind}: expected a positive output scale, got {scale}")
    if dtype in _INTEGERS:
        low, high = _INTEGERS[dtype]
        _require(low <= zero_point <= high, f"onednn {kind}: expected an output zero point from {low} to {high}, got {zero_point}")


def _converted(x: Tensor, dtype: Any, scale: float, zero_point: int) -> Tensor:
    """Numbers in the output's dtype: quantized to 8 bits, or as they are."""
    if dtype in _INTEGERS:
        low, high = _INTEGERS[dtype]
        return _C.ops.quantize_affine(x, single(1.0 / scale), zero_point, low, high, low < 0)
    if dtype in _FLOATS8:
        x = x if scale == 1.0 else x / scale
        return x.clamp(-_FLOATS8[dtype], _FLOATS8[dtype]).to(dtype)
    return x.to(dtype)


def _number(value: Any, name: str) -> Any:
    """A number, or a tensor of one element, which is not read."""
    if not isinstance(value, Tensor):
        return value
    _require(value.numel() == 1, f"[onednn] expected {name} with one element, got {value.numel()}")
    return value.reshape([])


def _factors(x_scale: Any, w_scale: Tensor, outputs: int) -> Tensor:
    """The products of the input's and the weight's scales: one number, or one per output."""
    w_scale = w_scale.to(_C.float32).reshape(-1)
    _require(w_scale.numel() in (1, outputs), f"[onednn] expected 1 or {outputs} scales of the weight, got {w_scale.numel()}")
    x_scale = _number(x_scale, "x_scale")
    return w_scale * (x_scale.to(_C.float32) if isinstance(x_scale, Tensor) else single(float(x_scale)))


def _check_operands(kind: str, x: Tensor, w: Tensor) -> None:
    _require(
        x.dtype in _INTEGERS or x.dtype is _C.float8_e4m3fn,
        f"{kind}: data type of input should be uint8, int8 or float8_e4m3fn.",
    )
    _require(w.dtype in _WEIGHTS, f"{kind}: Weight should be of type int8 or float8_e4m3fn, got {w.dtype}")
    _require(
        (x.dtype is _C.float8_e4m3fn) == (w.dtype is _C.float8_e4m3fn),
        f"{kind}: data type of input and weight should be the same for fp8, but got {x.dtype} and {w.dtype}",
    )


def _check_bias(bias: Tensor | None, outputs: int) -> None:
    _require(
        bias is None or bias.numel() == outputs,
        f"[onednn] expected a bias of {outputs} elements, got {0 if bias is None else bias.numel()}",
    )


# ---- linear layers


@_operator("qlinear_prepack(Tensor weight, int[]? x_shape) -> Tensor")
def qlinear_prepack(weight: Tensor, _x_shape: Any) -> Tensor:
    """Copies a weight of the sizes (outputs, inputs) to the layout of qlinear_pointwise(), (inputs, outputs)."""
    _require(weight.dtype in _WEIGHTS, "Weight should be of type int8 or float8_e4m3fn")
    _require(weight.dim() == 2, f"[onednn::qlinear_prepack] expected a matrix, got {weight.dim()} dimensions")
    return weight.detach().contiguous().clone().t()


def _products(x: Tensor, x_scale: Any, x_zero_point: Any, w: Tensor, w_scale: Tensor, bias: Tensor | None) -> Tensor:
    """The numbers of a linear layer, float32."""
    _check_operands("qlinear with mkldnn tensor", x, w)
    _require(w.dim() == 2 and x.dim() >= 1, f"[onednn::qlinear_pointwise] expected a packed matrix, got {tuple(w.shape)}")
    inputs, outputs = w.shape
    _require(x.shape[-1] == inputs, f"[onednn::qlinear_pointwise] expected {inputs} columns of the input, got {x.shape[-1]}")
    _check_bias(bias, outputs)
    factors = _factors(x_scale, w_scale, outputs)
    if x.dtype is _C.float8_e4m3fn:
        numbers = _C.ops.linear(x.to(_C.float32), w.t().to(_C.float32)) * factors
    else:
        sums = _C.ops.int8_linear(x, w.t(), _number(x_zero_point, "x_zero_point"), 0)
        numbers = _C.ops.dequantize_affine(sums, factors, 0)
    return numbers if bias is None else numbers + bias.detach().to(_C.float32).reshape(-1)


_PARAMETERS = (
    "Tensor qw, Tensor w_scale, Tensor w_zero_point, Tensor? bias, float output_scale, int output_zero_point, "
    "ScalarType? output_dtype"
)
_TWO = "float x_scale, int x_zero_point"
_TENSORS = "Tensor x_scale, Tensor x_zero_point"


@_operator(
    f"qlinear_pointwise(Tensor qx, {_TWO}, {_PARAMETERS}, str post_op_name, Scalar?[] post_op_args, str post_op_algorithm) -> Tensor",
    f"qlinear_pointwise.tensor(Tensor qx, {_TENSORS}, {_PARAMETERS}, str post_op_name, Scalar?[] post_op_args, "
    "str post_op_algorithm) -> Tensor",
)
def qlinear_pointwise(
    qx: Tensor, x_scale: Any, x_zero_point: Any, qw: Tensor, w_scale: Tensor, _w_zero_point: Tensor, bias: Tensor | None,
    output_scale: float, output_zero_point: int, output_dtype: Any, post_op_name: str, post_op_args: Sequence, post_op_algorithm: str,
) -> Tensor:  # fmt: skip
    """A linear layer and an activation. The result is quantized if its dtype has 8 bits; None is the input's dtype."""
    dtype = output_dtype or qx.dtype
    _check_output("qlinear", dtype, output_scale, output_zero_point)
    numbers = _products(qx, x_scale, x_zero_point, qw, w_scale, bias)
    error = "onednn qlinear: unsupported unary post op {}"
    numbers = _activated(numbers, _LINEAR_UNARY, post_op_name, post_op_args, post_op_algorithm, error)
    return _converted(numbers, dtype, output_scale, output_zero_point)


_OTHER = (
    "Tensor qw, Tensor w_scale, Tensor w_zero_point, Tensor? other, Tensor? bias, float output_scale, int output_zero_point, "
    "ScalarType? output_dtype, float other_scale, int other_zp, str binary_post_op, float binary_alpha, str unary_post_op, "
    "Scalar?[] unary_post_op_args, str unary_post_op_algorithm"
)


def _summand(other: Tensor, scale: float, zero_point: int) -> Tensor:
    """The numbers that a second input represents."""
    if other.dtype in _INTEGERS:
        return _C.ops.dequantize_affine(other, single(scale), zero_point)
    numbers = other.to(_C.float32)
    return numbers * scale if other.dtype in _FLOATS8 else numbers


@_operator(
    f"qlinear_pointwise.binary(Tensor qx, {_TWO}, {_OTHER}) -> Tensor",
    f"qlinear_pointwise.binary_tensor(Tensor qx, {_TENSORS}, {_OTHER}) -> Tensor",
)
def qlinear_pointwise_binary(
    qx: Tensor, x_scale: Any, x_zero_point: Any, qw: Tensor, w_scale: Tensor, _w_zero_point: Tensor, other: Tensor | None,
    bias: Tensor | None, output_scale: float, output_zero_point: int, output_dtype: Any, other_scale: float, other_zp: int,
    binary_post_op: str, binary_alpha: float, unary_post_op: str, unary_post_op_args: Sequence, unary_post_op_algorithm: str,
) -> Tensor:  # fmt: skip
    """A linear layer, a sum with another tensor and an activation.

    Args:
        binary_post_op: "sum" adds the numbers that ``other`` represents, writes the result into it; "add" adds
            its elements as they are, without its scale, as in PyTorch.
    """
    dtype = output_dtype or qx.dtype
    _check_output("qlinear", dtype, output_scale, output_zero_point)
    _require(other is not None, f"onednn qlinear: the extra input is missing for post op {binary_post_op}")
    _require(binary_alpha == 1.0, "onednn qlinear: alpha != 1 for binary post op is not yet supported.")
    _require(binary_post_op in ("sum", "add"), f"onednn qlinear: unsupported binary post op {binary_post_op}")
    _require(unary_post_op in ("none", "relu"), f"onednn qlinear: unsupported unary post op {unary_post_op} after a binary one")
    if dtype in _WIDE:
        _require(
            other_scale == 1.0 and other_zp == 0,
            f"onednn qlinear: expect extra input scale = 1.0 and zero point = 0 when output dtype is {dtype}, but got {other_scale} "
            f"and {other_zp}, respectively",
        )
    if binary_post_op == "sum":
        _require(
            other.dtype is dtype,
            f"onednn qlinear: the dtype of extra input for binary post op should be {dtype} (same as output dtype), but got {other.dtype}",
        )
    numbers = _products(qx, x_scale, x_zero_point, qw, w_scale, bias)
    if binary_post_op == "sum":
        _require(
            other.shape == numbers.shape,
            f"onednn qlinear: expected an extra input of {tuple(numbers.shape)}, got {tuple(other.shape)}",
        )
        numbers = numbers + _summand(other, other_scale, other_zp)
    else:
        numbers = numbers + other.to(_C.float32)
    numbers = _activated(numbers, _UNARY, unary_post_op, unary_post_op_args, unary_post_op_algorithm, "{}")
    result = _converted(numbers, dtype, output_scale, output_zero_point)
    if binary_post_op == "sum":
        other.copy_(result)
    return result


# ---- convolutions


@_operator(
    "qconv_prepack(Tensor weight, Tensor w_scales, float x_scale, int x_zp, int[] stride, int[] padding, int[] dilation, int groups, "
    "int[]? x_shape=None) -> Tensor",
)
def qconv_prepack(
    weight: Tensor, _w_scales: Tensor, _x_scale: float, _x_zp: int, _stride: Sequence[int], _padding: Sequence[int],
    _dilation: Sequence[int], groups: int, _x_shape: Any = None,
) -> Tensor:  # fmt: skip
    """The weight of convolutions, of 4 dimensions for one-dimensional ones. A copy."""
    _require(weight.dtype in _WEIGHTS, f"Weight should have dtype int8 or fp8_e4m3fn but got {weight.dtype}")
    _require(3 <= weight.dim() <= 5, f"[onednn::qconv_prepack] expected 3 to 5 dimensions, got {weight.dim()}")
    _require(groups > 0, f"[onednn::qconv_prepack] expected a positive number of groups, got {groups}")
    copied = weight.detach().contiguous().clone()
    return copied.unsqueeze(-2) if copied.dim() == 3 else copied


def _list(values: Sequence[int], space: int, name: str) -> list[int]:
    values = list(values) * space if len(values) == 1 else list(values)
    _require(len(values) == space, f"[onednn::qconv_pointwise] expected {space} numbers as {name}, got {values}")
    return values


def _convolved(
    x: Tensor, x_scale: Any, x_zero_point: Any, w: Tensor, w_scale: Tensor, bias: Tensor | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """The numbers of a convolution, float32."""
    _check_operands("qconv", x, w)
    space = x.dim() - 2
    _require(1 <= space <= 3, f"[onednn::qconv_pointwise] expected an input of 3 to 5 dimensions, got {x.dim()}")
    if space == 1 and w.dim() == 4:
        _require(w.shape[2] == 1, f"[onednn::qconv_pointwise] expected a packed weight of one dimension, got {tuple(w.shape)}")
        w = w.squeeze(2)
    _require(w.dim() == x.dim(), f"[onednn::qconv_pointwise] expected a packed weight of {x.dim()} dimensions, got {w.dim()}")
    _check_bias(bias, w.shape[0])
    lists = [_list(values, space, name) for values, name in ((stride, "stride"), (padding, "padding"), (dilation, "dilation"))]
    factors = _factors(x_scale, w_scale, w.shape[0])
    by_channel = [-1, *[1] * space]
    if x.dtype is _C.float8_e4m3fn:
        numbers = _CONVOLUTIONS[space](x.to(_C.float32), w.to(_C.float32), None, *lists, groups) * factors.reshape(by_channel)
    else:
        if space == 1:  # a height of 1, so that channels can be last
            x, w = x.unsqueeze(-2), w.unsqueeze(-2)
            lists = [[1, *lists[0]], [0, *lists[1]], [1, *lists[2]]]
        x = x.contiguous(memory_format=channels_last_3d if space == 3 else channels_last)
        sums = _C.ops.int8_convolution(x, w, _number(x_zero_point, "x_zero_point"), 0, *lists, groups)
        numbers = _C.ops.dequantize_affine(sums.squeeze(-2) if space == 1 else sums, factors.reshape(by_channel), 0)
    return numbers if bias is None else numbers + bias.detach().to(_C.float32).reshape(by_channel)


def _channels_last(x: Tensor) -> Tensor:
    """The tensor with its channels last in memory, as results of PyTorch's convolutions."""
    if x.dim() == 3:
        return x.unsqueeze(-2).contiguous(memory_format=channels_last).squeeze(-2)
    return x.contiguous(memory_format=channels_last_3d if x.dim() == 5 else channels_last)


_WEIGHT = "Tensor qw, Tensor w_scale, Tensor w_zero_point, "
_LAYER = (
    "Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups, float output_scale, int output_zero_point, "
    "ScalarType? output_dtype, "
)
_UNARY_TEXT = "str attr, Scalar?[] scalars, str? algorithm) -> Tensor"


@_operator(
    *(f"{name}(Tensor qx, {_TWO}, {_WEIGHT}{_LAYER}{_UNARY_TEXT}"
      for name in ("qconv_pointwise", "qconv1d_pointwise", "qconv2d_pointwise", "qconv3d_pointwise")),
    *(f"{name}.tensor(Tensor qx, {_TENSORS}, {_WEIGHT}{_LAYER}{_UNARY_TEXT}" for name in ("qconv_pointwise", "qconv2d_pointwise")),
)  # fmt: skip
def qconv_pointwise(
    qx: Tensor, x_scale: Any, x_zero_point: Any, qw: Tensor, w_scale: Tensor, _w_zero_point: Tensor, bias: Tensor | None,
    stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int, output_scale: float, output_zero_point: int,
    output_dtype: Any, attr: str, scalars: Sequence, algorithm: str | None,
) -> Tensor:  # fmt: skip
    """A convolution and an activation. The result is quantized if its dtype has 8 bits; None is the input's dtype."""
    dtype = output_dtype or qx.dtype
    _check_output("qconv", dtype, output_scale, output_zero_point)
    numbers = _convolved(qx, x_scale, x_zero_point, qw, w_scale, bias, stride, padding, dilation, groups)
    error = f"Unsupported post op {{}} for quantized pointwise conv{qx.dim() - 2}d."
    numbers = _activated(numbers, _UNARY, attr, scalars, algorithm, error)
    return _channels_last(_converted(numbers, dtype, output_scale, output_zero_point))


_ACCUMULATED = _WEIGHT + "Tensor(a!) qaccum, " + _LAYER + (
    "float accum_scale, int accum_zero_point, str binary_attr, Scalar? alpha, str? unary_attr, Scalar?[] unary_scalars, "
    "str? unary_algorithm) -> Tensor"
)


@_operator(
    f"qconv2d_pointwise.binary(Tensor qx, {_TWO}, {_ACCUMULATED}",
    f"qconv2d_pointwise.binary_tensor(Tensor qx, {_TENSORS}, {_ACCUMULATED}",
)
def qconv_pointwise_binary(
    qx: Tensor, x_scale: Any, x_zero_point: Any, qw: Tensor, w_scale: Tensor, _w_zero_point: Tensor, qaccum: Tensor,
    bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int, output_scale: float,
    output_zero_point: int, output_dtype: Any, accum_scale: float, accum_zero_point: int, binary_attr: str, _alpha: Any,
    unary_attr: str | None, unary_scalars: Sequence, unary_algorithm: str | None,
) -> Tensor:  # fmt: skip
    """A two-dimensional convolution, added to ``qaccum``, which the result replaces, and relu. ``alpha`` is not used, as in PyTorch."""
    dtype = output_dtype or qx.dtype
    _check_output("qconv", dtype, output_scale, output_zero_point)
    _require(
        binary_attr == "sum" and unary_attr in ("none", "relu", None),
        "post_op sum or post_op sum_relu is supported for quantized pointwise conv2d. "
        f"Got binary_post_op: {binary_attr} unary_post_op: {unary_attr}.",
    )
    _require(qaccum.dtype is dtype, f"[onednn::qconv2d_pointwise] expected qaccum of the output's dtype {dtype}, got {qaccum.dtype}")
    numbers = _convolved(qx, x_scale, x_zero_point, qw, w_scale, bias, stride, padding, dilation, groups)
    _require(
        qaccum.shape == numbers.shape,
        f"[onednn::qconv2d_pointwise] expected qaccum of {tuple(numbers.shape)}, got {tuple(qaccum.shape)}",
    )
    numbers = numbers + _summand(qaccum, accum_scale, accum_zero_point)
    numbers = _activated(numbers, _UNARY, unary_attr, unary_scalars, unary_algorithm, "{}")
    return qaccum.copy_(_converted(numbers, dtype, output_scale, output_zero_point))


# ---- sums, products and norms


def _check_pair(name: str, a: Tensor, b: Tensor, dtype: Any, scale: float, zero_point: int) -> None:
    _require(
        a.dtype is _C.uint8 and b.dtype is _C.uint8,
        f"Quantized {name} operands should be of type uint8, but got {a.dtype} and {b.dtype}",
    )
    _require(a.shape == b.shape, f"Quantized {name} operands should have the same size.")
    _check_numbers(name, dtype, scale, zero_point)


def _check_numbers(name: str, dtype: Any, scale: float, zero_point: int) -> None:
    _require(
        dtype is _C.uint8 or dtype in _WIDE,
        f"Quantized {name} output should be of type uint8, float, bfloat16 or float16, but got {dtype}",
    )
    _require(
        dtype is _C.uint8 or (scale == 1.0 and zero_point == 0),
        f"Quantized {name} output scale and zero point should be 1 and 0 for output_dtype {dtype}, but got scale = {scale} "
        f"and zero point = {zero_point}",
    )
    _check_output(name, dtype, scale, zero_point)


_PAIR = (
    "Tensor self, float self_scale, int self_zero_point, Tensor other, float other_scale, int other_zero_point, float output_scale, "
    "int output_zero_point, ScalarType output_dtype) -> Tensor"
)


def _pair(name: str, operation: str, compute: Callable) -> None:
    @_operator(f"{name}.tensor({_PAIR}")
    def pointwise(
        self: Tensor, self_scale: float, self_zero_point: int, other: Tensor, other_scale: float, other_zero_point: int,
        output_scale: float, output_zero_point: int, output_dtype: Any,
    ) -> Tensor:  # fmt: skip
        _check_pair(operation, self, other, output_dtype, output_scale, output_zero_point)
        a, b = _summand(self, self_scale, self_zero_point), _summand(other, other_scale, other_zero_point)
        return _converted(compute(a, b), output_dtype, output_scale, output_zero_point)


_pair("qadd", "add", lambda a, b: a + b)
_pair("qadd_relu", "add", lambda a, b: _C.torch.relu(a + b))
_pair("qmul", "mul", lambda a, b: a * b)


@_operator(
    "qbatch_norm2d(Tensor qx, float qx_scale, int qx_zero_point, Tensor weight, Tensor bias, Tensor mean, Tensor var, float eps, "
    "float output_scale, int output_zero_point, ScalarType output_dtype) -> Tensor"
)
def qbatch_norm2d(
    qx: Tensor, qx_scale: float, qx_zero_point: int, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, eps: float,
    output_scale: float, output_zero_point: int, output_dtype: Any,
) -> Tensor:  # fmt: skip
    """A batch norm with running statistics, of (batch, channels, height, width)."""
    _require(qx.dtype is _C.uint8, f"Quantized batch_norm_2d input should be of type uint8, but got {qx.dtype}")
    _require(qx.dim() == 4, "Expecting the input tensor of rank 4.")
    _check_numbers("batch_norm_2d", output_dtype, output_scale, output_zero_point)
    channels = qx.shape[1]
    for name, t in (("weight", weight), ("bias", bias), ("mean", mean), ("var", var)):
        _require(t.numel() == channels, f"[onednn::qbatch_norm2d] expected {name} of {channels} elements, got {t.numel()}")
    factor = weight.detach() * (var.detach() + eps).rsqrt()
    shift = bias.detach() - mean.detach() * factor
    numbers = _summand(qx, qx_scale, qx_zero_point)
    normed = numbers * factor.reshape(-1, 1, 1) + shift.reshape(-1, 1, 1)
    return _converted(normed, output_dtype, output_scale, output_zero_point)


# ---- weights of float16


@_operator("linear_prepack_fp16(Tensor weight, int[]? x_shape) -> Tensor")
def linear_prepack_fp16(weight: Tensor, _x_shape: Any) -> Tensor:
    """The weight in float16, of the sizes (inputs, outputs). A copy."""
    _require(weight.dim() == 2, f"[onednn::linear_prepack_fp16] expected a matrix, got {weight.dim()} dimensions")
    return weight.detach().to(_C.float16).contiguous().t()


def _linear_fp16(x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    _require(w.dtype is _C.float16, f"[onednn::linear_dynamic_fp16] expected a weight of linear_prepack_fp16, got {w.dtype}")
    _require(x.dtype is _C.float32, f"[onednn::linear_dynamic_fp16] expected an input of float32, got {x.dtype}")
    return _C.ops.linear(x.detach(), w.t().to(_C.float32), bias)


@_operator("linear_dynamic_fp16(Tensor x, Tensor w, Tensor? bias) -> Tensor")
def linear_dynamic_fp16(x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    """A linear layer with a weight of float16, computed in float32."""
    return _linear_fp16(x, w, bias)


@_operator("linear_relu_dynamic_fp16(Tensor x, Tensor w, Tensor? bias) -> Tensor")
def linear_relu_dynamic_fp16(x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    """relu() of linear_dynamic_fp16()."""
    return _C.torch.relu(_linear_fp16(x, w, bias))
