"""NF4Tensor: weights in 4 bits whose values are quantiles of the normal distribution (QLoRA), and their scales in 8 bits."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ...... import _C
from ......_C import Tensor
from ......_grad_mode import no_grad
from ......nn import Module, Parameter
from ......nn import functional as F
from .....core.config import AOBaseConfig
from .....utils import TorchAOBaseTensor, bound
from ....transform_module import register_quantize_module_handler

__all__ = ["NF4Tensor", "NF4WeightOnlyConfig", "linear_nf4", "nf4_weight_only", "to_nf4"]

_VALUES = (
    -1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0, 0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0,
)  # fmt: skip
_CHUNK = 2**18  # elements that are compared with all values at once


def _largest(values: Tensor, block_size: int) -> Tensor:
    """The largest absolute value of each block."""
    return values.reshape(-1, block_size).abs().amax(1)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


class NF4Tensor(TorchAOBaseTensor):
    """A vector or matrix in 4 bits: ``nf4[q] * scaler`` with a scaler per block of elements.

    Args:
        quantized_data: uint8, two elements in each byte, the first in the high 4 bits.
        quantized_scalers: int8, of which ``scaler_block_size`` share an element of quantization_factor; scaler_mean is added.
        nf4: the 16 values.
        shape, dtype: of the tensor.
    """

    __module__ = "teletensor.torchao.quantization"  # the name in torchao's files
    tensor_data_names = ["quantized_data", "quantized_scalers", "quantization_factor", "scaler_mean", "nf4"]
    tensor_attribute_names = ["block_size", "n_blocks", "scaler_block_size", "shape", "dtype"]

    @classmethod
    def _outer(cls, given: dict[str, Any]) -> tuple[Any, Any]:
        shape, block, count = tuple(given["shape"]), given["block_size"], given["n_blocks"]
        numel = math.prod(shape)
        sizes = {
            "quantized_data": (numel // 2,), "quantized_scalers": (count,),
            "quantization_factor": (count // max(given["scaler_block_size"], 1),), "scaler_mean": (), "nf4": (16,),
        }  # fmt: skip
        found = {name: tuple(given[name].shape) for name in sizes}
        if numel % 2 or block < 2 or block % 2 or count * block != numel or given["scaler_block_size"] < 1 or found != sizes:
            raise ValueError(f"expected data of {sizes} for the shape {shape} and blocks of {block}, got {found}")
        if given["quantized_data"].dtype is not _C.uint8 or given["quantized_scalers"].dtype is not _C.int8:
            raise ValueError("expected quantized_data of uint8 and quantized_scalers of int8")
        return shape, given["dtype"]

    def __init__(
        self, quantized_data: Tensor, quantized_scalers: Tensor, quantization_factor: Tensor, scaler_mean: Tensor, nf4: Tensor,
        block_size: int, n_blocks: int, scaler_block_size: int, shape: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        _ = shape, dtype  # those of the tensor
        self.quantized_data, self.quantized_scalers, self.quantization_factor = quantized_data, quantized_scalers, quantization_factor
        self.scaler_mean, self.nf4 = scaler_mean, nf4
        self.block_size, self.n_blocks, self.scaler_block_size = block_size, n_blocks, scaler_block_size

    @classmethod
    @no_grad()
    def from_tensor(cls, input_tensor: Tensor, block_size: int, scaler_block_size: int) -> NF4Tensor:
        """Rounds a tensor of at most two dimensions.

        Raises:
            AssertionError: its number of elements, or of blocks, is no multiple of ``block_size`` or ``scaler_block_size``.
        """
        _require(input_tensor.dim() <= 2, f"expect input tensor dim <= 2 but got dim = {input_tensor.dim()}")
        numel = input_tensor.numel()
        _require(
            block_size > 1 and block_size % 2 == 0 and numel % block_size == 0,
            f"Input tensor must be divisible by block size, got {numel} and {block_size}",
        )
        blocks = numel // block_size
        _require(
            scaler_block_size > 0 and blocks % scaler_block_size == 0,
            f"Number of scalers must be divisible by scaler block size, got {blocks} scaler_block_size {scaler_block_size} ",
        )
        flat = input_tensor.detach().reshape(-1)
        nf4 = _C.tensor(_VALUES, device=flat.device, dtype=flat.dtype)
        scalers = _largest(flat, block_size)
        mean = scalers.mean()
        centred = scalers - mean
        factor = 256 / (2 * _largest(centred, scaler_block_size))
        ints = (centred.reshape(-1, scaler_block_size) * factor.unsqueeze(-1)).round().clamp(-128, 127)
        places = cls._nearest((flat.reshape(blocks, block_size) / scalers.unsqueeze(-1)).reshape(-1), nf4)
        packed = (places[::2] << 4) | places[1::2]
        return cls(
            packed, ints.reshape(-1).to(_C.int8), factor.reshape(-1), mean, nf4, block_size, blocks, scaler_block_size,
            tuple(input_tensor.shape), flat.dtype,
        )  # fmt: skip

    @staticmethod
    def _nearest(values: Tensor, nf4: Tensor) -> Tensor:
        """The index (uint8) of the nearest of the 16 values; of two, the first."""
        parts = [(part.unsqueeze(-1) - nf4).abs().argmin(-1).to(_C.uint8) for part in values.split(_CHUNK)] if values.numel() else []
        return _C.torch.cat(parts) if parts else _C.torch.zeros(0, dtype=_C.uint8, device=values.device)

    def get_original_weight(self) -> Tensor:
        """The numbers, of the tensor's dtype."""
        ints = self.quantized_scalers.reshape(-1, self.scaler_block_size)
        scalers = (ints / self.quantization_factor.unsqueeze(-1)).reshape(-1).to(self.dtype) + self.scaler_mean
        places = _C.torch.stack([self.quantized_data >> 4, self.quantized_data & 15], -1).reshape(-1).to(_C.int64)
        numbers = self.nf4[places].reshape(self.n_blocks, self.block_size) * scalers.unsqueeze(-1)
        return numbers.reshape(self.shape)

    def dequantize(self, output_dtype: Any = None) -> Tensor:
        numbers = self.get_original_weight()
        return numbers if output_dtype is None else numbers.to(output_dtype)

    def _with_dtype(self, dtype: Any) -> Tensor:
        """The numbers in another dtype, an ordinary tensor, as in torchao."""
        return self.get_original_weight().to(dtype)

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """The numbers in a dtype, an ordinary tensor, also in the tensor's own one; or the tensor on another device."""
        dtype = kwargs.get("dtype", next((a for a in args if isinstance(a, _C.dtype)), None))
        if dtype is not None:
            return self.get_original_weight().to(*args, **kwargs)
        return super().to(*args, **kwargs)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Quantized Data: {self.quantized_data}\nScalers: {self.quantized_scalers}\n"


@NF4Tensor.implements_torch_function(F.linear)
def _linear(_func: Any, _types: Any, args: tuple, kwargs: dict) -> Tensor:
    x, weight, bias = bound("input weight bias", args, kwargs).values()
    return F.linear(x, weight.dequantize(x.dtype), bias)


def linear_nf4(input: Tensor, weight: NF4Tensor) -> Tensor:
    """``input @ weight.T``; only the input has a gradient."""
    return F.linear(input, weight)


def to_nf4(tensor: Tensor, block_size: int = 64, scaler_block_size: int = 256) -> NF4Tensor:
    """A tensor in 4 bits; see NF4Tensor."""
    return NF4Tensor.from_tensor(tensor, block_size, scaler_block_size)


@dataclasses.dataclass
class NF4WeightOnlyConfig(AOBaseConfig):
    """Weights in NF4.

    Args:
        block_size: the elements that share a scaler.
        scaler_block_size: the scalers that share a factor.
    """

    block_size: int = 64
    scaler_block_size: int = 256


nf4_weight_only = NF4WeightOnlyConfig


@register_quantize_module_handler(NF4WeightOnlyConfig)
def _nf4_weight_only(module: Module, config: NF4WeightOnlyConfig) -> Module:
    module.weight = Parameter(NF4Tensor.from_tensor(module.weight, config.block_size, config.scaler_block_size), requires_grad=False)
    return module
