"""One graph for many sizes, from recordings of the same function for several sizes.

The recordings must have the same nodes. A number that differs between them is replaced by a node that computes it: the size of a
tensor (aten.sym_size), arithmetic that the function itself has done with sizes, or a product or sum of sizes that has the number in
all recordings. Comparisons of sizes by Python code are guards: they must have the same outcome for all sizes that are declared.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ..._library import aten
from ..._symbolic_bool import SymBool
from ..node import Node
from ._exact_sizes import ExactSizes, same_text
from ._recording import Recording
from ._size_fit import NEGATED, Expression, fitted, float_of_size, holds
from ._sizes import (
    LAYOUT,
    ORIGINS,
    Guard,
    RecordedFloat,
    RecordedSize,
    guard_of,
    guards_of,
    holds_between,
    is_polynomial,
    operands_of,
    text_of,
    value_of,
)
from ._unbacked_checks import function_of

_MOST_VIEWS = 8  # whose sizes may determine a stride


class Captured:
    """A recorded call.

    Attributes:
        recording: the graph, without an output node.
        constants: constant tensors by name.
        outputs: the leaves of the result: nodes, sizes and constants.
        out_spec: the structure of the result.
    """

    recording: Recording
    constants: dict[str, Tensor]
    outputs: list[Any]
    out_spec: Any


class Symbol:
    """A size that may differ between calls.

    Attributes:
        name: in the printed graph.
        hint: the size in the example.
        low, high: the range; None is unbounded.
        kind: "named", "DYNAMIC" or "AUTO".
        places: the dimensions that have it: leaf, dimension, factor and offset.
    """

    def __init__(self, name: str, hint: int, low: int, high: int | None, kind: str) -> None:
        self.name, self.hint, self.low, self.high, self.kind = name, hint, low, high, kind
        self.places: list[tuple[int, int, int, int]] = []


class StructureError(RuntimeError):
    """The recordings for different sizes differ."""


class _Merger:
    """Changes the first recording's graph so that it serves the sizes of all."""

    def __init__(self, captures: list[Captured], samples: list[dict[str, int]]) -> None:
        self.captures, self.samples = captures, samples
        self.first = captures[0]
        self.graph = self.first.recording.graph
        self.pool: dict[tuple[int, ...], tuple] = {}  # recipes by the values in the recordings
        self.known: dict[tuple[int, ...], Node] = {}  # nodes that compute sizes
        self.required: set[int] = set()  # ids of sizes
        self.known_equal: set[tuple[int, ...]] = set()
        self.sizes: dict[Node, list[tuple[int, ...]]] = {}  # of the nodes' results, by dimension
        self.by_text: dict[str, Node] = {}  # nodes that compute sizes as the function does, by text_of()
        self.texts: dict[tuple[int, ...], str] = {}  # of the recipes that the function has computed
        self.ready: set[Node] = set()
        self.last_placeholder: Node | None = None
        self.last_size: Node | None = None  # of a placeholder
        self.expressions: dict[tuple[int, ...], Expression | None] = {}
        logs = [c.recording.log.expressions if c.recording.log else [] for c in captures]
        self.logged = list(zip(*logs)) if len({len(log) for log in logs}) == 1 else []
        self.next_logged = 0
        self.rows = {id(row[0]): row for row in self.logged}
        self.logged_texts: dict[tuple[int, ...], dict[str, tuple]] = {}  # rows by values and text, of all but results' sizes
        for row in self.logged:
            if row[0].recipe[0] != "size" or row[0].recipe[1].op == "placeholder":
                self.logged_texts.setdefault(tuple(map(value_of, row)), {}).setdefault(text_of(row[0]), row)
        self.exact = ExactSizes(samples)
        self.shaping = self._shaping_sizes()
        columns = [column for row in self.logged for column in zip(*(size.recipe[1:] for size in row))]
        self.columns = {id(c[0]): list(c) for c in columns if type(c[0]) is RecordedFloat}  # floats that ints were computed from

    # ---- Expressions

    def expression(self, values: tuple[int, ...]) -> Expression | None:
        """What these values are of the symbols, if known."""
        if values not in self.expressions:
            self.expressions[values] = fitted(values, self.samples)
        return self.expressions[values]

    def _add_sizes(self, nodes: tuple[Node, ...]) -> None:
        """Makes the sizes of a node's result available."""
        found = [n.meta.get("val") for n in nodes]
        self.ready.add(nodes[0])
        if not isinstance(found[0], Tensor):
            return
        with _C.DisableTorchFunction():  # the values are fake tensors, whose attributes would pass through Python functions
            sizes = [tuple(v.shape) for v in found]
            dtypes = {v.dtype for v in found}
        shapes = list(zip(*sizes))
        if len(set(map(len, sizes))) > 1 or len(dtypes) > 1:
            raise StructureError(f"the result of {nodes[0]} has other dimensions or another dtype for other sizes")
        self.sizes[nodes[0]] = shapes
        symbolic = {}
        for dim, values in enumerate(shapes):
            if dim in nodes[0].meta.get("unbacked_dims", ()):  # the graph computes it, where it is used
                continue
            if len(set(values)) > 1:
                self.pool.setdefault(values, ("size", nodes[0], dim))
                expression = self.expression(values)
                symbolic[dim] = expression.text() if expression else None
        if symbolic:
            nodes[0].meta["symbolic_sizes"] = symbolic

    def _add_logged(self) -> None:
        for sizes in self.logged[self.next_logged :]:
            if not self._is_ready(sizes[0]):
                break
            values = tuple(map(value_of, sizes))
            if len(set(values)) > 1 and not (sizes[0].recipe[0] in LAYOUT and self._is_of_sizes(sizes[0].recipe[1], values)):
                if self.pool.setdefault(values, sizes[0].recipe) is sizes[0].recipe:
                    self.texts[values] = text_of(sizes[0])
            self.next_logged += 1

    def _is_of_sizes(self, node: Node, values: tuple[int, ...]) -> bool:
        """Whether a stride or an offset of a node's result is a known expression: a product of its sizes, for example, or of those of a
        tensor that it may be a view of. Makes the product known."""
        for _ in range(_MOST_VIEWS):
            self._add_products(self.sizes[node], values)
            node = next(iter(node.all_input_nodes), None)
            if values in self.pool or node not in self.sizes:
                break
        return values in self.pool or self._combined(values) is not None

    def _add_products(self, columns: list[tuple[int, ...]], values: tuple[int, ...]) -> None:
        """Makes the products of sizes known of which a number is a multiple."""
        for count in range(2, len(columns) + 1):
            for chosen in itertools.combinations(columns, count):
                product = tuple(map(math.prod, zip(*chosen)))
                pairs = list(zip(values, product))
                if any(not b or a % b for a, b in pairs) or len({a // b for a, b in pairs}) > 1:
                    continue
                known = chosen[0]
                for column in chosen[1:]:
                    both = tuple(a * b for a, b in zip(known, column))
                    a, b = (known, column) if len(set(known)) > 1 else (column, known)
                    if len(set(a)) > 1:
                        self.pool.setdefault(both, ("*", a, b if len(set(b)) > 1 else b[0]))
                    known = both

    def _is_ready(self, size: Any) -> bool:
        if not isinstance(size, (RecordedSize, RecordedFloat)):
            return True
        kind, origin, *_ = size.recipe
        return origin in self.ready if kind in ORIGINS else all(map(self._is_ready, operands_of(size)))

    def _computed(self, values: tuple[int, ...], where: Node, recipe: tuple | None = None) -> Node:
        """A node that computes a size that differs between the recordings."""
        if values in self.known:
            return self.known[values]
        recipe = recipe or self.pool.get(values) or self._combined(values)
        if recipe is None:
            raise StructureError(f"an argument of {where} is {list(values)} for other sizes, which is no known expression of sizes")
        kind, *operands = recipe
        if kind == "input":
            made = operands[0]
        elif kind in ORIGINS:
            node, name = operands[0], "storage_offset" if kind == "offset" else kind
            at = self.last_size or self.last_placeholder if node.op == "placeholder" else node
            with self.graph.inserting_after(at):
                overload = "default" if kind == "offset" else "int"
                target = getattr(aten.packet(f"sym_{name}"), overload)
                made = self.graph.create_node("call_function", target, tuple(operands), {}, f"sym_{name}_{overload}")
            if node.op == "placeholder":
                self.last_size = made
        else:
            given = [self._operand(o, where) for o in operands]
            with self.graph.inserting_before(where):
                made = self.graph.call_function(function_of(kind), tuple(given))
        made.meta["val"] = values[0]
        expression = self.expression(values)
        made.meta["symbolic_value"] = expression.text() if expression else None
        self.known[values] = made
        if recipe is self.pool.get(values) and values in self.texts:
            self.by_text.setdefault(self.texts[values], made)
        return made

    def _operand(self, operand: Any, where: Node) -> Any:
        if isinstance(operand, tuple):  # values of a size
            return self._computed(operand, where)
        if type(operand) is SymBool:
            return self._condition(operand, where)
        if type(operand) is RecordedFloat:
            return self._symbolic(self.columns[id(operand)], where)
        if not isinstance(operand, RecordedSize):
            return operand
        values = tuple(map(value_of, self.rows[id(operand)]))
        if not is_polynomial(operand):
            return self._as_recorded(operand, values, where)
        return values[0] if len(set(values)) == 1 else self._computed(values, where, operand.recipe)

    def _as_recorded(self, size: RecordedSize, values: tuple[int, ...], where: Node) -> Any:
        """A node that computes a quotient, a remainder or a choice as the function does.

        Its numbers in the recordings may be those of another expression, or all the same, and differ for other sizes.
        """
        text = text_of(size)
        if text not in self.by_text:
            kind, *operands = size.recipe
            given = [self._operand(o, where) for o in operands]
            if not any(isinstance(v, Node) for v in given):
                return values[0]
            with self.graph.inserting_before(where):
                made = self.by_text[text] = self.graph.call_function(function_of(kind), tuple(given))
            made.meta["val"] = values[0]
            expression = self.expression(values) if len(set(values)) > 1 else None
            made.meta["symbolic_value"] = expression.text() if expression else None
            self.known.setdefault(values, made)
        return self.by_text[text]

    def _symbolic(self, row: list[Any], where: Node) -> Any:
        """A node that computes a float or a bool of sizes as the function does.

        Args:
            row: of each recording, a RecordedFloat or SymBool, or a number that is equal to one of the same call by chance.
        """
        first, plain = row[0], list(map(value_of, row))
        if len(set(map(type, row))) > 1 or len(set(map(text_of, row))) > 1:
            if any(v != plain[0] or type(v) is not type(plain[0]) for v in plain):
                other = next(v for v in plain if v != plain[0])
                raise StructureError(f"an argument of {where} is {plain[0]!r} and {other!r} for other sizes")
            return plain[0]
        if type(first) is SymBool:
            return self._condition(first, where, row)
        if (text := text_of(first)) not in self.by_text:
            kind = first.recipe[0]
            given = [self._number(list(column), where) for column in zip(*(v.recipe[1:] for v in row))]
            if not any(isinstance(v, Node) for v in given):
                return plain[0]
            self.by_text[text] = self._call(kind, given, plain[0], where)
        return self.by_text[text]

    def _of_size(self, values: list[float], where: Node) -> Node | None:
        """A node that computes floats which are an operation of a constant and a size, such as an int that an operator takes as a float.
        None unless they are exactly those of one in all recordings."""
        for sizes in self.pool:
            if all(type(n) is int for n in sizes) and (found := float_of_size(values, sizes)) is not None:
                kind, constant = found
                text = f"{constant!r} {kind} sym_float{sizes}"
                if text not in self.by_text:
                    number = f"sym_float{sizes}"
                    if number not in self.by_text:
                        self.by_text[number] = self._call("sym_float", [self._computed(sizes, where)], float(sizes[0]), where)
                    self.by_text[text] = self._call(kind, [constant, self.by_text[number]], values[0], where)
                return self.by_text[text]
        return None

    def _number(self, column: list[Any], where: Node) -> Any:
        """An operand of a number of sizes."""
        return column[0] if type(column[0]) in (float, bool) else self._merged(column, where, [])

    def _call(self, kind: str, given: list[Any], value: Any, where: Node) -> Node:
        with self.graph.inserting_before(where):
            made = self.graph.call_function(function_of(kind), tuple(given))
        made.meta["val"] = value
        made.meta["symbolic_value"] = None
        return made

    def _condition(self, condition: SymBool, where: Node, row: list[Any] | None = None) -> Node | bool:
        """A node that computes a bool of sizes. `row` has those of all recordings."""
        if row is None:
            given = [self._operand(o, where) for o in condition.operands]
        else:
            given = [self._number(list(column), where) for column in zip(*(c.operands for c in row))]
        if not any(isinstance(v, Node) for v in given):
            return condition._value
        return self._call("sym_not" if condition.sign == "not" else condition.sign, given, condition._value, where)

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

    def _is_logged(self, size: RecordedSize) -> bool:
        """Whether the recordings have computed a size in the same way."""
        return id(size) in self.rows

    # ---- Sizes that the recordings do not determine

    def _sized(self, values: list[Any], plain: tuple[int, ...], where: Node) -> Any:
        """An argument that is a size in some of the recordings."""
        first = values[0]
        if isinstance(first, RecordedSize) and is_polynomial(first) and len(set(map(text_of, values))) == 1:
            return plain[0] if len(set(plain)) == 1 else self._computed(plain, where)
        texts = {text_of(v) for v in values if isinstance(v, RecordedSize)}
        if len(set(plain)) == 1 and (len(texts) > 1 or not all(isinstance(v, RecordedSize) for v in values)):
            texts.clear()
        rows = [row for text, row in self.logged_texts.get(plain, {}).items() if text in texts and not is_polynomial(row[0])]
        if len(rows) == 1:
            return self._as_recorded(rows[0][0], plain, where)
        self._require_values([v for v in (first,) if isinstance(v, RecordedSize)])
        if len(set(plain)) == 1:
            return plain[0]
        self._require_equal(plain)
        return self._computed(plain, where)

    def _shaping_sizes(self) -> list[RecordedSize]:
        """Sizes that have one value in all recordings, or those of another size, and determine sizes that the function reads."""
        read = {row[0].recipe[1] for row in self.logged if isinstance(row[0], RecordedSize) and row[0].recipe[0] == "size"}
        reached: dict[Node, dict[int, RecordedSize]] = {}
        for node in self.graph.nodes:
            found = {id(v): v for v in _given_sizes(node) if self._is_undetermined(v)}
            for given in node.all_input_nodes:
                found |= reached.get(given, {})
            if found:
                reached[node] = found
        return list({k: v for node in read & reached.keys() for k, v in reached[node].items()}.values())

    def _is_undetermined(self, size: RecordedSize) -> bool:
        if is_polynomial(size):
            return False
        row = self.rows.get(id(size))
        values = tuple(map(value_of, row)) if row else ()
        return len(set(values)) < 2 or len(self.logged_texts[values]) > 1

    def _require_values(self, sizes: list[RecordedSize]) -> None:
        """Makes guards that sizes have the values that they have in all recordings, for numbers in the graph may be these sizes."""
        for size in sizes:
            if is_polynomial(size) or id(size) in self.required:
                continue
            self.required.add(id(size))
            row = self.rows.get(id(size))
            if row is None:
                self.first.recording.log.guards.append(guard_of("==", size, value_of(size), True))
            elif len(set(map(value_of, row))) == 1:
                self._require(row, tuple(value_of(v) for v in row))

    def _require_equal(self, values: tuple[int, ...]) -> None:
        """Makes guards that the sizes with the same values in all recordings are equal: a number in the graph is one of them."""
        rows = list(self.logged_texts.get(values, {}).values())
        if values not in self.known_equal and any(not is_polynomial(row[0]) for row in rows):
            self.known_equal.add(values)
            for row in rows[1:]:
                self._require(row, rows[0])

    def _require(self, row: tuple, other: tuple) -> None:
        difference = self.exact.difference(tuple(row), tuple(other)) if same_text(row) and same_text(other) else None
        if difference is None or difference.terms:
            for capture, a, b in zip(self.captures, row, other):
                capture.recording.log.guards.append(guard_of("==", a, b, True))

    def require_sizes(self) -> None:
        """Makes guards of sizes that functions in C have read, and that are no known arguments of calls."""
        log = self.first.recording.log
        if log is not None:
            self._require_values([*log.unmatched, *log.reads.values(), *self.shaping])
            for size in self.shaping:
                values = tuple(map(value_of, self.rows.get(id(size), ())))
                if len(set(values)) > 1:
                    self._require_equal(values)

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
                self._add_logged()
                nodes[0].args = self._merged([n.args for n in nodes], nodes[0], numbers)
                nodes[0].kwargs = self._merged([n.kwargs for n in nodes], nodes[0], numbers)
            elif nodes[0].op == "get_attr":
                self._check_parts([getattr(c.recording.root, n.target) for c, n in zip(self.captures, nodes)])
            self._add_sizes(nodes)
        self._merge_outputs(numbers)

    def require_divisors(self) -> None:
        """Makes guards that the divisors of numbers which the graph does not compute are not 0, for which the function raises an error.

        Those that are positive for all sizes of at least 1 need none.
        """
        logs = [c.recording.log for c in self.captures]
        if None in logs:
            return
        ranges: dict[str, tuple[int, int | None]] = {name: (1, None) for name in self.samples[0]}
        for row in list(zip(*(log.divisions for log in logs))):
            if text_of(row[0][0]) in self.by_text:
                continue
            guards = [guard_of("!=", divisor, 0, True) for _, divisor in row]
            if len({g.text for g in guards}) > 1 or self.exact.bounds(tuple(divisor for _, divisor in row), ranges)[0] <= 0:
                for log, guard in zip(logs, guards):
                    log.guards.append(guard)

    def _merge_outputs(self, numbers: list[dict[Node, int]]) -> None:
        if any(c.out_spec != self.first.out_spec for c in self.captures):
            raise StructureError("the result has another structure for other sizes")
        self._add_logged()
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
        if any(type(v) in (SymBool, RecordedFloat) for v in values):
            return self._symbolic(values, where)
        if all(isinstance(v, RecordedSize) or type(v) is int for v in values):
            plain = tuple(map(value_of, values))
            if any(isinstance(v, RecordedSize) for v in values):
                return self._sized(values, plain, where)
            if len(set(plain)) == 1:
                return plain[0]
            self._require_equal(plain)
            return self._computed(plain, where)
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


def _given_sizes(node: Node) -> list[RecordedSize]:
    """The sizes among a call's arguments that determine sizes of its results."""
    schema = getattr(node.target, "_schema", None)
    given = [v for a, v in zip(schema.arguments, node.args) if str(a.type).startswith("SymInt")] if schema else []
    return [n for v in given for n in (v if isinstance(v, (list, tuple)) else (v,)) if isinstance(n, RecordedSize)]


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


def merge(captures: list[Captured], samples: list[dict[str, int]]) -> Callable[[tuple[int, ...]], Expression | None]:
    """Makes the first recording's graph serve the sizes of all; returns a function that finds expressions of values.

    Raises:
        StructureError: the recordings differ.
    """
    require_choices(captures)
    merger = _Merger(captures, samples)
    merger.run()
    merger.require_divisors()
    merger.require_sizes()
    return merger.expression


def computes_arguments(first: Captured, other: Captured, count: int) -> bool:
    """Whether the merged graph `first` computes the numbers among the arguments of another recording's first `count` calls.

    The other recording continues in another way after a guard, which the graph evaluates with what these calls return.
    """
    same = dict(zip(first.recording.log.calls[:count], other.recording.log.calls[:count]))
    same |= zip(*([n for n in c.recording.graph.nodes if n.op == "placeholder"] for c in (first, other)))

    def origin(node: Node) -> Any:
        """The value of a node's result in the other recording."""
        if node in same:
            return same[node].meta.get("val")
        if node.target is operator.getitem and node.args[0] in same:
            return same[node.args[0]].meta["val"][node.args[1]]
        if getattr(node.target, "_opname", "") == "sym_size":
            with _C.DisableTorchFunction():
                return origin(node.args[0]).shape[node.args[1]]
        return node.target(*(origin(v) if isinstance(v, Node) else v for v in node.args))

    def agree(merged: Any, given: Any) -> bool:
        if isinstance(given, Node):
            return True
        if isinstance(given, (list, tuple)):
            return len(merged) == len(given) and all(map(agree, merged, given))
        if isinstance(given, slice):
            return all(agree(getattr(merged, p), getattr(given, p)) for p in ("start", "stop", "step"))
        if isinstance(merged, Node):
            merged = origin(merged)
        given = value_of(given)
        return type(given) not in (bool, int, float) or merged == given or merged != merged

    try:
        return all(
            str(a.target) == str(b.target) and agree(a.args, b.args) and a.kwargs.keys() == b.kwargs.keys()
            and all(agree(a.kwargs[k], b.kwargs[k]) for k in a.kwargs) for a, b in same.items() if a.op == "call_function"
        )  # fmt: skip
    except (ArithmeticError, AttributeError, KeyError, IndexError, TypeError, ValueError):  # the graph fails where the recording does not
        return False


def _agree(row: tuple[Guard, ...]) -> bool:
    """Whether a guard is the same one in all recordings, with the same outcome."""
    return len({(g.relation, g.outcome, g.left if g.relation == "constant" else 0) for g in row}) == 1


def require_choices(captures: list[Captured]) -> None:
    """Makes guards of the bools of choices, such as torch.sym_ite()'s, that have the same outcome in all recordings.

    Nothing else shows what the other outcome would give. Does so once, and not for recordings that differ after a guard.

    Raises:
        StructureError: the recordings have different ones.
    """
    logs = [c.recording.log for c in captures if c.recording.log]
    if len({len(log.choices) for log in logs}) > 1:
        if not all(map(_agree, zip(*(log.guards for log in logs)))):
            return
        raise StructureError("sizes are chosen, as by torch.sym_ite(), more often for some sizes than for others")
    for row in zip(*(log.choices for log in logs)):
        if len({c._value for c in row}) == 1:
            for log, condition in zip(logs, row):
                log.guards += guards_of(condition)
    for log in logs:
        log.choices.clear()


class ViolatedGuard(NamedTuple):
    """A comparison whose outcome may differ: its text, its relation that holds for the example, and the compared difference."""

    text: str
    relation: str = ""
    difference: Expression | None = None


def violated_guards(
    captures: list[Captured], samples: list[dict[str, int]], ranges: dict[str, tuple[int, int | None]]
) -> list[ViolatedGuard]:
    """The comparisons of sizes whose outcome may differ within the ranges."""
    try:
        require_choices(captures)
    except StructureError as e:
        return [ViolatedGuard(str(e))]
    logs = [c.recording.log.guards for c in captures]
    found, exact = [], ExactSizes(samples)
    if len({len(log) for log in logs}) > 1 and not any(g.outcome != h.outcome for row in zip(*logs) for g, h in [(row[0], r) for r in row]):
        return [ViolatedGuard("comparisons of sizes, of which there are more for some sizes than for others")]
    for row in zip(*logs):
        first = row[0]
        if _needs_proof(first) and _agree(row):
            if not _holds_surely(row, exact, ranges):
                found.append(ViolatedGuard(first.text))
            continue
        values = tuple(g.left - g.right for g in row)
        if any(g.relation != first.relation for g in row):
            found.append(ViolatedGuard(first.text))
            break
        if first.relation == "constant" and len(set(values)) > 1:
            found.append(ViolatedGuard(first.text))
            continue
        relation = first.relation if first.outcome else NEGATED[first.relation]
        if len(set(values)) == 1:
            continue
        if any(g.outcome != first.outcome for g in row):
            found.append(ViolatedGuard(first.text, relation, fitted(values, samples)))
            break  # what follows depends on it
        if not holds(relation, difference := fitted(values, samples), values, ranges):
            found.append(ViolatedGuard(first.text, relation, difference))
    return list({g.text: g for g in found}.values())


def drop_certain_guards(captures: list[Captured], samples: list[dict[str, int]], ranges: dict[str, tuple[int, int | None]]) -> None:
    """Removes the first recording's guards of floats that hold for all sizes within the ranges, such as `1.0 / n <= 1.0`."""
    guards, exact = captures[0].recording.log.guards, ExactSizes(samples)
    rows = list(zip(*(c.recording.log.guards for c in captures)))
    certain = [row[0].relation != "constant" and row[0].compares_floats() and _holds_surely(row, exact, ranges) for row in rows]
    guards[: len(rows)] = [g for g, drop in zip(guards, certain) if not drop]


def _needs_proof(guard: Guard) -> bool:
    """Whether a guard may not hold although it does in all recordings: they determine no more than sums of products of sizes."""
    is_of_floats = guard.compares_floats() and guard.relation != "constant"
    return is_of_floats or any(type(v) is RecordedFloat or not is_polynomial(v) for v in guard.operands)


def _holds_surely(row: tuple[Guard, ...], exact: ExactSizes, ranges: dict[str, tuple[int, int | None]]) -> bool:
    """Whether a comparison has its outcome for all sizes within the ranges."""
    first, columns = row[0], list(zip(*(g.operands for g in row)))
    if len({(g.relation, g.outcome) for g in row}) > 1 or not all(map(same_text, columns)):
        return False
    relation = "==" if first.relation == "constant" else first.relation
    if not first.compares_floats() and (difference := exact.difference(*columns)) is not None:
        return holds(relation if first.outcome else NEGATED[relation], difference, (0,), ranges)
    return holds_between(relation, first.outcome, *(exact.bounds(column, ranges) for column in columns))


def sample_points(symbols: list[Symbol], low: int) -> list[dict[str, int]]:
    """Sizes of the symbols for the recordings: the hints first, then others within the ranges, different for each symbol."""
    count = 8 if len(symbols) == 1 else len(symbols) + 1 + min(len(symbols) * (len(symbols) + 1) // 2, 9) + 2
    offsets = (0, 1, 2, 3, 9, 22, 37, 58, 83, 120, 161, 204, 257, 310, 371, 440, 517, 600, 691, 790, 897, 1012)
    points = [{s.name: s.hint for s in symbols}]
    for k in range(count):
        point = {}
        for i, s in enumerate(symbols):
            base = max(s.low, low, 2)
            value = base + offsets[(k + 3 * i) % len(offsets)] + i * (k + 1)
            if k == count - 1:
                value = 4099 + 2 * i
            if s.high is not None:
                value = s.high if k == count - 1 else base + (value - base) % max(s.high - base + 1, 1)
            point[s.name] = value
        points.append(point)
    points += within_ranges([{**points[0], s.name: max(s.low, low, 2) + k} for s in symbols for k in (0, 1)], symbols)
    unique = {tuple(p.items()): p for p in points}
    return list(unique.values())


def points_near_constants(symbols: list[Symbol], log: Any, low: int) -> list[dict[str, int]]:
    """Points at which quotients and remainders of sizes and the constants that a function computes with change."""
    hints = {s.name: s.hint for s in symbols}
    recipes = [size.recipe for size in log.expressions if size.recipe[0] in ("//", "%")]
    constants = list(dict.fromkeys(abs(o) for recipe in recipes for o in recipe[1:] if type(o) is int))[:4]
    points = [{**hints, s.name: n} for c in constants for n in (c - 1, c, c + 1, 2 * c - 1) if low <= n < 1 << 40 for s in symbols]
    return within_ranges(points, symbols)


def within_ranges(points: list[dict[str, int]], symbols: list[Symbol]) -> list[dict[str, int]]:
    """The points whose sizes are in the ranges of the symbols."""
    return [p for p in points if all(s.low <= p[s.name] and (s.high is None or p[s.name] <= s.high) for s in symbols)]
