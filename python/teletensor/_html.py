"""HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ._printable import printable


def escape(text: object) -> str:
    """A value's text, with the characters that are HTML's replaced; also usable in an attribute."""
    import html  # slow to import, and used in notebooks only

    return html.escape(str(text))


def table(caption: str, rows: Iterable[Sequence[object]], *, head: Sequence[object] = ()) -> str:
    """A table. Cells are printable and escaped; the caption is HTML."""

    def cell_text(cell: object) -> str:
        return escape(printable(cell))

    lines = ['<table class="teletensor">', f'<caption style="caption-side: top; text-align: left">{caption}</caption>']
    if head:
        lines.append("<thead><tr>" + "".join(f"<th>{cell_text(cell)}</th>" for cell in head) + "</tr></thead>")
    lines.append("<tbody>")
    lines += ["<tr>" + "".join(f"<td>{cell_text(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join([*lines, "</tbody>", "</table>"])
