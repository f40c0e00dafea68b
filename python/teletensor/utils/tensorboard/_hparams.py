"""Summaries of hyperparameters."""

from __future__ import annotations

from typing import Any

from google.protobuf import struct_pb2

from ... import _C
from ._arrays import make_np
from ._tensorboard import (
    DataType,
    Experiment,
    HParamInfo,
    HParamsPluginData,
    MetricInfo,
    MetricName,
    SessionEndInfo,
    SessionStartInfo,
    Status,
    Summary,
    SummaryMetadata,
)
from ._tensorboard import hparams_metadata as metadata

# By Python type: the field of struct_pb2.Value and the plug-in's type. As in PyTorch, True is the number 1.
_KINDS = {(int, float): ("number_value", "DATA_TYPE_FLOAT64"), (str,): ("string_value", "DATA_TYPE_STRING")}


def _kind(name: str, value: Any) -> tuple[str, str]:
    for types, kind in _KINDS.items():
        if isinstance(value, types):
            return kind
    raise ValueError(f"value should be one of int, float, str, bool, or torch.Tensor; {name} is {type(value).__name__}")


def _summary(tag: str, **content) -> Summary:
    data = HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content).SerializeToString()
    plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=data)
    return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))])


def hparams(hparam_dict: dict, metric_dict: dict, hparam_domain_discrete: dict | None) -> tuple[Summary, Summary, Summary]:
    """Returns the summaries of the experiment, of the run's start and of its end.

    Raises:
        TypeError: an argument is not a dict, or a domain is not a list of values of the parameter's type.
        ValueError: a parameter has another type than int, float, str, bool or Tensor.
    """
    domains = hparam_domain_discrete or {}
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict), ("hparam_domain_discrete", domains)):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    for name, domain in domains.items():
        known = name in hparam_dict and isinstance(domain, list)
        if not known or not all(isinstance(value, type(hparam_dict[name])) for value in domain):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
            )
    start, infos = SessionStartInfo(), []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        if isinstance(value, _C.Tensor):
            value = make_np(value).item()
        field, kind = _kind(name, value)
        setattr(start.hparams[name], field, value)
        domain = None
        if name in domains:
            domain = struct_pb2.ListValue(values=[struct_pb2.Value(**{field: choice}) for choice in domains[name]])
        infos.append(HParamInfo(name=name, type=DataType.Value(kind), domain_discrete=domain))
    metrics = [MetricInfo(name=MetricName(tag=name)) for name in metric_dict]
    end = SessionEndInfo(status=Status.Value("STATUS_SUCCESS"))
    return (
        _summary(metadata.EXPERIMENT_TAG, experiment=Experiment(hparam_infos=infos, metric_infos=metrics)),
        _summary(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        _summary(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )
