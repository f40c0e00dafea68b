"""Pooling modules."""

from __future__ import annotations

from .. import functional as F
from ..common_types import _size_1_t, _size_2_t, _size_3_t, _size_any_t  # noqa: F401 - programs import these from here
from .module import Module
from .utils import _ntuple, _pair, _single, _triple  # noqa: F401 - programs import these from here

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d",
    "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip


class _MaxPool(Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input):
        if self.padding != 0 and self.dilation != 1:  # the engine compares padding with the dilated window
            as_tuple = _ntuple(int(self.function[-2]))
            if any(2 * p > k for p, k in zip(as_tuple(self.padding), as_tuple(self.kernel_size))):
                raise RuntimeError(
                    f"[{self.function}] pad should be smaller than or equal to half of kernel size, but got padding={self.padding} "
                    f"and kernel_size={self.kernel_size}"
                )
        return getattr(F, self.function)(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The maximum of each window of (N, C, L)."""

    function = "max_pool1d"


class MaxPool2d(_MaxPool):
    """The maximum of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: the window, an int or (height, width).
        stride: steps between windows; None: kernel_size.
        padding: elements of minus infinity added at both ends, at most half of the window.
        dilation: the distance between the window's elements.
        return_indices: whether to return also the positions of the maxima in H x W, which MaxUnpool2d needs.
        ceil_mode: whether windows may exceed the end, so that no element is left out.

    A dimension of size n becomes (n + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1.

    Raises:
        RuntimeError: padding exceeds half of the window, or an input is smaller than a window.

    >>> torch.nn.MaxPool2d(2)(torch.arange(16.0).reshape(1, 4, 4)).tolist()
    [[[5.0, 7.0], [13.0, 15.0]]]
    """

    function = "max_pool2d"


class MaxPool3d(_MaxPool):
    """The maximum of each window of (N, C, D, H, W)."""

    function = "max_pool3d"


class _MaxUnpool(Module):
    ndim: int

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        as_tuple = _ntuple(self.ndim)
        self.kernel_size, self.padding = as_tuple(kernel_size), as_tuple(padding)
        self.stride = as_tuple(kernel_size if stride is None else stride)

    def forward(self, input, indices, output_size=None):
        return getattr(F, self.function)(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Writes the maxima of MaxPool1d back to their positions, and zeros elsewhere."""

    ndim, function = 1, "max_unpool1d"


class MaxUnpool2d(_MaxUnpool):
    """Writes the maxima of MaxPool2d back to their positions, and zeros elsewhere."""

    ndim, function = 2, "max_unpool2d"


class MaxUnpool3d(_MaxUnpool):
    """Writes the maxima of MaxPool3d back to their positions, and zeros elsewhere."""

    ndim, function = 3, "max_unpool3d"


class _LPPool(Module):
    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input):
        return getattr(F, self.function)(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPool):
    """The p-norm of each window of (N, C, L)."""

    function = "lp_pool1d"


class LPPool2d(_LPPool):
    """The p-norm of each window of (N, C, H, W)."""

    function = "lp_pool2d"


class LPPool3d(_LPPool):
    """The p-norm of each window of (N, C, D, H, W)."""

    function = "lp_pool3d"


class _AvgPoolNd(Module):
    """The common base of average pooling."""

    function: str

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input):
        return getattr(F, self.function)(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of (N, C, L)."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True):
        Module.__init__(self)
        self.kernel_size, self.padding = _single(kernel_size), _single(padding)
        self.stride = _single(kernel_size if stride is None else stride)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input):
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: the window, an int or (height, width).
        stride: steps between windows; None: kernel_size.
        padding: zeros added at both ends, at most half of the window.
        ceil_mode: whether windows may exceed the end, so that no element is left out.
        count_include_pad: whether these zeros count in the mean.
        divisor_override: divides the sums instead of the number of elements.

    Raises:
        RuntimeError: padding exceeds half of the window, or an input is smaller than a window.

    >>> torch.nn.AvgPool2d(2)(torch.arange(16.0).reshape(1, 4, 4)).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """

    function = "avg_pool2d"


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of (N, C, D, H, W)."""

    function = "avg_pool3d"


class _Adaptive(Module):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return getattr(F, self.function)(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Average pooling to output_size."""

    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_Adaptive):
    """The means of windows that divide (N, C, H, W) or (C, H, W) into the given number of parts.

    Windows overlap if this number does not divide a size.

    Args:
        output_size: an int or (height, width); None in its place keeps a size.

    >>> torch.nn.AdaptiveAvgPool2d((1, 2))(torch.arange(8.0).reshape(1, 2, 4)).tolist()
    [[[2.5, 4.5]]]
    """

    function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_Adaptive):
    """Average pooling to output_size."""

    function = "adaptive_avg_pool3d"


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size, return_indices: bool = False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input):
        return getattr(F, self.function)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """Max pooling to output_size."""

    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMax):
    """Max pooling to output_size."""

    function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMax):
    """Max pooling to output_size."""

    function = "adaptive_max_pool3d"


# PyTorch's names of the common bases, for isinstance.
_MaxPoolNd, _MaxUnpoolNd, _AdaptiveAvgPoolNd, _AdaptiveMaxPoolNd = _MaxPool, _MaxUnpool, _Adaptive, _AdaptiveMax
_LPPoolNd = _LPPool


class _FractionalMaxPool(Module):
    """The common base of fractional max pooling; subclasses define `ndim` and `function`."""

    ndim: int

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices: bool = False, _random_samples=None):
        super().__init__()
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        as_tuple = _ntuple(self.ndim)
        self.kernel_size, self.return_indices = as_tuple(kernel_size), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else as_tuple(output_size)
        self.output_ratio = None if output_ratio is None else as_tuple(output_ratio)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        return getattr(F, self.function)(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, _random_samples=self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maximum of each window of (N, C, H, W), at random positions (Graham, 2014)."""

    ndim, function = 2, "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maximum of each window of (N, C, D, H, W), at random positions."""

    ndim, function = 3, "fractional_max_pool3d"
