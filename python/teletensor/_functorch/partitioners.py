"""Division of a joint graph into a forward and a backward graph."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from ..fx.experimental._symbolic import is_size
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ._min_cut import values_to_save

__all__ = ["default_partition", "draw_graph", "min_cut_rematerialization_partition"]


def draw_graph(traced: GraphModule, fname: str, figname: str = "fx_graph") -> None:
    """Writes an image of a graph to a file, whose suffix decides the format; requires the program `dot` for others than .dot."""
    from ..fx.passes.graph_drawer import FxGraphDrawer

    dot = FxGraphDrawer(traced, figname).get_dot_graph()
    name, _, kind = fname.rpartition(".")
    writer = getattr(dot, f"write_{kind}" if name else "write_svg", None)
    if writer is None:
        raise ValueError(f"[draw_graph] unknown format of {fname!r}")
    writer(fname if name else f"{fname}.svg")


def _outputs(joint: GraphModule, num_fwd_outputs: int) -> tuple[list[Any], list[Any]]:
    returned = list(next(n for n in reversed(joint.graph.nodes) if n.op == "output").args[0])
    return returned[:num_fwd_outputs], returned[num_fwd_outputs:]


def _inputs(joint: GraphModule) -> tuple[list[Node], list[Node]]:
    found = [n for n in joint.graph.nodes if n.op == "placeholder"]
    return [n for n in found if not n.name.startswith("tangents")], [n for n in found if n.name.startswith("tangents")]


def _needed(roots: Iterable[Any], stop: set[Node]) -> set[Node]:
    """The nodes that the roots depend on, not beyond those of `stop`."""
    found: set[Node] = set()
    pending = [r for r in roots if isinstance(r, Node)]
    while pending:
        node = pending.pop()
        if node in found:
            continue
        found.add(node)
        if node not in stop:
            pending.extend(node.all_input_nodes)
    return found


def _dependents(inputs: Iterable[Node]) -> set[Node]:
    found = set(inputs)
    for node in next(iter(found)).graph.nodes if found else ():
        if node.op != "output" and any(i in found for i in node.all_input_nodes):
            found.add(node)
    return found


def _part(joint: GraphModule, inputs: Sequence[Node], outputs: list[Any]) -> GraphModule:
    """The nodes between inputs and outputs as a module."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    wanted = _needed(outputs, set(inputs))
    for node in joint.graph.nodes:
        if node in wanted and node not in copies:
            if node.op == "placeholder":
                raise AssertionError(f"[partition] {node} is not available in this part")
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[o] if isinstance(o, Node) else o for o in outputs])
    return GraphModule(joint, graph)


def _divided(joint: GraphModule, saved: list[Node], num_fwd_outputs: int) -> tuple[GraphModule, GraphModule]:
    primals, tangents = _inputs(joint)
    forward, backward = _outputs(joint, num_fwd_outputs)
    saved = sorted(saved, key=is_size)  # sizes after tensors
    return _part(joint, primals, [*forward, *saved]), _part(joint, [*saved, *tangents], backward)


def _saved_by_default(joint: GraphModule, num_fwd_outputs: int) -> list[Node]:
    primals, tangents = _inputs(joint)
    forward, backward = _outputs(joint, num_fwd_outputs)
    known = _needed(forward, set()) | set(primals)
    depends = _dependents(tangents)
    wanted = _needed(backward, {n for n in known if n not in depends and n.op != "get_attr"})
    found: list[Node] = []
    for node in joint.graph.nodes:
        if node not in wanted or node not in known or node in depends or node.op in ("get_attr", "output"):
            continue
        if not isinstance(node.meta.get("val"), (list, tuple)):
            found.append(node)
        else:  # several results: their items are saved
            for user in node.users:
                if user.target is operator.getitem and user in _needed(backward, known - {user, node}) and user not in found:
                    found.append(user)
    return _sizes_instead(list(dict.fromkeys(found)), wanted - known, backward)


def _sizes_instead(saved: list[Node], later: set[Node], results: list[Any]) -> list[Node]:
    """The saved values, with the sizes in place of those of which backward reads nothing else."""
    found: list[Node] = []
    for node in saved:
        users = [u for u in node.users if u in later]
        found += users if users and all(map(is_size, users)) and node not in results else [node]
    return list(dict.fromkeys(found))


def default_partition(joint_module: GraphModule, _joint_inputs: Any, *, num_fwd_outputs: int) -> tuple[GraphModule, GraphModule]:
    """Divides a joint graph: what the results need is computed in forward, and what backward reads of it is saved.

    Args:
        joint_module: its inputs whose names begin with "tangents" are gradients of results.
        _joint_inputs: example inputs, which do not matter.
        num_fwd_outputs: how many of its results are computed by forward.

    Returns:
        the forward module, which returns its results and then the saved values, and the backward module, whose inputs are
        the saved values and the gradients.
    """
    return _divided(joint_module, _saved_by_default(joint_module, num_fwd_outputs), num_fwd_outputs)


def min_cut_rematerialization_partition(
    joint_module: GraphModule, _joint_inputs: Any, compiler: str = "inductor", *, num_fwd_outputs: int
) -> tuple[GraphModule, GraphModule]:
    """Like default_partition(), but saves the fewest bytes from which backward can compute again what it reads.

    Matrix products, convolutions, attention, reductions, sorting and random numbers are not computed again.

    Args:
        joint_module, _joint_inputs, num_fwd_outputs: as for default_partition().
        compiler: has no effect; graphs are the same for all compilers.
    """
    del compiler
    primals, tangents = _inputs(joint_module)
    forward, backward = _outputs(joint_module, num_fwd_outputs)
    known = _needed(forward, set()) | set(primals)
    saved = values_to_save(joint_module.graph, known, _dependents(tangents), backward)
    return _divided(joint_module, saved, num_fwd_outputs)
