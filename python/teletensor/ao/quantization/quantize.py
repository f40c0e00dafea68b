"""Eager mode: configurations are given to modules, observers added, and modules replaced by quantized ones."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from ... import _C, nn
from ... import _quantized_names as q
from ...nn import Module
from ...nn.utils.parametrize import type_before_parametrizations
from .. import nn as ao
from ..nn import _steps
from ..nn.intrinsic.fused import _FusedModule
from . import qconfig as c
from ._post_process import _is_activation_post_process
from ._stubs import DeQuantStub, add_quant_dequant  # noqa: F401 - PyTorch has add_quant_dequant here too
from .quantization_mappings import (
    _get_special_act_post_process,
    _has_special_act_post_process,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    no_observer_set,
)
from .utils import get_qparam_dict, has_no_children_ignoring_parametrizations

__all__ = [
    "add_quant_dequant", "convert", "get_default_custom_config_dict", "prepare", "prepare_qat", "propagate_qconfig_",
    "quantize", "quantize_dynamic", "quantize_qat", "swap_module",
]  # fmt: skip

is_activation_post_process = _is_activation_post_process


def get_default_custom_config_dict() -> dict[str, dict]:
    """The classes that observe their own values, by the classes they replace, and the quantized classes that replace them."""
    observed = {nn.LSTM: ao.quantizable.LSTM, nn.MultiheadAttention: ao.quantizable.MultiheadAttention}
    quantized = {
        ao.quantizable.LSTM: ao.quantized.LSTM, ao.quantizable.MultiheadAttention: ao.quantized.MultiheadAttention,
    }  # fmt: skip
    return {"float_to_observed_custom_module_class": observed, "observed_to_quantized_custom_module_class": quantized}


def _propagate(module: Module, by_name: dict, parent: Any, prefix: str, custom: dict) -> None:
    qconfig = by_name.get(prefix, by_name.get(type_before_parametrizations(module), parent))
    qconfig = getattr(module, "qconfig", qconfig)
    c._assert_valid_qconfig(qconfig, module)
    module.qconfig = qconfig = c._add_module_to_qconfig_obs_ctr(qconfig, module)
    for name, child in module.named_children():
        # PyTorch applies the exceptions to the children of the model only.
        if name in custom.get("non_traceable_module_name", []) or type(child) in custom.get("non_traceable_module_class", []):
            continue
        _propagate(child, by_name, qconfig, f"{prefix}.{name}" if prefix else name, {})


def propagate_qconfig_(module: Module, qconfig_dict: dict | None = None, prepare_custom_config_dict: dict | None = None) -> None:
    """Sets ``qconfig`` of a model and the modules in it, in place.

    Args:
        module: its own ``qconfig`` and those of modules in it have precedence.
        qconfig_dict: configurations by the names or classes of modules; modules in a module inherit its configuration.
        prepare_custom_config_dict: ``non_traceable_module_name`` and ``non_traceable_module_class``: exceptions.
    """
    _propagate(module, qconfig_dict or {}, None, "", prepare_custom_config_dict or {})


def _observer_forward_hook(self: Module, input: Any, output: Any) -> Any:
    del input
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: Module, input: Any) -> Any:
    return self.activation_post_process(input[0])


def _devices(module: Module) -> set:
    tensors = (*module.parameters(), *module.buffers())
    return {t.device for t in tensors if t.device.type != "meta"}


def _one_device(module: Module, function: str) -> Any:
    devices = _devices(module)
    if len(devices) > 1:
        raise AssertionError(f"{function} only works with cpu or single-device CUDA modules, but got devices {devices}")
    return next(iter(devices), None)


def _configured(module: Module) -> bool:
    return getattr(module, "qconfig", None) is not None


def _activation(qconfig: Any, device: Any, constructor: Callable | None = None) -> Module:
    made = (constructor or qconfig.activation)()
    return made if device is None else made.to(device)


def _insert_observer(module: Module, device: Any, constructor: Callable | None = None) -> None:
    """Adds an observer of a configured module's results; of its inputs, if the observer forgets earlier tensors."""
    if not _configured(module) or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", _activation(module.qconfig, device, constructor))
    if c._activation_is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _observe_child(parent: Module, name: str, child: Module, device: Any, non_leaf: Any, custom: dict, observed: set) -> None:
    kind = type_before_parametrizations(child)
    if kind is nn.Dropout:
        return
    if issubclass(kind, (ao.quantized.FloatFunctional, ao.quantized.QFunctional)):
        if _configured(child):
            child.activation_post_process = _activation(child.qconfig, device)
    elif isinstance(child, _FusedModule) or (non_leaf is not None and kind in non_leaf):
        _insert_observer(child, device)
    elif _has_special_act_post_process(child):
        _insert_observer(child, device, _get_special_act_post_process(child))
    elif _configured(child) and kind in custom:
        made = custom[kind].from_float(child)
        setattr(parent, name, made)
        if not issubclass(custom[kind], tuple(no_observer_set())):
            _insert_observer(made, device)
    else:
        _add_observer_(child, observed, non_leaf, device, custom)


def _add_observer_(
    module: Module, qconfig_propagation_list: set | None = None, non_leaf_module_list: set | None = None, device: Any = None,
    custom_module_class_mapping: dict | None = None,
) -> None:  # fmt: skip
    """Adds observers to the configured modules in a module, in place."""
    observed = get_default_qconfig_propagation_list() if qconfig_propagation_list is None else qconfig_propagation_list
    device = _one_device(module, "_add_observer_") if device is None else device
    for name, child in list(module.named_children()):
        _observe_child(module, name, child, device, non_leaf_module_list, custom_module_class_mapping or {}, observed)
    if isinstance(module, nn.Sequential) or type_before_parametrizations(module) not in observed:
        return
    if has_no_children_ignoring_parametrizations(module) or hasattr(module, "weight_fake_quant"):
        _insert_observer(module, device)


def prepare(
    model: Module, inplace: bool = False, allow_list: Any = None, observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: dict | None = None,
) -> Module:  # fmt: skip
    """Adds observers to the modules that have a ``qconfig`` or inherit one.

    Args:
        model: a module, in evaluation mode for post-training quantization.
        inplace: changes the model; by default a copy.
        allow_list: the classes of modules to observe, by default those that have a quantized class.
        observer_non_leaf_module_list: classes of modules to observe although they contain modules.
        prepare_custom_config_dict: ``float_to_observed_custom_module_class``: as get_default_custom_config_dict returns it.
    """
    custom = get_default_custom_config_dict() if prepare_custom_config_dict is None else prepare_custom_config_dict
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through `qconfig_dict` or by assigning "
            "the `.qconfig` attribute directly on submodules",
            stacklevel=2,
        )
    _add_observer_(
        model, allow_list, observer_non_leaf_module_list,
        custom_module_class_mapping=custom.get("float_to_observed_custom_module_class", {}),
    )  # fmt: skip
    return model


def _remove_activation_post_process(module: Module) -> None:
    if _is_activation_post_process(getattr(module, "activation_post_process", None)):
        del module.activation_post_process
    for hooks, ours in (
        (module._forward_pre_hooks, _observer_forward_pre_hook), (module._forward_hooks, _observer_forward_hook),
    ):  # fmt: skip
        for key in [key for key, hook in hooks.items() if hook is ours]:
            hooks.pop(key)


def _remove_qconfig(module: Module) -> None:
    """Removes configurations and observers, in place."""
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    _remove_activation_post_process(module)


def quantize(model: Module, run_fn: Callable, run_args: Any, mapping: dict | None = None, inplace: bool = False) -> Module:
    """Post-training quantization: prepares the model, calls ``run_fn(model, *run_args)`` to observe values, and converts it."""
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


_RECURRENT = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)


def _dynamic_defaults(dtype: Any) -> dict:
    if dtype == q.qint8:
        return dict.fromkeys(_RECURRENT, c.default_dynamic_qconfig)
    if dtype == _C.float16:
        return dict.fromkeys(_RECURRENT, c.float16_dynamic_qconfig)
    if dtype == q.quint8:
        return dict.fromkeys((nn.EmbeddingBag, nn.Embedding), c.float_qparams_weight_only_qconfig)
    if dtype == q.quint4x2:
        return {nn.EmbeddingBag: c.float_qparams_weight_only_qconfig_4bit}
    raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")


def quantize_dynamic(
    model: Module, qconfig_spec: Any = None, dtype: Any = q.qint8, mapping: dict | None = None, inplace: bool = False
) -> Module:
    """Replaces modules by ones with quantized weights, whose activations are quantized with the range of each tensor.

    Args:
        model: a float model.
        qconfig_spec: configurations by names or classes of modules, or a set of names and classes; by default linear and recurrent
            modules (for quint8 and quint4x2 embeddings).
        dtype: of the weights, if ``qconfig_spec`` has no configurations.
        mapping: the quantized classes by float classes.
        inplace: changes the model; by default a copy.
    """
    if qconfig_spec is None:
        qconfig_spec = _dynamic_defaults(dtype)
    elif isinstance(qconfig_spec, set):
        defaults = {
            q.qint8: c.default_dynamic_qconfig, _C.float16: c.float16_dynamic_qconfig, q.quint8: c.float_qparams_weight_only_qconfig,
            q.quint4x2: c.float_qparams_weight_only_qconfig_4bit,
        }  # fmt: skip
        if dtype not in defaults:
            raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
        qconfig_spec = dict.fromkeys(qconfig_spec, defaults[dtype])
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, get_default_dynamic_quant_module_mappings() if mapping is None else mapping, inplace=True)


def prepare_qat(model: Module, mapping: dict | None = None, inplace: bool = False) -> Module:
    """Replaces modules by ones that round their weights, and adds fake quantizations of activations. The model must be training."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping, inplace=True, remove_qconfig=False)
    return prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)


def quantize_qat(model: Module, run_fn: Callable, run_args: Any, inplace: bool = False) -> Module:
    """Quantization-aware training: prepares the model, calls ``run_fn(model, *run_args)`` to train it, and converts it."""
    if not inplace:
        model = copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def convert(
    module: Module, mapping: dict | None = None, inplace: bool = False, remove_qconfig: bool = True, is_reference: bool = False,
    convert_custom_config_dict: dict | None = None, use_precomputed_fake_quant: bool = False,
) -> Module:  # fmt: skip
    """Replaces the modules in a module by quantized ones, with the scales that their observers found.

    Args:
        module: a model that was prepared and has observed values.
        mapping: the quantized classes by float classes.
        inplace: changes the model; by default a copy.
        remove_qconfig: removes configurations and observers.
        is_reference: uses modules that compute with dequantized weights.
        convert_custom_config_dict: ``observed_to_quantized_custom_module_class``.
        use_precomputed_fake_quant: uses the scales of weights as they are, without observing the weights again.
    """
    if not inplace:
        module = copy.deepcopy(module)
    if mapping is None:
        references = get_default_static_quant_reference_module_mappings
        mapping = references() if is_reference else get_default_static_quant_module_mappings()
    custom = get_default_custom_config_dict() if convert_custom_config_dict is None else convert_custom_config_dict
    _convert(module, mapping, custom.get("observed_to_quantized_custom_module_class", {}), use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(module: Module, mapping: dict, custom: dict, precomputed: bool) -> None:
    made = {}
    for name, child in module.named_children():
        if not isinstance(child, _FusedModule) and type_before_parametrizations(child) not in custom:
            _convert(child, mapping, custom, precomputed)
        made[name] = swap_module(child, mapping, custom, precomputed)
    module._modules.update(made)


def _quantized(mod: Module, kind: Any, precomputed: bool) -> Module:
    """The module of a quantized class for a float module."""
    if getattr(kind, "_IS_REFERENCE", False):
        observer = mod.qconfig.weight()
        observer(mod.weight)
        return kind.from_float(mod, get_qparam_dict(observer))
    if "use_precomputed_fake_quant" in inspect.signature(kind.from_float).parameters:
        return kind.from_float(mod, use_precomputed_fake_quant=precomputed)
    return kind.from_float(mod)


def swap_module(mod: Module, mapping: dict, custom_module_class_mapping: dict, use_precomputed_fake_quant: bool = False) -> Module:
    """The quantized module of a configured module, with its hooks and on its device; else the module itself."""
    kind = type_before_parametrizations(mod)
    if not _configured(mod) or (kind not in custom_module_class_mapping and kind not in mapping):
        return mod
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    else:
        made = _quantized(mod, mapping[kind], use_precomputed_fake_quant)
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            made.register_forward_hook(hook)
    device = _one_device(mod, "swap_module")
    return made if device is None else made.to(device)


def _get_observer_dict(mod: Module, target_dict: dict, prefix: str = "") -> None:
    """Adds the observers in a model to a dict, by their names."""
    start = prefix + "." if prefix else ""
    if hasattr(mod, "activation_post_process"):
        target_dict[start + "activation_post_process"] = mod.activation_post_process
    for name, child in mod.named_children():
        _get_observer_dict(child, target_dict, start + name)


_steps.prepare, _steps.prepare_qat, _steps.convert = prepare, prepare_qat, convert
