"""Graphs in Graphviz's language, rendered by the program `dot`. The classes are named after those of pydot."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def _quoted(value: Any) -> str:
    """A value as an identifier of the language: in quotes unless it is a name or is quoted already."""
    text = str(value)
    if len(text) > 1 and text[0] == text[-1] == '"' or text and not text[0].isdigit() and set(text) <= _PLAIN:
        return text
    return '"' + text.replace('"', '\\"').replace("\n", "\\n") + '"'


def _attributes(values: dict[str, Any]) -> str:
    return f" [{', '.join(f'{name}={_quoted(value)}' for name, value in values.items())}]" if values else ""


class Node:
    """A node with its attributes (label, shape, fillcolor, ...)."""

    def __init__(self, name: str, **attributes: Any) -> None:
        self.name, self.attributes = name, attributes

    def get_name(self) -> str:
        """The node's name."""
        return self.name

    def get_label(self) -> str | None:
        """The node's label."""
        return self.attributes.get("label")

    def to_string(self) -> str:
        """The statement that declares the node."""
        return f"{_quoted(self.name)}{_attributes(self.attributes)};"


class Edge:
    """An arrow between two nodes, given by name."""

    def __init__(self, src: str, dst: str, **attributes: Any) -> None:
        self.src, self.dst, self.attributes = src, dst, attributes

    def get_source(self) -> str:
        """The name of the node where the arrow starts."""
        return self.src

    def get_destination(self) -> str:
        """The name of the node where the arrow ends."""
        return self.dst

    def to_string(self) -> str:
        """The statement that declares the edge."""
        return f"{_quoted(self.src)} -> {_quoted(self.dst)}{_attributes(self.attributes)};"


class Dot:
    """A directed graph: nodes, edges and attributes (rankdir, ...)."""

    keyword = "digraph"

    def __init__(self, name: str = "G", **attributes: Any) -> None:
        self.name, self.attributes = name, attributes
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.subgraphs: list[Cluster] = []

    def add_node(self, node: Node) -> None:
        """Adds a node."""
        self.nodes.append(node)

    def add_edge(self, edge: Edge) -> None:
        """Adds an edge."""
        self.edges.append(edge)

    def add_subgraph(self, subgraph: Cluster) -> None:
        """Adds a group of nodes."""
        self.subgraphs.append(subgraph)

    def set(self, name: str, value: Any) -> None:
        """Sets an attribute."""
        self.attributes[name] = value

    def get_nodes(self) -> list[Node]:
        """The nodes."""
        return self.nodes

    def get_edges(self) -> list[Edge]:
        """The edges."""
        return self.edges

    def to_string(self) -> str:
        """The graph in Graphviz's language."""
        lines = [f"{name}={_quoted(value)};" for name, value in self.attributes.items()]
        lines += [part.to_string() for part in (*self.nodes, *self.subgraphs, *self.edges)]
        return "\n".join([f"{self.keyword} {_quoted(self.name)} {{", *lines, "}\n"])

    def create(self, prog: str | None = None, format: str = "ps") -> bytes:
        """The graph's image.

        Args:
            prog: the program that lays it out; "dot" by default.
            format: a format of the program: "svg", "png", "pdf", "dot".

        Raises:
            FileNotFoundError: the program is not installed.
            RuntimeError: it failed.
        """
        program = shutil.which(prog or "dot")
        if program is None:
            raise FileNotFoundError(f'"{prog or "dot"}" not found in path: install Graphviz, or write the text of to_string()')
        result = subprocess.run([program, f"-T{format}"], input=self.to_string().encode(), capture_output=True)
        if result.returncode:
            raise RuntimeError(f"[{prog or 'dot'}] {result.stderr.decode(errors='replace').strip()}")
        return result.stdout

    def write(self, path: str, prog: str | None = None, format: str = "raw") -> bool:
        """Writes the graph: its text for "raw", otherwise an image; see create()."""
        content = self.to_string().encode() if format == "raw" else self.create(prog, format)
        with open(path, "wb") as file:
            file.write(content)
        return True

    def create_svg(self) -> bytes:
        """The graph as SVG."""
        return self.create(format="svg")

    def write_svg(self, path: str) -> bool:
        """Writes the graph as SVG."""
        return self.write(path, format="svg")

    def create_png(self) -> bytes:
        """The graph as PNG."""
        return self.create(format="png")

    def write_png(self, path: str) -> bool:
        """Writes the graph as PNG."""
        return self.write(path, format="png")


class Cluster(Dot):
    """A group of nodes, drawn in a box."""

    keyword = "subgraph"

    def __init__(self, name: str, **attributes: Any) -> None:
        super().__init__(f"cluster_{name}", **attributes)
