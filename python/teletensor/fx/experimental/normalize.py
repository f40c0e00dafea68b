"""Transformers that normalize graphs: all arguments by keyword, operators instead of functions."""

from __future__ import annotations

import operator
from typing import Any, Callable

import teletensor as torch

from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node, map_aggregate
from ..operator_schemas import create_type_hint, normalize_function, normalize_module
from ..proxy import Proxy

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Matches the arguments of functions and modules of torch.nn to their signatures, with the defaults.

    Args:
        module: the module. If ShapeProp has run, the types that it recorded select between overloads.
        normalize_to_only_use_kwargs: gives all arguments by keyword.
    """

    def __init__(self, module: GraphModule, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """Adds the node to the new graph."""
        self._types = (None, None)
        if n.op == "call_function":
            kinds = map_aggregate(n.args, lambda a: a.meta.get("type") if isinstance(a, Node) else type(a))
            by_name = {k: v.meta.get("type") if isinstance(v, Node) else type(v) for k, v in n.kwargs.items()}
            self._types = (tuple(create_type_hint(kind) for kind in kinds), by_name)
        result = super().run_node(n)
        if n.op != "output":
            self.node_map[result] = n
            result.node.meta, result.node.type = n.meta, n.type
        return result

    def call_function(self, target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Adds a call of a function."""
        arguments = normalize_function(target, args, kwargs, *self._types, self.normalize_to_only_use_kwargs)
        return super().call_function(target, *(arguments or (args, kwargs)))

    def call_module(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Adds a call of a module."""
        arguments = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        return super().call_module(target, *(arguments or (args, kwargs)))


class NormalizeOperators(Transformer):
    """Replaces functions such as torch.add by the operators of Python. Calls with further arguments are unchanged."""

    binary_magic_method_remap = {
        torch.add: operator.add, torch.mul: operator.mul, torch.sub: operator.sub, torch.div: operator.truediv,
        torch.floor_divide: operator.floordiv, torch.remainder: operator.mod, torch.eq: operator.eq, torch.ne: operator.ne,
        torch.lt: operator.lt, torch.le: operator.le, torch.gt: operator.gt, torch.ge: operator.ge,
    }  # fmt: skip

    def call_function(self, target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Adds a call of a function or an operator."""
        if len(args) == 2 and not kwargs:
            target = self.binary_magic_method_remap.get(target, target)
        return super().call_function(target, args, kwargs)
