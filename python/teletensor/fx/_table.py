"""Tables as plain text, laid out as the package tabulate's default format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    """Left-aligned columns, two spaces apart, under the headers and a line of dashes."""
    cells = [[str(value) for value in row] for row in rows]
    widths = [max([len(header), *(len(row[i]) for row in cells)]) for i, header in enumerate(headers)]
    # tabulate makes each column at least two characters wider than its header.
    widths = [max(width, len(header) + 2) if cells else width for width, header in zip(widths, headers)]
    lines = [list(headers), ["-" * width for width in widths], *cells]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
