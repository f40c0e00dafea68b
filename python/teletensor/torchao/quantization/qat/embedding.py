"""torchao.quantization.qat.embedding: embeddings that are trained with rounded weights."""

from __future__ import annotations

from typing import Any

from .... import _C
from ...._C import Tensor
from ...._grad_mode import no_grad
from ....nn import Embedding, Module
from ....nn import functional as F
from ..quant_primitives import MappingType, TorchAODType, choose_qparams_affine, dequantize_affine, quantize_affine
from .fake_quantize_config import FakeQuantizeConfigBase, IntxFakeQuantizeConfig
from .fake_quantizer import FakeQuantizerBase
from .linear import _replace
from .two_step_quantizer import TwoStepQuantizer

__all__ = ["FakeQuantizedEmbedding", "Int4WeightOnlyEmbedding", "Int4WeightOnlyEmbeddingQATQuantizer", "Int4WeightOnlyQATEmbedding"]


def _options(mod: Any) -> tuple:
    return (
        mod.num_embeddings, mod.embedding_dim, mod.padding_idx, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.sparse,
    )  # fmt: skip


class FakeQuantizedEmbedding(Embedding):
    """An embedding with a rounded weight.

    Args:
        weight_config: how it is rounded; None: not.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
        weight_config: FakeQuantizeConfigBase | None = None, *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, *args, **kwargs
        )
        self.weight_fake_quantizer = None if weight_config is None else FakeQuantizerBase.from_config(weight_config)

    def forward(self, x: Tensor) -> Tensor:
        """The rows with these indices."""
        weight = self.weight if self.weight_fake_quantizer is None else self.weight_fake_quantizer(self.weight)
        return F.embedding(x, weight, *_options(self)[2:])

    def to_embedding(self) -> Embedding:
        """An ordinary embedding with the same weight."""
        made = Embedding(*_options(self), device=self.weight.device, dtype=self.weight.dtype)
        if self.weight.device.type != "meta":
            made.weight = self.weight
        return made

    @classmethod
    def from_embedding(cls, mod: Embedding, weight_config: FakeQuantizeConfigBase | None = None) -> FakeQuantizedEmbedding:
        """The embedding with the weight of an ordinary one."""
        made = FakeQuantizedEmbedding(*_options(mod), weight_config, device=mod.weight.device, dtype=mod.weight.dtype)
        if mod.weight.device.type != "meta":
            made.weight = mod.weight
        return made


class Int4WeightOnlyQATEmbedding(FakeQuantizedEmbedding):
    """An embedding with weights of 4 bits, per group."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, group_size: int = 32,
        scale_precision: Any = _C.float32, zero_point_precision: Any = _C.int32, *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        config = IntxFakeQuantizeConfig(
            TorchAODType.INT4, group_size=group_size, is_symmetric=True, scale_precision=scale_precision,
            zero_point_precision=zero_point_precision,
        )  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, config, *args, **kwargs
        )

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Switches the rounding on."""
        self.weight_fake_quantizer.enabled = enabled

    def disable_fake_quant(self) -> None:
        """Switches the rounding off."""
        self.enable_fake_quant(False)


class Int4WeightOnlyEmbedding(Module):
    """An embedding with weights of 4 bits in int8 as buffers."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, group_size: int = 32,
        scale_precision: Any = _C.float32, zero_point_precision: Any = _C.int32, device: Any = None, output_dtype: Any = _C.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx, self.max_norm = num_embeddings, embedding_dim, padding_idx, max_norm
        self.norm_type, self.scale_grad_by_freq, self.sparse = norm_type, scale_grad_by_freq, sparse
        self.group_size, self.output_dtype = group_size, output_dtype
        zeros, shape = _C.torch.zeros, (num_embeddings, embedding_dim // group_size)
        self.register_buffer("weight", zeros(num_embeddings, embedding_dim, dtype=_C.int8, device=device))
        self.register_buffer("scale", zeros(*shape, dtype=scale_precision, device=device))
        self.register_buffer("zero_point", zeros(*shape, dtype=zero_point_precision, device=device))

    def forward(self, x: Tensor) -> Tensor:
        """The rows with these indices, dequantized."""
        weight = dequantize_affine(
            self.weight, (1, self.group_size), self.scale, self.zero_point, _C.int8, -8, 7, output_dtype=self.output_dtype
        )
        return F.embedding(x, weight, *_options(self)[2:])


class Int4WeightOnlyEmbeddingQATQuantizer(TwoStepQuantizer):
    """Embeddings with weights of 4 bits."""

    def __init__(self, group_size: int = 256, scale_precision: Any = _C.float32, zero_point_precision: Any = _C.int32) -> None:
        self.bit_width = 4
        self.group_size, self.scale_precision, self.zero_point_precision = group_size, scale_precision, zero_point_precision

    def prepare(self, model: Module, *_args: Any, **_kwargs: Any) -> Module:
        """Replaces embeddings."""

        def make(child: Embedding) -> Embedding:
            made = Int4WeightOnlyQATEmbedding(
                *_options(child), self.group_size, self.scale_precision, self.zero_point_precision, device=child.weight.device,
                dtype=child.weight.dtype,
            )  # fmt: skip
            if child.weight.device.type != "meta":
                made.weight = child.weight
            return made

        _replace(model, lambda child: isinstance(child, Embedding), make)
        return model

    def convert(self, model: Module, *_args: Any, **_kwargs: Any) -> Module:
        """Replaces the trained embeddings by embeddings with weights of int8 that have 4 bits."""
        _replace(model, lambda child: isinstance(child, Int4WeightOnlyQATEmbedding), self._converted)
        return model

    @no_grad()
    def _converted(self, child: Int4WeightOnlyQATEmbedding) -> Module:
        config, weight = child.weight_fake_quantizer.config, child.weight
        made = Int4WeightOnlyEmbedding(
            *_options(child), config.group_size, config.scale_precision, config.zero_point_precision, weight.device, weight.dtype
        )
        block_size = (1, config.group_size)
        scale, zero_point = choose_qparams_affine(
            weight, MappingType.SYMMETRIC, block_size, _C.int8, -8, 7, None, config.scale_precision, config.zero_point_precision
        )
        made.weight = quantize_affine(weight, block_size, scale, zero_point, _C.int8, -8, 7)
        made.scale, made.zero_point = scale.reshape(made.scale.shape), zero_point.reshape(made.zero_point.shape)
        return made
