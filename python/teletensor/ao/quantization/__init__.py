"""torch.ao.quantization: observers, fake quantization, and the quantization of models, module by module or by their graphs."""

from __future__ import annotations

from ..._lazy import lazy_attributes
from ..._not_implemented import not_implemented
from ._patterns import MatchAllNode, ObserverOrFakeQuantize, Pattern, get_combined_dict
from ._stubs import DeQuantStub, QuantStub, QuantWrapper, add_quant_dequant
from ._types import QuantType, default_eval_fn
from .fake_quantize import *  # noqa: F403
from .fuse_modules import fuse_modules, fuse_modules_qat
from .fuser_method_mappings import (
    fuse_conv_bn,
    fuse_conv_bn_relu,
    fuse_convtranspose_bn,
    fuse_linear_bn,
    get_fuser_method,
    get_fuser_method_new,
)
from .observer import *  # noqa: F403
from .observer import _PartialWrapper  # noqa: F401
from .qconfig import *  # noqa: F403
from .qconfig_mapping import *  # noqa: F403
from .quantization_mappings import *  # noqa: F403
from .quantize import (
    convert,
    get_default_custom_config_dict,
    prepare,
    prepare_qat,
    propagate_qconfig_,
    quantize,
    quantize_dynamic,
    quantize_qat,
    swap_module,
)

_JIT = "TorchScript graphs do not exist; use quantize_fx, or torch.ao.quantization.quantize_pt2e"
not_implemented(
    globals(), _JIT,
    "convert_dynamic_jit convert_jit fuse_conv_bn_jit prepare_dynamic_jit prepare_jit quantize_dynamic_jit quantize_jit script_qconfig "
    "script_qconfig_dict",
)  # fmt: skip
not_implemented(
    globals(), "tensors that store blocks of zeros in fewer bytes do not exist",
    "get_default_dynamic_sparse_quant_module_mappings get_default_static_sparse_quant_module_mappings",
)  # fmt: skip
_MODULES = (
    "backend_config fuser_method_mappings fx fake_quantize observer qconfig qconfig_mapping quant_type quantization_mappings quantize_fx "
    "stubs utils pt2e quantizer quantize_pt2e"
)
_PT2E = {"pt2e": "allow_exported_model_train_eval move_exported_model_to_eval move_exported_model_to_train"}
__getattr__, __dir__ = lazy_attributes(globals(), _MODULES.split(), _PT2E)
