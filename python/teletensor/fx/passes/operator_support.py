"""OperatorSupport: which nodes a backend can run."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, Callable

from ... import nn
from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OperatorSupportBase", "OperatorSupport", "create_op_support", "chain", "OpSupports", "any_chain"]

# By target: None, or for each argument the dtypes that are supported, or None for any.
SupportDict = Mapping[str, Any]
IsNodeSupported = Callable[[Mapping[str, nn.Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """Decides which nodes are supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Whether a node is supported.

        Args:
            submodules: the module's submodules by qualified name.
        """
        raise NotImplementedError


class OperatorSupport(OperatorSupportBase):
    """Supports the targets in a dict.

    Args:
        support_dict: for each target (see get_node_target()) None, or the supported dtypes of the positional arguments and
            of the keyword arguments: ``([[float32], None], {"other": [float32]})``. ShapeProp must have run.
    """

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Whether the dict has the node's target and the arguments' dtypes."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        if self._support_dict[target] is None:
            return True
        positional, by_name = self._support_dict[target]
        pairs = [*zip(node.args, positional), *((node.kwargs[k], d) for k, d in by_name.items() if k in node.kwargs)]
        return all(_get_arg_dtype(arg) in dtypes for arg, dtypes in pairs if dtypes is not None and isinstance(arg, Node))


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """Creates an OperatorSupportBase from a function."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports the nodes that all of these support."""
    return create_op_support(lambda submodules, node: all(s.is_node_supported(submodules, node) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports the nodes that at least one of these supports."""
    return create_op_support(lambda submodules, node: any(s.is_node_supported(submodules, node) for s in op_support))


class OpSupports:
    """Common conditions."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Supports nodes none of whose inputs has the dtype."""
        return create_op_support(lambda _, node: all(_get_arg_dtype(arg) != dtype for arg in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Supports nodes whose name is not in the set."""
        return create_op_support(lambda _, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Node) -> Any:
    """The dtype that ShapeProp recorded, or the type of a value that is not a tensor."""
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta["type"]
