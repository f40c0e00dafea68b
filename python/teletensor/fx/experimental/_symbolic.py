"""Graphs for many sizes: a function is recorded for several sizes of its arguments, and the recordings are merged.

As in PyTorch, sizes of 0 and 1 in the example are constants, and equal sizes of the example are one symbol. A symbol for which the
function permits no other size is a constant too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from ..._C import Tensor
from ..._symbolic_bool import LOGIC, RELATIONS, SymBool
from ...utils import _pytree as pytree
from ..graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from ..graph_module import GraphModule
from ..node import Node
from ._composites import COMPOSITES
from ._exact_sizes import excludes_larger
from ._expanded import expanded_graph
from ._large_sizes import COMMON, EXCLUDED, FAILED, GUARDED, SAME, SIZES, UNNOTICED, Arguments, climb, scaled
from ._merge import Captured, StructureError, Symbol, computes_arguments, drop_certain_guards, merge, same_tensor
from ._numbers import Condition, is_number
from ._recorded import GradientsRequestedError
from ._recording import DynamicSizesError, Recording, plain_number, with_plain_numbers
from ._size_fit import Expression, fitted
from ._sizes import RecordedFloat, RecordedSize, SizeLog, is_polynomial, operands_of, origins, text_of, value_of
from ._unbacked import Values
from ._unbacked_plan import Plan
from .symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv

Point = dict[str, int]
_STEPS = (1, 2, 3, 9, 22, 37, 58, 120)
_FACTORS = (2, 3, 4, 5, 6, 8, 12, 64)
_MOST_PERIOD = 1 << 24


def symbols_of_example(leaves: list[Any], dynamic_ints: bool = True) -> list[Symbol]:
    """The symbols of the leaves of arguments: one for equal sizes of at least 2, and one for each int of at least 2."""
    found: dict[Any, Symbol] = {}
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            for dim, size in enumerate(tuple(leaf.shape)):
                if size >= 2:
                    symbol = found.setdefault(int(size), Symbol(f"s{len(found)}", int(size), 2, None, "DYNAMIC"))
                    symbol.places.append((i, dim, 1, 0))
        elif dynamic_ints and type(leaf) is int and leaf >= 2:
            symbol = found["input", i] = Symbol(f"s{len(found)}", leaf, 2, None, "DYNAMIC")
            symbol.places.append((i, -1, 1, 0))
    return list(found.values())


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


def _alone(symbol: Symbol, period: int) -> list[int]:
    """Other sizes to try for one symbol."""
    h = symbol.hint
    return [h + 1, 2 * h, h + 2, 3 * h, *([h - 1] if h > 2 else []), *([h + period] if period > 1 else [])]


def _congruent(symbols: list[Symbol], period: int) -> list[Point]:
    """Points at which the sizes have the example's remainders by the constants of a function."""
    hints = {s.name: s.hint for s in symbols}
    alone = [{**hints, s.name: s.hint + k * period} for s in symbols for k in (1, 2, 3, 9)]
    return alone + [{s.name: s.hint + _STEPS[(k + 3 * i) % 8] * period for i, s in enumerate(symbols)} for k in range(8)]


def _candidates(symbols: list[Symbol], exclude: int = 0) -> list[Point]:
    """Points near and far from the example, different for each symbol."""
    points = []
    for k in range(24):
        point = {}
        for i, s in enumerate(symbols):
            step, factor = _STEPS[(k // 2 + 3 * i + exclude) % 8], _FACTORS[(k // 2 + 3 * i) % 8]
            point[s.name] = s.hint + step + i * (k // 2 + 1) if k % 2 else s.hint * factor
        points.append(point)
    return points


def _ends(symbols: list[Symbol]) -> list[Point]:
    """Points with small sizes, and one with a larger size than most examples have for each symbol."""
    hints = {s.name: s.hint for s in symbols}
    alone = [{**hints, s.name: n} for s in symbols for n in (2, 3)]
    large = [{**hints, s.name: 1031 + 2 * i} for i, s in enumerate(symbols) if s.hint >= 1031]
    together = [dict.fromkeys(hints, n) for n in (2, 3)] if len(symbols) > 1 else []
    return [p for p in (*alone, *together, *large) if p != hints]


def _near_constants(symbols: list[Symbol], log: SizeLog) -> list[Point]:
    """Points at which quotients and remainders by the constants that a function computes with change, for a few constants."""
    hints = {s.name: s.hint for s in symbols}
    constants = dict.fromkeys(abs(o) for size in log.expressions for o in size.recipe[1:] if type(o) is int and size.recipe[0] != "size")
    large = [c for c in constants if 4 <= c < 1 << 40][:4]
    return [{**hints, s.name: n} for c in large for n in (c - 1, c, 2 * c - 1) for s in symbols]


def _period(log: SizeLog) -> int:
    """A distance of sizes with the same remainders by the constants of a function, if there are few of them."""
    recipes = [v.recipe for root in (*log.expressions, *(o for g in log.guards for o in g.operands)) for v in _quotients(root)]
    constants = {abs(int(v)) for recipe in recipes if (v := value_of(recipe[2])) == v and 2 <= abs(v) < _MOST_PERIOD}
    for period in (math.prod(constants), math.lcm(*constants)):
        if period < _MOST_PERIOD:
            return period
    return 1


def _quotients(value: Any) -> Iterator[Any]:
    """The quotients and remainders that a number was computed from."""
    if type(value) in (RecordedSize, RecordedFloat):
        if value.recipe[0] in ("//", "%", "/"):
            yield value
        for operand in operands_of(value):
            yield from _quotients(operand)


def _small_points(symbols: list[Symbol], condition: SymBool) -> list[Point]:
    """Points for the other outcome of a condition: sizes up to 12, and those near the condition's constants."""
    constants = {v for c in condition.comparisons() for v in c.operands if type(v) is int}
    sizes = sorted({*range(13), *(c + d for c in constants for d in (-1, 0, 1) if 0 <= c + d < 1 << 20)}, key=lambda n: (n < 2, n))
    hints = {s.name: s.hint for s in symbols}
    alone = [{**hints, s.name: n} for s in symbols for n in sizes]
    equal = [dict.fromkeys(hints, n) for n in sizes]
    shifted = [{s.name: sizes[(i + k * j) % len(sizes)] for j, s in enumerate(symbols)} for i in range(len(sizes)) for k in (1, 3, 7)]
    return sorted([*alone, *equal, *shifted], key=lambda point: min(point.values()) < 2)


def _outcome(row: list[Any], points: list[Point], point: Point) -> bool | None:
    """What a bool is at another point, from the bools in the recordings at `points`; None if that is not known."""
    first = row[0]
    if type(first) is not SymBool:
        return first
    if first.sign in RELATIONS:
        differences = [value_of(c.operands[0]) - value_of(c.operands[1]) for c in row]
        known = all(type(d) is int for d in differences) and fitted(differences, points)
        return RELATIONS[first.sign](known.value(point), 0) if known else None
    parts = [_outcome([c.operands[k] for c in row], points, point) for k in range(len(first.operands))]
    return None if None in parts else bool(LOGIC[first.sign](*parts))


class _UnnoticedReadError(Exception):
    """A recording has other operators, and no comparison had another outcome: C code, such as range(), has read a size."""


class Family:
    """Recordings of one function for points of symbols.

    Args:
        record: records the function at a point.
        symbols: those that may differ.
    """

    def __init__(self, record: Callable[[list[Symbol], Point], Captured], symbols: list[Symbol]) -> None:
        self.record, self.symbols = record, symbols
        self._refused_structure = False  # whether the last recordings to be merged differed
        self._guarded: list[tuple[Point, Captured, int]] = []  # recordings with other guards, and the number of calls before these
        self.first = record(symbols, self._example(symbols))

    @staticmethod
    def _example(symbols: list[Symbol]) -> Point:
        return {s.name: s.hint for s in symbols}

    def _compatible(self, symbols: list[Symbol], point: Point) -> Captured | None:
        """The recording at a point, if it has the example's operators and outcomes of comparisons.

        Raises:
            _UnnoticedReadError: no guard explains why it has other ones.
        """
        outcome, made = self._probed(symbols, point)
        if outcome == UNNOTICED and self.first.recording.log is not None:
            raise _UnnoticedReadError
        return made  # without a log, Python code receives ints, and comparisons() finds what it asks about them

    def _probed(self, symbols: list[Symbol], point: Point) -> tuple[str, Captured | None]:
        """How the recording at a point compares with the example's, and the recording if it has the same operators and outcomes."""
        try:
            made = self.record(symbols, point)
        except (GuardOnDataDependentSymNode, GradientsRequestedError):
            raise
        except Exception:  # noqa: BLE001 - whatever the function raises for other sizes
            return FAILED, None
        rows = [[(n.op, str(n.target) if n.op == "call_function" else "") for n in c.recording.graph.nodes] for c in (self.first, made)]
        logs = [c.recording.log.guards if c.recording.log else [] for c in (self.first, made)]
        for i, (a, b) in enumerate(zip(*logs)):
            if (a.relation, a.outcome) != (b.relation, b.outcome) or (a.relation == "constant" and a.left != b.left):
                self._guarded.append((point, made, made.recording.log.calls_before[i]))
                return EXCLUDED if excludes_larger(a) else GUARDED, None
        if rows[0] == rows[1] and made.out_spec == self.first.out_spec and len(logs[0]) == len(logs[1]):
            return SAME, made
        return UNNOTICED, None

    def _period(self) -> int:
        """A distance of sizes with the same remainders by the constants of the function."""
        log = self.first.recording.log
        return 1 if log is None else _period(log)

    def _merged(self, symbols: list[Symbol]) -> Captured | None:
        """The recording that serves the sizes of these symbols, or None. Sets their upper limits."""
        limits = {s.name: s.high for s in self.symbols}
        for s in symbols:
            s.high = None
        try:
            found = self._merged_points(symbols, False)
            if found is None and self._refused_structure:  # perhaps a constant is between the sizes: find which
                for s in symbols:
                    s.high = None
                found = self._merged_points(symbols, True)
        except _UnnoticedReadError:
            found = None
        if found is None:
            for s in self.symbols:
                s.high = limits[s.name]
        return found

    def _merged_points(self, symbols: list[Symbol], compares: bool) -> Captured | None:
        """_merged().

        Args:
            compares: whether the sizes are limited to those at which the arguments of operators are as for small sizes.
        """
        self._refused_structure, self._guarded = False, []
        first = self.record(symbols, self._example(symbols))
        wanted = 8 if len(symbols) == 1 else len(symbols) + 4 + min(len(symbols) * (len(symbols) + 1) // 2, 9)
        captures, points = [first], [self._example(symbols)]
        large = None if compares else self._large_points(symbols, None)

        def add(tried: list[Point], most: int) -> None:
            for point in tried:
                within = all(s.high is None or point[s.name] <= s.high for s in symbols)
                if len(captures) <= most and within and (made := self._compatible(symbols, point)) is not None:
                    captures.append(made)
                    points.append(point)

        if (log := first.recording.log) is not None:
            add([*_ends(symbols), *_near_constants(symbols, log)], 1 << 20)
        wanted += len(captures)
        add(_candidates(symbols), wanted)
        if (period := self._period()) > 1:
            add(_congruent(symbols, period), wanted)
        if large is None:
            large = self._large_points(symbols, Arguments(captures, points, self._example(symbols)))
            kept = [i for i, p in enumerate(points) if all(s.high is None or p[s.name] <= s.high for s in symbols)]
            captures, points = [captures[i] for i in kept], [points[i] for i in kept]
        for point, made in large:
            if point not in points and all(s.high is None or point[s.name] <= s.high for s in symbols):
                captures.append(made)
                points.append(point)
        self._add_other_choices(symbols, captures, points)
        if len(captures) < 5 or self._has_constants_of_sizes(captures):
            return None
        if first.recording.log is None:
            for s in symbols:
                s.high = max(point[s.name] for point in points)
        elif any(len({point[s.name] for point in points}) < 4 for s in symbols):
            return None  # too few sizes to find how numbers depend on them
        try:
            merge(captures, points)
        except StructureError:
            self._refused_structure = True
            return None
        if first.recording.log is not None:
            if not self._limited_by_guards(first, symbols, points):
                return None
            drop_certain_guards(captures, points, {s.name: (s.low, s.high) for s in symbols})
        return first

    def _limited_by_guards(self, first: Captured, symbols: list[Symbol], points: list[Point]) -> bool:
        """Limits the symbols to sizes at which the merged graph evaluates the guards with the numbers that the function has.

        Returns False if it does not at sizes smaller than the example's.
        """
        for point, made, count in self._guarded:
            if any(s.high is not None and point[s.name] > s.high for s in symbols) or computes_arguments(first, made, count):
                continue
            larger = [s for s in symbols if point[s.name] > s.hint]
            for s in larger:
                s.high = max(p[s.name] for p in points if p[s.name] < point[s.name])
            if not larger:
                return False
        return True

    def _large_points(self, symbols: list[Symbol], arguments: Arguments | None) -> list[tuple[Point, Captured]]:
        """Recordings for large sizes of each symbol and of all. Limits the symbols where larger sizes would need another graph.

        Args:
            arguments: those that operators have for small sizes, if others limit the symbols.
        """
        hints = self._example(symbols)

        def probed(point: Point) -> tuple[str, Captured | None]:
            outcome, made = self._probed(symbols, point)
            return (UNNOTICED, None) if made is not None and arguments and not arguments.agree(made, point) else (outcome, made)

        if self.first.recording.log is None:
            return self._large_points_with_values(symbols, probed)
        found: list[tuple[Point, Captured]] = []
        period = self._period()
        for i, s in enumerate(symbols):
            made, s.high = climb(lambda n, s=s: probed({**hints, s.name: n}), s.hint, tuple(n + 2 * i for n in SIZES), period)
            found += [({**hints, s.name: n}, c) for n, c in made.items()]
        return found + (self._points_together(symbols, probed) if len(symbols) > 1 else [])

    def _large_points_with_values(self, symbols: list[Symbol], probed: Callable) -> list[tuple[Point, Captured]]:
        """_large_points() of a function that computes values, and may compute as many as it needs for these sizes."""
        hints, found = self._example(symbols), []
        for i, s in enumerate(symbols):
            leaves = [leaf for leaf, *_ in s.places]
            for n in SIZES[:2] if len(set(leaves)) == len(leaves) else ():
                point = {**hints, s.name: n + 2 * i}
                if (made := probed(point)[1]) is None:
                    break
                found.append((point, made))
        return found

    def _points_together(self, symbols: list[Symbol], probed: Callable) -> list[tuple[Point, Captured]]:
        """Recordings in which all symbols are large."""
        hints, found = self._example(symbols), []
        distance = math.lcm(COMMON, self._period())
        for factor in (distance + 1, 143 * distance + 1):  # sizes with the same remainders, and in the same order
            point = {s.name: min(s.hint * factor, s.high or s.hint * factor) for s in symbols}
            outcome, made = probed(point)
            if outcome == UNNOTICED:
                limits = scaled(hints, point, lambda p: probed(p)[0] != UNNOTICED)
                for s in symbols:
                    s.high = limits[s.name]
                point = limits
                outcome, made = probed(point)
            if made is not None:
                found.append((point, made))
        return found

    def _add_other_choices(self, symbols: list[Symbol], captures: list[Captured], points: list[Point]) -> None:
        """Adds recordings in which the choices (_sizes.CHOICES) that have one outcome in all others have the other one.

        A choice has the values of one of its operands in recordings with one outcome, which would take its place.
        """
        logs = [c.recording.log.choices for c in captures if c.recording.log]
        if len({len(log) for log in logs}) != 1:
            return
        for i, condition in enumerate(logs[0]):
            if any(c.recording.log.choices[i]._value is not condition._value for c in captures):
                continue
            row = [c.recording.log.choices[i] for c in captures]
            tried = 0
            for point in _small_points(symbols, condition):
                if tried == 4 or _outcome(row, points, point) is condition._value:
                    continue
                tried += 1
                made = self._compatible(symbols, point)
                if made is not None and len(made.recording.log.choices) == len(logs[0]):
                    captures.append(made)
                    points.append(point)
                    if made.recording.log.choices[i]._value is not condition._value:
                        break
                    row.append(made.recording.log.choices[i])

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

    def _may_differ(self, symbol: Symbol) -> bool:
        """Whether the function permits another size of the symbol, and notices each read of it."""
        try:
            return any([self._compatible([symbol], {symbol.name: n}) is not None for n in _alone(symbol, self._period())])
        except _UnnoticedReadError:
            return False

    def run(self) -> tuple[Captured, list[Symbol]]:
        """The merged recording, and the symbols that are left."""
        kept = [s for s in self.symbols if self._may_differ(s)]
        if kept and (found := self._merged(kept)) is not None:
            return found, kept
        alone: list[Symbol] = []
        best = self.first
        for symbol in kept:  # one after the other
            if (found := self._merged([*alone, symbol])) is not None:
                alone.append(symbol)
                best = found
        return best, alone


def symbolic_graph(
    recording: Callable[[SizeLog], Recording], call: Callable[[Recording, tuple], Any], args: tuple, names: list[str],
    dynamic: bool = True,
) -> GraphModule:  # fmt: skip
    """The graph of a function for many sizes of its arguments, and for all values of their elements.

    Args:
        recording: makes a recording with a log.
        call: calls the function with recorded arguments, and returns its result.
        names: of the placeholders, for each leaf of the arguments.
        dynamic: whether sizes of the arguments may differ.
    """
    what = recording, call, args, names, dynamic
    if dynamic:
        try:
            return _symbolic_graph(what, None)
        except (GuardOnDataDependentSymNode, DynamicSizesError):  # numbers may depend on values
            pass
    plan = Plan(not dynamic)
    return plan.run(lambda: _symbolic_graph(what, plan))


def _symbolic_graph(what: tuple, plan: Plan | None) -> GraphModule:
    """symbolic_graph().

    Args:
        plan: of numbers that depend on values; None if the function uses none.
    """
    recording, call, args, names, dynamic = what
    leaves, spec = pytree.tree_flatten(args)

    def record(symbols: list[Symbol], point: Point) -> Captured:
        if plan is None:
            return record_values(symbols, point, None)
        at_example = all(point[s.name] == s.hint for s in symbols)
        return (plan.first if at_example else plan.recorded)(lambda v: record_values(symbols, point, v))[0]

    def record_values(symbols: list[Symbol], point: Point, values: Values | None) -> Captured:
        sizes = sizes_at(leaves, symbols, point)
        made = Captured()
        made.recording, made.constants = recording(SizeLog(values)), {}
        given: list[Any] = []
        for i, (name, leaf) in enumerate(zip(names, leaves)):
            if isinstance(leaf, Tensor):
                given.append(made.recording.placeholder(name, leaf, sizes.get(i)))
            elif i in sizes:
                given.append(made.recording.symbolic_number(name, sizes[i]))
            else:
                given.append(made.recording.number(name, leaf))
        result, made.out_spec = pytree.tree_flatten(call(made.recording, pytree.tree_unflatten(given, spec)))
        made.recording.check_refused()
        result = [bool(v) if type(v) is Condition else made.recording.argument(v) if is_number(v) else v for v in result]
        made.outputs = [made.recording.own(v)._node if isinstance(v, Tensor) else v for v in result]
        return made

    made, symbols = Family(record, symbols_of_example(leaves) if dynamic else []).run()
    if plan is not None:
        plan.check(lambda v: record_values(symbols, {s.name: s.hint for s in symbols}, v))
        values = made.recording.unbacked
        values.describe()
        symbols = [*symbols, *(Symbol(plan.name(k), v, *plan.ranges()[f"u{k}"], "unbacked") for k, v in enumerate(values.values))]
    outputs = [plain_number(value_of(o) if isinstance(o, RecordedSize) else o) for o in made.outputs]
    with_plain_numbers(made.recording.graph)
    made.recording.graph.output(pytree.tree_unflatten(outputs, made.out_spec))
    return _module(made.recording.root, made.recording, args, symbols, leaves)


def symbolic_expansion(f: Callable, args: tuple, table: dict) -> GraphModule:
    """The graph of a function that computes gradients, for many sizes of its arguments."""
    leaves, spec = pytree.tree_flatten(args)
    noted = _noted(f, leaves, spec)
    outcomes = noted and _outcomes(noted)
    all_symbols = symbols_of_example(leaves, False)
    logs: dict[tuple[int, ...], SizeLog] = {}  # by the sizes of all symbols

    def record(symbols: list[Symbol], point: Point) -> Captured:
        given = resized(leaves, sizes_at(leaves, symbols, point))
        if noted is not None:
            if (other := _noted(f, given, spec)) is None or _outcomes(other) != outcomes:
                raise StructureError("comparisons of sizes have other outcomes")
            logs[tuple(point.get(s.name, s.hint) for s in all_symbols)] = other.log
        module = expanded_graph(f, pytree.tree_unflatten(given, spec), table)
        return captured_of(module)

    guards: list[str] | None = []
    made, symbols = Family(record, all_symbols).run()
    if noted is not None and (guards := _guards_of_arguments(logs, all_symbols, symbols, _is_shaped_by_products(noted))) is None:
        made, symbols, guards = *Family(record, []).run(), []
    made.recording.graph.output(pytree.tree_unflatten(made.outputs, made.out_spec))
    return _module(made.recording.root, made.recording, args, symbols, leaves, guards)


def _is_shaped_by_products(recording: Recording) -> bool:
    """Whether calls receive no quotients, remainders or choices of sizes that may determine sizes of their results.

    A few recordings do not determine such sizes.
    """
    if any(not is_polynomial(n) for n in (*recording.log.unmatched, *recording.log.reads.values())):
        return False
    for node in recording.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        given = node.args, node.kwargs
        if schema and node.all_input_nodes:  # otherwise also arguments of arange(), for example
            of_sizes = {a.name for a in schema.arguments if str(a.type).startswith("SymInt")}
            named = {**dict(zip((a.name for a in schema.arguments), node.args)), **node.kwargs}
            given = [v for name, v in named.items() if name in of_sizes]
        if any(type(v) in (RecordedSize, RecordedFloat) for v in pytree.tree_leaves(given)):
            return False
    return True


_ORIGIN = re.compile(r"\b\w+\.(?:(?:size|stride)\(\)\[\d+\]|storage_offset\(\))")  # a number of a tensor, in text_of()


def _guards_of_arguments(
    logs: dict[tuple[int, ...], SizeLog], all_symbols: list[Symbol], symbols: list[Symbol], fits: bool
) -> list[str] | None:  # fmt: skip
    """The guards of recordings as text, with expressions of sizes of the arguments in place of sizes of results.

    Args:
        logs: of the recordings, by the sizes of `all_symbols`.
        symbols: those that may differ.
        fits: whether sizes of results are known from their values in the recordings.

    Returns None if a number of a result is no known expression, or if the result may be contiguous for some sizes only.
    """
    kept = {s.name for s in symbols}
    rows = [({s.name: n for s, n in zip(all_symbols, sizes)}, log) for sizes, log in logs.items()]
    rows = [(p, log) for p, log in rows if all(p[s.name] == s.hint for s in all_symbols if s.name not in kept)]
    rows = [(p, log) for p, log in rows if all(s.high is None or p[s.name] <= s.high for s in symbols)]
    points = [{name: p[name] for name in kept} for p, _ in rows]
    written: dict[str, str] = {}  # by the text of a number of a result
    texts = []
    for guards in zip(*(log.guards for _, log in rows)):
        is_contiguous = len(guards[0].operands) == 1
        is_of_result = is_contiguous and guards[0].operands[0].recipe[1].op != "placeholder"
        if is_of_result or len({g.text for g in guards}) > 1:
            return None
        for column in zip(*([n for v in g.operands for n in origins(v)] for g in guards)):
            text = text_of(column[0])
            if column[0].recipe[1].op == "placeholder" or text in written:
                continue
            found = fitted([n.plain() for n in column], points) if fits else None
            if found is None:
                return None
            places = {s.name: f"arg{leaf}_1.size()[{dim}]" for s in symbols for leaf, dim, _, _ in s.places[:1]}
            terms = {tuple(places[name] for name in names): c for names, c in found.terms.items()}
            expression = Expression(terms, found.divisor).text()
            written[text] = f"({expression})" if " " in expression or "*" in expression else expression
        text = _ORIGIN.sub(lambda m: written.get(m[0], m[0]), guards[0].text)
        if _ORIGIN.search(text) or is_contiguous:  # it may not hold for other sizes
            texts.append(text)
    return texts


def comparisons(f: Callable, args: tuple) -> tuple | None:
    """What a function does for arguments of these sizes: the outcomes of comparisons of sizes in its Python code, the numbers that it
    reads, and the operators that it calls.

    Args:
        f: is called with recorded arguments, and computes no values.

    Returns None if the function cannot be recorded without values.
    """
    noted = _noted(f, *pytree.tree_flatten(args))
    return noted and (*_outcomes(noted), *((n.op, str(n.target)) for n in noted.graph.nodes))


def _noted(f: Callable, leaves: list[Any], spec: Any) -> Recording | None:
    """A recording of a function that notes what it decides by sizes. None if the function cannot be recorded without values."""
    recording = Recording(True, COMPOSITES, SizeLog())
    recording.notes_sizes_only = True
    given = [recording.placeholder(f"arg{i}_1", x) if isinstance(x, Tensor) else x for i, x in enumerate(leaves)]
    try:
        with recording:
            f(*pytree.tree_unflatten(given, spec))
    except Exception:  # noqa: BLE001 - whatever the function raises
        return None
    return recording


def _outcomes(recording: Recording) -> tuple:
    return tuple((g.relation, g.outcome, g.left if g.relation == "constant" else 0) for g in recording.log.guards)


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

    log = None

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


def _constants(graph: Graph, dropped: list[Symbol]) -> list[str]:
    """What a graph relies on for symbols that became constants, as text."""
    names = [n.name for n in graph.nodes if n.op == "placeholder"]
    places = [(names[leaf], dim, s.hint) for s in dropped for leaf, dim, _, _ in s.places]
    return [f"{name} == {hint}" if dim < 0 else f"{name}.size()[{dim}] == {hint}" for name, dim, hint in places]


def _equal_sizes(graph: Graph, symbols: list[Symbol]) -> list[str]:
    """What a graph relies on for sizes that are one symbol, as text."""
    names = [n.name for n in graph.nodes if n.op == "placeholder"]
    found = []
    for symbol in symbols:
        first, *others = [f"{names[leaf]}.size()[{dim}]" for leaf, dim, _, _ in symbol.places if dim >= 0] or [""]
        found += [f"{first} == {other}" for other in others]
    return found


def _limits(graph: Graph, symbols: list[Symbol]) -> list[str]:
    """The largest sizes for which a graph is known to be right, as text."""
    names = [n.name for n in graph.nodes if n.op == "placeholder"]
    places = [(names[leaf], dim, s.high) for s in symbols if s.high is not None for leaf, dim, _, _ in s.places[:1]]
    return [f"{name} <= {high}" if dim < 0 else f"{name}.size()[{dim}] <= {high}" for name, dim, high in places]


def _module(
    root: Any, recording: Any, args: tuple, symbols: list[Symbol], leaves: list[Any], guards: Collection[str] = ()
) -> GraphModule:
    graph = recording.graph
    remove_unused_items(graph)
    set_arguments(graph, args)
    module = GraphModule(root, graph)
    kept = {s.name for s in symbols}
    equal = _equal_sizes(graph, symbols)
    guards = [*guards, *(g.text for g in recording.log.guards)] if recording.log else list(guards)
    guards += _constants(graph, [s for s in symbols_of_example(leaves, recording.log is not None) if s.name not in kept])
    module.shape_env = ShapeEnv({s.name: s.hint for s in symbols}, list(dict.fromkeys([*guards, *equal, *_limits(graph, symbols)])))
    return module


def remove_unused_items(graph: Graph, kept: Collection[Node] = ()) -> None:
    """Removes items of several results, sizes and reads of attributes that no node uses, except those of `kept`."""
    for node in reversed(list(graph.nodes)):
        removable = node.op == "get_attr" or getattr(node.target, "__name__", "") == "getitem" or is_size(node)
        if removable and not node.users and node not in kept:
            graph.erase_node(node)


def is_size(node: Node) -> bool:
    """Whether a node computes a number from sizes, or from values of tensors."""
    return node.op == "call_function" and isinstance(node.meta.get("val"), (int, float)) and "symbolic_value" in node.meta


def set_arguments(graph: Graph, args: tuple) -> None:
    """Gives a graph the structure of its arguments, if one of them is a container."""
    if any(isinstance(a, (list, tuple, dict)) for a in args):
        _, spec = pytree.tree_flatten((args, {}))
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo([f"arg{i}" for i in range(len(args))], spec, None)))
