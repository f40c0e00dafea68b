"""ModelProto of a converted graph, through the package `onnx`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._version import __version__
from ._builder import Builder, NodeRecord, Value
from ._builder import Graph as InnerGraph
from ._dtypes import elem_type, tensor_bytes
from .errors import OnnxExporterError

_LEAST_IR = 10  # the first version in which nodes have metadata


def onnx() -> Any:
    """The package `onnx`.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import onnx as package
    except ImportError as e:
        raise ImportError("[onnx] this needs the package onnx, which has ONNX's file format: pip install onnx") from e
    return package


def _type_name(dtype: Any) -> Any:
    return elem_type(dtype)


class Serializer:
    """Writes graphs as messages; `names` has other names for values."""

    def __init__(self, names: dict[str, str]) -> None:
        self.onnx, self.names = onnx(), names

    def name(self, name: str) -> str:
        """The final name of a value."""
        return self.names.get(name, name)

    def node(self, record: NodeRecord, index: int) -> Any:
        """A NodeProto."""
        made = self.onnx.NodeProto(op_type=record.op_type, domain=record.domain, name=f"node_{record.op_type}_{index}")
        made.input.extend(self.name(n) for n in record.inputs)
        made.output.extend(self.name(n) for n in record.outputs)
        for key, value in record.attributes.items():
            made.attribute.append(self.attribute(key, value))
        for key, text in record.metadata.items():
            made.metadata_props.add(key=key, value=text)
        return made

    def attribute(self, key: str, value: Any) -> Any:
        """An AttributeProto."""
        if isinstance(value, InnerGraph):
            return self.onnx.AttributeProto(name=key, type=self.onnx.AttributeProto.GRAPH, g=self.inner(value))
        if isinstance(value, bool):
            value = int(value)
        if type(value).__name__ == "dtype":
            value = elem_type(value)
        if isinstance(value, np.ndarray):
            value = self.onnx.numpy_helper.from_array(value)
        if isinstance(value, (list, tuple)) and not value:
            return self.onnx.AttributeProto(name=key, type=self.onnx.AttributeProto.INTS)
        return self.onnx.helper.make_attribute(key, list(value) if isinstance(value, (tuple, list)) else value)

    def value_info(self, value: Value) -> Any:
        """A ValueInfoProto with the sizes, names of dynamic ones included."""
        info = self.onnx.ValueInfoProto(name=self.name(value.name))
        info.type.tensor_type.elem_type = elem_type(value.dtype)
        if value.shape is not None:
            shape = info.type.tensor_type.shape
            shape.SetInParent()
            for n in value.shape:
                dim = shape.dim.add()
                if type(n) is int:
                    dim.dim_value = n
                elif n is not None:
                    dim.dim_param = self.names.get(f"dim {n}", n)
        return info

    def inner(self, graph: InnerGraph) -> Any:
        """A GraphProto within a node."""
        made = self.onnx.GraphProto(name=graph.name)
        made.node.extend(self.node(r, i) for i, r in enumerate(graph.builder.nodes))
        made.input.extend(self.value_info(_unsized(v)) for v in graph.inputs)
        made.output.extend(self.value_info(_unsized(v)) for v in graph.outputs)
        return made

    def constant(self, name: str, array: np.ndarray) -> Any:
        """A TensorProto of an array."""
        return self.onnx.numpy_helper.from_array(array, self.name(name))


def _unsized(value: Value) -> Value:
    """Sizes of values within loops may change: only constant ones are written."""
    shape = None if value.shape is None else tuple(n if type(n) is int else None for n in value.shape)
    return Value(value.builder, value.name, value.dtype, shape)


def model_proto(
    builder: Builder, inputs: list[Value], outputs: list[Value], names: dict[str, str], infos: list[Value], graph_name: str = "main_graph",
) -> Any:  # fmt: skip
    """The model without the weights, which add_weights() adds.

    Args:
        infos: further values whose dtypes and sizes are written.
    """
    writer = Serializer(names)
    package = writer.onnx
    model = package.ModelProto(producer_name="teletensor", producer_version=__version__)
    domains = dict(builder.shared.domains)
    imports = [package.helper.make_opsetid(d, v) for d, v in domains.items()]
    model.opset_import.extend(imports)
    try:
        least = package.helper.find_min_ir_version_for(imports, ignore_unknown=True)
    except (ValueError, TypeError) as e:
        raise OnnxExporterError(
            f"[onnx.export] the installed onnx {package.__version__} has no opset {builder.opset}: {e}"
        ) from e
    model.ir_version = max(_LEAST_IR, least)
    graph = model.graph
    graph.name = graph_name
    graph.input.extend(writer.value_info(v) for v in inputs)
    graph.output.extend(writer.value_info(v) for v in outputs)
    graph.node.extend(writer.node(r, i) for i, r in enumerate(builder.nodes))
    used = {n for r in all_records(builder.nodes) for n in r.inputs} | {v.name for v in outputs}
    graph.initializer.extend(writer.constant(n, a) for n, a in builder.shared.initializers.items() if n in used)
    done = {v.name for v in (*inputs, *outputs)}
    graph.value_info.extend(writer.value_info(v) for v in infos if v.name not in done and v.dtype is not None)
    model.functions.extend(builder.shared.functions.values())
    return model


def all_records(records: list[NodeRecord]) -> Any:
    """The nodes, and those of graphs within them."""
    for record in records:
        yield record
        for value in record.attributes.values():
            if isinstance(value, InnerGraph):
                yield from all_records(value.builder.nodes)
                yield NodeRecord("", [v.name for v in value.outputs], [], {}, "", {})


def weight_proto(name: str, tensor: Any, with_data: bool = True) -> Any:
    """A TensorProto of a tensor. Waits for the engine."""
    made = onnx().TensorProto(name=name, data_type=elem_type(tensor.dtype), dims=list(tensor.shape))
    if with_data:
        made.raw_data = tensor_bytes(tensor)
    return made
