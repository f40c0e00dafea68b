"""fx.traceback: metadata that passes set and that new nodes receive."""

from __future__ import annotations

import copy
import functools
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from .graph import Graph
    from .node import Node

__all__ = [
    "annotate", "annotate_fn", "preserve_node_meta", "has_preserved_node_meta", "set_stack_trace", "set_grad_fn_seq_nr",
    "reset_grad_fn_seq_nr", "format_stack", "set_current_meta", "get_current_meta", "NodeSource", "NodeSourceAction",
    "get_graph_provenance_json", "set_current_replay_node", "get_current_replay_node",
]  # fmt: skip


class _State(threading.local):
    """The metadata that this thread's passes have set."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.replay_node: Node | None = None
        self.preserve = False


_state = _State()
# Files and functions whose frames belong to a recorded stack trace besides `forward`.
_STACK_TRACE_ANCHORS: set[tuple[str, str]] = set()
# Of GraphModules that were compiled with enrich_profiler_metadata: by file name, the line numbers and the nodes.
_FX_METADATA_REGISTRY: dict[str, dict[str, Any]] = {}


def _register_fx_metadata(module_name: str, metadata: dict[str, Any]) -> None:
    """Stores the metadata of a generated file."""
    _FX_METADATA_REGISTRY[module_name] = metadata


class NodeSourceAction(Enum):
    """How a pass created a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """The pass that created a node, and the node it was created from."""

    class NodeInfo:
        """The name, target and graph of the node that it was created from."""

        def __init__(self, name: str, target: str, graph_id: int) -> None:
            self.name, self.target, self.graph_id = name, target, graph_id

    def __init__(
        self, node: Node | None, pass_name: str = "", action: NodeSourceAction | list[NodeSourceAction] | None = None
    ) -> None:
        self.pass_name = pass_name
        self.action = action if isinstance(action, list) else [action] if action is not None else []
        for a in self.action:
            if not isinstance(a, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(a)}")
        self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph)) if node else None
        self.from_node: list[NodeSource] = list(node.meta.get("from_node", ())) if node else []

    @property
    def name(self) -> str:
        """The name of the original node; "" if there is none."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """The target of the original node; "" if there is none."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """The id of the original graph; -1 if there is none."""
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(a.name.lower() for a in self.action)

    def __repr__(self) -> str:
        return self.print_readable()

    def print_readable(self, indent: int = 0) -> str:
        """One line per source, indented by depth, at most ten deep."""
        if indent > 9:
            return ""
        line = (
            f"{' ' * indent * 4}(name={self.name}, pass_name={self.pass_name}, action={self._get_action_string()}, "
            f"graph_id={self.graph_id})\n"
        )
        return line + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def to_dict(self) -> dict[str, Any]:
        """The source, and recursively the sources that it was created from, as plain values."""
        return {
            "name": self.name, "target": self.target, "graph_id": self.graph_id, "pass_name": self.pass_name,
            "action": self._get_action_string(), "from_node": [source.to_dict() for source in self.from_node],
        }  # fmt: skip

    @classmethod
    def _from_dict(cls, d: dict[str, Any] | None) -> NodeSource | None:
        """The source that to_dict() described."""
        if d is None:
            return None
        if not isinstance(d, dict):
            raise AssertionError(f"Expected a dict, got {type(d)}")
        actions = [NodeSourceAction[name.upper()] for name in d.get("action", "").split("+") if name]
        source = cls(None, d.get("pass_name", ""), actions)
        if {"name", "target", "graph_id"} <= d.keys():
            source.node_info = cls.NodeInfo(d["name"], d["target"], d["graph_id"])
        source.from_node = [cls._from_dict(below) for below in d.get("from_node") or [] if below is not None]
        return source

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Context manager: inside its block, new nodes receive the metadata of set_current_meta()."""
    before, meta = _state.preserve, _state.meta.copy()
    _state.preserve = enable
    try:
        yield
    finally:
        _state.preserve, _state.meta = before, meta


def has_preserved_node_meta() -> bool:
    """Whether preserve_node_meta() is active in this thread."""
    return _state.preserve


def set_stack_trace(stack: list[str]) -> None:
    """Sets the stack trace of new nodes; an empty list removes it."""
    if _state.preserve:
        if stack:
            _state.meta["stack_trace"] = "".join(stack)
        else:
            _state.meta.pop("stack_trace", None)


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Context manager: inside its block, new nodes receive the annotations in meta["custom"]."""
    before = copy.copy(_state.meta.get("custom"))
    _state.meta["custom"] = {**(before or {}), **annotation_dict}
    try:
        yield
    finally:
        if before is None:
            _state.meta.pop("custom", None)
        else:
            _state.meta["custom"] = before


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable:
    """A decorator: nodes created by a call of the function receive the annotations."""

    def decorator(func: Callable) -> Callable:
        code = getattr(func, "__code__", None)
        if code is not None:
            _STACK_TRACE_ANCHORS.add((code.co_filename, code.co_name))

        @functools.wraps(func)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return func(*args, **kwargs)

        return annotated

    return decorator


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Enters the backward function of a sequence number."""
    if _state.preserve:
        _state.meta["grad_fn_seq_nr"] = [*_state.meta.get("grad_fn_seq_nr", []), seq_nr]
        _state.meta["in_grad_fn"] = _state.meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr() -> None:
    """Leaves the backward function that was entered last."""
    if not _state.preserve:
        return
    level = _state.meta.get("in_grad_fn", 0)
    if level <= 0:
        raise AssertionError(f"Expected current_level > 0, got {level}")
    if level == 1:
        del _state.meta["in_grad_fn"], _state.meta["grad_fn_seq_nr"]
    else:
        _state.meta["in_grad_fn"] = level - 1
        _state.meta["grad_fn_seq_nr"] = _state.meta["grad_fn_seq_nr"][:-1]


def format_stack() -> list[str]:
    """The stack trace of new nodes, or the caller's."""
    if _state.preserve:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Context manager: inside its block, new nodes receive the metadata of this node, if preserve_node_meta() is
    active.
    """
    if not _state.preserve or not node.meta:
        yield
        return
    before = _state.meta
    _state.meta = {**node.meta, "from_node": [NodeSource(node, pass_name, NodeSourceAction.CREATE)]}
    try:
        yield
    finally:
        _state.meta = before


def get_current_meta() -> dict[str, Any]:
    """The metadata of new nodes."""
    return _state.meta


@contextmanager
def set_current_replay_node(node: Node | None) -> Iterator[None]:
    """Context manager: inside its block, new nodes replay this one and receive its annotations."""
    before, _state.replay_node = _state.replay_node, node
    try:
        yield
    finally:
        _state.replay_node = before


def get_current_replay_node() -> Node | None:
    """The node that new nodes replay, or None."""
    return _state.replay_node


def get_graph_provenance_json(graph: Graph) -> dict[str, Any]:
    """For each function call of a graph, the nodes it was created from."""
    calls = [node for node in graph.nodes if node.op == "call_function"]
    return {node.name: [source.to_dict() for source in node.meta.get("from_node", [])] for node in calls}
