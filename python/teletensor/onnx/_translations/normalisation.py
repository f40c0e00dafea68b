"""Normalisation by the statistics of a batch, a layer, a group or an instance."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ... import _C
from ..._functions import finfo
from .._builder import Builder, Value
from .._registry import Untranslatable, translates
from ..errors import OnnxExporterWarning


def _ones(b: Builder, sizes: Sequence[Any], dtype: Any, value: float = 1) -> Value:
    if all(type(n) is int for n in sizes):
        import numpy as np

        return b.const(np.full(tuple(sizes), value), dtype)
    return b.filled(list(sizes), value, dtype)


@translates("aten.layer_norm.default")
def _layer_norm(
    b: Builder, input: Value, normalized_shape: Sequence[int], weight: Value | None = None, bias: Value | None = None,  # noqa: A002
    eps: float = 1e-5, cudnn_enable: bool = True,
) -> Value:  # fmt: skip
    del cudnn_enable
    scale = weight if weight is not None else _ones(b, normalized_shape, input.dtype)
    return b.op("LayerNormalization", input, scale, bias, axis=-len(normalized_shape), epsilon=float(eps))


@translates("aten.native_layer_norm.default")
def _native_layer_norm(
    b: Builder, input: Value, normalized_shape: Sequence[int], weight: Value | None, bias: Value | None, eps: float,  # noqa: A002
) -> list[Value]:  # fmt: skip
    scale = weight if weight is not None else _ones(b, normalized_shape, input.dtype)
    made = b.op("LayerNormalization", input, scale, bias, axis=-len(normalized_shape), epsilon=float(eps), outputs=3)
    return list(made)


@translates("aten.rms_norm.default aten._fused_rms_norm.default")
def _rms_norm(
    b: Builder, input: Value, normalized_shape: Sequence[int], weight: Value | None = None, eps: float | None = None
) -> Any:  # noqa: A002
    eps = float(finfo(input.dtype).eps) if eps is None else float(eps)
    if b.opset >= 23 and not isinstance(b.dtype, list):
        scale = weight if weight is not None else _ones(b, normalized_shape, input.dtype)
        return b.op("RMSNormalization", input, scale, axis=-len(normalized_shape), epsilon=eps)
    axes = b.const(list(range(-len(normalized_shape), 0)), _C.int64)
    inverse = b.op("Reciprocal", b.op("Sqrt", b.op("ReduceMean", b.op("Mul", input, input), axes, keepdims=1) + eps))
    made = b.op("Mul", input, inverse)
    made = made if weight is None else b.op("Mul", made, weight)
    return [made, inverse] if isinstance(b.dtype, list) else made


def _grouped(b: Builder, x: Value, groups: int, weight: Value | None, bias: Value | None, eps: float) -> Value:
    flat = b.reshape(x, [b.size(x, 0), groups, -1], (x.shape[0], groups, None))
    scale, shift = _ones(b, [groups], x.dtype), _ones(b, [groups], x.dtype, 0)
    normal = b.op("InstanceNormalization", flat, scale, shift, epsilon=float(eps))
    made = b.reshape(normal, b.shape_of(x), x.shape)
    ends = [-1] + [1] * (x.rank - 2)
    if weight is not None:
        made = b.op("Mul", made, b.reshape(weight, ends))
    return made if bias is None else b.op("Add", made, b.reshape(bias, ends))


@translates("aten.group_norm.default")
def _group_norm(
    b: Builder, input: Value, num_groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5,  # noqa: A002
    cudnn_enabled: bool = True,
) -> Value:  # fmt: skip
    del cudnn_enabled
    if b.opset >= 21 and weight is not None and bias is not None:
        return b.op("GroupNormalization", input, weight, bias, epsilon=float(eps), num_groups=num_groups)
    return _grouped(b, input, num_groups, weight, bias, eps)


@translates("aten.native_group_norm.default")
def _native_group_norm(
    b: Builder, input: Value, weight: Value | None, bias: Value | None, N: Any, C: Any, HxW: Any, group: int, eps: float,  # noqa: A002, N803
) -> list[Value]:  # fmt: skip
    del N, C, HxW
    made = _grouped(b, input, group, weight, bias, eps)
    flat = b.reshape(input, [b.size(input, 0), group, -1])
    axis = b.const([-1], _C.int64)
    mean = b.op("ReduceMean", flat, axis, keepdims=1)
    away = b.op("Sub", flat, mean)
    variance = b.op("ReduceMean", b.op("Mul", away, away), axis, keepdims=0)
    return [made, b.op("Squeeze", mean, axis), b.op("Reciprocal", b.op("Sqrt", variance + float(eps)))]


def _by_channel(b: Builder, v: Value, x: Value) -> Value:
    return b.reshape(v, [-1] + [1] * (x.rank - 2)) if x.rank > 2 else v


def _from_batch(b: Builder, x: Value, weight: Any, bias: Any, eps: float) -> tuple[Value, Value, Value, Value]:
    """The result, mean, biased variance and the number of elements per channel."""
    axes = b.const([0, *range(2, x.rank)], _C.int64)
    mean = b.op("ReduceMean", x, axes, keepdims=1)
    away = b.op("Sub", x, mean)
    variance = b.op("ReduceMean", b.op("Mul", away, away), axes, keepdims=1)
    made = b.op("Div", away, b.op("Sqrt", variance + float(eps)))
    made = made if weight is None else b.op("Mul", made, _by_channel(b, weight, x))
    made = made if bias is None else b.op("Add", made, _by_channel(b, bias, x))
    count: Any = 1
    for d in (0, *range(2, x.rank)):
        count = b.arithmetic("Mul", count, b.size(x, d))
    count = b.cast(count, x.dtype) if isinstance(count, Value) else b.const(float(count), x.dtype)
    return made, b.reshape(mean, [-1]), b.reshape(variance, [-1]), count


def _inference(b: Builder, x: Value, weight: Any, bias: Any, mean: Value, var: Value, eps: float) -> Value:
    channels = [x.shape[1]]
    scale = weight if weight is not None else _ones(b, channels, x.dtype)
    shift = bias if bias is not None else _ones(b, channels, x.dtype, 0)
    return b.op("BatchNormalization", x, scale, shift, mean, var, epsilon=float(eps))


@translates("aten.batch_norm.default")
def _batch_norm(
    b: Builder, input: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,  # noqa: A002
    eps: float, cudnn_enabled: bool = True,
) -> Value:  # fmt: skip
    del momentum, cudnn_enabled
    if training or running_mean is None:
        return _from_batch(b, input, weight, bias, eps)[0]
    return _inference(b, input, weight, bias, running_mean, running_var, eps)


@translates("aten._native_batch_norm_legit_no_training.default")
def _no_training(
    b: Builder, input: Value, weight: Any, bias: Any, running_mean: Value, running_var: Value, momentum: float, eps: float,  # noqa: A002
) -> list[Value | None]:  # fmt: skip
    del momentum
    return [_inference(b, input, weight, bias, running_mean, running_var, eps), None, None]


@translates("aten.native_batch_norm.default")
def _native_batch_norm(
    b: Builder, input: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float,  # noqa: A002
) -> list[Value | None]:  # fmt: skip
    if not training:
        return _no_training(b, input, weight, bias, running_mean, running_var, momentum, eps)
    return _with_statistics(b, input, weight, bias, eps)


def _with_statistics(b: Builder, x: Value, weight: Any, bias: Any, eps: float) -> list[Value | None]:
    made, mean, variance, _ = _from_batch(b, x, weight, bias, eps)
    return [made, mean, b.op("Reciprocal", b.op("Sqrt", variance + float(eps)))]


@translates("aten._native_batch_norm_legit.no_stats")
def _no_stats(
    b: Builder, input: Value, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> list[Value | None]:  # noqa: A002
    del training, momentum
    return _with_statistics(b, input, weight, bias, eps)


@translates("aten._native_batch_norm_legit.default aten._native_batch_norm_legit_functional.default")
def _functional(
    b: Builder, input: Value, weight: Any, bias: Any, running_mean: Value, running_var: Value, training: bool, momentum: float, eps: float,  # noqa: A002
) -> list[Value | None]:  # fmt: skip
    if not training:
        made = _inference(b, input, weight, bias, running_mean, running_var, eps)
        return [made, None, None, running_mean, running_var]
    made, mean, variance, count = _from_batch(b, input, weight, bias, eps)
    unbiased = b.op("Mul", variance, b.op("Div", count, count - 1.0))
    new_mean = b.op("Add", running_mean * (1 - momentum), mean * float(momentum))
    new_var = b.op("Add", running_var * (1 - momentum), unbiased * float(momentum))
    return [made, mean, b.op("Reciprocal", b.op("Sqrt", variance + float(eps))), new_mean, new_var]


@translates("aten.instance_norm.default")
def _instance_norm(
    b: Builder, input: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float,  # noqa: A002
    eps: float, cudnn_enabled: bool = True,
) -> Value:  # fmt: skip
    del momentum, cudnn_enabled
    if not use_input_stats:
        if running_mean is None:
            raise Untranslatable("instance_norm without statistics")
        return _inference(b, input, weight, bias, running_mean, running_var, eps)
    if running_mean is not None:
        message = "[onnx.export] instance_norm writes running statistics; ONNX graphs keep no state, and the writes are left out"
        warnings.warn(message, OnnxExporterWarning, stacklevel=2)
    channels = [input.shape[1]]
    scale = weight if weight is not None else _ones(b, channels, input.dtype)
    shift = bias if bias is not None else _ones(b, channels, input.dtype, 0)
    return b.op("InstanceNormalization", input, scale, shift, epsilon=float(eps))
