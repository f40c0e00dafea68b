"""XNNPACKQuantizer: 8-bit symmetric weights and affine activations, as mobile runtimes compute with them."""

from __future__ import annotations

import functools
from typing import Any, Callable

from .... import _C
from .... import _quantized_names as q
from ....fx import GraphModule, Node
from ....nn import AdaptiveAvgPool2d, Conv2d, Linear, ReLU
from ....nn import functional as F
from .. import HistogramObserver
from .._fake_quantize import FakeQuantize, FusedMovingAvgObsFakeQuantize
from .._observers import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
)
from .quantizer import QuantizationSpec, Quantizer
from .utils import (
    OperatorConfig,
    OperatorPatternType,
    QuantizationConfig,
    get_module_name_filter,
    get_module_type_filter,
)
from .xnnpack_quantizer_utils import OP_TO_ANNOTATOR, convert_scalars_to_attrs, propagate_annotation

__all__ = ["XNNPACKQuantizer", "get_symmetric_quantization_config"]

_EPSILON = {"eps": 2**-12}


def activation_observer(is_qat: bool, is_dynamic: bool) -> Any:
    """The observer or FakeQuantize of activations."""
    if is_qat and is_dynamic:
        return FakeQuantize.with_args(observer=MovingAverageMinMaxObserver.with_args(averaging_constant=1), **_EPSILON)
    kind = FusedMovingAvgObsFakeQuantize if is_qat else PlaceholderObserver if is_dynamic else HistogramObserver
    return kind.with_args(**_EPSILON)


def weight_observer(is_qat: bool, is_per_channel: bool) -> Any:
    """The observer or FakeQuantize of weights."""
    if is_qat:
        observer = MovingAveragePerChannelMinMaxObserver if is_per_channel else MovingAverageMinMaxObserver
        return FusedMovingAvgObsFakeQuantize.with_args(observer=observer, **_EPSILON)
    return (PerChannelMinMaxObserver if is_per_channel else MinMaxObserver).with_args(**_EPSILON)


@functools.lru_cache
def get_symmetric_quantization_config(
    is_per_channel: bool = False, is_qat: bool = False, is_dynamic: bool = False, act_qmin: int = -128, act_qmax: int = 127,
    weight_qmin: int = -127, weight_qmax: int = 127,
) -> QuantizationConfig:  # fmt: skip
    """8-bit quantization with symmetric weights.

    Args:
        is_per_channel: one scale per output channel of weights.
        is_qat: for prepare_qat_pt2e: FakeQuantize modules instead of observers.
        is_dynamic: the scales of activations are computed from each input when the model runs; outputs are not quantized.
        act_qmin, act_qmax, weight_qmin, weight_qmax: the smallest and largest integers.
    """
    activation = QuantizationSpec(
        dtype=_C.int8, quant_min=act_qmin, quant_max=act_qmax, qscheme=q.per_tensor_affine, is_dynamic=is_dynamic,
        observer_or_fake_quant_ctr=activation_observer(is_qat, is_dynamic),
    )  # fmt: skip
    weight = QuantizationSpec(
        dtype=_C.int8, quant_min=weight_qmin, quant_max=weight_qmax, ch_axis=0, is_dynamic=False,
        qscheme=q.per_channel_symmetric if is_per_channel else q.per_tensor_symmetric,
        observer_or_fake_quant_ctr=weight_observer(is_qat, is_per_channel),
    )  # fmt: skip
    return QuantizationConfig(activation, None if is_dynamic else activation, weight, None, is_qat)


def _supported_operators() -> list[OperatorConfig]:
    patterns = [
        [[Conv2d, ReLU], [Conv2d, F.relu], [F.conv2d, ReLU], [F.conv2d, F.relu]],
        [[Linear], [F.linear]],
        [[_C.torch.add]],
        [[AdaptiveAvgPool2d], [F.adaptive_avg_pool2d]],
    ]
    choices = [{}, {"is_qat": True}, {"is_per_channel": True}, {"is_per_channel": True, "is_qat": True}]
    return [OperatorConfig(get_symmetric_quantization_config(**c), list(p)) for c in choices for p in patterns]


class XNNPACKQuantizer(Quantizer):
    """Quantizes linear layers, convolutions, sums, products, pooling and concatenations.

    Configurations of modules by name precede those of modules by class, and both precede the global one.
    """

    STATIC_QAT_ONLY_OPS = ["conv_bn_relu", "conv_bn", "conv_transpose_bn_relu", "conv_transpose_bn"]
    # Fused patterns come before single operators.
    STATIC_OPS = [
        "linear_relu", "linear", "conv_relu", "conv", "conv_transpose_relu", "adaptive_avg_pool2d", "add_relu", "add", "mul_relu",
        "mul", "cat",
    ]  # fmt: skip
    DYNAMIC_OPS = ["linear"]

    def __init__(self) -> None:
        super().__init__()
        self.global_config: QuantizationConfig | None = None
        self.operator_type_config: dict[Any, QuantizationConfig | None] = {}
        self.module_type_config: dict[Callable, QuantizationConfig | None] = {}
        self.module_name_config: dict[str, QuantizationConfig | None] = {}

    @classmethod
    def get_supported_operators(cls) -> list[OperatorConfig]:
        """The configurations with their patterns of operators."""
        return _supported_operators()

    @classmethod
    def get_supported_quantization_configs(cls) -> list[QuantizationConfig]:
        """The configurations."""
        return list({config for config, _ in cls.get_supported_operators()})

    @classmethod
    def get_supported_operator_for_quantization_config(cls, quantization_config: QuantizationConfig | None) -> list[OperatorPatternType]:
        """The patterns of operators of a configuration; None: of all."""
        found = cls.get_supported_operators()
        if quantization_config is None:
            return [pattern for _, patterns in found for pattern in patterns]
        return next((patterns for config, patterns in found if config == quantization_config), [])

    def set_global(self, quantization_config: QuantizationConfig) -> XNNPACKQuantizer:
        """Sets the configuration of all operators without another one. Returns the quantizer."""
        self.global_config = quantization_config
        return self

    def set_operator_type(self, operator_type: Any, quantization_config: QuantizationConfig) -> XNNPACKQuantizer:
        """Sets the configuration of an operator, such as ``torch.ops.aten.linear.default``. Returns the quantizer.

        PyTorch's class stores these configurations and never reads them; here they precede the global one.
        """
        self.operator_type_config[operator_type] = quantization_config
        return self

    def set_module_type(self, module_type: Callable, quantization_config: QuantizationConfig) -> XNNPACKQuantizer:
        """Sets the configuration of modules of a class. Returns the quantizer."""
        self.module_type_config[module_type] = quantization_config
        return self

    def set_module_name(self, module_name: str, quantization_config: QuantizationConfig | None) -> XNNPACKQuantizer:
        """Sets the configuration of a module, such as "blocks.sub". Returns the quantizer."""
        if quantization_config is None:
            raise AssertionError(" quantization_config == None is not supported yet")
        self.module_name_config[module_name] = quantization_config
        return self

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Makes tensors of the numbers that are added or multiplied, so that they are quantized too."""
        return convert_scalars_to_attrs(model)

    def annotate(self, model: GraphModule) -> GraphModule:
        stages: list[tuple[QuantizationConfig | None, Callable[[Node], bool]]] = []
        stages += [(config, get_module_name_filter(name)) for name, config in self.module_name_config.items()]
        stages += [(config, get_module_type_filter(kind)) for kind, config in self.module_type_config.items()]
        chosen = [accept for _, accept in stages]
        stages += [(c, functools.partial(_has_operator, kind)) for kind, c in self.operator_type_config.items()]
        stages.append((self.global_config, lambda n: not any(accept(n) for accept in chosen)))
        for config, accept in stages:
            if config is None:
                continue
            dynamic = config.input_activation is not None and config.input_activation.is_dynamic
            names = self.DYNAMIC_OPS if dynamic else (self.STATIC_QAT_ONLY_OPS if config.is_qat else []) + self.STATIC_OPS
            for name in names:
                OP_TO_ANNOTATOR[name](model, config, accept)
        propagate_annotation(model)
        return model

    def validate(self, model: GraphModule) -> None:
        """Every graph is valid."""


def _has_operator(kind: Any, node: Node) -> bool:
    return node.target == kind or getattr(node.target, "overloadpacket", None) == kind
