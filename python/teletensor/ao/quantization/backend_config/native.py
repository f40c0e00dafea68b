"""The operators that the engine computes with integers."""

from __future__ import annotations

from typing import Any

from .... import _C
from .... import _quantized_names as q
from . import _operators as o
from .backend_config import BackendConfig, DTypeConfig

_FLOAT, _HALF = _C.float32, _C.float16
weighted_op_quint8_dtype_config = DTypeConfig(q.quint8, q.quint8, q.qint8, _FLOAT)
default_op_quint8_dtype_config = DTypeConfig(q.quint8, q.quint8)
default_op_fp16_dtype_config = DTypeConfig(_HALF, _HALF, _HALF, _HALF)
default_dynamic_int8_dtype_config = DTypeConfig(q.quint8, _FLOAT, q.qint8, _FLOAT, True)
default_dynamic_float16_dtype_config = DTypeConfig(_HALF, _FLOAT, _HALF, _FLOAT, True)
input_output_only_quint8_dtype_config = DTypeConfig(q.quint8, q.quint8, _FLOAT, _FLOAT)
weight_only_quint8_dtype_config = DTypeConfig(_FLOAT, _FLOAT, q.quint8)
weight_only_quint4x2_dtype_config = DTypeConfig(_FLOAT, _FLOAT, q.quint4x2)


def _config(name: str) -> BackendConfig:
    weighted, default = [weighted_op_quint8_dtype_config], [default_op_quint8_dtype_config]
    dynamic = [default_dynamic_int8_dtype_config, default_dynamic_float16_dtype_config]
    found = BackendConfig(name)
    for configs in (
        o.convolutions(weighted), o.linear(weighted + dynamic), o.binary(default), o.concatenation(default), o.defaults(default),
        o.fixed(default), o.shared(default), o.information(default), o.batch_norms(default),
        o.layer_norms([input_output_only_quint8_dtype_config]), o.recurrent(dynamic),
        o.embeddings([weight_only_quint8_dtype_config, weight_only_quint4x2_dtype_config]),
    ):  # fmt: skip
        found.set_backend_pattern_configs(configs)
    return found


def get_native_backend_config() -> BackendConfig:
    """The operators that the engine computes with integers."""
    return _config("native")


def get_fbgemm_backend_config() -> BackendConfig:
    """The same, under the name of PyTorch's library for servers."""
    return _config("fbgemm")


def get_x86_backend_config() -> BackendConfig:
    """The same, under the name of PyTorch's backend for x86."""
    return _config("x86")


def get_native_backend_config_dict() -> dict[str, Any]:
    """The operators that the engine computes with integers, as a dict."""
    return get_native_backend_config().to_dict()
