"""Constants of the code that a recording runs, and the sizes at which conditions with them may change.

Functions in C read a size without a trace: `0.5 * n` and `1.0 / n` (Python computes them without the size's methods), `math.log2(n)`,
`"%d" % n`. A condition on what they give, such as `0.5 * n == 50`, may hold for one size only: sizes near these constants are tried.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import teletensor

_LIBRARY = (os.path.dirname(teletensor.__file__) + os.sep, os.path.dirname(os.__file__) + os.sep)
_LARGEST_SIZE = 1 << 16
_MOST_CONSTANTS = 12
_MOST_POINTS = 64


class CodeConstants:
    """Numbers in the code of functions that were called, except Python's and this package's: literals, globals, attributes, arguments."""

    def __init__(self) -> None:
        self.numbers: dict[float, None] = {}
        self._seen: set[Any] = set()

    @contextlib.contextmanager
    def collected(self) -> Iterator[None]:
        """Collects the numbers of the functions that are called in the block."""
        before = sys.gettrace()
        if before is not None:  # a debugger, or a measurement of coverage
            sys.settrace(lambda *event: (self._on_call(*event), before(*event))[1])
        else:
            sys.settrace(self._on_call)
        try:
            yield
        finally:
            sys.settrace(before)

    def _on_call(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self._seen:
            return
        self._seen.add(code)
        path = code.co_filename
        if path.startswith(_LIBRARY) and "-packages" not in path.removeprefix(_LIBRARY[1]) or path.startswith("<frozen"):
            return
        values = frame.f_locals
        self._add(code.co_consts)
        self._add([*values.values(), *(frame.f_globals.get(n) for n in code.co_names)])
        for value in list(values.values()):
            attributes = getattr(value, "__dict__", None) if not isinstance(value, type) else None
            if isinstance(attributes, dict):
                self._add([attributes.get(n) for n in code.co_names])

    def _add(self, values: Any) -> None:
        for value in values:
            if type(value) in (tuple, frozenset, list) and len(value) <= 64:
                self._add(value)
            elif type(value) is complex:
                self._add((value.real, value.imag))
            elif type(value) is str and 0 < len(value) <= 20:
                self._add(_numbers_of_text(value))
            elif type(value) in (int, float) and value and abs(value) < 1e15 and math.isfinite(value):
                self.numbers.setdefault(abs(value))

    def sizes(self, most: int = _MOST_POINTS) -> list[int]:
        """Sizes at which a condition with these numbers may change, the likeliest first."""
        ordered = sorted(self.numbers, key=lambda c: c in (1, 2, 3, 4))[:_MOST_CONSTANTS]
        found: dict[int, None] = {}

        def add(values: Any) -> None:
            for value in values:
                if value <= _LARGEST_SIZE:
                    near = (round(value),) if abs(value - round(value)) < 1e-9 * abs(value) else (math.floor(value), math.ceil(value))
                    found.update((n, None) for n in near if n >= 2)

        add(ordered)
        add(1 / c for c in ordered)
        pairs = [v for i, a in enumerate(ordered) for b in ordered[i + 1 :] for v in (a / b, b / a, a * b)]
        add(pairs)
        add(v for c in ordered for v in (c * c, *((2.0**c, 10.0**c, math.exp(c)) if c <= 20 else ()), math.sqrt(2 * c), c + 1, c - 1))
        add(v for i, a in enumerate(ordered) for b in ordered[i + 1 :] for v in (a + b, abs(a - b)))
        add((a + sign * b) / c for a in ordered for b in ordered for c in ordered if a > b != c for sign in (-1, 1))
        return list(found)[:most]

    def points(self, hints: dict[str, int], log: Any, nodes: int) -> list[dict[str, int]]:
        """Points with these sizes, of one symbol each; fewer for large graphs.

        Args:
            log: of the first recording. If it requires a size to be constant, no other one serves anyway.
            nodes: how many the graph has.
        """
        if any(g.relation == "constant" for g in log.guards):
            return []
        sizes = self.sizes(max(8, min(_MOST_POINTS, 4000 // max(nodes, 1))))
        return [{**hints, name: n} for n in sizes for name in hints]


def _numbers_of_text(text: str) -> list[float]:
    """The number that a string is, and the one of its only character."""
    found: list[float] = [ord(text)] if len(text) == 1 else []
    readers: tuple[Callable[[str], float], ...] = (lambda t: int(t, 0), float)
    for read in readers:
        with contextlib.suppress(ValueError):
            found.append(read(text))
    return found
