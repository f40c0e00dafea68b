"""torch.ao.quantization: observers, fake quantization, and the quantization of models, module by module or by their graphs."""

from __future__ import annotations

import sys

from ..._lazy import keep_functions, lazy_attributes
from ..._not_implemented import not_implemented

# Names by the module that has them. They are imported when they are used: of a package that imports its own modules, a thread that
# imports the package and one that imports such a module wait for each other.
_NAMES = {
    "_patterns": "MatchAllNode ObserverOrFakeQuantize Pattern get_combined_dict",
    "_stubs": "DeQuantStub QuantStub QuantWrapper add_quant_dequant",
    "_types": "QuantType default_eval_fn",
    "fake_quantize":
        "FakeQuantize FakeQuantizeBase FixedQParamsFakeQuantize FusedMovingAvgObsFakeQuantize disable_fake_quant "
        "disable_observer enable_fake_quant enable_observer default_fake_quant default_weight_fake_quant "
        "default_dynamic_fake_quant default_per_channel_weight_fake_quant default_embedding_fake_quant "
        "default_embedding_fake_quant_4bit default_fixed_qparams_range_neg1to1_fake_quant "
        "default_fixed_qparams_range_0to1_fake_quant default_symmetric_fixed_qparams_fake_quant "
        "default_affine_fixed_qparams_fake_quant default_histogram_fake_quant default_fused_act_fake_quant "
        "default_fused_wt_fake_quant default_fused_per_channel_wt_fake_quant fused_wt_fake_quant_range_neg_127_to_127 "
        "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "observer":
        "AffineQuantizedObserverBase FixedQParamsObserver Granularity HistogramObserver MappingType MinMaxObserver "
        "MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase PerAxis PerBlock "
        "PerChannelMinMaxObserver PerGroup PerRow PerTensor PerToken PlaceholderObserver RecordingObserver ReuseInputObserver "
        "TorchAODType UniformQuantizationObserverBase ZeroPointDomain _ObserverBase _PartialWrapper _is_activation_post_process "
        "_with_args _with_callable_args get_block_size get_observer_state_dict load_observer_state_dict default_observer "
        "default_placeholder_observer default_debug_observer default_reuse_input_observer default_histogram_observer "
        "default_weight_observer weight_observer_range_neg_127_to_127 default_per_channel_weight_observer "
        "per_channel_weight_observer_range_neg_127_to_127 default_dynamic_quant_observer default_float_qparams_observer "
        "default_float_qparams_observer_4bit default_fixed_qparams_range_neg1to1_observer "
        "default_fixed_qparams_range_0to1_observer default_symmetric_fixed_qparams_observer "
        "default_affine_fixed_qparams_observer",
    "qconfig":
        "QConfig QConfigAny QConfigDynamic default_activation_only_qconfig default_debug_qconfig default_dynamic_qat_qconfig "
        "default_dynamic_qconfig default_embedding_qat_qconfig default_embedding_qat_qconfig_4bit default_per_channel_qconfig "
        "default_per_channel_symmetric_qnnpack_qat_qconfig default_per_channel_symmetric_qnnpack_qconfig default_qat_qconfig "
        "default_qat_qconfig_v2 default_qconfig default_quint8_weight_qconfig default_reuse_input_qconfig "
        "default_symmetric_qnnpack_qat_qconfig default_symmetric_qnnpack_qconfig default_weight_only_qconfig "
        "float16_dynamic_qconfig float16_static_qconfig float_qparams_weight_only_qconfig "
        "float_qparams_weight_only_qconfig_4bit get_default_qat_qconfig get_default_qconfig per_channel_dynamic_qconfig "
        "qconfig_equals",
    "qconfig_mapping":
        "QConfigMapping get_default_qat_qconfig_dict get_default_qat_qconfig_mapping get_default_qconfig_dict "
        "get_default_qconfig_mapping",
    "quantization_mappings":
        "get_default_compare_output_module_list get_default_dynamic_quant_module_mappings "
        "get_default_dynamic_sparse_quant_module_mappings get_default_static_sparse_quant_module_mappings "
        "get_default_float_to_quantized_operator_mappings get_default_qat_module_mappings get_default_qconfig_propagation_list "
        "get_default_static_quant_module_mappings get_default_static_quant_reference_module_mappings "
        "get_dynamic_quant_module_class get_embedding_qat_module_mappings get_embedding_static_quant_module_mappings "
        "get_quantized_operator get_static_quant_module_class no_observer_set",
    "fuse_modules": "fuse_modules fuse_modules_qat",
    "fuser_method_mappings":
        "fuse_conv_bn fuse_conv_bn_relu fuse_convtranspose_bn fuse_linear_bn get_fuser_method get_fuser_method_new",
    "quantize":
        "convert get_default_custom_config_dict prepare prepare_qat propagate_qconfig_ quantize quantize_dynamic quantize_qat "
        "swap_module",
}  # fmt: skip
_JIT = "TorchScript graphs do not exist; use quantize_fx, or torch.ao.quantization.quantize_pt2e"
_OF_JIT = (
    "convert_dynamic_jit convert_jit fuse_conv_bn_jit prepare_dynamic_jit prepare_jit quantize_dynamic_jit quantize_jit script_qconfig "
    "script_qconfig_dict"
)
not_implemented(globals(), _JIT, _OF_JIT)
_MODULES = (
    "backend_config fuser_method_mappings fx fake_quantize observer qconfig qconfig_mapping quant_type quantization_mappings quantize_fx "
    "stubs utils pt2e quantizer quantize_pt2e"
)
# PyTorch's star imports of the package do not give these.
_TABLES = (
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS "
    "DEFAULT_MODULE_TO_ACT_POST_PROCESS DEFAULT_QAT_MODULE_MAPPINGS DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS "
    "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS"
)
_MAPPINGS = {"quantization_mappings": f"{_NAMES['quantization_mappings']} {_TABLES}"}
_PT2E = {"pt2e": "allow_exported_model_train_eval move_exported_model_to_eval move_exported_model_to_train"}
__getattr__, __dir__ = lazy_attributes(globals(), _MODULES.split(), {**_NAMES, **_MAPPINGS, **_PT2E})
__all__ = " ".join([*_NAMES.values(), _OF_JIT]).split()  # noqa: PLE0605
keep_functions(sys.modules[__name__], "fuse_modules", "quantize")
