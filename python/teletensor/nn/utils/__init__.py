"""torch.nn.utils: functions on parameters, modules and sequences."""

from __future__ import annotations

from typing import Any

from . import clip_grad, convert_parameters, fusion, init, parametrizations, parametrize, rnn
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
from .init import skip_init
from .memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad", "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format", "convert_parameters", "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "fusion", "get_total_norm", "init",
    "parameters_to_vector", "parametrizations", "parametrize", "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init",
    "spectral_norm", "vector_to_parameters", "weight_norm",
]  # fmt: skip

_LAZY = ("prune", "stateless")  # modules that are imported at their first use


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'teletensor.nn.utils' has no attribute {name!r}")
    import importlib

    return importlib.import_module(f"{__name__}.{name}")
