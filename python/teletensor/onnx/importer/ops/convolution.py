"""Convolutions, and the padding that they share with pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

import teletensor as torch
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name

from .. import _values
from .._call import Call, keeps

Tensor = torch.Tensor


def same_pads(call: Call, sizes: Any, kernel: list[int], strides: list[int], dilations: list[int]) -> tuple[list, list]:
    """The padding before and after each dimension, by the attributes auto_pad and pads."""
    n = len(kernel)
    mode = call.get("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = call.get("pads") or [0] * (2 * n)
        if len(pads) != 2 * n:
            raise ValueError(f"[{call.name}] expected {2 * n} pads, got {len(pads)}")
        return list(pads[:n]), list(pads[n:])
    if mode == "VALID":
        return [0] * n, [0] * n
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise ValueError(f"[{call.name}] expected an auto_pad of NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {mode!r}")
    before, after = [], []
    for size, k, s, d in zip(sizes, kernel, strides, dilations):
        out = (size + s - 1) // s
        total = torch.sym_max((out - 1) * s + (k - 1) * d + 1 - size, 0)
        small = total // 2
        before.append(small if mode == "SAME_UPPER" else total - small)
        after.append(total - small if mode == "SAME_UPPER" else small)
    return before, after


def padded(x: Tensor, before: list, after: list, value: float = 0.0) -> Tensor:
    """A tensor with padding around its last dimensions."""
    flat = [p for b, a in zip(reversed(before), reversed(after)) for p in (b, a)]
    if all(_values.fixed(p) and p == 0 for p in flat):
        return x
    return F.pad(x, flat, value=value)


def kernel_of(call: Call, weight: Tensor) -> list[int]:
    """The spatial sizes of the weights.

    Raises:
        ValueError: the node has others.
    """
    found, declared = list(weight.shape[2:]), call.get("kernel_shape")
    if declared and declared != found:
        raise ValueError(f"[{call.name}] expected weights of the kernel_shape {declared}, got {found}")
    return found


_CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def convolve(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The convolution that the attributes describe."""
    n = x.dim() - 2
    if n not in _CONVOLUTIONS:
        raise NotImplementedError(f"[{call.name}] expected 1 to 3 spatial dimensions, got {n}")
    kernel = kernel_of(call, weight)
    strides, dilations = call.get("strides") or [1] * n, call.get("dilations") or [1] * n
    before, after = same_pads(call, x.shape[2:], kernel, strides, dilations)
    if not all(_values.fixed(p) for p in before + after) or before != after:
        x = padded(x, before, after)
        before = [0] * n
    group = call.get("group", 1)
    if (
        group == 1
        and n == 2
        and kernel == [1, 1] == [s if _values.fixed(s) else 0 for s in x.shape[2:]]
        and before == [0, 0]
    ):
        return F.linear(x.flatten(1), weight.flatten(1), bias).unsqueeze(2).unsqueeze(3)  # as after global pooling
    if n == 2 and kernel[0] > 1 and kernel[1] == 1 and before[1] == 0 and _values.fixed(x.shape[3]) and x.shape[3] == 1:
        # A sequence in the form of an image of width 1, for which two-dimensional convolutions are several times slower.
        found = F.conv1d(x.squeeze(3), weight.squeeze(3), bias, strides[:1], before[:1], dilations[:1], group)
        return found.unsqueeze(3)
    return _CONVOLUTIONS[n](x, weight, bias, strides, before, dilations, group)


def _conv(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return convolve(call, x, weight, bias)


def _conv_transpose(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    n = x.dim() - 2
    if n not in _TRANSPOSED:
        raise NotImplementedError(f"[ConvTranspose] expected 1 to 3 spatial dimensions, got {n}")
    kernel = kernel_of(call, weight)
    strides, dilations = call.get("strides") or [1] * n, call.get("dilations") or [1] * n
    extra, group = call.get("output_padding") or [0] * n, call.get("group", 1)
    wanted, mode = call.get("output_shape"), call.get("auto_pad", "NOTSET")
    sizes = [(x.shape[2 + i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + extra[i] for i in range(n)]
    if wanted is not None or mode in ("SAME_UPPER", "SAME_LOWER"):
        target = wanted[-n:] if wanted is not None else [x.shape[2 + i] * strides[i] for i in range(n)]
        total = [torch.sym_max(s - t, 0) for s, t in zip(sizes, target)]
        small, large = [t // 2 for t in total], [t - t // 2 for t in total]
        before, after = (small, large) if mode == "SAME_UPPER" else (large, small)
        extra = [e + (t - s if _values.fixed(t) and t > s else 0) for e, t, s in zip(extra, target, sizes)]
    elif mode == "VALID":
        before = after = [0] * n
    else:
        pads = call.get("pads") or [0] * (2 * n)
        before, after = list(pads[:n]), list(pads[n:])
    if before == after and all(e < max(s, d) for e, s, d in zip(extra, strides, dilations)):
        return _TRANSPOSED[n](x, weight, bias, strides, before, extra, group, dilations)
    found = padded(_TRANSPOSED[n](x, weight, None, strides, 0, 0, group, dilations), [0] * n, extra)
    for i in range(n):
        found = found.narrow(2 + i, before[i], found.shape[2 + i] - before[i] - after[i])
    return found if bias is None else found + bias.reshape([-1] + [1] * n)


@keeps(1, 2)
def _col2im(call: Call, x: Tensor, image: Any, block: Any) -> Tensor:
    shape, kernel = _values.ints(image), _values.ints(block)
    n = len(shape)
    strides, dilations = call.get("strides") or [1] * n, call.get("dilations") or [1] * n
    pads = call.get("pads") or [0] * (2 * n)
    sizes = [s + pads[i] + pads[n + i] for i, s in enumerate(shape)]
    counts = [(sizes[i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in range(n)]
    if any(c < 1 for c in counts) or int(np.prod(counts, dtype=object)) != x.shape[2]:
        raise ValueError(f"[Col2Im] expected {counts} blocks for an image of {shape}, got {x.shape[2]}")
    if x.shape[1] % int(np.prod(kernel, dtype=object)):
        raise ValueError(f"[Col2Im] expected channels times {kernel} rows, got {x.shape[1]}")
    _values.bounded(int(np.prod([*counts, *kernel], dtype=object)), "Col2Im")
    places = np.zeros((1, 1), np.int64)  # of each block element and position, in the padded image
    for i in range(n):
        own = np.arange(kernel[i])[:, None] * dilations[i] + np.arange(counts[i])[None, :] * strides[i]
        places = (places[:, None, :, None] * sizes[i] + own[None, :, None, :]).reshape(places.shape[0] * kernel[i], -1)
    batch, columns, _ = x.shape
    channels = columns // places.shape[0]
    index = torch.from_numpy(places.reshape(-1)).to(x.device).expand([batch, channels, places.size])
    total = int(np.prod(sizes))
    flat = torch.zeros([batch, channels, total], dtype=x.dtype, device=x.device)
    found = flat.scatter_add(2, index, x.reshape([batch, channels, places.size])).reshape([batch, channels, *sizes])
    for i in range(n):
        found = found.narrow(2 + i, pads[i], shape[i])
    return found


def _deform_conv(
    call: Call, x: Tensor, weight: Tensor, offset: Tensor, bias: Tensor | None = None, mask: Tensor | None = None
) -> Tensor:
    """Samples each kernel element at its offset, and multiplies the samples by the weights."""
    kernel = kernel_of(call, weight)
    n = len(kernel)
    if n != 2:
        raise NotImplementedError(f"[DeformConv] expected 2 spatial dimensions, got {n}")
    strides, dilations, pads = (
        call.get("strides") or [1] * n,
        call.get("dilations") or [1] * n,
        call.get("pads") or [0] * (2 * n),
    )
    group, offsets = call.get("group", 1), call.get("offset_group", 1)
    batch, channels, height, width = x.shape
    out_h, out_w = offset.shape[2:]
    taps = kernel[0] * kernel[1]
    offset = offset.reshape([batch, offsets, taps, 2, out_h, out_w])
    base_y, base_x = (
        torch.arange(o, device=x.device, dtype=x.dtype) * s - p for o, s, p in zip((out_h, out_w), strides, pads)
    )
    columns = []
    for tap in range(taps):
        ky, kx = divmod(tap, kernel[1])
        y = base_y.reshape([1, 1, -1, 1]) + ky * dilations[0] + offset[:, :, tap, 0]
        across = base_x.reshape([1, 1, 1, -1]) + kx * dilations[1] + offset[:, :, tap, 1]
        grid = torch.stack(
            [2 * across / (width - 1) - 1 if width > 1 else across, 2 * y / (height - 1) - 1 if height > 1 else y], -1
        )
        parts = x.reshape([batch * offsets, channels // offsets, height, width])
        sample = F.grid_sample(parts, grid.reshape([batch * offsets, out_h, out_w, 2]), align_corners=True)
        sample = sample.reshape([batch, offsets, channels // offsets, out_h, out_w])
        if mask is not None:
            sample = sample * mask.reshape([batch, offsets, taps, out_h, out_w])[:, :, tap].unsqueeze(2)
        columns.append(sample.reshape([batch, channels, out_h * out_w]))
    stacked = torch.stack(columns, 2).reshape([batch, group, channels // group * taps, out_h * out_w])
    kernels = weight.reshape([group, weight.shape[0] // group, -1])
    found = torch.matmul(kernels.unsqueeze(0), stacked).reshape([batch, weight.shape[0], out_h, out_w])
    return found if bias is None else found + bias.reshape([-1, 1, 1])


def _causal(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None, past: Tensor | None = None) -> tuple:
    """A convolution over time for each channel, and the elements that the next call needs."""
    kept = weight.shape[-1] - 1
    if past is None:
        past = torch.zeros([x.shape[0], x.shape[1], kept], dtype=x.dtype, device=x.device)
    wide = torch.cat([past, x], 2)
    found = F.conv1d(wide, weight, bias, groups=x.shape[1])
    activation = call.get("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise ValueError(f"[CausalConvWithState] expected an activation of none, silu or swish, got {activation!r}")
    return found if activation == "none" else F.silu(found), wide.narrow(2, wide.shape[2] - kept, kept)


TABLE: dict[str, tuple] = {
    "CausalConvWithState": ((27, _causal),), "Conv": ((1, _conv),), "ConvTranspose": ((1, _conv_transpose),), "Col2Im": ((18, _col2im),),
    "DeformConv": ((19, _deform_conv),),
}  # fmt: skip
