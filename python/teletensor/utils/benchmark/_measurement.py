"""Measurement: the times of a statement, and their statistics."""

from __future__ import annotations

import contextlib
import math
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..._functions import get_num_threads, set_num_threads

_MAX_FIGURES = 4
_LEAST_INTERVAL = 25e-9  # seconds: no measurement is more precise
_FLUCTUATION, _DISTURBANCE = 0.1, 0.25  # limits of the interquartile range, relative to the median
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class TaskSpec:
    """The statement and labels that a Timer measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The labels, or the statement if there is no label."""
        more = f": {self.sub_label}" if self.sub_label else ""
        if self.label is not None or "\n" not in self.stmt:
            return (self.stmt if self.label is None else self.label) + more
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """The setup as text, empty if there is none."""
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """The title, the description and the setup."""
        parts = [part for part in (self.title, self.description or "", self.setup_str()) if part]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts)


_FIELDS = {field.name for field in fields(TaskSpec)}


@dataclass(repr=False)
class Measurement:
    """Times of a statement, in seconds: ``raw_times`` of ``number_per_run`` executions each."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds per execution."""
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, q: float) -> float:
        return float(np.quantile(self.times, q)) if self.raw_times else -1.0

    @property
    def median(self) -> float:
        """The median of the times."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean of the times."""
        return float(np.mean(self.times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """The interquartile range of the times."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """The number of significant figures of the median, 1 to 4, by the 90 % confidence interval of the middle half
        of the times.
        """
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), _LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MAX_FIGURES)

    def meets_confidence(self, threshold: float = _FLUCTUATION) -> bool:
        """Whether the interquartile range, relative to the median, is below a threshold."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary so much that the result is doubtful."""
        return not self.meets_confidence()

    @property
    def title(self) -> str:
        """The task's title."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """The task's environment."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The name of the row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count, several = len(self.raw_times), len(self.raw_times) > 1
        unit, scale = select_unit(self.median)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines += [f"  {'Median: ' if several else ''}{self.median / scale:.2f} {unit}"]
        if count >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines += [f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})"]
        runs = f"{self.number_per_run} runs {'per measurement,' if several else ','}"
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines += [f"  {count} measurement{'s' if several else ''}, {runs} {threads}"]
        if self.has_warnings:
            slight = self.meets_confidence(_DISTURBANCE)
            advice = "could indicate system fluctuation." if slight else "suggests significant environmental influence."
            lines += [f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement."]
            lines += [f"           This {advice}"]
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement per task, with the times of all its measurements."""
        groups: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, spec) for spec, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit (ns, us, ms or s) in which a time is between 1 and 1000, and the unit in seconds."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.floor(math.log10(t) / 3), "s") if t > 0 else "s"
    return unit, _UNITS[unit]


def unit_to_english(u: str) -> str:
    """The unit's name."""
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number, rounded to n significant figures."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n) if x else 1.0
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The different elements, in the order of their first occurrence."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """torch.set_num_threads in a ``with`` block."""
    before = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)
