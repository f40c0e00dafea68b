"""Operators of exported graphs by name, and calls of them."""

from __future__ import annotations

from typing import Any

from .... import ops
from ....fx import Node


def operators(names: str) -> tuple:
    """The operators of names such as "relu.default linear.default" that exist: graphs cannot contain others."""
    found = []
    for name in names.split():
        packet, _, overload = name.partition(".")
        if hasattr(ops.aten, packet) and overload in (p := getattr(ops.aten, packet)).overloads():
            found.append(getattr(p, overload))
    return tuple(found)


LINEAR = operators("linear.default")
CONV = operators("conv1d.default conv2d.default")
CONV_TRANSPOSE = operators("conv_transpose1d.default conv_transpose2d.input")
BATCH_NORM = operators("batch_norm.default")
RELU = operators("relu.default relu_.default")
ADD = operators("add.Tensor add_.Tensor")
MUL = operators("mul.Tensor mul_.Tensor")


def is_call(node: Any, targets: tuple) -> bool:
    """Whether a node calls one of the operators."""
    return isinstance(node, Node) and node.op == "call_function" and node.target in targets
