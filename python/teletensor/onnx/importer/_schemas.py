"""The check of nodes by ONNX's own declarations of operators, before anything of a model runs."""

from __future__ import annotations

import functools
from typing import Any

from ._package import onnx

# Inputs that ONNX declares as required and that exporters leave out where they have no effect.
_LEFT_OUT = {("Resize", "roi")}


@functools.lru_cache(maxsize=4096)
def _schema(op: str, version: int, domain: str) -> Any:
    """The declaration of an operator in a version of its operator set; None for operators that ONNX does not declare."""
    defs = onnx().defs
    try:
        return defs.get_schema(op, version, domain)
    except defs.SchemaError:
        return None


def check_node(node: Any, domain: str, version: int) -> None:
    """Compares the inputs and attributes of a node with the declaration of its operator.

    Raises:
        ValueError: too few or too many inputs, a missing input, or an attribute of another type.
    """
    schema = _schema(node.op_type, version, domain)
    if schema is None:
        return
    count = len(node.input)
    if not schema.min_input <= count <= schema.max_input:
        raise ValueError(f"[{node.op_type}] expected {schema.min_input} to {schema.max_input} inputs, the node has {count}")
    required = onnx().defs.OpSchema.FormalParameterOption.Single
    for name, declared in zip(node.input, schema.inputs):
        if not name and declared.option == required and (node.op_type, declared.name) not in _LEFT_OUT:
            raise ValueError(f"[{node.op_type}] expected the input {declared.name!r}, which the node lacks")
    for attribute in node.attribute:
        declared = schema.attributes.get(attribute.name)
        if declared is not None and attribute.type != declared.type.value:
            kinds = onnx().AttributeProto.AttributeType
            found = kinds.Name(attribute.type) if attribute.type in kinds.values() else attribute.type
            raise ValueError(f"[{node.op_type}] expected the attribute {attribute.name!r} of type {declared.type.name}, got {found}")
