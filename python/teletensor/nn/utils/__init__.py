"""torch.nn.utils: functions on parameters, modules and sequences."""

from __future__ import annotations

import sys

from ..._lazy import keep_functions, lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
    "spectral_norm": "remove_spectral_norm spectral_norm",
    "weight_norm": "remove_weight_norm weight_norm",
}
_MODULES = (
    "clip_grad", "convert_parameters", "fusion", "init", "memory_format", "parametrizations", "parametrize", "prune", "rnn", "stateless",
)
__getattr__, __dir__ = lazy_attributes(globals(), _MODULES, _NAMES)
keep_functions(sys.modules[__name__], "spectral_norm", "weight_norm")

__all__ = [  # noqa: F822 - imported at their first use
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format", "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval",
    "fuse_linear_bn_weights", "get_total_norm", "parameters_to_vector", "parametrizations", "parametrize",
    "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init", "spectral_norm", "stateless", "vector_to_parameters",
    "weight_norm",
]  # fmt: skip
