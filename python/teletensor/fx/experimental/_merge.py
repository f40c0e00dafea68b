"""One graph for many sizes of a function with gradients, from its graphs for several sizes.

The engine expands backward passes for the sizes of the example (_expanded.py), so that such graphs contain numbers instead of the
expressions that other recordings have (_size_nodes.py). The graphs must have the same nodes. A number that differs between them is
replaced by a node that computes it: the size of a tensor (aten.sym_size), or a product or sum of sizes that has the number in all of them.
The sizes are limited to those between the tried ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ..._library import aten
from ...utils import _pytree as pytree
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ._size_fit import Expression, fitted, float_of_size
from ._sizes import Symbol
from ._unbacked_checks import function_of

Point = dict[str, int]
_STEPS = (1, 2, 3, 9, 22, 37, 58, 120)
_FACTORS = (2, 3, 4, 5, 6, 8, 12, 64)
_LARGE = (1031, 4099)


class Captured:
    """A recorded call.

    Attributes:
        recording: the graph, without an output node.
        constants: constant tensors by name.
        outputs: the leaves of the result: nodes, sizes and constants.
        out_spec: the structure of the result.
    """

    recording: Any
    constants: dict[str, Tensor]
    outputs: list[Any]
    out_spec: Any


class StructureError(RuntimeError):
    """The recordings for different sizes differ."""


class _Merger:
    """Changes the first recording's graph so that it serves the sizes of all."""

    def __init__(self, captures: list[Captured], samples: list[Point]) -> None:
        self.captures, self.samples = captures, samples
        self.first = captures[0]
        self.graph = self.first.recording.graph
        self.pool: dict[tuple[int, ...], tuple] = {}  # recipes by the values in the recordings
        self.known: dict[Any, Node] = {}  # nodes that compute sizes, or floats of them by text
        self.last_placeholder: Node | None = None
        self.last_size: Node | None = None  # of a placeholder
        self.expressions: dict[tuple[int, ...], Expression | None] = {}

    def expression(self, values: tuple[int, ...]) -> Expression | None:
        """What these values are of the symbols, if known."""
        if values not in self.expressions:
            self.expressions[values] = fitted(values, self.samples)
        return self.expressions[values]

    def _add_sizes(self, nodes: tuple[Node, ...]) -> None:
        """Makes the sizes of a node's result available."""
        found = [n.meta.get("val") for n in nodes]
        if not isinstance(found[0], Tensor):
            return
        with _C.DisableTorchFunction():  # the values are fake tensors, whose attributes would pass through Python functions
            sizes = [tuple(v.shape) for v in found]
            dtypes = {v.dtype for v in found}
        shapes = list(zip(*sizes))
        if len(set(map(len, sizes))) > 1 or len(dtypes) > 1:
            raise StructureError(f"the result of {nodes[0]} has other dimensions or another dtype for other sizes")
        symbolic = {}
        for dim, values in enumerate(shapes):
            if len(set(values)) > 1:
                self.pool.setdefault(values, ("size", nodes[0], dim))
                expression = self.expression(values)
                symbolic[dim] = expression.text() if expression else None
        if symbolic:
            nodes[0].meta["symbolic_sizes"] = symbolic

    def _computed(self, values: tuple[int, ...], where: Node) -> Node:
        """A node that computes a size that differs between the recordings."""
        if values in self.known:
            return self.known[values]
        recipe = self.pool.get(values) or self._combined(values)
        if recipe is None:
            raise StructureError(f"an argument of {where} is {list(values)} for other sizes, which is no known expression of sizes")
        kind, *operands = recipe
        if kind == "size":
            node = operands[0]
            at = self.last_size or self.last_placeholder if node.op == "placeholder" else node
            with self.graph.inserting_after(at):
                made = self.graph.create_node("call_function", aten.packet("sym_size").int, tuple(operands), {}, "sym_size_int")
            if node.op == "placeholder":
                self.last_size = made
        else:
            given = [self._computed(o, where) if isinstance(o, tuple) else o for o in operands]
            with self.graph.inserting_before(where):
                made = self.graph.call_function(function_of(kind), tuple(given))
        made.meta["val"] = values[0]
        expression = self.expression(values)
        made.meta["symbolic_value"] = expression.text() if expression else None
        self.known[values] = made
        return made

    def _of_size(self, values: list[float], where: Node) -> Node | None:
        """A node that computes floats which are an operation of a constant and a size, such as an int that an operator takes as a float.
        None unless they are exactly those of one in all recordings."""
        for sizes in self.pool:
            if (found := float_of_size(values, sizes)) is not None:
                kind, constant = found
                text = f"{constant!r} {kind} sym_float{sizes}"
                if text not in self.known:
                    number = f"sym_float{sizes}"
                    if number not in self.known:
                        self.known[number] = self._call("sym_float", [self._computed(sizes, where)], float(sizes[0]), where)
                    self.known[text] = self._call(kind, [constant, self.known[number]], values[0], where)
                return self.known[text]
        return None

    def _call(self, kind: str, given: list[Any], value: Any, where: Node) -> Node:
        with self.graph.inserting_before(where):
            made = self.graph.call_function(function_of(kind), tuple(given))
        made.meta["val"] = value
        made.meta["symbolic_value"] = None
        return made

    def _combined(self, values: tuple[int, ...]) -> tuple | None:
        """A product of two sizes, or a multiple of a size with a constant added."""
        pool = list(self.pool)
        for base in pool:
            difference = {a - b for a, b in zip(values, base)}
            if len(difference) == 1:
                return "+", base, difference.pop()
            if all(b and a % b == 0 for a, b in zip(values, base)):
                quotient = tuple(a // b for a, b in zip(values, base))
                if len(set(quotient)) == 1:
                    return "*", base, quotient[0]
                if quotient in self.pool:
                    return "*", base, quotient
        return None

    # ---- Merging

    def run(self) -> None:
        """Merges the nodes and the results."""
        rows = [list(c.recording.graph.nodes) for c in self.captures]
        if len({len(row) for row in rows}) > 1:
            raise StructureError(f"the number of operators is {[len(row) for row in rows]} for other sizes")
        check_constants(self.captures)
        numbers = [{n: i for i, n in enumerate(row)} for row in rows]
        self.last_placeholder = next((n for n in reversed(rows[0]) if n.op == "placeholder"), None)
        for nodes in zip(*rows):
            self._check_same(nodes)
            if nodes[0].op == "call_function":
                nodes[0].args = self._merged([n.args for n in nodes], nodes[0], numbers)
                nodes[0].kwargs = self._merged([n.kwargs for n in nodes], nodes[0], numbers)
            elif nodes[0].op == "get_attr":
                self._check_parts([getattr(c.recording.root, n.target) for c, n in zip(self.captures, nodes)])
            self._add_sizes(nodes)
        self._merge_outputs(numbers)

    def _merge_outputs(self, numbers: list[dict[Node, int]]) -> None:
        if any(c.out_spec != self.first.out_spec for c in self.captures):
            raise StructureError("the result has another structure for other sizes")
        end = self.graph.create_node("call_function", operator.add, (), {}, "end")
        self.first.outputs = list(self._merged([c.outputs for c in self.captures], end, numbers))
        self.graph.erase_node(end)

    def _check_same(self, nodes: tuple[Node, ...]) -> None:
        first = nodes[0]
        if any(n.op != first.op or (n.op != "get_attr" and str(n.target) != str(first.target)) for n in nodes[1:]):
            raise StructureError(f"{first.target} is another operator for other sizes")

    def _check_parts(self, parts: list[Any]) -> None:
        """Graphs of functions must not depend on sizes except through their tensors."""
        if isinstance(parts[0], Tensor):
            return
        texts = {tuple((n.op, str(n.target), str(n.args), str(n.kwargs)) for n in p.graph.nodes if n.op != "get_attr") for p in parts}
        if len(texts) > 1:
            raise StructureError("a function within the graph contains numbers that depend on sizes")

    def _merged(self, values: list[Any], where: Node, numbers: list[dict[Node, int]]) -> Any:
        first = values[0]
        if isinstance(first, Node):
            if len({numbers[i].get(v) if isinstance(v, Node) else None for i, v in enumerate(values)}) > 1:
                raise StructureError(f"an argument of {where} is another value for other sizes")
            return first
        if all(type(v) is int for v in values):
            return first if len(set(values)) == 1 else self._computed(tuple(values), where)
        if any(type(v) is not type(first) for v in values):
            raise StructureError(f"an argument of {where} has another type for other sizes")
        if isinstance(first, (list, tuple)):
            if len({len(v) for v in values}) > 1:
                raise StructureError(f"an argument of {where} has another length for other sizes")
            return type(first)(self._merged(list(row), where, numbers) for row in zip(*values))
        if isinstance(first, dict):
            if any(v.keys() != first.keys() for v in values):
                raise StructureError(f"{where} has other arguments for other sizes")
            return {k: self._merged([v[k] for v in values], where, numbers) for k in first}
        if isinstance(first, slice):
            parts = [self._merged([getattr(v, p) for v in values], where, numbers) for p in ("start", "stop", "step")]
            return slice(*parts)
        if type(first) is float and len(set(values)) > 1 and (found := self._of_size(values, where)) is not None:
            return found
        if any(v != first and not (v != v and first != first) for v in values):
            raise StructureError(f"an argument of {where} is {first!r} and {next(v for v in values if v != first)!r} for other sizes")
        return first


def check_constants(captures: list[Captured]) -> None:
    """Raises StructureError unless the recordings have the same constant tensors, with the same values."""
    rows = [list(c.constants.items()) for c in captures]
    if len({tuple(name for name, _ in row) for row in rows}) > 1:
        raise StructureError("the module uses other constant tensors for other sizes")
    for items in zip(*rows):
        name, first = items[0]
        if any(other._handle != first._handle and not same_tensor(first, other) for _, other in items[1:]):
            raise StructureError(
                f"the constant tensor {name}, such as torch.tensor(x.shape[0]) makes, has other values for other sizes; "
                "torch.full((), x.shape[0]) is computed by the program"
            )


def same_tensor(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same dtype, sizes and bytes."""
    if (a.dtype, tuple(a.shape), a.device) != (b.dtype, tuple(b.shape), b.device):
        return False
    with no_grad():
        return a.numel() == 0 or bool((_bytes(a) == _bytes(b)).all())


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(_C.uint8)


class Family:
    """Recordings of one function for points of symbols.

    Args:
        record: records the function at a point.
        symbols: those that may differ.
    """

    def __init__(self, record: Callable[[list[Symbol], Point], Captured], symbols: list[Symbol]) -> None:
        self.record, self.symbols = record, symbols
        self.first = record(symbols, self._example(symbols))

    @staticmethod
    def _example(symbols: list[Symbol]) -> Point:
        return {s.name: s.hint for s in symbols}

    def _compatible(self, symbols: list[Symbol], point: Point) -> Captured | None:
        """The recording at a point, if it has the example's operators."""
        try:
            made = self.record(symbols, point)
        except Exception:  # noqa: BLE001 - whatever the function raises for other sizes
            return None
        rows = [[(n.op, str(n.target) if n.op == "call_function" else "") for n in c.recording.graph.nodes] for c in (self.first, made)]
        return made if rows[0] == rows[1] and made.out_spec == self.first.out_spec else None

    def _merged(self, symbols: list[Symbol]) -> Captured | None:
        """The recording that serves the sizes of these symbols, or None. Sets their upper limits."""
        limits = {s.name: s.high for s in self.symbols}
        for s in symbols:
            s.high = None
        first = self.record(symbols, self._example(symbols))
        captures, points = [first], [self._example(symbols)]
        large = [(p, c) for p in _large(symbols) if (c := self._compatible(symbols, p)) is not None]
        most = (8 if len(symbols) == 1 else len(symbols) + 4 + min(len(symbols) * (len(symbols) + 1) // 2, 9)) + 1
        for point in _candidates(symbols):
            if len(captures) <= most and (made := self._compatible(symbols, point)) is not None:
                captures.append(made)
                points.append(point)
        for point, made in large:
            if point not in points:
                captures.append(made)
                points.append(point)
        if len(captures) < 5 or self._has_constants_of_sizes(captures):
            found = False
        else:
            for s in symbols:
                s.high = max(point[s.name] for point in points)
            try:
                _Merger(captures, points).run()
                found = True
            except StructureError:
                found = False
        if not found:
            for s in self.symbols:
                s.high = limits[s.name]
        return first if found else None

    def _has_constants_of_sizes(self, captures: list[Captured]) -> bool:
        """Whether a constant tensor contains sizes: it has other values at other points, and the same ones in two recordings at one, or
        it has other sizes or another dtype at other points."""
        rows = list(zip(*([getattr(c.recording.root, n.target) for n in c.recording.graph.nodes if n.op == "get_attr"] for c in captures)))
        again = [getattr(self.first.recording.root, n.target) for n in self.first.recording.graph.nodes if n.op == "get_attr"]
        if len(again) != len(rows):
            return False
        tensors = [(a, row) for a, row in zip(again, rows) if isinstance(a, Tensor) and all(isinstance(v, Tensor) for v in row)]
        kinds = [{(tuple(Tensor.size(v)), v.dtype) for v in (a, *row)} for a, row in tensors]
        return any(len(kind) > 1 for kind in kinds) or any(
            same_tensor(a, row[0]) and not all(same_tensor(row[0], v) for v in row[1:]) for a, row in tensors
        )

    def run(self) -> tuple[Captured, list[Symbol]]:
        """The merged recording, and the symbols that are left."""
        kept = [s for s in self.symbols if any([self._compatible([s], {s.name: n}) is not None for n in _alone(s)])]
        if kept and (found := self._merged(kept)) is not None:
            return found, kept
        alone: list[Symbol] = []
        best = self.first
        for symbol in kept:  # one after the other
            if (found := self._merged([*alone, symbol])) is not None:
                alone.append(symbol)
                best = found
        return best, alone


def _alone(symbol: Symbol) -> list[int]:
    """Other sizes to try for one symbol."""
    h = symbol.hint
    return [h + 1, 2 * h, h + 2, 3 * h, *([h - 1] if h > 2 else [])]


def _candidates(symbols: list[Symbol]) -> list[Point]:
    """Points near and far from the example, different for each symbol."""
    points = []
    for k in range(24):
        point = {}
        for i, s in enumerate(symbols):
            step, factor = _STEPS[(k // 2 + 3 * i) % 8], _FACTORS[(k // 2 + 3 * i) % 8]
            point[s.name] = s.hint + step + i * (k // 2 + 1) if k % 2 else s.hint * factor
        points.append(point)
    return points


def _large(symbols: list[Symbol]) -> list[Point]:
    """Points with a large size of one symbol: not larger than a function can compute with."""
    hints, found = {s.name: s.hint for s in symbols}, []
    for i, s in enumerate(symbols):
        leaves = [leaf for leaf, *_ in s.places]
        if len(set(leaves)) == len(leaves):
            found += [{**hints, s.name: n + 2 * i} for n in _LARGE]
    return found


def sizes_at(leaves: list[Any], symbols: list[Symbol], point: Point) -> dict[int, Any]:
    """By position of a leaf: the sizes of a tensor, or the value of an int, where they are symbols."""
    found: dict[int, Any] = {}
    for symbol in symbols:
        for leaf, dim, _, _ in symbol.places:
            if dim < 0:
                found[leaf] = point[symbol.name]
            else:
                found.setdefault(leaf, list(leaves[leaf].shape))[dim] = point[symbol.name]
    return found


def resized(leaves: list[Any], sizes: dict[int, Any]) -> list[Any]:
    """The leaves, with tensors of zeros in place of those that have other sizes."""
    found = []
    for i, leaf in enumerate(leaves):
        if i in sizes and isinstance(leaf, Tensor) and list(leaf.shape) != list(sizes[i]):
            made = leaf.detach().new_zeros(sizes[i])
            found.append(made.requires_grad_() if leaf.requires_grad else made)
        else:
            found.append(leaf)
    return found


class _Finished:
    """A graph that was recorded otherwise, as a recording."""

    def __init__(self, module: GraphModule, graph: Graph) -> None:
        self.graph, self.root = graph, module


def captured_of(module: GraphModule) -> Captured:
    """A module of a graph as a recorded call, without its output node."""
    graph = module.graph
    output = next(n for n in reversed(graph.nodes) if n.op == "output")
    made: Any = Captured()
    made.outputs, made.out_spec = pytree.tree_flatten(output.args[0])
    graph.erase_node(output)
    made.recording, made.constants = _Finished(module, graph), {n: b for n, b in module.named_buffers()}
    return made
