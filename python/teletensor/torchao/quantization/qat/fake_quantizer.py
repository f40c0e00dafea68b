"""torchao.quantization.qat.fake_quantizer: modules that round a tensor; gradients pass as if only the limits applied."""

from __future__ import annotations

from typing import Any

from .... import _C
from ...._C import Tensor
from ....nn import Module, Parameter
from ..granularity import PerAxis, PerGroup, PerRow, PerToken
from ..quant_primitives import (
    MappingType,
    bits_of,
    choose_qparams_affine,
    choose_qparams_affine_tinygemm,
    dequantize_float8,
    fake_quantize_affine,
    float8_scale,
    limits,
    quantize_float8,
    rounded,
)
from ..utils import get_block_size
from .fake_quantize_config import (
    FakeQuantizeConfigBase,
    Float8FakeQuantizeConfig,
    Int4WeightFakeQuantizeConfig,
    IntxFakeQuantizeConfig,
)
from .two_step_quantizer import warn_of_older_name

__all__ = ["FakeQuantizer", "FakeQuantizerBase", "Float8FakeQuantizer", "Int4WeightFakeQuantizer", "IntxFakeQuantizer"]


class FakeQuantizerBase(Module):
    """Rounds a tensor as its configuration says; with ``enabled = False`` it returns it."""

    config: FakeQuantizeConfigBase

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, self.enabled = config, True

    def __repr__(self) -> str:
        return f"FakeQuantizer({self.config})"

    @staticmethod
    def from_config(config: FakeQuantizeConfigBase) -> FakeQuantizerBase:
        """The module of a configuration. Raises ValueError for an unknown one."""
        for kind, module in _MODULES.items():
            if isinstance(config, kind):
                return module(config)
        raise ValueError(f"Unknown config type: {config}")


class Float8FakeQuantizer(FakeQuantizerBase):
    """Rounds to float8 and back."""

    config: Float8FakeQuantizeConfig

    def forward(self, x: Tensor) -> Tensor:
        """The rounded numbers."""
        if not self.enabled:
            return x
        config = self.config
        block_size = get_block_size(x.shape, config.granularity)
        scale = float8_scale(x, block_size, config.dtype, config.hp_value_lb, config.hp_value_ub)
        return dequantize_float8(quantize_float8(x, scale, block_size, config.dtype), scale, block_size, x.dtype)


class Int4WeightFakeQuantizer(FakeQuantizerBase):
    """Rounds a weight to 4 bits per group of a row."""

    config: Int4WeightFakeQuantizeConfig

    def forward(self, w: Tensor) -> Tensor:
        """The rounded weight.

        Raises:
            AssertionError: the weight is not a matrix, or its rows are no multiples of a group.
        """
        if not self.enabled:
            return w
        group = self.config.group_size
        if w.dim() != 2 or group < 1 or w.shape[1] % group:
            raise AssertionError(f"expected a matrix with rows that are multiples of {group}, got {tuple(w.shape)}")
        if self.config.activation_dtype is _C.bfloat16:
            return self._asymmetric(w, group)
        rows = get_block_size(w.shape, PerRow())
        scale = float8_scale(w, rows, _C.float8_e4m3fn, lowest=1e-12)
        small = dequantize_float8(quantize_float8(w, scale, rows, _C.float8_e4m3fn), scale, rows, w.dtype)
        largest = small.reshape(w.shape[0], -1, group).abs().amax(-1)
        scale = (largest / 8).clamp(min=1e-6)
        return fake_quantize_affine(small, (1, group), scale, _C.torch.zeros_like(scale), -8, 7).to(w.dtype)

    @staticmethod
    def _asymmetric(w: Tensor, group: int) -> Tensor:
        grouped = w.to(_C.float32).reshape(w.shape[0], -1, group)
        high, low = grouped.amax(-1, keepdim=True), grouped.amin(-1, keepdim=True)
        scale = (high - low).clamp(min=1e-6) / 15
        zero_point = low + scale * 8
        ints = rounded((grouped - low) / scale).clamp(0, 15)
        return ((ints - 8) * scale + zero_point).reshape(w.shape).to(w.dtype)


class IntxFakeQuantizer(FakeQuantizerBase):
    """Rounds to integers of few bits and back."""

    config: IntxFakeQuantizeConfig

    def __init__(self, config: IntxFakeQuantizeConfig) -> None:
        super().__init__(config)
        self.scale: Tensor | None = None
        self.zero_point: Tensor | None = None
        self._initialized = False

    def forward(self, x: Tensor) -> Tensor:
        """The rounded numbers. Raises ValueError if scales are to be trained and do not exist yet."""
        if not self.enabled:
            return x
        config = self.config
        if config.range_learning and not self._initialized and (self.scale is None or self.zero_point is None):
            raise ValueError(
                "Scales and zero points must be initialized for range learning. Please call "
                "`torchao.quantization.qat.initialize_fake_quantizers` before initializing the optimizer and beginning training."
            )
        lowest, highest = limits(config.dtype)
        if isinstance(config.granularity, PerToken):
            return self._tokens(x, lowest, highest)
        if not isinstance(config.granularity, (PerAxis, PerGroup)):
            raise ValueError(f"Unknown granularity '{config.granularity}'")
        group = x.shape[-1] if isinstance(config.granularity, PerAxis) else config.group_size
        if x.dim() != 2 or group < 2 or x.shape[-1] % group:
            raise AssertionError(f"expected a matrix with rows that are multiples of {group} (> 1), got {tuple(x.shape)}")
        if self._chooses():
            self._choose_groups(x, group)
        return fake_quantize_affine(x, (1, group), self.scale, self.zero_point, lowest, highest, config.zero_point_domain)

    def _chooses(self) -> bool:
        return self.config.is_dynamic or self.scale is None or self.zero_point is None

    def _tokens(self, x: Tensor, lowest: int, highest: int) -> Tensor:
        config, block_size = self.config, get_block_size(x.shape, PerToken())
        if config.is_symmetric:
            raise NotImplementedError("Symmetric per token is not supported yet")
        if self._chooses():
            self.scale, self.zero_point = choose_qparams_affine(
                x, MappingType.ASYMMETRIC, block_size, config.dtype, lowest, highest, config.eps, config.scale_precision,
                config.zero_point_precision,
            )  # fmt: skip
            self._learn()
        return fake_quantize_affine(x, block_size, self.scale, self.zero_point, lowest, highest).to(x.dtype)

    def _choose_groups(self, x: Tensor, group: int) -> None:
        config, bits = self.config, bits_of(self.config.dtype)
        if config.is_symmetric:
            scale, zero_point = choose_qparams_affine(
                x, MappingType.SYMMETRIC, (1, group), _C.int8, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, config.eps,
                config.scale_precision, config.scale_precision,
            )  # fmt: skip
        else:  # the zero point is a number, as weights of 4 bits have it
            eps = 1e-6 if config.eps is None else config.eps
            scale, zero_point = choose_qparams_affine_tinygemm(x.detach(), (1, group), 0, 2**bits - 1, eps)
            scale, zero_point = scale.to(config.scale_precision or x.dtype), zero_point.to(config.scale_precision or x.dtype)
        rows = x.shape[0]
        self.scale, self.zero_point = scale.reshape(rows, -1), zero_point.reshape(rows, -1).to(config.zero_point_precision)
        self._learn()

    def _learn(self) -> None:
        """Makes the scales and zero points parameters, if they are to be trained."""
        if not self.config.range_learning or isinstance(self.scale, Parameter) or isinstance(self.zero_point, Parameter):
            return
        scale, zero_point = self.scale, self.zero_point
        self.scale = None
        self.scale = Parameter(scale.clamp(min=1e-9))
        if self.config.is_symmetric:
            self.zero_point = _C.torch.zeros_like(zero_point)
            return
        self.zero_point = None
        self.zero_point = Parameter(zero_point.round().clamp(*limits(self.config.dtype)))


class FakeQuantizer(IntxFakeQuantizer):
    """The older name of IntxFakeQuantizer."""

    def __init__(self, config: IntxFakeQuantizeConfig) -> None:
        super().__init__(config)
        warn_of_older_name(self)


_MODULES = {
    IntxFakeQuantizeConfig: IntxFakeQuantizer,
    Int4WeightFakeQuantizeConfig: Int4WeightFakeQuantizer,
    Float8FakeQuantizeConfig: Float8FakeQuantizer,
}
