"""How far the recordings of a function for larger and larger sizes agree with those for small ones.

Sizes of tensors are inferred without values, so recordings for huge sizes cost no more than others. They show what a constant of the
function, such as the end of a slice, changes for sizes beyond it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from ._merge import Captured, Symbol
from ._size_fit import Expression, fitted

# How a recording compares with the example's. A size is excluded by a guard that no larger size satisfies either.
SAME, GUARDED, EXCLUDED, FAILED, UNNOTICED = "same", "guarded", "excluded", "failed", "unnoticed"
Probe = Callable[[int], tuple[str, Captured | None]]  # of a size: how its recording compares, and the recording if it is the same

SIZES = (1031, 4099, (1 << 16) + 3, (1 << 20) + 7, (1 << 24) + 43, (1 << 27) + 29, (1 << 31) + 11, (1 << 40) + 15)
COMMON = 5040  # sizes at such distances have the same remainders by 2 to 10
_STEP = 12
_MOST = 1 << 62
_MOST_SECONDS = 0.02  # that a recording may take longer than the first before larger sizes are not tried


def climb(probe: Probe, hint: int, sizes: tuple[int, ...], period: int = 1) -> tuple[dict[int, Captured], int | None]:
    """Recordings that are the same as the example's, by size, and the largest such size if no guard says what larger ones change.

    Args:
        probe: records the function for a size.
        hint: the size in the example.
        sizes: those to try, ascending.
        period: sizes at this distance have the same remainders by the constants of the function.
    """
    found: dict[int, Captured] = {}
    low, first_seconds = hint, None
    distance = math.lcm(COMMON, period)
    for size in sizes:
        if size <= low:
            continue
        start = time.perf_counter()  # time.thread_time() takes milliseconds on some systems
        outcome, made, n = *probe(size), size
        if outcome == GUARDED:  # perhaps one of a remainder
            n, outcome, made = _unguarded(probe, hint + distance * -(-(size - hint) // distance), _MOST)
        if made is None:
            low, outcome = _last(probe, low, n, outcome, found, period)
            # Results with more elements than can be counted fail for any size beyond.
            return found, None if outcome == EXCLUDED or (outcome == FAILED and low >= 1 << 20) else low
        found[n], low = made, n
        seconds = time.perf_counter() - start
        first_seconds = seconds if first_seconds is None else first_seconds
        if size != sizes[-1] and _is_slow(seconds, first_seconds, lambda n=n: probe(n)):
            return found, low
    return found, None


def _is_slow(seconds: float, first_seconds: float, again: Callable[[], Any]) -> bool:
    """Whether a recording takes longer the larger a size is, as of Python code that counts to the size.

    Args:
        seconds: the time of the recording, in which other processes may have run.
        first_seconds: that of the first one.
        again: records once more.
    """
    most = 3 * first_seconds + _MOST_SECONDS
    if seconds <= most:
        return False
    start = time.thread_time()
    again()
    return time.thread_time() - start > most


def _unguarded(probe: Probe, size: int, end: int) -> tuple[int, str, Captured | None]:
    """The first size of a few from `size` to `end` at which guards, such as those of remainders, hold, and its recording."""
    for n in range(size, min(size + _STEP, end)):
        outcome, made = probe(n)
        if outcome != GUARDED:
            return n, outcome, made
    return size, GUARDED, None


def _last(probe: Probe, low: int, high: int, outcome: str, found: dict[int, Captured], period: int) -> tuple[int, str]:
    """The largest size of which the recording is the same, between one that is and one that is not; and the outcome beyond it."""
    best = None
    while high - low > _STEP:
        step = period if _STEP < period < (high - low) // 2 else _STEP
        middle = low + max((high - low) // (2 * step), 1) * step
        middle, other, made = _unguarded(probe, middle, high)
        if made is None:
            high, outcome = middle, outcome if other == GUARDED else other  # sizes beyond may have the guard's outcome again
        else:
            low, best = middle, made
    for n in range(high - 1, low, -1):
        _, made = probe(n)
        if made is not None:
            low, best = n, made
            break
    if best is not None:
        found[low] = best
    return low, outcome


def large_captures(
    record: Callable[[dict[str, int]], Captured], symbols: list[Symbol], others: list[Captured], fatal: tuple[type[Exception], ...]
) -> tuple[list[Captured], list[dict[str, int]]]:
    """Recordings for large sizes of each symbol without an upper limit, and their points.

    Leaves out sizes for which the function fails, and those beyond one for which it has other operators.

    Args:
        record: records the function at a point.
        symbols: those that differ.
        others: recordings for other sizes.
        fatal: errors that are raised.
    """
    captures, points = [], []
    counts = {len(c.recording.graph.nodes) for c in others}
    if len(counts) > 1:
        return captures, points
    hints = {s.name: s.hint for s in symbols}
    for i, s in enumerate(symbols):
        first_seconds = None
        for size in SIZES[2:] if s.high is None else ():
            start, point = time.perf_counter(), {**hints, s.name: size + 2 * i}
            try:
                made = record(point)
            except fatal:
                raise
            except Exception:  # noqa: BLE001 - results with more elements than can be counted, for example
                break
            captures.append(made)
            points.append(point)
            seconds = time.perf_counter() - start
            first_seconds = seconds if first_seconds is None else first_seconds
            if len(made.recording.graph.nodes) not in counts:
                return captures, points
            if _is_slow(seconds, first_seconds, lambda point=point: record(point)):
                break
    return captures, points


class Arguments:
    """The ints among the arguments of a graph's nodes, as expressions of the symbols that hold for small sizes.

    Args:
        captures: recordings with the same nodes.
        points: their sizes.
        hints: the example's sizes.
    """

    def __init__(self, captures: list[Captured], points: list[dict[str, int]], hints: dict[str, int]) -> None:
        small = [i for i, p in enumerate(points) if all(n <= 6 * hints[s] for s, n in p.items())]
        rows = list(zip(*(ints_of(captures[i]) for i in small)))
        samples = [points[i] for i in small]
        self.expressions: list[Expression | None] = [None if None in row else fitted(row, samples) for row in rows]

    def agree(self, made: Captured, point: dict[str, int]) -> bool:
        """Whether the recording at a point has the values of the expressions."""
        values = ints_of(made)
        return len(values) == len(self.expressions) and all(
            v is None or e is None or e.value(point) == v for v, e in zip(values, self.expressions)
        )


def ints_of(made: Captured) -> list[int | None]:
    """The ints among the arguments of nodes, and None for sizes whose origin is known."""
    found: list[int | None] = []
    for node in made.recording.graph.nodes:
        for value in _leaves((node.args, node.kwargs)):
            found.append(value if type(value) is int else None)
    return found


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    elif isinstance(value, slice):
        yield from _leaves((value.start, value.stop, value.step))
    elif type(value) is int or isinstance(value, int):
        yield value


def scaled(hints: dict[str, int], limits: dict[str, int], serves: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """Limits of several sizes at once: the given ones, or smaller ones if the sizes cannot all have them together."""
    if serves(limits):
        return limits
    low, high = 0, 1024
    while high - low > 1:
        middle = (low + high) // 2
        if serves(_between(hints, limits, middle)):
            low = middle
        else:
            high = middle
    return _between(hints, limits, low)


def _between(hints: dict[str, int], limits: dict[str, int], part: int) -> dict[str, int]:
    """Sizes between hints and limits, on a curve of which the products are evenly spaced by size."""
    return {s: max(h, min(limits[s], math.floor(h * (limits[s] / h) ** (part / 1024)))) for s, h in hints.items()}
