"""Compare: tables of measurements."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable

from ._measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

_BOLD, _END = "\033[1m", "\033[0m"
_COLOURS = ((1.01, f"\033[92m{_BOLD}"), (1.1, f"\033[34m{_BOLD}"), (2.0, ""), (5.0, "\033[2m\033[91m"), (math.inf, "\033[31m"))


class Colorize(enum.Enum):
    """Which times a time is compared with to choose its colour."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Tables of measurements: one per label, with a row per sub-label and a column per description."""

    def __init__(self, results: list[Measurement]):
        self._results: list[Measurement] = []
        self._trim = self._warn = False
        self._colorize = Colorize.NONE
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements."""
        results = list(results)
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results += results

    def trim_significant_figures(self) -> None:
        """Shows significant figures only."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colours times by their ratio to the shortest time of the column or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks doubtful times."""
        self._warn = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(m.label for m in merged)
        return "\n".join(self._table(label, [m for m in merged if m.label == label]) for label in labels)

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in results))
        columns = ordered_unique(m.description for m in results)
        keys = sorted(ordered_unique((m.num_threads, m.env or "", m.as_row_name) for m in results), key=lambda key: key[:2])
        cells = {((m.num_threads, m.env or "", m.as_row_name), m.description): m for m in results}
        several = len({m.env for m in results}) > 1
        texts = {column: self._column([cells.get((key, column)) for key in keys], scale) for column in columns}
        indent = 4 + max(len(env) for _, env, _ in keys) * several
        names = ["  " + (f"({env})" if several and env else "").ljust(indent) + name for _, env, name in keys]
        widths = [max(map(len, names)), *(max(len(column or ""), *map(len, texts[column])) for column in columns)]
        lines = ["  |  ".join([" " * widths[0], *((c or "").center(w) for c, w in zip(columns, widths[1:]))])]
        threads = None
        for i, key in enumerate(keys):
            if key[0] != threads:
                threads = key[0]
                lines.append(f"{threads} threads: ".ljust(len(lines[0]), "-"))
            row = [cells.get((key, column)) for column in columns]
            painted = [
                self._painted(texts[c][i].center(w), m, row, [cells.get((k, c)) for k in keys if k[0] == threads])
                for c, w, m in zip(columns, widths[1:], row)
            ]
            lines.append("  |  ".join([names[i].ljust(widths[0]), *painted]))
        title = f"[{(' ' + (label or '') + ' ').center(len(lines[0]) - 2, '-')}]"
        note = f"\nTimes are in {unit_to_english(unit)}s ({unit}).\n"
        if self._warn and any(m.has_warnings for m in results):
            note += "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        return "\n".join([title, *lines, note])

    def _column(self, measurements: list[Measurement | None], scale: float) -> list[str]:
        """The times of a column as texts of the same number of decimals."""
        found = [m for m in measurements if m is not None]
        digits = [math.ceil(math.log10(m.median / scale)) for m in found]
        decimals = min(max(m.significant_figures - d, 0) for m, d in zip(found, digits)) if self._trim else 1
        width, texts = max(digits) + decimals + (decimals > 0), []
        for m in measurements:
            if m is None:
                texts.append("")
                continue
            value = m.median / scale
            text = f"{trim_sigfig(value, m.significant_figures) if self._trim else value:>{width}.{decimals}f}"
            if self._warn and any(f.has_warnings for f in found):
                text += f"{f' (! {m.iqr / m.median * 100:.0f}%)' if m.has_warnings else '':>7}"
            texts.append(text)
        return texts

    def _painted(self, text: str, m: Measurement | None, row: list, column: list) -> str:
        """The text in the colour of its ratio to the shortest time of its row or column."""
        if self._colorize is Colorize.NONE or m is None:
            return text
        best = min(other.median for other in (row if self._colorize is Colorize.ROWWISE else column) if other is not None)
        ratio = 1.0 if m.median <= best + 100e-9 else m.median / best
        colour = next(colour for limit, colour in _COLOURS if ratio <= limit)
        return f"{colour}{text}{_END}" if colour else text
