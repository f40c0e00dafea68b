"""Violated constraints of dynamic sizes: the message of export(), with the declarations that would serve."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from ..fx.experimental._merge import Symbol, ViolatedGuard
from ._errors import UserError

_FARTHEST = 4096  # beyond the example, for bounds
_RELATIONS: dict[str, Callable[[int], bool]] = {
    "==": lambda d: d == 0, "!=": lambda d: d != 0, "<": lambda d: d < 0, "<=": lambda d: d <= 0, ">": lambda d: d > 0,
    ">=": lambda d: d >= 0,
}  # fmt: skip


class ViolatedError(UserError):
    """A recording does not serve all sizes of its symbols.

    Attributes:
        names: of the symbols.
        reasons: why sizes are constants.
        guards: comparisons that do not hold for all sizes.
    """

    def __init__(self, names: str, reasons: list[str], guards: list[ViolatedGuard] | None = None) -> None:
        self.names, self.reasons, self.guards = names, reasons, guards or []
        super().__init__(self.text({}))

    def text(self, fixes: dict[str, str]) -> str:
        """The message, with declarations by the name of the symbol."""
        lines = [f"Constraints violated ({self.names})!"]
        for reason in self.reasons:
            lines.append(f"  - You marked {self.names} as dynamic but your code specialized it: {reason}")
        for guard in self.guards:
            lines.append(f"  - Not all values of {self.names} in the specified range satisfy the generated guard {guard.text}")
        if fixes:
            lines += ["Suggested fixes:", *(f"  {name} = {value}" for name, value in fixes.items())]
        return "\n".join(lines)


def _bounds(guard: ViolatedGuard, symbol: Symbol) -> tuple[int, int | None] | None:
    """The sizes around the example for which a comparison has the example's outcome; None if it is not known."""
    if guard.difference is None or guard.relation not in _RELATIONS:
        return None
    test = _RELATIONS[guard.relation]
    low, high = symbol.hint, symbol.hint
    while low > max(symbol.low, 0) and test(guard.difference.value({symbol.name: low - 1})):
        low -= 1
    while high < symbol.hint + _FARTHEST and test(guard.difference.value({symbol.name: high + 1})):
        high += 1
    return low, None if high == symbol.hint + _FARTHEST else high


def _alone(run: Callable[[list[Symbol]], Any], symbol: Symbol) -> Symbol | None:
    """The symbol with the range that the module permits while the other sizes are constant; None if that is one size."""
    tried = copy.copy(symbol)
    for _ in range(4):
        try:
            _, ranges = run([tried])
        except ViolatedError as e:
            limits = [_bounds(g, tried) for g in e.guards]
            if not limits or any(b is None for b in limits):
                return None
            tried.low = max(tried.low, *(b[0] for b in limits if b))
            highs = [h for h in (tried.high, *(b[1] for b in limits if b)) if h is not None]
            tried.high = min(highs, default=None)
            if tried.high is not None and tried.low >= tried.high:
                return None
        else:
            del ranges
            return tried
    return None


def _declaration(symbol: Symbol, found: Symbol | None) -> str | None:
    if found is None:
        return str(symbol.hint)
    changed = {k: getattr(found, n) for k, n in (("min", "low"), ("max", "high")) if getattr(found, n) != getattr(symbol, n)}
    if not changed:
        return None
    return f"Dim('{symbol.name}', {', '.join(f'{k}={v}' for k, v in changed.items())})"


def suggested_fixes(run: Callable[[list[Symbol]], Any], symbols: list[Symbol]) -> dict[str, str]:
    """Declarations of symbols that the module permits, by name, as far as they are found.

    Args:
        run: records the module for symbols, and raises ViolatedError if it does not serve all sizes.
    """
    fixes: dict[str, str] = {}
    pending = list(symbols)
    while pending:
        first = pending.pop(0)
        equal = [s for s in pending if s.hint == first.hint]
        found = _alone(run, first)
        if found is None and equal:
            for other in _partners(run, first, equal):
                fixes[other.name] = first.name
                pending.remove(other)
                first = _joined(first, other)
            found = _alone(run, first)
        if (text := _declaration(first, found)) is not None:
            fixes[first.name] = text
    return fixes


def _joined(first: Symbol, other: Symbol) -> Symbol:
    made = copy.copy(first)
    made.places = [*first.places, *other.places]
    return made


def _partners(run: Callable[[list[Symbol]], Any], first: Symbol, equal: list[Symbol]) -> list[Symbol]:
    """The symbols that must be equal to the first one: those with which it is not constant."""
    for other in equal:
        if _alone(run, _joined(first, other)) is not None:
            return [other]
    joined = first
    for other in equal:
        joined = _joined(joined, other)
    return equal if len(equal) > 1 and _alone(run, joined) is not None else []


_FIX = re.compile(r"^\s+(\w+) = (?:(\d+)|(\w+)|Dim\('(\w+)'((?:, (?:min|max)=\d+)*)\))$", re.MULTILINE)


def parsed_fixes(message: str) -> dict[str, Any]:
    """The declarations in a message, by name: an int, the name of another symbol, or a dict of bounds."""
    _, separator, text = message.partition("Suggested fixes:")
    found: dict[str, Any] = {}
    for name, number, other, _, bounds in _FIX.findall(text if separator else ""):
        if number:
            found[name] = int(number)
        elif other:
            found[name] = other
        else:
            found[name] = {k: int(v) for k, v in re.findall(r"(min|max)=(\d+)", bounds)}
    return found
