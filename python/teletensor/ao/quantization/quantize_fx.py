"""Graph mode: models are traced by torch.fx, observed and converted without changes to their code."""

from __future__ import annotations

from typing import Any

from ... import fx, nn
from .backend_config import BackendConfig, get_native_backend_config
from .fx._convert import convert as _converted
from .fx._fuse import fuse as _fuse_graph
from .fx._prepare import prepare as _prepare_graph
from .fx.custom_config import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig
from .fx.tracer import QuantizationTracer, traced  # noqa: F401 - PyTorch has QuantizationTracer here too
from .qconfig_mapping import QConfigMapping


def _as(kind: Any, value: Any) -> Any:
    """A settings object, also of its dict or of None."""
    if value is None:
        return kind()
    return kind.from_dict(value) if isinstance(value, dict) else value


def _backend(value: Any) -> BackendConfig:
    return get_native_backend_config() if value is None else _as(BackendConfig, value)


def fuse_fx(model: nn.Module, fuse_custom_config: Any = None, backend_config: Any = None) -> fx.GraphModule:
    """The model as a graph with fused modules. The model must be in evaluation mode; its modules are shared.

    Args:
        model: a module that torch.fx can trace.
        fuse_custom_config: FuseCustomConfig.
        backend_config: the patterns to fuse, by default get_native_backend_config().
    """
    custom = _as(FuseCustomConfig, fuse_custom_config)
    made, _ = traced(model, [], [])
    _fuse_graph(made, False, _backend(backend_config))
    for name in custom.preserved_attributes:
        setattr(made, name, getattr(model, name))
    return made


def _prepare(model: nn.Module, mapping: Any, is_qat: bool, inputs: Any, custom: Any, backend: Any) -> fx.GraphModule:
    if not isinstance(inputs, (tuple, list)):
        raise TypeError(f"[prepare_fx] expected a tuple of example_inputs, got {type(inputs).__name__}")
    return _prepare_graph(
        model, _as(QConfigMapping, mapping), is_qat, tuple(inputs), _as(PrepareCustomConfig, custom), _backend(backend)
    )


def prepare_fx(
    model: nn.Module, qconfig_mapping: Any, example_inputs: tuple, prepare_custom_config: Any = None, _equalization_config: Any = None,
    backend_config: Any = None,
) -> fx.GraphModule:  # fmt: skip
    """The model as a graph with observers, for post-training quantization.

    Args:
        model: a module in evaluation mode that torch.fx can trace. Its modules are shared with the result.
        qconfig_mapping: QConfigMapping, or its dict.
        example_inputs: the model's arguments; the model is called with them once to find out which values are float tensors.
        prepare_custom_config: PrepareCustomConfig, or its dict.
        backend_config: which operators are quantized, by default get_native_backend_config().
    """
    if _equalization_config is not None:
        raise NotImplementedError("[prepare_fx] expected _equalization_config=None: weights are not equalized")
    if model.training:
        raise AssertionError("[prepare_fx] expected a model in evaluation mode, got one in training mode: call model.eval()")
    return _prepare(model, qconfig_mapping, False, example_inputs, prepare_custom_config, backend_config)


def prepare_qat_fx(
    model: nn.Module, qconfig_mapping: Any, example_inputs: tuple, prepare_custom_config: Any = None, backend_config: Any = None
) -> fx.GraphModule:
    """The model as a graph with fake quantizations, for quantization-aware training. Arguments as of prepare_fx."""
    if not model.training:
        raise AssertionError("[prepare_qat_fx] expected a model in training mode")
    return _prepare(model, qconfig_mapping, True, example_inputs, prepare_custom_config, backend_config)


def _convert(graph_module: fx.GraphModule, is_reference: bool, custom: Any, qconfig_mapping: Any, backend_config: Any) -> fx.GraphModule:
    if qconfig_mapping is not None:
        raise NotImplementedError("[convert_fx] expected qconfig_mapping=None: the mapping of prepare_fx is used")
    if backend_config is not None:
        raise NotImplementedError("[convert_fx] expected backend_config=None: the backend_config of prepare_fx is used")
    made = _converted(graph_module, is_reference)
    for name in _as(ConvertCustomConfig, custom).preserved_attributes:
        setattr(made, name, getattr(graph_module, name))
    return made


def convert_fx(
    graph_module: fx.GraphModule, convert_custom_config: Any = None, _remove_qconfig: bool = True, qconfig_mapping: Any = None,
    backend_config: Any = None, keep_original_weights: bool = False,
) -> fx.GraphModule:  # fmt: skip
    """A copy of a prepared graph that computes with integers. Operators that were not observed compute with floats.

    Args:
        graph_module: the result of prepare_fx or prepare_qat_fx, after it has observed values.
        convert_custom_config: ConvertCustomConfig, or its dict.
    """
    if not _remove_qconfig or keep_original_weights:
        raise NotImplementedError("[convert_fx] expected _remove_qconfig=True and keep_original_weights=False")
    return _convert(graph_module, False, convert_custom_config, qconfig_mapping, backend_config)


def convert_to_reference_fx(
    graph_module: fx.GraphModule, convert_custom_config: Any = None, _remove_qconfig: bool = True, qconfig_mapping: Any = None,
    backend_config: Any = None,
) -> fx.GraphModule:  # fmt: skip
    """A copy of a prepared graph that quantizes and dequantizes values, and computes with floats between."""
    if not _remove_qconfig:
        raise NotImplementedError("[convert_to_reference_fx] expected _remove_qconfig=True")
    return _convert(graph_module, True, convert_custom_config, qconfig_mapping, backend_config)
