"""Convolutions with quantized weights."""

from __future__ import annotations

from typing import Any

from .... import _C, nn, ops
from .... import _quantized_names as q
from ...._C import Tensor
from ...._lazy import set_module
from ...._quantized import create
from ....nn import functional as F
from ....nn.modules.utils import _ntuple
from ....nn.utils.fusion import fuse_conv_bn_weights
from ..intrinsic import fused as nni
from ..intrinsic.qat import conv_fused as nniqat
from .utils import ScaledResult, WeightedQuantizedModule, quantize_weight


def reversed_padding(padding: tuple[int, ...]) -> list[int]:
    """The padding of each dimension twice, the last dimension first, as torch.nn.functional.pad takes it."""
    return [p for p in reversed(padding) for _ in range(2)]


class _ConvNd(ScaledResult, WeightedQuantizedModule):
    """The common part of the convolutions. Subclasses define the operators and the number of dimensions."""

    _ndim: int
    _transposed = False
    _packing = ("conv{n}d_prepack", "conv{n}d_unpack")
    _operator = "conv{n}d"
    _FLOAT_MODULE: type[nn.Module]
    _BATCH_NORMS: tuple[type, ...] = ()  # classes for training whose batch norm is folded into the weight
    _SEQUENCES: tuple[type, ...] = ()  # fused classes, whose first module is the convolution

    def _init(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, output_padding: Any,
        groups: int, bias: bool, padding_mode: str, device: Any = None,
    ) -> None:  # fmt: skip
        if out_channels <= 0:
            raise ValueError(f"out_channels must be greater than 0, got {out_channels}")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect"):
            raise ValueError(f"'padding_mode' {padding_mode} is not supported by quantized convolution")
        sizes = _ntuple(self._ndim)
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.dilation = sizes(kernel_size), sizes(stride), sizes(dilation)
        if isinstance(padding, str):
            raise NotImplementedError(f"[{type(self).__name__}] expected padding as numbers, got {padding!r}")
        self.padding, self.output_padding, self.transposed = sizes(padding), sizes(output_padding), self._transposed
        channels = [in_channels, out_channels // groups] if self._transposed else [out_channels, in_channels // groups]
        weight = create._empty_affine_quantized(
            [*channels, *self.kernel_size], scale=1.0, zero_point=0, dtype=q.qint8, device=device
        )
        self.set_weight_bias(weight, _C.torch.zeros(out_channels, device=device) if bias else None)
        self.scale, self.zero_point = 1.0, 0

    def _call(self, name: str, *args: Any) -> Any:
        return getattr(ops.quantized, name.format(n=self._ndim))(*args)

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Packs a quantized weight and a bias."""
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._ndim  # forward() pads otherwise
        output = [self.output_padding] if self._transposed else []
        self._packed_params = self._call(self._packing[0], w, b, self.stride, padding, *output, self.dilation, self.groups)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._call(self._packing[1], self._packed_params)

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias, float32."""
        return self._weight_bias()[1]

    def _padded(self, input: Tensor) -> Tensor:
        """The input, padded here if not with zeros. Raises ValueError for another number of dimensions."""
        if input.dim() != self._ndim + 2:
            raise ValueError(f"Input shape must be `({', '.join(('N', 'C', 'D', 'H', 'W')[: 2 + self._ndim])})`!")
        if self.padding_mode == "zeros":
            return input
        return F.pad(input, reversed_padding(self.padding), mode=self.padding_mode)

    def forward(self, input: Tensor) -> Tensor:
        return self._call(self._operator, self._padded(input), self._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "Quantized" + type(self).__name__

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, scale={self.scale}, "
            f"zero_point={self.zero_point}"
        )
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            text += f", {name}={value}" if value != (usual,) * self._ndim else ""
        text += f", groups={self.groups}" if self.groups != 1 else ""
        return text + (", bias=False" if self.bias() is None else "")

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        scale, point = destination.pop(prefix + "scale"), destination.pop(prefix + "zero_point")  # PyTorch's order
        destination[prefix + "weight"], destination[prefix + "bias"] = self._weight_bias()
        destination[prefix + "scale"], destination[prefix + "zero_point"] = scale, point

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args: Any) -> None:
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        super()._load_from_state_dict(state_dict, prefix, *args)

    @classmethod
    def _like(cls, mod: nn.Module) -> _ConvNd:
        """A convolution with a float convolution's sizes."""
        shared = {"groups": mod.groups, "bias": mod.bias is not None, "dilation": mod.dilation, "padding_mode": mod.padding_mode}
        if cls._transposed:
            shared["output_padding"] = mod.output_padding
        return cls(mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding, **shared, device=mod.weight.device)

    @classmethod
    def get_qconv(cls, mod: nn.Module, activation_post_process: Any, weight_post_process: Any = None) -> _ConvNd:
        """The quantized convolution of a float convolution and the observers of its results and its weight."""
        observer = mod.qconfig.weight() if weight_post_process is None else weight_post_process
        observer(mod.weight)
        if observer.dtype != q.qint8:
            raise AssertionError(f"Weight observer must have a dtype of qint8, got {observer.dtype}")
        made = cls._like(mod)
        made.set_weight_bias(quantize_weight(mod.weight.detach().float(), observer), mod.bias)
        made._take_scale(activation_post_process)
        return made

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> _ConvNd:
        """The quantized convolution of an observed one, or of one that was trained with a rounded weight."""
        del use_precomputed_fake_quant  # the weight is observed again, as in PyTorch
        if hasattr(mod, "weight_fake_quant"):
            if type(mod) in cls._BATCH_NORMS:
                mod.weight, mod.bias = fuse_conv_bn_weights(
                    mod.weight, mod.bias, mod.bn.running_mean, mod.bn.running_var, mod.bn.eps, mod.bn.weight, mod.bn.bias
                )
            if not hasattr(mod, "activation_post_process"):
                raise AssertionError("Input QAT module must have observer attached")
            return cls.get_qconv(mod, mod.activation_post_process, mod.weight_fake_quant)
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__} but got: {type(mod).__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined.")
        activation = getattr(mod, "activation_post_process", None)
        if type(mod) in cls._SEQUENCES:
            mod = mod[0]
        return cls.get_qconv(mod, activation, mod.qconfig.weight())

    @classmethod
    def from_reference(cls, ref_qconv: nn.Module, output_scale: float, output_zero_point: int) -> _ConvNd:
        """The convolution of a reference convolution."""
        made = cls._like(ref_qconv)
        made.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class _Convolution(_ConvNd):
    """A convolution that is not transposed."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        del dtype  # of float parameters, of which there are none
        if padding_mode == "reflect" and self._ndim == 3:
            raise AssertionError("Conv3d does not support reflection padding")
        self._init(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device)


class _TransposedConvolution(_ConvNd):
    """A transposed convolution."""

    _transposed = True
    _packing = ("conv_transpose{n}d_prepack", "conv_transpose{n}d_unpack")
    _operator = "conv_transpose{n}d"

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        del dtype
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._init(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device)


class Conv1d(_Convolution):
    """A convolution of quantized tensors (N, C, L) with a qint8 weight."""

    _ndim, _FLOAT_MODULE = 1, nn.Conv1d
    _BATCH_NORMS, _SEQUENCES = (nniqat.ConvBn1d, nniqat.ConvBnReLU1d), (nni.ConvReLU1d,)


class Conv2d(_Convolution):
    """A convolution of quantized tensors (N, C, H, W) with a qint8 weight."""

    _ndim, _FLOAT_MODULE = 2, nn.Conv2d
    _BATCH_NORMS, _SEQUENCES = (nniqat.ConvBn2d, nniqat.ConvBnReLU2d), (nni.ConvReLU2d, nni.ConvAdd2d, nni.ConvAddReLU2d)


class Conv3d(_Convolution):
    """A convolution of quantized tensors (N, C, D, H, W) with a qint8 weight."""

    _ndim, _FLOAT_MODULE = 3, nn.Conv3d
    _BATCH_NORMS, _SEQUENCES = (nniqat.ConvBn3d, nniqat.ConvBnReLU3d), (nni.ConvReLU3d,)


class ConvTranspose1d(_TransposedConvolution):
    """A transposed convolution of quantized tensors (N, C, L) with a qint8 weight."""

    _ndim, _FLOAT_MODULE = 1, nn.ConvTranspose1d


class ConvTranspose2d(_TransposedConvolution):
    """A transposed convolution of quantized tensors (N, C, H, W) with a qint8 weight."""

    _ndim, _FLOAT_MODULE = 2, nn.ConvTranspose2d


class ConvTranspose3d(_TransposedConvolution):
    """A transposed convolution of quantized tensors (N, C, D, H, W) with a qint8 weight."""

    _ndim, _FLOAT_MODULE = 3, nn.ConvTranspose3d


set_module("teletensor.ao.nn.quantized.modules.conv", Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
