"""Expressions of symbols that sizes follow, found from the sizes of several recordings."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any


class Expression:
    """(sum of coefficient * product of symbols) // divisor, with integer coefficients.

    Attributes:
        terms: coefficients by the sorted names of the factors; () is the constant.
        divisor: 1 unless the size is rounded down.
    """

    def __init__(self, terms: dict[tuple[str, ...], int], divisor: int = 1) -> None:
        self.terms, self.divisor = {k: c for k, c in terms.items() if c}, divisor

    def value(self, symbols: dict[str, int]) -> int:
        """The size for these sizes of the symbols."""
        total = sum(c * math.prod(symbols[s] for s in names) for names, c in self.terms.items())
        return total // self.divisor

    def bounds(self, ranges: dict[str, tuple[int, int | None]]) -> tuple[float, float]:
        """Bounds of the value; infinite if there are none."""
        low, high = 0.0, 0.0
        for names, c in self.terms.items():
            smallest = math.prod(ranges[s][0] for s in names)
            largest = math.prod(math.inf if ranges[s][1] is None else ranges[s][1] for s in names) if names else 1
            low += c * (smallest if c > 0 else largest)
            high += c * (largest if c > 0 else smallest)
        rounded = [v if math.isinf(v) else v // self.divisor for v in (low, high)]
        return rounded[0], rounded[1]

    def text(self) -> str:
        """The expression as Python code of the symbols."""
        parts = []
        for names, c in sorted(self.terms.items(), key=lambda item: (-len(item[0]), item[0])):
            factors = ([str(c)] if c != 1 or not names else []) + list(names)
            parts.append("*".join(factors))
        total = " + ".join(parts) or "0"
        return total if self.divisor == 1 else f"({total})//{self.divisor}"


def _solved(rows: list[list[int]], values: list[int]) -> list[Fraction] | None:
    """The solution of linear equations, with 0 for unknowns that they leave open; None if there is none."""
    matrix = [[Fraction(v) for v in row] + [Fraction(value)] for row, value in zip(rows, values)]
    width, pivots, r = len(rows[0]), [], 0
    for column in range(width):
        pivot = next((i for i in range(r, len(matrix)) if matrix[i][column]), None)
        if pivot is None:
            continue
        matrix[r], matrix[pivot] = matrix[pivot], matrix[r]
        matrix[r] = [v / matrix[r][column] for v in matrix[r]]
        for i, row in enumerate(matrix):
            if i != r and row[column]:
                matrix[i] = [a - row[column] * b for a, b in zip(row, matrix[r])]
        pivots.append(column)
        r += 1
    if any(row[-1] for row in matrix[r:]):
        return None
    solution = [Fraction(0)] * width
    for i, column in enumerate(pivots):
        solution[column] = matrix[i][-1]
    return solution


def _monomials(names: Sequence[str], samples: int) -> list[list[tuple[str, ...]]]:
    first: list[tuple[str, ...]] = [(), *((n,) for n in names)]
    second = [(a, b) for i, a in enumerate(names) for b in names[i:]]
    return [first, first + second] if len(first + second) < samples else [first]


def fitted(values: Sequence[int], samples: list[dict[str, int]]) -> Expression | None:
    """The simplest expression of the symbols that has these values; at least one sample more than unknowns must confirm it."""
    if len(set(values)) == 1:
        return Expression({(): values[0]})
    names = sorted(samples[0])
    for name in names:  # one symbol
        if all(v == s[name] for v, s in zip(values, samples)):
            return Expression({(name,): 1})
    for basis in _monomials(names, len(samples)):
        rows = [[math.prod(s[n] for n in names_) for names_ in basis] for s in samples]
        solution = _solved(rows, list(values))
        if solution is None:
            continue
        if len(basis) >= len(samples):
            return None
        common = math.lcm(*(c.denominator for c in solution))
        return Expression({k: int(c * common) for k, c in zip(basis, solution)}, common)
    for name in names:  # rounded quotients, as of strided convolutions
        for divisor in range(2, 65):
            for factor in (1, 2, 3):
                for offset in range(-16, 64):
                    if all(v == (factor * s[name] + offset) // divisor for v, s in zip(values, samples)):
                        return Expression({(name,): factor, (): offset}, divisor)
    return None


_LEAST_SAMPLES = 5
_INVERSES: dict[str, tuple[Callable, Callable]] = {
    "/": (operator.truediv, lambda v, n: v * n), "*": (operator.mul, lambda v, n: v / n),
    "+": (operator.add, lambda v, n: v - n), "-": (operator.sub, lambda v, n: v + n),
}  # fmt: skip


def float_of_size(values: Sequence[float], sizes: Sequence[int]) -> tuple[str, float] | None:
    """The operation and the float c such that c <operation> size has exactly these values; None if there is none."""
    if len(set(sizes)) < _LEAST_SAMPLES or 0 in sizes or not all(map(math.isfinite, values)):
        return None
    for kind, (function, inverse) in _INVERSES.items():
        near = inverse(values[0], sizes[0])
        candidates = [float(f"{near:.{digits}g}") for digits in (6, 12, 15)] + [near]
        for direction in (-math.inf, math.inf):
            following = near
            for _ in range(3):
                candidates.append(following := math.nextafter(following, direction))
        for constant in candidates:
            if all(function(constant, float(n)) == v for v, n in zip(values, sizes)):
                return kind, constant
    return None


NEGATED: dict[str, Any] = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "constant": "constant"}
