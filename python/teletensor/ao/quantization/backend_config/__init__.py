"""torch.ao.quantization.backend_config: which operators a backend quantizes, with which dtypes."""

from __future__ import annotations

from ...._not_implemented import not_implemented
from .backend_config import BackendConfig, BackendPatternConfig, DTypeConfig, DTypeWithConstraints, ObservationType
from .native import (
    get_fbgemm_backend_config,
    get_native_backend_config,
    get_native_backend_config_dict,
    get_x86_backend_config,
)

__all__ = [
    "BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "ObservationType", "get_fbgemm_backend_config",
    "get_native_backend_config", "get_native_backend_config_dict", "get_x86_backend_config",
]  # fmt: skip

not_implemented(
    globals(), "the engine computes with its own kernels; use get_native_backend_config()",
    "get_executorch_backend_config get_onednn_backend_config get_qnnpack_backend_config get_tensorrt_backend_config "
    "get_tensorrt_backend_config_dict",
)  # fmt: skip
