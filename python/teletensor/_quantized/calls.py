"""The engine's operators on quantized tensors: those that PyTorch has for them, with its results.

An operator that only moves elements is applied to the integers; the others to the numbers, which are quantized again.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from .. import _C
from .._C import Tensor
from .._layouts import channels_last, channels_last_3d
from .._quantized_names import qint32, quint8
from .quantizer import Quantizer
from .tensor import QuantizedTensor, handlers, not_implemented, wrapped

# Operators that move elements, or select them by comparing, which integers do in the numbers' order.
_MOVING = (
    "view reshape flatten ravel unflatten permute transpose t squeeze squeeze_dim unsqueeze expand broadcast_to narrow select slice "
    "split split_with_sizes chunk tensor_split unbind movedim diagonal unfold as_strided detach alias contiguous clone repeat tile "
    "repeat_interleave flip rot90 pixel_shuffle pixel_unshuffle channel_shuffle index index_masked index_select masked_select "
    "max_pool2d max_pool3d msort max_all min_all amax amin adaptive_max_pool2d pad_edges"
).split()
# The same with the results (values, indices).
_SELECTING = "sort sort_stable topk max_dim min_dim max_pool2d_with_indices adaptive_max_pool2d_with_indices".split()
# Operators on the numbers, whose results have the argument's scale and zero point.
_ON_NUMBERS = (
    "gelu leaky_relu threshold std std_all std_dim std_fraction"
).split()
# Averages of numbers, computed from the integers minus the zero point: a tie is one exactly.
_AVERAGING = "mean avg_pool2d avg_pool3d adaptive_avg_pool2d adaptive_avg_pool3d".split()
_COMPARING = "eq ne lt le gt ge".split()
# Those of moving operators that are allowed with a scale per channel.
_PER_CHANNEL = frozenset("view reshape detach alias contiguous clone select squeeze squeeze_dim unsqueeze".split())
# Those of them that take parts along a dimension ``dim``: of the scales and zero points, too, if the dimension has them.
_PARTS = frozenset("slice narrow split split_with_sizes chunk tensor_split unbind".split())
_TRANSPOSING = frozenset("permute transpose t movedim as_strided".split())
# The scale and zero point of results with fixed ranges: of quint8, and of qint8.
_FIXED = {"sigmoid": (1 / 256, 0, -128), "hardsigmoid": (1 / 256, 0, -128), "tanh": (1 / 128, 128, 0)}


@functools.cache
def _parameters(name: str) -> tuple[int, list[str]]:
    """The number of an operator's positional parameters, and the names of the others."""
    parameters = _C._declaration(name)[0]
    count = sum(not keyword_only for _, keyword_only, *_ in parameters)
    return count, [p[0] for p in parameters[count:]]


def call(name: str, arguments: list) -> Any:
    """Calls an operator of the engine with a value for each of its parameters."""
    count, keywords = _parameters(name)
    return getattr(_C.ops, name)(*arguments[:count], **dict(zip(keywords, arguments[count:])))


def _plain(value: Any) -> Any:
    """The arguments of a call with the integers of quantized tensors."""
    if isinstance(value, QuantizedTensor):
        return value._ints
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def numbers_of(value: Any) -> Any:
    """The numbers of a quantized tensor; other values unchanged."""
    return value.dequantize() if isinstance(value, QuantizedTensor) else value


def _only_one_scale(name: str, tensor: QuantizedTensor) -> None:
    if tensor._quantizer.axis is not None:
        raise RuntimeError(f"[{name}] expected a tensor with one scale (torch.per_tensor_affine), got {tensor.qscheme()}")


def _result(result: Any, quantizer: Quantizer) -> Any:
    """A result's tensors of integers as quantized tensors."""
    if isinstance(result, (list, tuple)):
        return type(result)(_result(item, quantizer) for item in result)
    return wrapped(result, quantizer)


def _moved_axis(name: str, tensor: QuantizedTensor, arguments: list) -> int | None:
    """The dimension of the channels in the result of an operator that adds or removes dimensions; None of another one."""
    axis: int = tensor._quantizer.axis  # type: ignore[assignment]
    if name == "select":
        return axis - (arguments[1] % tensor.dim() < axis)
    if name == "unsqueeze":
        return axis + (arguments[1] % (tensor.dim() + 1) <= axis)
    if name not in ("squeeze", "squeeze_dim"):
        return None
    given = arguments[1] if name == "squeeze_dim" else range(tensor.dim())
    dims = {d % tensor.dim() for d in ([given] if isinstance(given, int) else given) if tensor.shape[d] == 1}
    if axis in dims:
        raise RuntimeError("Squeeze is only possible on non-axis dimension for Per-Channel Quantized Tensors.")
    return axis - sum(d < axis for d in dims)


def _of_channels(name: str, tensor: QuantizedTensor, arguments: list) -> Any:
    """A moving operator on a tensor with a scale per channel, if the result's scales are known."""
    quantizer = tensor._quantizer
    if name in _TRANSPOSING:
        raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")
    if name in _PARTS:
        return _parts_of_channels(name, tensor, arguments)
    if name not in _PER_CHANNEL:
        raise RuntimeError(f"[{name}] expected a tensor with one scale (torch.per_tensor_affine), got {quantizer.scheme}")
    axis, channels = quantizer.axis, tensor.shape[quantizer.axis]
    result = call(name, _plain(arguments))
    if name == "select" and arguments[1] % tensor.dim() == axis:
        chosen = arguments[2]
        one = Quantizer(quantizer.dtype, quantizer.scale[chosen], quantizer.zero_point[chosen])  # type: ignore[index]
        return wrapped(result, one)
    if (moved := _moved_axis(name, tensor, arguments)) is not None:
        return wrapped(result, replace(quantizer, axis=moved))
    before = tensor.shape[:axis].numel()
    places = [d for d, size in enumerate(result.shape) if size == channels and result.shape[:d].numel() == before]
    if not places:
        raise RuntimeError(f"length of scales must equal to channel, expected {list(result.shape)} got, {channels}")
    return wrapped(result, replace(quantizer, axis=axis if axis in places else places[0]))


def _parts_of_channels(name: str, tensor: QuantizedTensor, arguments: list) -> Any:
    """Parts along a dimension of a tensor with a scale per channel. A part with one channel has one scale, as in PyTorch."""
    quantizer, at = tensor._quantizer, [p[0] for p in _C._declaration(name)[0]].index("dim")
    dim, axis = arguments[at] % tensor.dim(), quantizer.axis
    parts = call(name, _plain(arguments))
    if dim == axis:
        arguments = [*arguments[:at], 0, *arguments[at + 1 :]]
        scales, points = (call(name, [value, *arguments[1:]]) for value in (quantizer.scale, quantizer.zero_point))
        if not isinstance(parts, (list, tuple)):
            return _of_part(parts, quantizer, scales, points)
        return type(parts)(_of_part(*row) for row in zip(parts, [quantizer] * len(parts), scales, points, strict=True))
    return _result(parts, replace(quantizer, axis=axis - (name == "unbind" and dim < axis)))


def _of_part(part: Tensor, quantizer: Quantizer, scale: Tensor, point: Tensor) -> QuantizedTensor:
    if scale.numel() == 1:
        return wrapped(part, Quantizer(quantizer.dtype, scale.reshape([]), point.reshape([])))
    return wrapped(part, replace(quantizer, scale=scale, zero_point=point))


def _moving(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        tensor = arguments[0]
        if into is not None or not isinstance(tensor, QuantizedTensor):
            raise not_implemented(f"{name}.out")
        if tensor._quantizer.axis is not None:
            return _of_channels(name, tensor, arguments)
        return _result(call(name, _plain(arguments)), tensor._quantizer)

    return handle


def _selecting(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        tensor = arguments[0]
        if into is not None:
            raise not_implemented(f"{name}.out")
        _only_one_scale(name, tensor)
        values, *rest = call(name, _plain(arguments))
        return (wrapped(values, tensor._quantizer), *rest)

    return handle


def _given(result: Tensor, target: list | None, quantizer: Quantizer) -> QuantizedTensor:
    """The integers as a quantized tensor, or in the tensor that receives the result."""
    if target is None:
        return wrapped(result, quantizer)
    target[0]._ints.copy_(result)
    return target[0]


def _on_numbers(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        tensor = arguments[0]
        _only_one_scale(name, tensor)
        result = call(name, [numbers_of(v) for v in arguments])
        return _given(tensor._quantizer.quantize(result), into, tensor._quantizer)

    return handle


def _rounds_sums(name: str, ints: Tensor, rest: list) -> bool:
    """Whether PyTorch rounds an average after it adds the zero point, which it does for contiguous tensors."""
    if name == "mean":
        dims = rest[0] if rest else None
        dims = range(ints.dim()) if dims is None else [dims] if isinstance(dims, int) else dims
        inner = sorted(d % max(ints.dim(), 1) for d in dims) == list(range(ints.dim() - len(dims), ints.dim()))
        return inner and ints.is_contiguous()
    planes, dims = (channels_last_3d, 5) if name.endswith("3d") else (channels_last, 4)
    by_channels = ints.dim() == dims and ints.is_contiguous(memory_format=planes)
    return name in ("avg_pool2d", "adaptive_avg_pool2d", "adaptive_avg_pool3d") and not by_channels


def _averaging(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        tensor, *rest = arguments
        _only_one_scale(name, tensor)
        quantizer = tensor._quantizer
        low, high = quantizer.dtype.limits
        after = _rounds_sums(name, tensor._ints, rest)
        if quantizer.dtype is qint32 or (name == "mean" and not after):
            return _on_numbers(name)(arguments, into)
        average = call(name, [_C.ops.dequantize_affine(tensor._ints, 1.0, quantizer.zero_point), *rest])
        if after:
            ints = _C.ops.quantize_affine(average + quantizer.zero_point, 1.0, 0, low, high, low < 0)
        else:
            ints = _C.ops.quantize_affine(average, 1.0, quantizer.zero_point, low, high, low < 0)
        return _given(ints, into, quantizer)

    return handle


def _comparing(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        if into is not None:
            raise not_implemented(f"{name}.out")
        return call(name, [numbers_of(v) for v in arguments])

    return handle


def _isclose(arguments: list, into: list | None) -> Any:
    raise RuntimeError("isclose is not supported for quantized inputs.")


def _fixed(name: str):
    scale, unsigned, signed = _FIXED[name]

    def handle(arguments: list, into: list | None) -> Any:
        (tensor,) = arguments
        _only_one_scale(name, tensor)
        if into is not None:
            raise not_implemented(f"{name}_")
        if tensor.dtype is qint32:
            quantizer = Quantizer(qint32, scale / 2**24, 0)  # PyTorch's: numbers from 1/2 on are not in sigmoid's range
        else:
            quantizer = Quantizer(tensor.dtype, scale, unsigned if tensor.dtype is quint8 else signed)
        return wrapped(quantizer.quantize(call(name, [tensor.dequantize()])), quantizer)

    return handle


def clamped(tensor: QuantizedTensor, low: Any, high: Any) -> Tensor:
    """The integers of a tensor limited to those of two numbers; None: no limit."""
    ints, quantizer = tensor._ints, tensor._quantizer
    limits = [None if v is None else quantizer.quantize(_C.tensor(float(v), device=tensor.device)) for v in (low, high)]
    if limits[0] is not None:
        ints = _C.torch.maximum(ints, limits[0])
    return ints if limits[1] is None else _C.torch.minimum(ints, limits[1])


def _relu(arguments: list, into: list | None) -> Any:
    tensor = arguments[0]
    _only_one_scale("relu", tensor)
    point = tensor._quantizer.zero_point
    limit = point.to(tensor._ints.dtype) if isinstance(point, Tensor) else point
    ints = tensor._ints
    return _given(_C.torch.clamp(ints, min=limit), into, tensor._quantizer)


def _relu6(arguments: list, into: list | None) -> Any:
    _only_one_scale("relu6", arguments[0])
    return _given(clamped(arguments[0], 0, 6), into, arguments[0]._quantizer)


def _clamp(arguments: list, into: list | None) -> Any:
    tensor, low, high = arguments
    _only_one_scale("clamp", tensor)
    return _given(clamped(tensor, low, high), into, tensor._quantizer)


def joined(tensors: list, dim: int, quantizer: Quantizer, relu: bool = False) -> QuantizedTensor:
    """Concatenates the numbers of tensors and quantizes them, by moving integers where the quantizer is the same."""
    if all(t._quantizer is quantizer or t._quantizer == quantizer for t in tensors) and not relu:
        return wrapped(_C.torch.cat([t._ints for t in tensors], dim), quantizer)
    numbers = _C.torch.cat([t.dequantize() for t in tensors], dim)
    return wrapped(quantizer.quantize(_C.torch.relu(numbers) if relu else numbers), quantizer)


def _cat(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        tensors = arguments[0]
        if into is not None:
            raise not_implemented(f"{name}.out")
        if not all(isinstance(t, QuantizedTensor) for t in tensors):
            raise RuntimeError(f"[{name}] expected only quantized tensors")
        for t in tensors:
            if t._quantizer.axis is not None:
                raise RuntimeError("Only per-tensor quantization is supported in 'cat'!")
        if len({t.dtype for t in tensors}) > 1:
            raise RuntimeError(f"[{name}] expected tensors of one dtype, got {[t.dtype for t in tensors]}")
        quantizer = tensors[0]._quantizer
        ints = [
            t._ints if _same_numbers(t._quantizer, quantizer) else quantizer.quantize(t.dequantize()) for t in tensors
        ]
        return wrapped(call(name, [ints, *arguments[1:]]), quantizer)

    return handle


def _same_numbers(a: Quantizer, b: Quantizer) -> bool:
    """Whether both have the same numbers as scale and zero point, as far as the client has them."""
    return a is b or (not any(isinstance(v, Tensor) for q in (a, b) for v in (q.scale, q.zero_point)) and a == b)


def _assign(arguments: list, into: list | None) -> Any:
    """copy_(): quantizes numbers; integers are copied with their quantizer."""
    source = arguments[1]
    if into is None or not isinstance(into[0], QuantizedTensor):
        raise RuntimeError("Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor from a quantized Tensor")  # noqa: E501
    target = into[0]
    if not isinstance(source, QuantizedTensor):
        if source.dtype is not _C.float32:
            raise RuntimeError("Quantized copy only works with kFloat as source Tensor")
        target._ints.copy_(target._quantizer.quantize(source.broadcast_to(target.shape)))
        return target
    if source.dtype is not target.dtype:
        raise RuntimeError("Quantized Copy only works with the same dtype")
    target._ints.copy_(source._ints)
    target._quantizer = source._quantizer
    return target


def _diag(arguments: list, into: list | None) -> Any:
    if arguments[0].dim() != 2:  # the zeros beside a diagonal have no kernel in PyTorch
        raise not_implemented("diag")
    return _moving("diag")(arguments, into)


def _fill(arguments: list, into: list | None) -> Any:
    if into is None:
        into = [wrapped(_C.torch.empty_like(arguments[0]._ints), arguments[0]._quantizer)]
    target = into[0]
    number = _C.tensor(float(arguments[1]), device=target.device).broadcast_to(target.shape)
    target._ints.copy_(target._quantizer.quantize(number))
    return target


def _masked_fill(arguments: list, into: list | None) -> Any:
    tensor, mask, value = arguments
    _only_one_scale("masked_fill", tensor)
    number = value if isinstance(value, Tensor) else _C.tensor(float(value), device=tensor.device)
    filled = tensor._quantizer.quantize(numbers_of(number).to(_C.float32))
    return _given(_C.torch.where(mask, filled, tensor._ints), into, tensor._quantizer)


def _index_put(arguments: list, into: list | None) -> Any:
    tensor, indices, values, accumulate = arguments
    _only_one_scale("index_put", tensor)
    if accumulate:
        raise NotImplementedError("index_put for quantized tensors is currently not supported for accumulate=True")
    ints = tensor._quantizer.quantize(numbers_of(values))
    return _given(call("index_put", [tensor._ints, indices, ints, False]), into, tensor._quantizer)


def _full_like(arguments: list, into: list | None) -> Any:
    tensor, value, dtype, device = arguments
    if into is not None:
        return _fill([tensor, value], into)
    if value == 0 or dtype is not None or device is not None:
        raise not_implemented("zero_" if value == 0 else "full_like")
    numbers = _C.torch.full(tuple(tensor.shape), float(value), device=tensor.device)
    return wrapped(tensor._quantizer.quantize(numbers), tensor._quantizer)


def _empty_like(arguments: list, into: list | None) -> Any:
    tensor, dtype, device = arguments
    if into is not None or dtype is not None or device is not None:
        raise not_implemented("empty_like")
    return wrapped(_C.torch.empty_like(tensor._ints), tensor._quantizer)


def _ones_like(arguments: list, into: list | None) -> Any:
    tensor, *rest = arguments
    return _full_like([tensor, 1.0, *rest], into)


def _view_as(name: str):
    def handle(arguments: list, into: list | None) -> Any:
        sizes = list(arguments[1].shape)
        other = {"view_as": "view", "reshape_as": "reshape", "expand_as": "expand"}[name]
        if not isinstance(arguments[0], QuantizedTensor):
            return call(other, [arguments[0], sizes])
        return handlers[other]([arguments[0], sizes], into)

    return handle


def _area(tensor: QuantizedTensor, size: list, into: list | None) -> Any:
    """Averages of adaptive windows, as PyTorch computes mode="area"."""
    if len(size) == 1:
        rows = handlers["adaptive_avg_pool2d"]([tensor.unsqueeze(-2), [1, *size]], into)
        return rows.squeeze(-2)
    return handlers[f"adaptive_avg_pool{len(size)}d"]([tensor, size], into)


def _interpolate(arguments: list, into: list | None) -> Any:
    mode = arguments[2]
    if mode == "area":
        return _area(arguments[0], list(arguments[1]), into)
    name = "nearest" if mode.startswith("nearest") else mode
    if name not in ("nearest", "bilinear"):
        raise not_implemented(f"upsample_{mode}")
    tensor = arguments[0]
    if name == "bilinear" or into is not None or tensor._quantizer.axis is not None or tensor._ints.dtype is _C.uint8:
        return (_moving if name == "nearest" else _averaging)("interpolate")(arguments, into)
    ints, rest = tensor._ints, arguments[1:]
    if ints.dtype is _C.int8:  # moves bytes
        moved = call("interpolate", [ints.view(_C.uint8), *rest]).view(_C.int8)
    else:  # float64 has all integers of 32 bits
        moved = call("interpolate", [ints.to(_C.float64), *rest]).to(ints.dtype)
    return wrapped(moved, tensor._quantizer)


def _pad(arguments: list, into: list | None) -> Any:
    tensor, value = arguments[0], arguments[-1]
    _only_one_scale("pad", tensor)
    quantizer = tensor._quantizer
    return _given(quantizer.quantize(call("pad", [tensor.dequantize(), *arguments[1:-1], value])), into, quantizer)


for _name in _MOVING:
    handlers[_name] = _moving(_name)
for _name in _SELECTING:
    handlers[_name] = _selecting(_name)
for _name in _ON_NUMBERS:
    handlers[_name] = _on_numbers(_name)
for _name in _AVERAGING:
    handlers[_name] = _averaging(_name)
for _name in _COMPARING:
    handlers[_name] = _comparing(_name)
for _name in _FIXED:
    handlers[_name] = _fixed(_name)
for _name in ("cat", "stack", "hstack", "vstack"):
    handlers[_name] = _cat(_name)
for _name in ("view_as", "reshape_as", "expand_as"):
    handlers[_name] = _view_as(_name)
handlers.update(
    relu=_relu, relu6=_relu6, clamp=_clamp, hardtanh=_clamp, assign=_assign, fill=_fill, masked_fill=_masked_fill,
    index_put=_index_put, full_like=_full_like, ones_like=_ones_like, empty_like=_empty_like, interpolate=_interpolate, pad=_pad,
    isclose=_isclose, diag=_diag,
)  # fmt: skip
