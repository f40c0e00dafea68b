"""HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def escape(text: object) -> str:
    """A value's text, with the characters that are HTML's replaced; also usable in an attribute."""
    import html  # slow to import, and used in notebooks only

    return html.escape(str(text))


def table(caption: str, rows: Iterable[Sequence[object]], *, head: Sequence[object] = ()) -> str:
    """A table. Cells are escaped; the caption is HTML."""
    lines = ['<table class="teletensor">', f'<caption style="caption-side: top; text-align: left">{caption}</caption>']
    if head:
        lines.append("<thead><tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr></thead>")
    lines.append("<tbody>")
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join([*lines, "</tbody>", "</table>"])
