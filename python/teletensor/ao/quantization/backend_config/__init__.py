"""torch.ao.quantization.backend_config: which operators a backend quantizes, with which dtypes."""

from __future__ import annotations

from ...._lazy import lazy_attributes
from ...._not_implemented import not_implemented

# Imported when they are used, as those of the package around.
_NAMES = {
    "backend_config": "BackendConfig BackendPatternConfig DTypeConfig DTypeWithConstraints ObservationType",
    "native": "get_fbgemm_backend_config get_native_backend_config get_native_backend_config_dict get_x86_backend_config",
}
__getattr__, __dir__ = lazy_attributes(globals(), tuple(_NAMES), _NAMES)
__all__ = [
    "BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "ObservationType",
    "get_executorch_backend_config", "get_fbgemm_backend_config", "get_native_backend_config",
    "get_native_backend_config_dict", "get_onednn_backend_config", "get_qnnpack_backend_config",
    "get_tensorrt_backend_config", "get_tensorrt_backend_config_dict",
]  # fmt: skip

not_implemented(
    globals(), "the engine computes with its own kernels; use get_native_backend_config()",
    "get_executorch_backend_config get_onednn_backend_config get_qnnpack_backend_config get_tensorrt_backend_config "
    "get_tensorrt_backend_config_dict",
)  # fmt: skip
