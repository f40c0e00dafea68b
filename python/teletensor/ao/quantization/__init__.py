"""torch.ao.quantization: observers, fake quantization, stubs, and the fusion of batch norms.

Quantized dtypes are not implemented yet, so models can be trained with simulated quantization but not converted.
"""

from __future__ import annotations

from typing import Any, Union

from ..._not_implemented import not_implemented
from ._defaults import *  # noqa: F403
from ._fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    FixedQParamsFakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    disable_fake_quant,
    disable_observer,
    enable_fake_quant,
    enable_observer,
)
from ._fusion import fuse_conv_bn, fuse_conv_bn_relu, fuse_convtranspose_bn, fuse_linear_bn
from ._observer_base import ObserverBase, UniformQuantizationObserverBase
from ._observers import (
    FixedQParamsObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    RecordingObserver,
    ReuseInputObserver,
)
from ._stubs import DeQuantStub, QuantStub, QuantWrapper, add_quant_dequant
from ._types import (
    Granularity,
    MappingType,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    QConfig,
    QConfigAny,
    QConfigDynamic,
    QuantType,
    ZeroPointDomain,
    default_eval_fn,
    get_block_size,
    qconfig_equals,
)

MatchAllNode = type("MatchAllNode", (), {"__doc__": "A pattern that matches every node of a graph."})
ObserverOrFakeQuantize = Any
Pattern = Union[Any, tuple]

_WHAT = "there are no quantized dtypes yet; observers and FakeQuantize modules simulate a quantization"
not_implemented(
    globals(), _WHAT,
    "convert convert_dynamic_jit convert_jit default_histogram_fake_quant default_histogram_observer fuse_conv_bn_jit "
    "fuse_modules fuse_modules_qat get_combined_dict get_default_compare_output_module_list get_default_custom_config_dict "
    "get_default_dynamic_quant_module_mappings get_default_dynamic_sparse_quant_module_mappings "
    "get_default_float_to_quantized_operator_mappings get_default_qat_module_mappings get_default_qat_qconfig "
    "get_default_qat_qconfig_dict get_default_qat_qconfig_mapping get_default_qconfig get_default_qconfig_dict "
    "get_default_qconfig_mapping get_default_qconfig_propagation_list get_default_static_quant_module_mappings "
    "get_default_static_quant_reference_module_mappings get_default_static_sparse_quant_module_mappings "
    "get_dynamic_quant_module_class get_embedding_qat_module_mappings get_embedding_static_quant_module_mappings "
    "get_fuser_method get_fuser_method_new get_observer_state_dict get_quantized_operator get_static_quant_module_class "
    "load_observer_state_dict no_observer_set prepare prepare_dynamic_jit prepare_jit prepare_qat propagate_qconfig_ "
    "quantize quantize_dynamic quantize_dynamic_jit quantize_jit quantize_qat script_qconfig script_qconfig_dict "
    "swap_module",
    "AffineQuantizedObserverBase HistogramObserver QConfigMapping TorchAODType",
)  # fmt: skip

