"""ONNX models for tests, written as text (onnx.parser)."""

from __future__ import annotations

import onnx
from onnx import helper


def model(text: str, opset: int = 18, **domains: int) -> onnx.ModelProto:
    """A model from the text of a graph, such as "g (float[N] x) => (float[N] y) { y = Abs(x) }"."""
    imports = ", ".join([f'"" : {opset}', *(f'"{name}" : {version}' for name, version in domains.items())])
    return onnx.parser.parse_model(f"<ir_version: 9, opset_import: [{imports}]>\n{text}")


def single(op: str, inputs: list, outputs: int = 1, opset: int = 18, domain: str = "", **attributes) -> onnx.ModelProto:
    """A model of one node whose inputs have these (element type, sizes)."""
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    given = [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in zip(names, inputs)]
    graph = helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name=n) for n in results])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(domain, opset), *([helper.make_opsetid("", 18)] if domain else [])]
    )
