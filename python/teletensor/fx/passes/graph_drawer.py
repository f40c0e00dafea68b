"""FxGraphDrawer: draws a module's graph with Graphviz.

    FxGraphDrawer(traced, "net").get_dot_graph().write_svg("net.svg")
"""

from __future__ import annotations

import hashlib
from itertools import chain
from typing import Any

from ... import nn
from .. import _dot
from .._names import typename
from ..graph import _parse_stack_trace
from ..graph_module import GraphModule
from ..node import Node, _format_arg, _get_qualified_name
from ..operator_schemas import normalize_function
from .shape_prop import TensorMetadata

__all__ = ["FxGraphDrawer"]

_COLOR_MAP = {
    "placeholder": '"AliceBlue"', "call_module": "LemonChiffon1", "get_param": "Yellow2", "get_attr": "LightGrey",
    "output": "PowderBlue",
}  # fmt: skip
_HASH_COLOR_MAP = (
    "CadetBlue1", "Coral", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1", "LavenderBlush1", "LightSkyBlue",
    "MistyRose1", "MistyRose2", "PaleTurquoise2", "PeachPuff1", "Salmon", "Thistle1", "Thistle3", "Wheat1",
)  # fmt: skip


class FxGraphDrawer:
    """Draws a module and the GraphModules that it calls, one graph each.

    Args:
        graph_module: the module.
        name: the graph's name.
        ignore_getattr: leaves out nodes that read attributes.
        ignore_parameters_and_buffers: leaves out the parameters and buffers of submodules.
        skip_node_names_in_args: leaves out nodes in the arguments, which the edges show.
        parse_stack_trace: adds the source lines that created the nodes, if the tracer recorded them.
        dot_graph_shape: Graphviz's shape of the nodes; "record" by default.
        normalize_args: gives functions' arguments by keyword.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self._name = name
        self.dot_graph_shape = dot_graph_shape if dot_graph_shape is not None else "record"
        self.normalize_args = normalize_args
        self._ignore_getattr, self._ignore_tensors = ignore_getattr, ignore_parameters_and_buffers
        self._skip_nodes, self._parse_traces = skip_node_names_in_args, parse_stack_trace
        self._dot_graphs = {name: self._to_dot(graph_module, name)}
        for node in graph_module.graph.find_nodes(op="call_module"):
            submodule = graph_module.get_submodule(node.target)
            if isinstance(submodule, GraphModule):
                self._dot_graphs[f"{name}_{node.target}"] = self._to_dot(submodule, f"{name}_{node.target}")

    def get_dot_graph(self, submod_name: str | None = None) -> _dot.Dot:
        """The module's graph, or a submodule's: an object with to_string(), write_svg(path), write(path), ..."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> _dot.Dot:
        """The module's graph."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> _dot.Dot:
        """A submodule's graph."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, _dot.Dot]:
        """All graphs by name."""
        return self._dot_graphs

    def _to_dot(self, module: GraphModule, name: str) -> _dot.Dot:
        graph = _dot.Dot(name, rankdir="TB")
        nodes = [node for node in module.graph.nodes if not (self._ignore_getattr and node.op == "get_attr")]
        for node in nodes:
            style = self._get_node_style(node)
            graph.add_node(_dot.Node(node.name, label=self._get_node_label(module, node), **style))
            if node.op == "call_module" and not self._ignore_tensors:
                self._add_tensors(graph, node, module.get_submodule(node.target))
        for node in nodes:
            for user in node.users:
                graph.add_edge(_dot.Edge(node.name, user.name))
        return graph

    def _add_tensors(self, graph: _dot.Dot, node: Node, submodule: nn.Module) -> None:
        """Adds the parameters and buffers of a submodule."""
        if isinstance(submodule, GraphModule):
            return
        style = {"fillcolor": "Salmon", "style": '"filled,rounded"', "fontcolor": "#000000", "shape": self.dot_graph_shape}
        for name, tensor in chain(submodule.named_parameters(), submodule.named_buffers()):
            name = f"{node.name}.{name}"
            kind = "parameter" if isinstance(tensor, nn.Parameter) else "buffer"
            label = f"{{{name}|op_code=get_{kind}\\l{tensor.dtype}{list(tensor.shape)}\\n}}"
            graph.add_node(_dot.Node(name, label=label, **style))
            graph.add_edge(_dot.Edge(name, node.name))

    def _get_node_style(self, node: Node) -> dict[str, str]:
        """The node's shape and color; calls of one target have one color."""
        color = _COLOR_MAP.get(node.op)
        if color is None:
            name = node._pretty_print_target(node.target)
            number = int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:8], 16)
            color = _HASH_COLOR_MAP[number % len(_HASH_COLOR_MAP)]
        return {"shape": self.dot_graph_shape, "fillcolor": color, "style": '"filled,rounded"', "fontcolor": "#000000"}

    @staticmethod
    def _typename(target: Any) -> str:
        """The target as text of a label."""
        if isinstance(target, nn.Module):
            text = typename(target)
        else:
            text = target if isinstance(target, str) else _get_qualified_name(target)
        return _escaped(text)

    def _get_node_label(self, module: GraphModule, node: Node) -> str:
        """The text in the node's box."""
        label = f"{{name=%{node.name}|op_code={node.op}\n"
        if node.op == "call_module":
            submodule = module.get_submodule(node.target)
            constants = [f"{c}: {getattr(submodule, c)}" for c in getattr(submodule, "__constants__", ())]
            label += f"\\n{self._typename(submodule)}\\n|" + "\\n".join(constants) + "\\n"
        else:
            label += f"|target={self._typename(node.target)}\\n"
            args, kwargs = self._arguments(node)
            label += self._list("|args=(\\l", [_format_arg(a, max_list_len=8) for a in args], ",\\n)\\l")
            items = [f"{k}: {_format_arg(v, max_list_len=8)}" for k, v in kwargs.items()]
            label += self._list("|kwargs={\\l", items, ",\\n}\\l")
            label += f"|num_users={len(node.users)}\\n"
        label += self._tensor_meta_to_label(node.meta.get("tensor_meta"))
        if self._parse_traces and node.stack_trace is not None:
            frame = _parse_stack_trace(node.stack_trace)
            if frame is not None:
                file = "/".join(frame.file.split("/")[-2:])
                label += f"|file={file}:{frame.lineno} {_escaped(frame.code)}\\n"
        return label + "}"

    def _arguments(self, node: Node) -> tuple[tuple, dict]:
        if self.normalize_args and node.op == "call_function":
            try:
                normalized = normalize_function(node.target, node.args, node.kwargs, normalize_to_only_use_kwargs=True)
            except (RuntimeError, TypeError, ValueError):
                normalized = None
            if normalized is not None:
                return normalized
        return node.args, node.kwargs

    def _list(self, prefix: str, items: list[str], suffix: str) -> str:
        """Arguments in a label, one per line if there are several."""
        if self._skip_nodes:
            items = [item for item in items if "%" not in item]
        if not items:
            return ""
        text = prefix + ",\\n".join(items) + suffix
        if len(items) == 1:
            text = text.replace("\\l", "").replace("\\n", "")
        return _escaped(text)

    def _tensor_meta_to_label(self, meta: Any) -> str:
        """The metadata that ShapeProp recorded, for each tensor."""
        if meta is None:
            return ""
        if isinstance(meta, TensorMetadata):
            return (
                f"|dtype={meta.dtype}\\n|shape={tuple(meta.shape)}\\n|requires_grad={meta.requires_grad}\\n"
                f"|stride={meta.stride}\\n"
            )
        if isinstance(meta, dict):
            meta = list(meta.values())
        if isinstance(meta, (list, tuple)):
            return "".join(self._tensor_meta_to_label(item) for item in meta)
        return ""  # a result that is not a tensor


def _escaped(text: str) -> str:
    """Text without the characters that separate fields of a record."""
    for character in "{}<>":
        text = text.replace(character, f"\\{character}")
    return text
