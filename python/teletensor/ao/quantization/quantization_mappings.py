"""Which class replaces a module's class in each kind of quantization."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from ... import nn, ops
from ...nn import functional as F
from ...nn.modules.linear import NonDynamicallyQuantizableLinear
from ...nn.utils.parametrize import type_before_parametrizations
from .. import nn as ao
from . import _defaults as d
from ._patterns import get_combined_dict
from ._stubs import DeQuantStub, QuantStub

__all__ = [  # noqa: F822 - imported at their first use
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS",
    "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS", "DEFAULT_MODULE_TO_ACT_POST_PROCESS", "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS", "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS", "get_default_compare_output_module_list",
    "get_default_dynamic_quant_module_mappings", "get_default_dynamic_sparse_quant_module_mappings",
    "get_default_float_to_quantized_operator_mappings", "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list", "get_default_static_quant_module_mappings",
    "get_default_static_quant_reference_module_mappings", "get_default_static_sparse_quant_module_mappings",
    "get_dynamic_quant_module_class", "get_embedding_qat_module_mappings", "get_embedding_static_quant_module_mappings",
    "get_quantized_operator", "get_static_quant_module_class", "no_observer_set",
]  # fmt: skip

_CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
_EMBEDDINGS = ("Embedding", "EmbeddingBag")


def _same_names(source: Any, target: Any, names: tuple[str, ...]) -> dict[Callable, Any]:
    return {getattr(source, name): getattr(target, name) for name in names}


@functools.cache
def _reference() -> dict[Callable, Any]:
    names = ("Linear", *_CONVOLUTIONS, *_EMBEDDINGS, "GRUCell", "LSTMCell", "RNNCell", "LSTM")
    stubs = {QuantStub: ao.quantized.Quantize, DeQuantStub: ao.quantized.DeQuantize}
    return {**stubs, **_same_names(nn, ao.quantized.reference, names)}


@functools.cache
def _static() -> dict[Callable, Any]:
    nnq, nni = ao.quantized, ao.intrinsic
    nniq, nniqat, nnqat = nni.quantized, nni.qat, ao.qat
    names = (
        "BatchNorm2d", "BatchNorm3d", "Dropout", *_CONVOLUTIONS, "ELU", *_EMBEDDINGS, "GroupNorm", "Hardswish", "InstanceNorm1d",
        "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LeakyReLU", "Linear", "ReLU6", "PReLU",
    )  # fmt: skip
    fused = (
        "BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "ConvAdd2d", "ConvAddReLU2d", "LinearReLU", "LinearLeakyReLU",
        "LinearTanh",
    )  # fmt: skip
    return {
        QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize, **_same_names(nn, nnq, names),
        NonDynamicallyQuantizableLinear: nnq.Linear, nnq.FloatFunctional: nnq.QFunctional, **_same_names(nni, nniq, fused),
        nniqat.ConvBn1d: nnq.Conv1d, nniqat.ConvBn2d: nnq.Conv2d, nniqat.ConvBn3d: nnq.Conv3d,
        nniqat.ConvBnReLU1d: nniq.ConvReLU1d, nniqat.ConvBnReLU2d: nniq.ConvReLU2d, nniqat.ConvBnReLU3d: nniq.ConvReLU3d,
        nniqat.ConvReLU2d: nniq.ConvReLU2d, nniqat.ConvReLU3d: nniq.ConvReLU3d, nniqat.LinearReLU: nniq.LinearReLU,
        nniqat.LinearBn1d: nnq.Linear, **_same_names(nnqat, nnq, ("Linear", "Conv2d", "Conv3d")),
    }  # fmt: skip


@functools.cache
def _qat() -> dict[Callable, Any]:
    names = (
        "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU2d", "ConvReLU3d", "LinearReLU",
        "LinearBn1d",
    )  # fmt: skip
    return {
        **_same_names(nn, ao.qat, ("Conv2d", "Conv3d", "Linear")), NonDynamicallyQuantizableLinear: ao.qat.Linear,
        **_same_names(ao.intrinsic, ao.intrinsic.qat, names),
    }  # fmt: skip


@functools.cache
def _dynamic() -> dict[Callable, Any]:
    nnqd = ao.quantized.dynamic
    return {
        **_same_names(nn, nnqd, ("GRUCell", "Linear", "LSTM", "GRU", "LSTMCell", "RNNCell")), ao.qat.dynamic.Linear: nnqd.Linear,
        NonDynamicallyQuantizableLinear: nnqd.Linear, ao.intrinsic.LinearReLU: ao.intrinsic.quantized.dynamic.LinearReLU,
        **_same_names(nn, ao.quantized, _EMBEDDINGS),
    }  # fmt: skip


@functools.cache
def _operators() -> dict[Any, Callable]:
    return {
        getattr(F, name): getattr(ops.quantized, name)
        for name in ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")
    }


@functools.cache
def _fixed() -> dict[Callable, Callable]:
    zero_to_one = d.default_fixed_qparams_range_0to1_fake_quant
    return {
        nn.Hardsigmoid: zero_to_one, nn.Sigmoid: zero_to_one, nn.Softmax: zero_to_one,
        nn.Tanh: d.default_fixed_qparams_range_neg1to1_fake_quant,
    }  # fmt: skip


@functools.cache
def _static_sparse() -> dict[Callable, Any]:
    return {nn.Linear: ao.sparse.quantized.Linear}


@functools.cache
def _dynamic_sparse() -> dict[Callable, Any]:
    return {nn.Linear: ao.sparse.quantized.dynamic.Linear}


_TABLES: dict[str, Callable[[], Any]] = {
    "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS": _reference,
    "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS": _static,
    "DEFAULT_QAT_MODULE_MAPPINGS": _qat,
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS": _dynamic,
    "DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS": _static_sparse,
    "DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS": _dynamic_sparse,
    "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS": _operators,
    "DEFAULT_MODULE_TO_ACT_POST_PROCESS": _fixed,
}


def __getattr__(name: str) -> Any:
    """The tables, made at their first use: they contain classes of torch.ao.nn, which imports this package."""
    if name not in _TABLES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _TABLES[name]()


def no_observer_set() -> set[Any]:
    """Classes that observe their own values."""
    return {ao.quantizable.LSTM, ao.quantizable.MultiheadAttention}


def get_default_static_quant_module_mappings() -> dict[Callable, Any]:
    """Quantized classes by the classes of float modules."""
    return copy.copy(_static())


def get_default_static_quant_reference_module_mappings() -> dict[Callable, Any]:
    """Reference classes, which compute with dequantized weights, by the classes of float modules."""
    return copy.copy(_reference())


def get_embedding_static_quant_module_mappings() -> dict[Callable, Any]:
    """Quantized classes, also of embeddings that were trained with rounded weights."""
    return {**_static(), **_same_names(ao.qat, ao.quantized, _EMBEDDINGS)}


def get_default_qat_module_mappings() -> dict[Callable, Any]:
    """Classes for quantization-aware training by the classes of float modules."""
    return copy.copy(_qat())


def get_embedding_qat_module_mappings() -> dict[Callable, Any]:
    """Classes for quantization-aware training, also of embeddings."""
    return {**_qat(), **_same_names(nn, ao.qat, _EMBEDDINGS)}


def get_default_dynamic_quant_module_mappings() -> dict[Callable, Any]:
    """Dynamically quantized classes by the classes of float modules."""
    return _dynamic()


def get_default_static_sparse_quant_module_mappings() -> dict[Callable, Any]:
    """Quantized classes for weights with blocks of zeros by the classes of float modules."""
    return dict(_static_sparse())


def get_default_dynamic_sparse_quant_module_mappings() -> dict[Callable, Any]:
    """Dynamically quantized classes for weights with blocks of zeros by the classes of float modules."""
    return dict(_dynamic_sparse())


def _class_of(float_module_class: Callable, table: dict, additional: dict | None) -> Any:
    found = get_combined_dict(table, additional or {}).get(float_module_class)
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding quantized module class"
        )
    return found


def get_static_quant_module_class(
    float_module_class: Callable, additional_static_quant_mapping: dict | None = None, is_reference: bool = False
) -> Any:
    """The quantized class of a float class. Raises AssertionError if there is none."""
    return _class_of(float_module_class, _reference() if is_reference else _static(), additional_static_quant_mapping)


def get_dynamic_quant_module_class(float_module_class: Callable, additional_dynamic_quant_mapping: dict | None = None) -> Any:
    """The dynamically quantized class of a float class. Raises AssertionError if there is none."""
    return _class_of(float_module_class, _dynamic(), additional_dynamic_quant_mapping)


def get_default_qconfig_propagation_list() -> set[Callable]:
    """The classes whose activations are observed."""
    return {*_static(), *_qat(), *_dynamic(), nn.Sequential}


def get_default_compare_output_module_list() -> set[Callable]:
    """The classes whose results the numeric suite compares."""
    tables = (_static(), _qat(), _dynamic())
    return {nn.Sequential}.union(*tables, *(table.values() for table in tables))


def get_default_float_to_quantized_operator_mappings() -> dict[Any, Callable]:
    """Quantized operators by float functions."""
    return copy.copy(_operators())


def get_quantized_operator(float_op: Any) -> Callable:
    """The quantized operator of a float function. Raises AssertionError if there is none."""
    found = _operators().get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def _get_special_act_post_process(module: nn.Module) -> Callable | None:
    """The fake quantization of a module whose results have a known range."""
    return _fixed().get(type_before_parametrizations(module))


def _has_special_act_post_process(module: nn.Module) -> bool:
    """Whether a module in training has results of a known range."""
    return module.training and type(module) in _fixed()
