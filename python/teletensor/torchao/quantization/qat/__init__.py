"""torchao.quantization.qat: training with rounded weights and activations."""

from __future__ import annotations

from .api import (
    ComposableQATQuantizer,
    FromIntXQuantizationAwareTrainingConfig,
    IntXQuantizationAwareTrainingConfig,
    QATConfig,
    QATStep,
    from_intx_quantization_aware_training,
    initialize_fake_quantizers,
    intx_quantization_aware_training,
)
from .embedding import FakeQuantizedEmbedding, Int4WeightOnlyEmbeddingQATQuantizer
from .fake_quantize_config import FakeQuantizeConfig, FakeQuantizeConfigBase, Float8FakeQuantizeConfig, IntxFakeQuantizeConfig
from .fake_quantizer import FakeQuantizer, FakeQuantizerBase, Float8FakeQuantizer, IntxFakeQuantizer
from .linear import (
    FakeQuantizedLinear,
    Float8ActInt4WeightQATQuantizer,
    Int4WeightOnlyQATQuantizer,
    Int8DynActInt4WeightQATQuantizer,
)

__all__ = [
    "ComposableQATQuantizer", "FakeQuantizeConfig", "FakeQuantizeConfigBase", "FakeQuantizedEmbedding", "FakeQuantizedLinear",
    "FakeQuantizer", "FakeQuantizerBase", "Float8ActInt4WeightQATQuantizer", "Float8FakeQuantizeConfig", "Float8FakeQuantizer",
    "FromIntXQuantizationAwareTrainingConfig", "Int4WeightOnlyEmbeddingQATQuantizer", "Int4WeightOnlyQATQuantizer",
    "Int8DynActInt4WeightQATQuantizer", "IntXQuantizationAwareTrainingConfig", "IntxFakeQuantizeConfig", "IntxFakeQuantizer",
    "QATConfig", "QATStep", "from_intx_quantization_aware_training", "initialize_fake_quantizers", "intx_quantization_aware_training",
]  # fmt: skip
