"""Interpreter: runs a graph node by node. Transformer: records a new graph while it runs one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import nn
from . import traceback as fx_traceback
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph node by node; subclasses override the method of an opcode.

    Args:
        module: has the submodules, parameters and buffers, and the graph unless one is given.
        garbage_collect_values: releases each value after its last use.
        graph: the graph to run.
    """

    def __init__(self, module: nn.Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        if garbage_collect_values:
            self.user_to_last_uses: dict[Node, list[Node]] = {}
            seen: set[Node] = set()
            for user in reversed(self.graph.nodes):
                for node in user.all_input_nodes:
                    if node not in seen:
                        seen.add(node)
                        self.user_to_last_uses.setdefault(user, []).append(node)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Runs the graph.

        Args:
            args: the inputs.
            initial_env: values of nodes, which are not run.
            enable_io_processing: flattens the inputs and builds the result as the graph's codegen does.

        Returns:
            The value of the output.
        """
        self.env = initial_env if initial_env is not None else {}
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as e:
                if self.extra_traceback:
                    self._extend_message(e, node)
                    if isinstance(e, KeyError):
                        raise RuntimeError(*e.args) from e
                raise
            if self.garbage_collect_values:
                for unused in self.user_to_last_uses.get(node, []):
                    del self.env[unused]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    @staticmethod
    def _extend_message(error: Exception, node: Node) -> None:
        """Adds the node to an error's message."""
        text = f"While executing {node.format_node()}"
        text = f"{error.args[0]}\n\n{text}" if error.args else text
        error.args = (f"{text}\nOriginal traceback:\n{node.stack_trace}", *error.args[1:])

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Runs the graph with the inputs in a list, which is emptied so that they can be released early."""
        placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(args_list) != len(placeholders):
            detail = "extra arguments" if len(args_list) > len(placeholders) else "missing arguments"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(placeholders)} arguments for placeholders but received "
                f"{len(args_list)} ({detail})"
            )
        env = dict(zip(placeholders, args_list))
        args_list.clear()
        return self.run(initial_env=env)

    @contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n: Node) -> Any:
        """Runs one node: calls the method of its opcode with its target and arguments."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The next input, all that are left for *args, or the default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as e:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from e

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a function."""
        if isinstance(target, str):
            raise AssertionError("target should not be a string for call_function")
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a method of args[0]."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The graph's result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The module's attribute of a qualified name."""
        value: Any = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """The values of a node's arguments."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Replaces the nodes in the arguments of `n` by their values."""

        def value_of(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value_of)


class _TransformerTracer(Tracer):
    """Adds nodes to a given graph; all modules are leaves."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Runs a graph with proxies, which record a new graph; subclasses override the method of an opcode to change it.

    Args:
        module: the module to transform.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """An input of the new graph."""
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """An attribute of the module, as a node."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a submodule, as a node."""
        submodule = self.fetch_attr(target)
        return self.tracer.call_module(submodule, submodule.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a function, as a node."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Returns the module of the new graph."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            output = self.new_graph.output(map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a))
            output.meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)
