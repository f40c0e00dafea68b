"""Pooling."""

from __future__ import annotations

from .. import functional as F
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool2d", "AvgPool1d", "AvgPool2d",
    "AvgPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d",
]  # fmt: skip


class _MaxPool(Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input):
        return self.function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest value of each window of (N, C, L)."""

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest value of each window of (N, C, H, W)."""

    function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest value of each window of (N, C, D, H, W)."""

    def forward(self, input):
        if self.return_indices:
            raise NotImplementedError("[max_pool3d] return_indices is not supported")
        return F.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class AvgPool1d(Module):
    """The mean of each window of (N, C, L)."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.args = (kernel_size, kernel_size if stride is None else stride, padding, ceil_mode, count_include_pad)

    def forward(self, input):
        return F.avg_pool1d(input, *self.args)

    def extra_repr(self) -> str:
        return "kernel_size={}, stride={}, padding={}".format(*self.args)


class AvgPool2d(Module):
    """The mean of each window of (N, C, H, W)."""

    function = staticmethod(lambda input, *args: F.avg_pool2d(input, *args))

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__()
        stride = kernel_size if stride is None else stride
        self.args = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    def forward(self, input):
        return self.function(input, *self.args)

    def extra_repr(self) -> str:
        return "kernel_size={}, stride={}, padding={}".format(*self.args)


class AvgPool3d(AvgPool2d):
    """The mean of each window of (N, C, D, H, W)."""

    function = staticmethod(lambda input, *args: F.avg_pool3d(input, *args))


class _Adaptive(Module):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return self.function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """The means of windows such that output_size remain."""

    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """The means of windows such that output_size remain."""

    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_Adaptive):
    """The means of windows such that output_size remain."""

    function = staticmethod(F.adaptive_avg_pool3d)


class AdaptiveMaxPool2d(_Adaptive):
    """The largest values of windows such that output_size remain."""

    function = staticmethod(F.adaptive_max_pool2d)
