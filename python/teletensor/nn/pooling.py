"""Pooling functions composed of operators: max pooling with indices, unpooling, power-average, adaptive, fractional."""

from __future__ import annotations

import math

from .. import _C, _composites
from .._C import Tensor
from .._integers import is_int, repeated
from .._layouts import keep_channels_last, require_not_nested
from .._options import check_floating, check_int64

_ops = _C.ops
_FEW = 1 << 15  # elements that one thread pools


def _unpooled_size(output_size, default_size: list[int], stride: tuple[int, ...]) -> list[int]:
    """The last dimensions of ``output_size``; ValueError unless they differ from the default by less than a stride."""
    n = len(default_size)
    if len(output_size) not in (n, n + 2):
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(output_size)}'"
        )
    size = [int(v) for v in output_size][-n:]
    for output, expected, st in zip(size, default_size, stride):
        if not expected - st < output < expected + st:
            raise ValueError(f"invalid output_size {size} (expected {default_size}, plus or minus less than a stride)")
    return size


def _unpool(n: int):
    def max_unpool(
        input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
    ) -> Tensor:
        kernel, padding = repeated(kernel_size, n), repeated(padding, n)
        stride = kernel if stride is None else repeated(stride, n)
        default_size = [(input.shape[d - len(kernel)] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(len(kernel))]
        size = default_size if output_size is None else _unpooled_size(output_size, default_size, stride)
        check_int64(f"max_unpool{n}d", "indices", indices)
        check_floating(f"max_unpool{n}d", input=input)
        if input.shape != indices.shape:
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices "
                f"tensor with shape: {list(indices.shape)}"
            )
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with {input.dim()} dimensions."
            )
        if min(stride) <= 0:
            raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
        leading_shape = input.shape[:-n]
        zeros = _C.torch.zeros(*leading_shape, math.prod(size), dtype=input.dtype, device=input.device)
        result = zeros.scatter(-1, indices.flatten(-n), input.flatten(-n)).reshape(*leading_shape, *size)
        return keep_channels_last(result, input) if n == 2 else result

    max_unpool.__name__ = f"max_unpool{n}d"
    max_unpool.__doc__ = f"max_pool{n}d's maxima written back to their positions, zeros elsewhere."
    return max_unpool


max_unpool1d, max_unpool2d, max_unpool3d = _unpool(1), _unpool(2), _unpool(3)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum of each window, optionally with indices into the flattened volume."""
    stride = kernel_size if stride is None else stride
    if not return_indices:
        return _ops.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)
    kernel, stride, padding, dilation = (repeated(v, 3) for v in (kernel_size, stride, padding, dilation))
    batch = input if input.dim() == 5 else input.unsqueeze(0)
    n, c, depth, height, width = batch.shape
    # Pool planes first, then along depth.
    planes, inside = _ops.max_pool2d_with_indices(
        batch.flatten(0, 2).unsqueeze(1), kernel[1:], stride[1:], padding[1:], dilation[1:], ceil_mode
    )
    h, w = planes.shape[-2:]
    lines, along = _ops.max_pool2d_with_indices(
        planes.reshape(n, c, depth, h * w), (kernel[0], 1), (stride[0], 1), (padding[0], 0), (dilation[0], 1), ceil_mode
    )
    inside = inside.reshape(n, c, depth * h * w).gather(2, along.flatten(2))
    indices = along.flatten(2).div(h * w, rounding_mode="floor") * (height * width) + inside
    shape = (n, c, lines.shape[2], h, w)
    result, indices = (keep_channels_last(t.reshape(shape), input) for t in (lines, indices))
    return (result, indices) if input.dim() == 5 else (result.squeeze(0), indices.squeeze(0))


def one_size(name: str, output_size) -> int:
    """Returns output_size, which must be an int or a sequence of one int."""
    sizes = repeated(output_size, 1)
    if len(sizes) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(sizes)})")
    return sizes[0]


def adaptive_max_pool1d(input, output_size, return_indices: bool = False):
    """Max pooling to output_size."""
    size = one_size("adaptive_max_pool1d", output_size)
    values, indices = _ops.adaptive_max_pool2d_with_indices(input.unsqueeze(-2), (1, size))
    return (values.squeeze(-2), indices.squeeze(-2)) if return_indices else values.squeeze(-2)


def adaptive_max_pool3d(input, output_size, return_indices: bool = False):
    """Max pooling to output_size, where None means the size of the input."""
    if input.dim() < 4:
        raise ValueError(f"Input dimension should be at least 4, got {input.dim()}")
    requested = repeated(output_size, 3)
    size = [input.shape[i - 3] if s is None else s for i, s in enumerate(requested)]
    leading_shape, (depth, height, width) = input.shape[:-3], input.shape[-3:]
    if not return_indices:
        planes = _ops.adaptive_max_pool2d(input.reshape(-1, depth, height, width), size[1:])
        lines = _ops.adaptive_max_pool2d(planes.reshape(-1, 1, depth, size[1] * size[2]), (size[0], size[1] * size[2]))
        return lines.reshape(*leading_shape, *size)
    # Pool planes first, then along depth.
    count = size[1] * size[2]
    planes, inside = _ops.adaptive_max_pool2d_with_indices(input.reshape(-1, depth, height, width), size[1:])
    lines, along = _ops.adaptive_max_pool2d_with_indices(planes.reshape(-1, 1, depth, count), (size[0], count))
    along = along.reshape(-1, size[0] * count)
    inside = inside.reshape(-1, depth * count).gather(1, along)
    indices = along.div(count, rounding_mode="floor") * (height * width) + inside
    return lines.reshape(*leading_shape, *size), indices.reshape(*leading_shape, *size)


def _fractional(n: int):
    def fractional_max_pool(
        input: Tensor, kernel_size, output_size=None, output_ratio=None, return_indices: bool = False, _random_samples=None
    ):
        require_not_nested(f"fractional_max_pool{n}d", input)
        if output_size is None and output_ratio is None:
            raise ValueError(f"fractional_max_pool{n}d requires specifying either an output_size or an output_ratio")
        kernel, sizes = repeated(kernel_size, n), input.shape[-n:]
        output = repeated(output_size, n) if output_size is not None else [
            int(s * r) for s, r in zip(sizes, output_ratio if isinstance(output_ratio, (list, tuple)) else (output_ratio,) * n)
        ]  # fmt: skip
        batch = input if input.dim() == n + 2 else input.unsqueeze(0)
        leading_shape = batch.shape[:2]
        if _random_samples is not None and _random_samples.dtype != input.dtype:
            raise RuntimeError(
                f"[fractional_max_pool{n}d] expected _random_samples to have the dtype of input, {input.dtype}, got {_random_samples.dtype}"
            )
        draws = None if _random_samples is None else _random_samples[: leading_shape[0]]
        if draws is None:
            draws = _C.torch.rand(*leading_shape, n, dtype=input.dtype, device=input.device)
        indices = _C.torch.zeros(*leading_shape, *[1] * (2 * n), dtype=_C.int64, device=input.device)
        # PyTorch's samples of two dimensions are in reverse order.
        for d, (size, k, out) in enumerate(zip(sizes, kernel, output)):
            if out + k - 1 > size:
                raise RuntimeError(f"fractional_max_pool{n}d: kernel {k} and output {out} are too large for an input of {size}")
            starts = _window_starts(draws[..., n - 1 - d if n == 2 else d], size, k, out)
            along = starts.unsqueeze(-1) + _C.torch.arange(k, device=input.device)
            shape = [*leading_shape, *[1] * (2 * n)]
            shape[2 + d], shape[2 + n + d] = out, k
            indices = indices * size + along.reshape(shape)
        windows = indices.reshape(*leading_shape, math.prod(output), math.prod(kernel))
        values = batch.flatten(2).gather(2, windows.flatten(2)).reshape(windows.shape)
        maxima, positions = values.max(-1)
        indices = windows.gather(-1, positions.unsqueeze(-1)).squeeze(-1)
        output_shape = (*(leading_shape if input.dim() == n + 2 else leading_shape[1:]), *output)
        result, indices = maxima.reshape(output_shape), indices.reshape(output_shape)
        return (result, indices) if return_indices else result

    fractional_max_pool.__name__ = f"fractional_max_pool{n}d"
    fractional_max_pool.__doc__ = "Max pooling over windows at random positions (Graham, 2014)."
    return fractional_max_pool


def _window_starts(draw: Tensor, size: int, kernel: int, out: int) -> Tensor:
    """The starts of the windows along one dimension. `draw` contains one random number in [0, 1) per channel."""
    if out == 1:
        return _C.torch.full([*draw.shape, 1], size - kernel, dtype=_C.int64, device=draw.device)
    step = (size - kernel) / (out - 1)
    draw = draw.unsqueeze(-1)
    starts = ((_C.torch.arange(out - 1, device=draw.device) + draw) * step).floor() - (draw * step).floor()
    last = _C.torch.full([*draw.shape[:-1], 1], size - kernel, dtype=_C.int64, device=draw.device)
    return _C.torch.cat([starts.to(_C.int64), last], -1)


fractional_max_pool2d, fractional_max_pool3d = _fractional(2), _fractional(3)


def _power_pool(n: int):
    def lp_pool(input: Tensor, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> Tensor:
        kernel = repeated(kernel_size, n)
        stride = kernel if stride is None else repeated(stride, n)
        if norm_type == 0:
            raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
        if math.isinf(norm_type):  # inf: the maximum magnitude; -inf: the minimum magnitude
            sign = 1 if norm_type > 0 else -1
            lines = input.abs().unsqueeze(-2) if n == 1 else input.abs()
            window = ((1, *kernel), (1, *stride), (0, 0), (1, 1)) if n == 1 else (kernel, stride, (0,) * n, (1,) * n)
            largest = (_ops.max_pool3d if n == 3 else _ops.max_pool2d)(sign * lines, *window, ceil_mode)
            return sign * (largest.squeeze(-2) if n == 1 else largest)
        if n == 1:
            powers = _ops.avg_pool2d(
                (input**norm_type).unsqueeze(-2), (1, *kernel), (1, *stride), (0, 0), ceil_mode
            ).squeeze(-2)
        else:
            powers = getattr(_ops, f"avg_pool{n}d")(input**norm_type, kernel, stride, (0,) * n, ceil_mode)
        return (powers.sign() * powers.abs().relu() * math.prod(kernel)) ** (1.0 / norm_type)

    lp_pool.__name__, lp_pool.__doc__ = f"lp_pool{n}d", "The p-norms of windows."
    return lp_pool


lp_pool1d, lp_pool2d, lp_pool3d = _power_pool(1), _power_pool(2), _power_pool(3)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divides input by (k + alpha times the mean square of neighbouring channels)^beta (Krizhevsky et al. 2012)."""
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    squares = _ops.pad((input * input).flatten(2).unsqueeze(1), [0, 0, size // 2, (size - 1) // 2])
    means = _ops.avg_pool2d(squares, (size, 1), (1, 1)).squeeze(1).reshape(input.shape)
    return input / (means * alpha + k) ** beta


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool2d that also returns the indices of the maxima."""
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum of each window."""
    args = (input, kernel_size, stride if stride is not None else kernel_size, padding, dilation, ceil_mode)
    return tuple(_ops.max_pool2d_with_indices(*args)) if return_indices else _ops.max_pool2d(*args)


def _max_of_lines(input: Tensor, kernel_size, stride, padding, dilation, ceil_mode: bool) -> Tensor | None:
    """max_pool1d of a small batch by one operator: max_pool2d of an image per entry, whose rows are the lines. None for other
    arguments, of which max_pool1d reports some, and for large batches, which threads divide by lines."""
    stride = kernel_size if stride is None else stride
    if not (type(kernel_size) is type(stride) is type(padding) is type(dilation) is int):
        return None
    if not 0 < input.numel() <= _FEW or input.dim() != 3 or not input.is_floating_point():
        return None
    try:
        return _ops.max_pool2d(input, (1, kernel_size), (1, stride), (0, padding), (1, dilation), ceil_mode)
    except RuntimeError:
        return None


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum of each window."""
    if type(input) is Tensor and not return_indices and _composites.recorder is None and not input.requires_grad:
        result = _max_of_lines(input, kernel_size, stride, padding, dilation, ceil_mode)
        if result is not None:
            return result
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(input.shape)}"
        )
    if not return_indices and not input.is_quantized:  # PyTorch computes these as max_pool2d
        check_floating("max_pool1d", input=input)
    single = lambda v: v if is_int(v) else repeated(v, 1)[0]  # noqa: E731
    stride = kernel_size if stride is None else stride
    result = max_pool2d(
        input.unsqueeze(-2), (1, single(kernel_size)), (1, single(stride)), (0, single(padding)),
        (1, single(dilation)), ceil_mode, return_indices,
    )  # fmt: skip
    return tuple(r.squeeze(-2) for r in result) if return_indices else result.squeeze(-2)
