"""Sections of a page that end with a table. Rows are replaced one by one, by their first cells; the rest of the page is kept."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def _bounds(text: str, title: str) -> tuple[int, int]:
    begin = text.find(f"{title}\n")
    if begin < 0:
        return len(text), len(text)
    end = text.find("\n## ", begin)
    return begin, len(text) if end < 0 else end


def write(page: Path, header: str, rows: Iterable[str], order: Iterable[str] = ()) -> None:
    """Replaces rows of the table of the section that starts with `header`, which ends with the head of the table.

    Rows whose first cells are in `order` come first, in that order. A section that the page lacks is added at its end.
    """
    text = page.read_text()
    title, head = header.split("\n", 1)[0], header.splitlines()[-2]
    begin, end = _bounds(text, title)
    old = [line for line in text[begin:end].splitlines() if line.startswith("| ") and line != head]
    lines = {line.split("|")[1].strip(): line for line in [*old, *rows]}
    names = [name for name in order if name in lines]
    table = "".join(f"{lines[name]}\n" for name in [*names, *(name for name in lines if name not in names)])
    before = f"{text[:begin].rstrip()}\n\n" if text[:begin].strip() else ""
    page.write_text(f"{before}{header}{table}{text[end:]}")
