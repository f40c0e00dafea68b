"""What the guards of a recording leave of the declared sizes: ranges, constants, and checks of the program's arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..fx.experimental._sizes import (
    Guard,
    SizeLog,
    Symbol,
    bounds_of,
    holds_between,
    relation_text,
    symbol_of,
    symbols_in,
)
from ..fx.graph import Graph
from ._checks import evaluated
from ._fixes import ViolatedError

_LEAST = (0, 1, 2)  # lower limits of sizes that are tried: many functions differ for sizes of 0 or 1


class Settled(NamedTuple):
    """The sizes that a program serves.

    Attributes:
        symbols: those that may differ; equal ones are one.
        ranges: of the symbols, by name.
        checks: comparisons of symbols, as text, that are no ranges.
        names: what is left of each declared symbol: itself, another one, or a number.
    """

    symbols: list[Symbol]
    ranges: dict[str, tuple[int, int | None]]
    checks: list[str]
    names: dict[str, str]

    def describe(self, graph: Graph) -> None:
        """Writes the symbols that are left into the metadata of a graph's nodes."""
        for node in graph.nodes:
            texts = {d: t and self._text(t) for d, t in (node.meta.get("symbolic_sizes") or {}).items()}
            node.meta |= {"symbolic_sizes": {d: t for d, t in texts.items() if t is None or not t.isdigit()}} if texts else {}
            if (text := node.meta.get("symbolic_value")) is not None:
                node.meta["symbolic_value"] = self._text(text)

    def _text(self, text: str) -> str:
        """An expression with the symbols that are left."""
        found = renamed(text, self.names)
        is_number = not re.search(r"(?!sym_)[^\W\d]\w*", re.sub("sym_min|sym_max", "", found))
        return str(evaluated(found, {})) if is_number and found != text else found


class _Bounds:
    """What comparisons with numbers leave of one symbol."""

    def __init__(self, symbol: Symbol) -> None:
        self.symbol, self.low, self.high = symbol, symbol.low, symbol.high
        self.is_fixed = False
        self.equal: _Bounds | None = None  # of a symbol that it is

    @property
    def root(self) -> _Bounds:
        """The bounds that stand for all symbols which are equal to this one."""
        return self if self.equal is None else self.equal.root

    @property
    def is_constant(self) -> bool:
        """Whether one value is left."""
        return self.is_fixed or self.high is not None and self.low >= self.high

    def narrow(self, low: float, high: float) -> None:
        """Intersects the range."""
        if not math.isinf(low):
            self.low = max(self.low, int(low))
        if not math.isinf(high):
            self.high = int(high) if self.high is None else min(self.high, int(high))


def _limits(facts: Any, number: int, sign: str) -> tuple[int, float, float] | None:
    """The symbol of an expression, and its values for which `number <sign> 0`; None if they are no range of one symbol."""
    terms = facts.parts(number)
    constant = sum(c for c, factors in terms if not factors)
    varying = [(c, factors) for c, factors in terms if factors]
    if len(varying) != 1 or len(varying[0][1]) != 1 or sign == "!=":
        return None
    coefficient, ((kind, symbol, operands),) = varying[0]
    low = high = None
    if sign == "==":
        if constant % coefficient:
            return None
        low = high = -constant // coefficient
    else:
        if sign == "<":  # of ints: the opposite is not negative
            coefficient, constant = -coefficient, -constant - 1
        low, high = (-(constant // coefficient), None) if coefficient > 0 else (None, constant // -coefficient)
    if kind == "symbol":
        return symbol, -math.inf if low is None else low, math.inf if high is None else high
    divisor = operands[-1]
    if kind != "//" or not 0 < divisor or facts.parts(divisor) and facts.parts(divisor)[0][1]:
        return None
    found = [_limits(facts, facts.compute("-", operands[0], divisor * low), ">=")] if low is not None else []
    found += [_limits(facts, facts.compute("-", operands[0], divisor * high + divisor), "<")] if high is not None else []
    if None in found:
        return None
    return found[0][0], max(f[1] for f in found), min(f[2] for f in found)


def settled(log: SizeLog, symbols: list[Symbol], assumed: Sequence[str] = ()) -> Settled:
    """What a program serves of the declared sizes, for which the comparisons `assumed` hold.

    Raises:
        ViolatedError: less than a name, or Dim.DYNAMIC, declares.
    """
    facts, guards = log.facts, list(log.guards)
    index = {symbol_of(facts, log.symbols[s.name]): s for s in symbols}
    found = {s.name: _Bounds(s) for s in symbols}
    open_guards = _unproved(log, guards, index, found, assumed)
    violated: list[Guard] = []
    checks: list[str] = []
    for guard in open_guards:
        involved = [] if guard.number is None else list(dict.fromkeys(symbols_in(facts, guard.number)))
        if guard.number is None or any(i not in index for i in involved):
            violated.append(guard)  # of floats, or of numbers that only the graph computes
            continue
        if _note(facts, guard, [found[index[i].name] for i in involved]):
            named = sum(index[i].kind == "named" for i in involved)
            violated += [guard] if named == len(involved) else []
            continue
        if any(index[i].kind == "named" for i in involved):
            violated.append(guard)
        else:
            checks.append(relation_text(facts, guard.number, guard.sign, log.names))
    violated += _unsettled(violated, log, index, found)
    if violated:
        raise ViolatedError([s.name for s in symbols], list(dict.fromkeys(g.text for g in violated)), _fixes(found))
    return _kept(symbols, found, checks)


def described(recording: Any, symbols: list[Symbol], assumed: Sequence[str] = ()) -> Settled:
    """settled() of a recording, whose graph's metadata then have the symbols that are left."""
    recording.size_nodes.describe()
    found = settled(recording.log, symbols, assumed)
    found.describe(recording.graph)
    return found


def _unproved(
    log: SizeLog, guards: list[Guard], index: dict[Any, Symbol], found: dict[str, _Bounds], assumed: Sequence[str]
) -> list[Guard]:  # fmt: skip
    """The guards that do not follow from the ranges, with as small sizes as most of them permit."""

    def rest(least: dict[int, int]) -> list[Guard]:
        log.facts.forget()
        for text in assumed:
            log.assume(text)
        for i, symbol in index.items():
            log.facts.narrow(i, max(symbol.low, least[i]), symbol.high)
        log.narrow_defined()
        return [g for g in guards if not _is_proved(log, g)]

    tried = [{i: limit if symbol.hint >= limit else 0 for i, symbol in index.items()} for limit in _LEAST]
    counts = [len(rest(least)) for least in tried]
    best = tried[counts.index(min(counts))]
    for i in index:  # most limits are those of one size
        lower = ({**best, i: n} for n in range(best[i]))
        best = next((least for least in lower if len(rest(least)) == min(counts)), best)
    for i, symbol in index.items():
        found[symbol.name].narrow(best[i], math.inf)
    return rest(best)


def _is_proved(log: SizeLog, guard: Guard) -> bool:
    """Whether a guard follows from what is known."""
    if guard.number is None:
        return holds_between(guard.sign, guard.outcome, *map(bounds_of, guard.sides))
    return log.facts.known(guard.sign, guard.number, 0) is True


def _note(facts: Any, guard: Guard, involved: list[_Bounds]) -> bool:
    """Notes what a guard says of one symbol, or that two are equal. Returns whether that is all that it says."""
    if (limits := _limits(facts, guard.number, guard.sign)) is not None:
        involved[0].narrow(*limits[1:])
        return True
    terms = facts.parts(guard.number)
    is_sum = all(len(factors) == 1 and factors[0][0] == "symbol" for _, factors in terms)
    if guard.sign == "==" and len(terms) == 2 and is_sum and terms[0][0] == -terms[1][0]:
        first, other = sorted((b.root for b in involved), key=lambda b: (b.symbol.kind != "named", b.symbol.places[0]))
        if first is not other:
            other.equal = first
        return True
    return False


def _unsettled(violated: list[Guard], log: SizeLog, index: dict[Any, Symbol], found: dict[str, _Bounds]) -> list[Guard]:
    """Makes sizes of Dim.AUTO constants where a guard of them alone cannot be checked; returns guards that other sizes refuse."""
    for guard in list(violated):
        names = _names_of(guard, log, index)
        if names and all(found[n].symbol.kind == "AUTO" for n in names):
            violated.remove(guard)
            for name in names:
                found[name].root.is_fixed = True
    for bounds in found.values():
        bounds.root.is_fixed |= bounds.is_constant
    required = {"DYNAMIC", "named"}
    constants = [s for b in found.values() if b.root.is_constant and (s := b.symbol).kind in required and s.low != s.high]
    return [Guard(f"{s.name} == {s.hint}", "==") for s in constants]


def _names_of(guard: Guard, log: SizeLog, index: dict[Any, Symbol]) -> list[str]:
    """The names of the sizes of a guard."""
    if guard.number is not None:
        symbols = list(symbols_in(log.facts, guard.number))
    else:
        symbols = [i for side in guard.sides for i in _symbols_of(side, log)]
    return [n for i in symbols for n in ([index[i].name] if i in index else _defining(log, i, index))]


def _symbols_of(value: Any, log: SizeLog) -> list[int]:
    """The symbols that a float was computed from."""
    if hasattr(type(value), "number"):
        return list(symbols_in(log.facts, value.number))
    return [i for operand in getattr(value, "recipe", ())[1:] for i in _symbols_of(operand, log)]


def _defining(log: SizeLog, symbol: int, index: dict[Any, Symbol]) -> list[str]:
    """The names of the sizes that a computed number depends on."""
    made = log.defined.get(symbol)
    if made is None:
        return []
    found = [n for i in log.sources[symbol] for n in ([index[i].name] if i in index else _defining(log, i, index))]
    for operand in made.recipe[1:]:
        values = [v for c in operand.comparisons() for v in c.operands] if hasattr(operand, "comparisons") else [operand]
        for i in (i for v in values for i in _symbols_of(v, log)):
            found += [index[i].name] if i in index else _defining(log, i, index)
    return found


def _fixes(found: dict[str, _Bounds]) -> dict[str, str]:
    """Declarations that serve, by the name of the symbol."""
    fixes = {}
    for name, bounds in found.items():
        symbol = bounds.symbol
        if bounds.root.is_constant:
            fixes[name] = str(symbol.hint)
        elif bounds.equal is not None:
            fixes[name] = bounds.root.symbol.name
        else:
            low = {"min": bounds.low} if bounds.low > max(symbol.low, _LEAST[-1]) else {}
            changed = low | ({"max": bounds.high} if bounds.high != symbol.high else {})
            if changed:
                fixes[name] = f"Dim('{name}', {', '.join(f'{k}={v}' for k, v in changed.items())})"
    return fixes


def _kept(symbols: list[Symbol], found: dict[str, _Bounds], checks: list[str]) -> Settled:
    names = {s.name: _rest(found[s.name].root) for s in symbols}
    kept = [s for s in symbols if names[s.name] == s.name]
    ranges = {}
    for symbol in kept:
        equal = [s for s in symbols if names[s.name] == symbol.name]
        symbol.places = [p for s in equal for p in s.places]
        highs = [h for s in equal if (h := found[s.name].high) is not None]
        ranges[symbol.name] = max(found[s.name].low for s in equal), min(highs, default=None)
    return Settled(kept, ranges, [renamed(c, names) for c in checks], names)


def _rest(bounds: _Bounds) -> str:
    """What is left of a symbol: a symbol or a number."""
    return str(bounds.symbol.hint) if bounds.is_constant else bounds.symbol.name


def renamed(text: str, names: dict[str, str]) -> str:
    """An expression or comparison with other symbols, or numbers, in place of symbols."""
    return re.sub(r"[^\W\d]\w*", lambda m: names.get(m[0], m[0]), text)
