"""torchao.quantization.qat: training with rounded weights and activations."""

from __future__ import annotations

from ...._lazy import lazy_attributes

# Imported when they are used: of a package that imports its own modules, a thread that imports the package and one that imports such a
# module wait for each other.
_NAMES = {
    "api":
        "ComposableQATQuantizer FromIntXQuantizationAwareTrainingConfig IntXQuantizationAwareTrainingConfig QATConfig QATStep "
        "from_intx_quantization_aware_training initialize_fake_quantizers intx_quantization_aware_training",
    "embedding": "FakeQuantizedEmbedding Int4WeightOnlyEmbeddingQATQuantizer",
    "fake_quantize_config": "FakeQuantizeConfig FakeQuantizeConfigBase Float8FakeQuantizeConfig IntxFakeQuantizeConfig",
    "fake_quantizer": "FakeQuantizer FakeQuantizerBase Float8FakeQuantizer IntxFakeQuantizer",
    "linear": "FakeQuantizedLinear Float8ActInt4WeightQATQuantizer Int4WeightOnlyQATQuantizer Int8DynActInt4WeightQATQuantizer",
}  # fmt: skip
__getattr__, __dir__ = lazy_attributes(globals(), (*_NAMES, "two_step_quantizer"), _NAMES)
__all__ = [
    "ComposableQATQuantizer", "FakeQuantizeConfig", "FakeQuantizeConfigBase", "FakeQuantizedEmbedding", "FakeQuantizedLinear",
    "FakeQuantizer", "FakeQuantizerBase", "Float8ActInt4WeightQATQuantizer", "Float8FakeQuantizeConfig", "Float8FakeQuantizer",
    "FromIntXQuantizationAwareTrainingConfig", "Int4WeightOnlyEmbeddingQATQuantizer", "Int4WeightOnlyQATQuantizer",
    "Int8DynActInt4WeightQATQuantizer", "IntXQuantizationAwareTrainingConfig", "IntxFakeQuantizeConfig", "IntxFakeQuantizer",
    "QATConfig", "QATStep", "from_intx_quantization_aware_training", "initialize_fake_quantizers", "intx_quantization_aware_training",
]  # fmt: skip
