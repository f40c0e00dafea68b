"""Checks of unbacked numbers: torch._check(), comparisons that it decides, and values of symbols that satisfy them."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from typing import Any

from ..._library import aten
from ._numbers import ARITHMETIC, COMPARISONS, Condition, Facts, Number, guard_error, operands_of, text_of, value_of
from ._sizes import RecordedSize
from .symbolic_shapes import GuardOnDataDependentSymNode


class RetryError(BaseException):
    """The function is to be recorded again, with these values of symbols."""

    def __init__(self, values: dict[int, Any]) -> None:
        self.values = values
        super().__init__(values)


class NotPermittedError(GuardOnDataDependentSymNode):
    """What the function checks does not hold for any values, or not for those that were given."""


_OPERATIONS: dict[str, Callable] = {
    "neg": operator.neg, "and": operator.and_, "or": operator.or_, "eq": operator.eq, "xor": operator.ne, **COMPARISONS,
}  # fmt: skip


_FLOAT_OPERATIONS: dict[str, Callable] = {
    "abs": abs, "ceil": math.ceil, "floor": math.floor, "round": round, "trunc": math.trunc, "**": operator.pow,
}  # fmt: skip


def function_of(kind: str) -> Callable:
    """The function that computes a number of a recipe in the graph, or the operation of a SymBool."""
    if kind in _OPERATIONS:
        return _OPERATIONS[kind]
    if kind in _FLOAT_OPERATIONS:
        return _FLOAT_OPERATIONS[kind]
    if kind == "float" or kind.startswith("sym_"):
        import teletensor

        return getattr(teletensor, "sym_float" if kind == "float" else kind)
    return ARITHMETIC[kind]


class Checks:
    """A part of Values (_unbacked.py), which documents the attributes."""

    plan: Any
    recording: Any
    seed: int
    static: bool
    fixed: dict[int, Any]
    values: list[Any]
    highs: list[Any]
    places: dict[tuple, int]
    conditions: list[Condition]
    unused: dict[int, Condition]
    facts: Facts
    nodes: dict[str, tuple[Any, Any]]
    retry: RetryError | None
    failed: Callable[[Exception], Exception]
    check_reads: Callable[[], None]

    def decide(self, condition: Condition, is_users: bool) -> bool:
        """The outcome of a comparison for all values.

        A function of this package that treats sizes of 0 and 1 in another way makes the graph check that the size is larger.

        Args:
            is_users: whether code outside of this package asks.

        Raises:
            GuardOnDataDependentSymNode: it depends on the values.
        """
        self.check_reads()
        found = self.facts.outcome(condition)
        if found is None and not is_users and (name := self.facts.small_size(condition)) is not None:
            size = next((n for n in _parts(condition) if text_of(n) == name), None)
            if size is not None and size.recipe[0] == "size" and size.recipe[1].graph is self.recording.graph:
                self.require(Condition(">=", size, 2, self), None)
                found = self.facts.outcome(condition)
        if found is None:
            raise self.failed(guard_error(condition.text()))
        return found

    def require(self, condition: Condition, message: Any) -> None:
        """Adds the nodes of torch._check(condition)."""
        self.unused.pop(id(condition), None)
        recording = self.recording
        text = condition.text()
        if any(c.text() == text for c in self.conditions):
            return
        if recording.is_suspended():
            raise NotImplementedError("[torch._check] a number that depends on values, in a function that an operator calls")
        if not condition.outcome:
            self.retry = RetryError(self._solution(condition))
            raise self.retry
        self.conditions.append(condition)
        self.facts.add(condition)
        self._learn(condition)
        with recording.unrecorded():
            sides = [self.node_of(recording, condition.left), self.node_of(recording, condition.right)]
            compared = recording.add(COMPARISONS[condition.relation], tuple(sides), {})
            compared.meta |= {"val": True, "symbolic_value": text, "unbacked": True}
            note = f"Runtime assertion failed for expression {text} on node '{compared.name}'"
            if isinstance(message, str):
                note = message if message.startswith("Runtime assertion failed") else f"{note}: {message}"
            recording.add(aten.packet("_assert_scalar").default, (compared, note), {})

    def node_of(self, recording: Any, value: Any) -> Any:
        """The node that computes a number; the number itself if it does not depend on values and the sizes are constants."""
        if type(value) is RecordedSize and self.static:
            return value.plain()
        if type(value) not in (Number, RecordedSize):
            return value
        if recording is not self.recording:
            raise NotImplementedError("a number that depends on values, in a function that an operator calls")
        text = text_of(value)
        if text not in self.nodes:
            kind, *operands = value.recipe
            graph = recording.graph
            if kind in ("size", "input", "item") and operands[0].graph is not graph:
                raise NotImplementedError("a size of a tensor within a function that an operator calls, outside of it")
            if kind in ("input", "item"):
                return operands[0]
            with recording.unrecorded():
                if kind == "size":
                    made = self._size_node(graph, *operands)
                else:
                    made = graph.call_function(function_of(kind), tuple(self.node_of(recording, o) for o in operands))
            made.meta |= {"val": value_of(value), "symbolic_value": text, "unbacked": True}
            self.nodes[text] = made, value
        return self.nodes[text][0]

    @staticmethod
    def _size_node(graph: Any, node: Any, dim: int) -> Any:
        """A node for a size, right behind the tensor's, so that later calls in place do not change it."""
        after = node
        while after.op == "placeholder" and after.next.op == "placeholder":
            after = after.next
        with graph.inserting_after(after):
            return graph.create_node("call_function", aten.packet("sym_size").int, (node, dim), {}, "sym_size_int")

    def _learn(self, condition: Condition) -> None:
        """Narrows the bounds of a symbol that values are chosen from, and that the program shows."""
        relation, left, right = condition.relation, condition.left, condition.right
        k, n = self._symbol_of(left), right
        if k is None:
            k, n, relation = self._symbol_of(right), left, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(relation, relation)
        if k is None or type(n) is not int or self.plan.kinds[k] == "float":
            return
        bounds = self.plan.bounds[k]
        low = {">": n + 1, ">=": n, "==": n}.get(relation)
        high = {"<": n - 1, "<=": n, "==": n}.get(relation)
        if low is not None:
            bounds[0] = low if bounds[0] is None else max(bounds[0], low)
        if high is not None:
            bounds[1] = high if bounds[1] is None else min(bounds[1], high)

    def _symbol_of(self, value: Any) -> int | None:
        return self.places.get(tuple(value.recipe[1:])) if type(value) is Number and value.recipe[0] in ("size", "item") else None

    def _guessed(self, value: Any) -> int | None:
        """The symbol that a number probably is, for the choice of values only."""
        k = self._symbol_of(value)
        if k is None and type(value) is Number and value.recipe[0] == "size" and value.value in self.values:
            return self.values.index(value.value)
        return k

    def _value(self, value: Any, changed: dict[int, Any]) -> Any:
        """A number for other values of symbols, as far as it is known how it follows from them."""
        if type(value) is not Number:
            return value_of(value)
        k = self._guessed(value)
        if k is not None:
            return changed.get(k, self.values[k])
        kind, *operands = value.recipe
        if kind in ("size", "item"):
            return value.value
        found = [self._value(o, changed) for o in operands]
        return -found[0] if kind == "neg" else float(found[0]) if kind == "float" else ARITHMETIC[kind](*found)

    def _solution(self, condition: Condition) -> dict[int, Any]:
        """Values of symbols for which the condition holds, and all that were required before."""
        chosen = random.Random(self.seed)
        required = [*self.conditions, condition]
        mine = sorted({k for n in _parts(condition) if (k := self._guessed(n)) is not None}, reverse=True)
        sides = [value_of(condition.left), value_of(condition.right)]
        near = [int(s) + d for s in sides for d in (-2, -1, 0, 1, 2)]
        for k in mine:
            if self.plan.kinds[k] == "float":
                tried: list[Any] = [s + d for s in sides for d in (-1.5, -0.25, 0.0, 0.25, 1.5)] + [i / 4 for i in range(-40, 41)]
            else:
                tried = [n for n in dict.fromkeys([*range(-8, 200), *near]) if self._permitted({k: n})]
            found = [n for n in tried if self._holds(required, {k: n})]
            if found:
                large = [n for n in found if n >= 2]
                return {**self.fixed, k: chosen.choice(large or found)}
        whole = [k for k in mine if self.plan.kinds[k] != "float"]
        for k, j in ((k, j) for k in whole for j in whole if j < k):
            pairs = [{k: n, j: m} for n in range(32) for m in range(32)]
            chosen.shuffle(pairs)
            for pair in pairs:
                if self._permitted(pair) and self._holds(required, pair):
                    return {**self.fixed, **pair}
        raise NotPermittedError(f"found no numbers that satisfy torch._check({condition.text()})")

    def _permitted(self, values: dict[int, int]) -> bool:
        """Whether values are within the bounds of their symbols."""
        ranges = self.plan.ranges()
        bounds = [(n, *ranges[f"u{k}"], self.highs[k]) for k, n in values.items()]
        return all(not (low is not None and n < low) and all(h is None or n <= h for h in highs) for n, low, *highs in bounds)

    def _holds(self, conditions: list[Condition], changed: dict[int, Any]) -> bool:
        try:
            return all(COMPARISONS[c.relation](self._value(c.left, changed), self._value(c.right, changed)) for c in conditions)
        except ArithmeticError:
            return False


def _parts(condition: Condition) -> list[Number]:
    """The numbers that a condition follows from."""
    found: list[Number] = []

    def walk(value: Any) -> None:
        found.extend([value] if type(value) is Number else [])
        for operand in operands_of(value):
            walk(operand)

    walk(condition.left)
    walk(condition.right)
    return found
