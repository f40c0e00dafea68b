"""What sizes are for all sizes of the arguments, as opposed to those of the recordings.

A few recordings determine a sum of products of sizes. They do not determine a remainder such as `n % 57`, which may have values that it
has in none of them. Here a size is known by how it was computed: exactly, where it is a sum of products whose coefficients depend on the
remainders of the symbols by a period, or by bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ._size_fit import NEGATED, Expression, fitted
from ._sizes import Guard, RecordedFloat, RecordedSize, bounds_of, is_polynomial, text_of, value_of

Interval = tuple[float, float]
Ranges = dict[str, tuple[int, int | None]]
_EVERYTHING: Interval = (-math.inf, math.inf)
_LARGEST_SIZE = 2**63 - 1  # of a dimension
_MOST_POINTS = 1 << 13  # at which an expression is compared with a size


class _Periodic(NamedTuple):
    """A size that is a polynomial of a degree in each symbol, for all sizes with the same remainders by a period."""

    value: Callable[[dict[str, int]], int]
    degree: int
    period: int


class ExactSizes:
    """Computes what sizes are for all sizes of symbols. A column is a number in all recordings, which compute it in the same way.

    Args:
        samples: the sizes of the symbols in the recordings.
    """

    def __init__(self, samples: list[dict[str, int]]) -> None:
        self.samples = samples

    def difference(self, left: tuple, right: tuple) -> Expression | None:
        """`left - right` as an expression that holds for all sizes; None if none is known."""
        found = fitted([value_of(a) - value_of(b) for a, b in zip(left, right)], self.samples)
        if found is None or all(map(is_polynomial, (left[0], right[0]))) or all(map(self._is_constant, (left, right))):
            return found
        a, b = self._periodic(left), self._periodic(right)
        if a is None or b is None:
            return None
        return found if self._is(found, _combined("-", a, b)) else None

    def bounds(self, column: tuple, ranges: Ranges) -> Interval:
        """Bounds of a number within the ranges."""
        ranges = {name: (low, _LARGEST_SIZE if high is None else high) for name, (low, high) in ranges.items()}
        return bounds_of(column, lambda ints: self._of_ints(ints, ranges))

    def _is(self, expression: Expression, size: _Periodic) -> bool:
        """Whether an expression is a size, for all sizes: it is if they are equal at enough points for each remainder."""
        period, degree = math.lcm(size.period, expression.divisor), max([size.degree, *map(len, expression.terms)])
        names, count = list(self.samples[0]), period * (degree + 1)
        if count ** len(names) > _MOST_POINTS:
            return False
        points = (dict(zip(names, values)) for values in itertools.product(range(count), repeat=len(names)))
        return all(expression.value(p) == size.value(p) for p in points)

    def _is_constant(self, column: tuple) -> bool:
        """Whether a number is computed from sizes that are the same for all sizes of the symbols."""
        first = column[0]
        if type(first) not in (RecordedSize, RecordedFloat):
            return type(first) in (int, float) and len(set(column)) == 1
        if type(first) is RecordedSize and is_polynomial(first):
            found = fitted([value_of(v) for v in column], self.samples)
            return found is not None and not any(found.terms)  # the key of a constant is empty
        return all(map(self._is_constant, zip(*(v.recipe[1:] for v in column))))

    def _periodic(self, column: tuple) -> _Periodic | None:
        first, values = column[0], tuple(map(value_of, column))
        if type(first) is RecordedFloat or type(values[0]) is not int:
            return None
        if is_polynomial(first):
            found = fitted(values, self.samples)
            return found and _Periodic(found.value, max(map(len, found.terms), default=0), found.divisor)
        kind, *operands = first.recipe
        if kind in ("//", "%") and (type(operands[1]) is not int or not operands[1]):
            return None
        if kind not in ("+", "-", "*", "//", "%", "neg"):
            return None
        parts = [self._periodic(part) for part in zip(*(v.recipe[1:] for v in column))]
        return None if None in parts else _combined(kind, *parts)

    def _of_ints(self, column: tuple, ranges: Ranges) -> Interval:
        first, values = column[0], tuple(map(value_of, column))
        if not isinstance(first, RecordedSize) and len(set(values)) == 1:
            return values[0], values[0]
        if (found := self.difference(column, (0,) * len(column))) is not None:
            return found.bounds(ranges)
        if is_polynomial(first):
            return _EVERYTHING
        kind, *parts = first.recipe[0], *zip(*(v.recipe[1:] for v in column))
        if kind == "sym_ite":
            del parts[0]
        if any(type(v) not in (int, float, RecordedSize, RecordedFloat) for part in parts for v in part):
            return _EVERYTHING
        return _interval(kind, *(bounds_of(part, lambda ints: self._of_ints(ints, ranges)) for part in parts))


def polynomial(value: Any) -> dict[tuple[str, ...], int] | None:
    """The coefficients of a sum of products of sizes of the arguments, by the sorted texts of the factors; None for another number."""
    if type(value) is int:
        return {(): value}
    if type(value) is not RecordedSize:
        return None
    kind, *operands = value.recipe
    if kind == "input" or kind == "size" and operands[0].op == "placeholder":
        return {(text_of(value),): 1}
    parts = [polynomial(o) for o in operands] if kind in ("+", "-", "*", "neg") else [None]
    if None in parts:
        return None
    a, b = parts if len(parts) == 2 else ({(): 0}, parts[0])
    found: dict[tuple[str, ...], int] = {}
    for x, c in a.items():
        if kind == "*":
            for y, d in b.items():
                key = tuple(sorted(x + y))
                found[key] = found.get(key, 0) + c * d
        else:
            found[x] = found.get(x, 0) + c
    for y, d in b.items() if kind != "*" else ():
        found[y] = found.get(y, 0) + (d if kind == "+" else -d)
    return found


def excludes_larger(guard: Guard) -> bool:
    """Whether a guard that does not hold for some sizes, but for smaller ones, holds for no larger ones either."""
    if (guard.relation if guard.outcome else NEGATED[guard.relation]) == "!=" or len(guard.operands) != 2:
        return False
    left, right = map(polynomial, guard.operands)
    if left is None or right is None:
        return False
    signs = {c > 0 for c in ({k: left.get(k, 0) - right.get(k, 0) for k in left | right if k}).values() if c}
    return len(signs) == 1


def same_text(column: tuple) -> bool:
    """Whether all recordings compute a number in the same way."""
    return len(set(map(text_of, column))) == 1


def _combined(kind: str, a: _Periodic, b: _Periodic | None = None) -> _Periodic:
    if b is None:
        return _Periodic(lambda p: -a.value(p), a.degree, a.period)
    if kind in ("//", "%"):
        divisor = b.value({})
        period = a.period * abs(divisor) if a.degree else a.period
        if kind == "//":
            return _Periodic(lambda p: a.value(p) // divisor, a.degree, period)
        return _Periodic(lambda p: a.value(p) % divisor, 0, period)
    period = math.lcm(a.period, b.period)
    if kind == "*":
        return _Periodic(lambda p: a.value(p) * b.value(p), a.degree + b.degree, period)
    sign = 1 if kind == "+" else -1
    return _Periodic(lambda p: a.value(p) + sign * b.value(p), max(a.degree, b.degree), period)


def _product(a: float, b: float) -> float:
    return 0 if 0 in (a, b) else a * b


def _quotient(a: float, b: float) -> float:
    """a // b, and its limits for infinite numbers."""
    if math.isinf(b):
        return 0 if a == 0 or (a > 0) == (b > 0) else -1
    return math.copysign(math.inf, a) * (1 if b > 0 else -1) if math.isinf(a) else a // b


def _interval(kind: str, a: Interval, b: Interval = (0, 0)) -> Interval:
    """Bounds of an operation of ints."""
    if kind in ("+", "-"):
        b = b if kind == "+" else (-b[1], -b[0])
        return a[0] + b[0], a[1] + b[1]
    if kind == "neg":
        return -a[1], -a[0]
    if kind in ("*", "//"):
        if kind == "//" and b[0] <= 0 <= b[1]:
            return _EVERYTHING
        ends = [(_product if kind == "*" else _quotient)(x, y) for x in a for y in b]
        return min(ends), max(ends)
    if kind == "%" and b[0] > 0:
        return (a if 0 <= a[0] and a[1] < b[0] else (0, min(b[1] - 1, a[1] if a[0] >= 0 else math.inf)))
    if kind == "%" and b[1] < 0:
        return b[0] + 1, 0
    if kind == "sym_max":
        return max(a[0], b[0]), max(a[1], b[1])
    if kind == "sym_min":
        return min(a[0], b[0]), min(a[1], b[1])
    if kind == "sym_ite":
        return min(a[0], b[0]), max(a[1], b[1])
    if kind in ("ceil", "floor", "round", "trunc"):
        return math.floor(a[0]) if math.isfinite(a[0]) else a[0], math.ceil(a[1]) if math.isfinite(a[1]) else a[1]
    return _EVERYTHING
