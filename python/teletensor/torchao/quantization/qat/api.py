"""torchao.quantization.qat.api: configurations for quantize_() that prepare a model for training and convert it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

from .... import _C
from ....nn import Embedding, Linear, Module
from ...core.config import AOBaseConfig
from ..quant_api import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig
from ..transform_module import handler_of, register_quantize_module_handler
from .embedding import FakeQuantizedEmbedding
from .fake_quantize_config import FakeQuantizeConfigBase, IntxFakeQuantizeConfig, _infer_fake_quantize_configs
from .fake_quantizer import IntxFakeQuantizer
from .linear import FakeQuantizedLinear
from .two_step_quantizer import TwoStepQuantizer, warn_of_older_name

__all__ = [
    "ComposableQATQuantizer", "FromIntXQuantizationAwareTrainingConfig", "IntXQuantizationAwareTrainingConfig", "QATConfig", "QATStep",
    "from_intx_quantization_aware_training", "initialize_fake_quantizers", "intx_quantization_aware_training",
]  # fmt: skip


class QATStep(str, enum.Enum):
    """The step of a QATConfig."""

    PREPARE = "prepare"
    CONVERT = "convert"


@dataclass(init=False)
class QATConfig(AOBaseConfig):
    """Prepares linear layers and embeddings for training with rounded values, or converts the trained ones.

    Args:
        base_config: the configuration of quantize_() that the converted model has; decides how values are rounded.
        activation_config, weight_config: how they are rounded, instead.
        step: "prepare" or "convert".
    """

    base_config: AOBaseConfig | None
    activation_config: FakeQuantizeConfigBase | None
    weight_config: FakeQuantizeConfigBase | None
    step: Any

    def __init__(
        self, base_config: AOBaseConfig | None = None, activation_config: FakeQuantizeConfigBase | None = None,
        weight_config: FakeQuantizeConfigBase | None = None, *, step: Any = "prepare",
    ) -> None:  # fmt: skip
        self.base_config, self.activation_config, self.weight_config = base_config, activation_config, weight_config
        self.step = getattr(step, "value", step).lower()
        given = activation_config is not None or weight_config is not None
        if self.step not in [s.value for s in QATStep]:
            raise ValueError(f"`step` must be one of {[s.value for s in QATStep]}")
        if base_config is not None and given:
            raise ValueError("Cannot specify both `base_config` and `activation_config` or `weight_config`")
        if self.step == QATStep.PREPARE and base_config is None and not given:
            raise ValueError("Must specify `base_config`, `activation_config`, or `weight_config` in the prepare step")
        if self.step == QATStep.CONVERT and given:
            raise ValueError("Cannot specify `weight_config` or `activation_config` in the convert step")
        if isinstance(base_config, FakeQuantizeConfigBase):
            raise ValueError(
                f"{type(base_config).__name__} was passed as `base_config`. Did you mean to pass it as activation_config or weight_config?"
            )


def _prepared(module: Module, activation: FakeQuantizeConfigBase | None, weight: FakeQuantizeConfigBase | None) -> Module:
    if isinstance(module, Linear):
        return FakeQuantizedLinear.from_linear(module, activation, weight)
    if not isinstance(module, Embedding):
        raise ValueError(f"Module of type '{type(module)}' does not have QAT support")
    if activation is not None:
        raise ValueError("Activation fake quantization is not supported for embedding")
    return FakeQuantizedEmbedding.from_embedding(module, weight)


def _ordinary(module: Module) -> Module:
    if isinstance(module, FakeQuantizedLinear):
        return module.to_linear()
    return module.to_embedding() if isinstance(module, FakeQuantizedEmbedding) else module


@register_quantize_module_handler(QATConfig)
def _qat(module: Module, config: QATConfig) -> Module:
    if config.step == QATStep.PREPARE:
        if config.base_config is None:
            return _prepared(module, config.activation_config, config.weight_config)
        return _prepared(module, *_infer_fake_quantize_configs(config.base_config))
    if not isinstance(module, (FakeQuantizedLinear, FakeQuantizedEmbedding)):
        return module
    fake, options = module.weight_fake_quantizer, {}
    if isinstance(getattr(fake, "config", None), IntxFakeQuantizeConfig) and fake.config.range_learning:
        if not isinstance(config.base_config, (IntxWeightOnlyConfig, Int8DynamicActivationIntxWeightConfig, NoneType)):
            raise NotImplementedError(f"[QATConfig] {type(config.base_config).__name__} has no trained scales")
        options = {"custom_scale": fake.scale.detach(), "custom_zero_point": fake.zero_point.detach().to(_C.int8)}
    ordinary = _ordinary(module)
    return ordinary if config.base_config is None else handler_of(type(config.base_config))(ordinary, config.base_config, **options)


@dataclass
class IntXQuantizationAwareTrainingConfig(AOBaseConfig):
    """The older name of QATConfig(activation_config=..., weight_config=..., step="prepare")."""

    activation_config: FakeQuantizeConfigBase | None = None
    weight_config: FakeQuantizeConfigBase | None = None

    def __post_init__(self) -> None:
        warn_of_older_name(self)


class intx_quantization_aware_training(IntXQuantizationAwareTrainingConfig):  # noqa: N801 - torchao's name
    """An older name."""


@dataclass
class FromIntXQuantizationAwareTrainingConfig(AOBaseConfig):
    """The older name of QATConfig(step="convert")."""

    def __post_init__(self) -> None:
        warn_of_older_name(self)


class from_intx_quantization_aware_training(FromIntXQuantizationAwareTrainingConfig):  # noqa: N801 - torchao's name
    """An older name."""


def _prepared_by_older_name(module: Module, config: IntXQuantizationAwareTrainingConfig) -> Module:
    return _prepared(module, config.activation_config, config.weight_config)


def _ordinary_by_older_name(module: Module, _config: FromIntXQuantizationAwareTrainingConfig) -> Module:
    return _ordinary(module)


for _kind in (IntXQuantizationAwareTrainingConfig, intx_quantization_aware_training):
    register_quantize_module_handler(_kind)(_prepared_by_older_name)
for _kind in (FromIntXQuantizationAwareTrainingConfig, from_intx_quantization_aware_training):
    register_quantize_module_handler(_kind)(_ordinary_by_older_name)


class ComposableQATQuantizer(TwoStepQuantizer):
    """Applies quantizers one after another."""

    def __init__(self, quantizers: Sequence[TwoStepQuantizer]) -> None:
        self.quantizers = quantizers

    def prepare(self, model: Module, *_args: Any, **_kwargs: Any) -> Module:
        """Prepares the model with each quantizer."""
        for quantizer in self.quantizers:
            model = quantizer.prepare(model)
        return model

    def convert(self, model: Module, *_args: Any, **_kwargs: Any) -> Module:
        """Converts the model with each quantizer."""
        for quantizer in self.quantizers:
            model = quantizer.convert(model)
        return model


def initialize_fake_quantizers(model: Module, example_inputs: tuple) -> None:
    """Computes the scales and zero points that are to be trained, by a call of the model."""
    for module in model.modules():
        if isinstance(module, IntxFakeQuantizer):
            module._initialized = True
    model(*example_inputs)
