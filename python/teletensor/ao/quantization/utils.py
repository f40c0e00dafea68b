"""torch.ao.quantization.utils: questions about configurations and modules."""

from __future__ import annotations

import functools
from inspect import Parameter, signature
from typing import Any

from ... import _C
from ... import _quantized_names as q
from ...nn import Module
from ...nn.utils.parametrize import is_parametrized
from ._observers import PlaceholderObserver
from ._patterns import MatchAllNode, NodePattern, Pattern, get_combined_dict  # noqa: F401 - names of this module
from ._ranges import (  # noqa: F401 - names of this module
    calculate_qmin_qmax,
    check_min_max_valid,
    determine_qparams,
    is_per_channel,
    is_per_tensor,
    to_underlying_dtype,
    validate_qmin_qmax,
)
from ._types import QuantType

__all__ = [
    "DEPRECATION_WARNING", "MatchAllNode", "NodePattern", "Pattern", "activation_dtype",
    "activation_is_dynamically_quantized", "activation_is_int32_quantized", "activation_is_int8_quantized",
    "activation_is_statically_quantized", "calculate_qmin_qmax", "check_min_max_valid", "determine_qparams",
    "get_combined_dict", "get_fqn_to_example_inputs", "get_qconfig_dtypes", "get_qparam_dict", "get_quant_type",
    "get_swapped_custom_module_class", "getattr_from_fqn", "has_no_children_ignoring_parametrizations", "is_per_channel",
    "is_per_tensor", "op_is_int8_dynamically_quantized", "to_underlying_dtype", "validate_qmin_qmax", "weight_dtype",
    "weight_is_quantized", "weight_is_statically_quantized",
]  # fmt: skip

DEPRECATION_WARNING = "PyTorch deprecates torch.ao.quantization; its successor is torchao. teletensor keeps both."
_BYTES = (q.quint8, q.qint8, _C.uint8, _C.int8)
_INTEGERS = (*_BYTES, q.qint32, _C.int16, _C.int32, _C.float8_e5m2, _C.float8_e4m3fn)


def getattr_from_fqn(obj: Any, fqn: str) -> Any:
    """An attribute by its path, such as "layer.weight"."""
    return functools.reduce(getattr, fqn.split("."), obj)


def get_qparam_dict(observer_or_fake_quant: Any) -> dict[str, Any]:
    """The scheme, dtype, scale and zero point (and axis, quant_min, quant_max) that an observer found."""
    observer = observer_or_fake_quant
    qscheme, dtype = getattr(observer, "qscheme", None), observer.dtype
    if not qscheme or isinstance(observer, PlaceholderObserver):
        return {"qscheme": None, "dtype": dtype}
    if not is_per_tensor(qscheme) and not is_per_channel(qscheme):
        raise RuntimeError(f"Unrecognized qscheme: {qscheme}")
    affine = {q.per_tensor_symmetric: q.per_tensor_affine, q.per_channel_symmetric: q.per_channel_affine}
    found = {"qscheme": affine.get(qscheme, qscheme), "dtype": dtype}
    if is_per_channel(qscheme):
        found["axis"] = observer.ch_axis
    found["scale"], found["zero_point"] = observer.calculate_qparams()
    return found | {name: getattr(observer, name) for name in ("quant_min", "quant_max") if hasattr(observer, name)}


def _required(qconfig: Any, what: str) -> Any:
    if qconfig is None:
        raise AssertionError(f"qconfig must be provided to determine {what}")
    return qconfig


def activation_dtype(qconfig: Any) -> Any:
    """The dtype of activations."""
    return _required(qconfig, "activation dtype").activation().dtype


def weight_dtype(qconfig: Any) -> Any:
    """The dtype of weights."""
    return _required(qconfig, "weight dtype").weight().dtype


def get_qconfig_dtypes(qconfig: Any) -> tuple[Any, Any, bool]:
    """The dtypes of activations and weights, and whether activations are quantized dynamically."""
    activation, weight = _required(qconfig, "dtypes").activation(), qconfig.weight()
    return activation.dtype, weight.dtype, getattr(activation, "is_dynamic", False)


def activation_is_dynamically_quantized(qconfig: Any) -> bool:
    """Whether activations are quantized with the range of each tensor."""
    return get_qconfig_dtypes(qconfig)[2]


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Whether activations are quantized with a range that was observed."""
    return activation_dtype(qconfig) in (*_INTEGERS, _C.float16) and not activation_is_dynamically_quantized(qconfig)


def activation_is_int8_quantized(qconfig: Any) -> bool:
    """Whether activations are stored as bytes."""
    return activation_dtype(qconfig) in _BYTES


def activation_is_int32_quantized(qconfig: Any) -> bool:
    """Whether activations are stored as 32-bit integers."""
    return activation_dtype(qconfig) in (q.qint32, _C.int32)


def weight_is_quantized(qconfig: Any) -> bool:
    """Whether weights are stored in fewer bits than float32."""
    return weight_dtype(qconfig) in (*_BYTES, _C.float16, q.quint4x2, _C.int16, _C.int32, _C.float8_e5m2, _C.float8_e4m3fn)


def weight_is_statically_quantized(qconfig: Any) -> bool:
    """Whether weights are stored as bytes."""
    return weight_dtype(qconfig) in _BYTES


def op_is_int8_dynamically_quantized(qconfig: Any) -> bool:
    """Whether weights are stored as bytes and activations quantized with the range of each tensor."""
    activation, weight, dynamic = get_qconfig_dtypes(qconfig)
    return activation in (q.quint8, _C.uint8) and weight in (q.qint8, _C.int8) and dynamic


def get_quant_type(qconfig: Any) -> QuantType:
    """The kind of quantization of a configuration. Raises an Exception for dtypes of none."""
    activation, weight = _required(qconfig, "quant type").activation(), qconfig.weight()
    dynamic, static = getattr(activation, "is_dynamic", False), (*_INTEGERS, q.quint4x2)
    if weight.dtype in static:
        if dynamic:
            return QuantType.DYNAMIC
        return QuantType.STATIC if activation.dtype in static else QuantType.WEIGHT_ONLY
    if weight.dtype == _C.float16 and dynamic:
        return QuantType.DYNAMIC
    if weight.dtype == _C.float16 and activation.dtype == _C.float16:
        return QuantType.STATIC
    raise Exception(  # noqa: TRY002 - PyTorch's type
        f"Unrecognized dtype combination in get_quant_type: activation({activation.dtype}),weight({weight.dtype})"
    )


def get_swapped_custom_module_class(custom_module: Module, custom_module_class_mapping: dict, qconfig: Any) -> type:
    """The observed class of a custom module, by the kind of quantization."""
    classes = custom_module_class_mapping.get(get_quant_type(qconfig), {})
    if type(custom_module) not in classes:
        raise AssertionError(f"did not find corresponding observed module class for {type(custom_module)} in mapping: {classes}")
    return classes[type(custom_module)]


def has_no_children_ignoring_parametrizations(module: Module) -> bool:
    """Whether a module contains no modules but those of parametrizations."""
    names = list(module._modules)
    return not names or (is_parametrized(module) and names == ["parametrizations"])


def get_fqn_to_example_inputs(model: Module, example_inputs: tuple) -> dict[str, tuple]:
    """The arguments of each module in a model when the model is called, by the modules' names."""
    found, handles = {}, []

    def recorder(name: str, module: Module) -> Any:
        def record(_: Module, args: tuple, kwargs: dict) -> None:
            parameters = [p for p in signature(module.forward).parameters.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
            missing = [p for p in parameters[len(args) :] if p.name in kwargs or p.default is not Parameter.empty]
            found[name] = (*args, *(kwargs.get(p.name, p.default) for p in missing))

        return record

    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(recorder(name, module), with_kwargs=True))
    try:
        model(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found
