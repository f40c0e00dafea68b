"""ONNX's backend interface: runs models with teletensor in ONNX's own backend tests, and in other programs that use it."""

from __future__ import annotations

from typing import Any

import numpy as np

import teletensor as torch

from . import _types, _values
from ._model import OnnxModel, load
from ._package import onnx

onnx()
from onnx.backend.base import Backend, BackendRep, namedtupledict  # noqa: E402 - onnx() explains what is missing


class PreparedModel(BackendRep):
    """A model that can be run several times."""

    def __init__(self, model: OnnxModel) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple:
        """The outputs as NumPy arrays (lists of them for sequences) of the declared types.

        Args:
            inputs: the inputs in order, or by name.

        Raises:
            TypeError: there are options; none exist.
        """
        if kwargs:
            raise TypeError(f"[run] expected no options, got {', '.join(kwargs)}")
        given = inputs if isinstance(inputs, dict) else dict(zip(self.model.input_names, _listed(inputs)))
        with torch.no_grad():
            found = self.model.execute(given)
        names = self.model.output_names
        declared = [self.model.outputs[n][0] for n in names]
        return namedtupledict("Outputs", names)(*(_values.output(v, d) for v, d in zip(found, declared)))


def _listed(inputs: Any) -> list:
    return list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]


class TeletensorBackend(Backend):
    """ONNX's Backend: prepare() gives a model to run, run_model() and run_node() run once."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model's operators are implemented and the device exists."""
        try:
            cls.prepare(model, device, **kwargs)
        except (NotImplementedError, ValueError):
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Loads a model (ModelProto, bytes or path) on a device: "CPU", "CUDA" or "CUDA:1"."""
        if kwargs:
            raise TypeError(f"[prepare] expected no options, got {', '.join(kwargs)}")
        if not cls.supports_device(device):
            raise ValueError(f"[prepare] expected a device that the engine has, got {device!r}")
        return PreparedModel(load(model, device=device.lower()))

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any) -> tuple:
        """The outputs of one node. outputs_info is accepted as the interface requires; results have the sizes that the node gives."""
        del outputs_info
        package = onnx()
        version = kwargs.pop("opset_version", package.defs.onnx_opset_version())
        arrays = [np.asarray(v) for v in _listed(inputs)]
        names = [n for n in node.input if n]
        infos = [
            package.helper.make_tensor_value_info(n, _types.type_of_array(a), a.shape) for n, a in zip(names, arrays)
        ]
        results = [package.helper.make_empty_tensor_value_info(n) for n in node.output if n]
        graph = package.helper.make_graph([node], "node", infos, results)
        model = package.helper.make_model(graph, opset_imports=[package.helper.make_opsetid(node.domain, version)])
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the engine has a device such as "CPU" or "CUDA:0"."""
        kind, _, index = device.partition(":")
        if kind == "CPU":
            return index in ("", "0")
        return kind == "CUDA" and torch.cuda.is_available() and (not index or int(index) < torch.cuda.device_count())


prepare, run_model, run_node = TeletensorBackend.prepare, TeletensorBackend.run_model, TeletensorBackend.run_node
supports_device, is_compatible = TeletensorBackend.supports_device, TeletensorBackend.is_compatible
