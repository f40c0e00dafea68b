"""Convolution modules."""

from __future__ import annotations

import math

from ... import _C
from ..._C import Tensor  # noqa: F401 - programs import these from here
from ..._integers import repeated
from ..._lazy import defined_by
from .. import functional as F
from .. import init
from ..common_types import _size_1_t, _size_2_t, _size_3_t  # noqa: F401 - programs import these from here
from ..parameter import Parameter
from .module import Module
from .utils import _pair, _reverse_repeat_tuple, _single, _triple  # noqa: F401 - programs import these from here

__all__ = [  # noqa: F822 - some are imported at their first use
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip


_PADDINGS = ("valid", "same")
_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """The common base of convolutions; subclasses define `ndim`."""

    ndim: int
    transposed = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.transposed = type(self).transposed
        self.kernel_size, self.stride, self.dilation = (repeated(v, self.ndim) for v in (kernel_size, stride, dilation))
        self.padding = padding if isinstance(padding, str) and not self.transposed else repeated(padding, self.ndim)
        if isinstance(padding, str) and not self.transposed and padding not in _PADDINGS:
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {', '.join(_PADDINGS)}")
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {', '.join(_PADDING_MODES)}, but got padding_mode={padding_mode!r}")
        self.padding_mode, self.output_padding = padding_mode, (0,) * self.ndim
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(_C.torch.empty(*channels, *self.kernel_size, device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(_C.torch.empty(out_channels, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform in +-1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
            bound = 1 / math.sqrt(fan_in) if fan_in else 0
            init.uniform_(self.bias, -bound, bound)

    def _pad_sizes(self) -> list[tuple[int, int]]:
        """The padding before and after each dimension of the input."""
        if self.padding == "valid":
            return [(0, 0)] * self.ndim
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [(total // 2, total - total // 2) for total in totals]
        return [(p, p) for p in self.padding]

    def _conv_forward(self, input, weight, bias):
        """The convolution with other weights, which subclasses may compute from the module's."""
        padding = self.padding
        if self.padding_mode != "zeros":
            around = [p for before_and_after in reversed(self._pad_sizes()) for p in before_and_after]
            input = F.pad(input, around, self.padding_mode)
            padding = (0,) * self.ndim
        return getattr(F, self.function)(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.ndim:
            text += f", padding={self.padding}"
        if any(d != 1 for d in self.dilation):
            text += f", dilation={self.dilation}"
        if any(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        text += ", bias=False" if self.bias is None else ""
        return text + ("" if self.padding_mode == "zeros" else f", padding_mode={self.padding_mode}")


class Conv1d(_Convolution):
    """A convolution of sequences.

    Args:
        in_channels, out_channels: C of the input and of the output.
        kernel_size: the window, an int.
        stride: steps between windows.
        padding: elements added at both ends of each dimension, "valid" (none) or "same" (the output has the input's size;
            stride 1).
        dilation: the distance between the window's elements.
        groups: divides the channels into groups that do not mix; must divide both numbers of channels.
        bias: whether to add a learned number per output channel.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device, dtype: of the parameters.

    The input has shape (N, C, L) or (C, L). A dimension of size n becomes (n + 2 padding - dilation (kernel_size - 1) - 1) //
    stride + 1. ``weight`` has shape (out_channels, in_channels / groups, k).

    Raises:
        ValueError: groups does not divide the channels, or padding or padding_mode is not one of these.
        RuntimeError: an input has other channels or dimensions, or a window exceeds the padded input.

    >>> torch.nn.Conv1d(3, 8, 5, stride=2)(torch.ones(2, 3, 20)).shape
    torch.Size([2, 8, 8])
    """

    ndim, function = 1, "conv1d"


class Conv2d(_Convolution):
    """A convolution of images.

    Args:
        in_channels, out_channels: C of the input and of the output.
        kernel_size: the window, an int or (height, width).
        stride: steps between windows.
        padding: elements added at both ends of each dimension, "valid" (none) or "same" (the output has the input's size;
            stride 1).
        dilation: the distance between the window's elements.
        groups: divides the channels into groups that do not mix; must divide both numbers of channels.
        bias: whether to add a learned number per output channel.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device, dtype: of the parameters.

    The input has shape (N, C, H, W) or (C, H, W). A dimension of size n becomes (n + 2 padding - dilation (kernel_size - 1) -
    1) // stride + 1. ``weight`` has shape (out_channels, in_channels / groups, kh, kw).

    Raises:
        ValueError: groups does not divide the channels, or padding or padding_mode is not one of these.
        RuntimeError: an input has other channels or dimensions, or a window exceeds the padded input.

    >>> torch.nn.Conv2d(3, 8, 3, padding=1)(torch.ones(2, 3, 10, 12)).shape
    torch.Size([2, 8, 10, 12])
    """

    ndim, function = 2, "conv2d"


class Conv3d(_Convolution):
    """A convolution of volumes.

    Args:
        in_channels, out_channels: C of the input and of the output.
        kernel_size: the window, an int or (depth, height, width).
        stride: steps between windows.
        padding: elements added at both ends of each dimension, "valid" (none) or "same" (the output has the input's size;
            stride 1).
        dilation: the distance between the window's elements.
        groups: divides the channels into groups that do not mix; must divide both numbers of channels.
        bias: whether to add a learned number per output channel.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device, dtype: of the parameters.

    The input has shape (N, C, D, H, W) or (C, D, H, W). A dimension of size n becomes (n + 2 padding - dilation (kernel_size
    - 1) - 1) // stride + 1. ``weight`` has shape (out_channels, in_channels / groups, kd, kh, kw).

    Raises:
        ValueError: groups does not divide the channels, or padding or padding_mode is not one of these.
        RuntimeError: an input has other channels or dimensions, or a window exceeds the padded input.

    >>> torch.nn.Conv3d(1, 2, 3)(torch.ones(1, 1, 5, 6, 7)).shape
    torch.Size([1, 2, 3, 4, 5])
    """

    ndim, function = 3, "conv3d"


class _TransposedConvolution(_Convolution):
    """The common base of transposed convolutions: gradients of convolutions with respect to their inputs."""

    transposed = True

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
        dilation=1, padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )
        self.output_padding = repeated(output_padding, self.ndim)

    def _output_padding(self, input, output_size: list[int]) -> list[int]:
        """The output padding with which the output has the given size. The size may include batch and channels."""
        n = self.ndim
        if len(output_size) not in (n, input.dim()):
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {input.dim()} elements "
                f"(got {len(output_size)})"
            )
        wanted, sizes = output_size[-n:], zip(input.shape[-n:], self.stride, self.padding, self.dilation, self.kernel_size)
        least = [(i - 1) * s - 2 * p + d * (k - 1) + 1 for i, s, p, d, k in sizes]
        most = [size + s - 1 for size, s in zip(least, self.stride)]
        if any(not low <= size <= high for low, size, high in zip(least, wanted, most)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {least} to {most} "
                f"(for an input of {input.shape[-n:]})"
            )
        return [size - low for size, low in zip(wanted, least)]

    def forward(self, input, output_size=None):
        extra = self.output_padding if output_size is None else self._output_padding(input, list(output_size))
        return getattr(F, self.function)(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_TransposedConvolution):
    """The gradient of Conv1d with respect to its input, as a layer."""

    ndim, function = 1, "conv_transpose1d"


class ConvTranspose2d(_TransposedConvolution):
    """The gradient of Conv2d with respect to its input, as a layer: it enlarges images.

    Args:
        in_channels, out_channels: C of the input and of the output.
        kernel_size, stride, padding, dilation, groups: of the Conv2d whose gradient it is.
        output_padding: elements added at one end of the output, for sizes that stride makes ambiguous; less than stride or
            dilation.
        bias: whether to add a learned number per output channel.
        padding_mode: "zeros".
        device, dtype: of the parameters.

    The input has shape (N, C, H, W) or (C, H, W). A dimension of size n becomes (n - 1) stride - 2 padding + dilation
    (kernel_size - 1) + output_padding + 1. ``weight`` has shape (in_channels, out_channels / groups, kh, kw). forward() has
    an argument ``output_size``, which replaces output_padding.

    Raises:
        ValueError: groups does not divide the channels, or padding_mode is not "zeros".
        RuntimeError: an input has other channels or dimensions, or output_padding is too large.

    >>> torch.nn.ConvTranspose2d(3, 8, 2, stride=2)(torch.ones(1, 3, 5, 6)).shape
    torch.Size([1, 8, 10, 12])
    """

    ndim, function = 2, "conv_transpose2d"


class ConvTranspose3d(_TransposedConvolution):
    """The gradient of Conv3d with respect to its input, as a layer."""

    ndim, function = 3, "conv_transpose3d"


_ConvNd, _ConvTransposeNd, _ConvTransposeMixin = _Convolution, _TransposedConvolution, _TransposedConvolution

# PyTorch has these names here.
__getattr__, __dir__ = defined_by(
    globals(), "lazy", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
)  # fmt: skip
