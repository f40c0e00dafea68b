"""Rows of expressions, whose values or errors are recorded."""

from __future__ import annotations

from typing import Any

from .record import plain


def values_of(torch: Any, rows: str, **names: Any) -> dict[str, Any]:
    """The values of expressions, one per line; of those that raise, the error's type."""
    found = {}
    for row in filter(None, (line.strip() for line in rows.splitlines())):
        try:
            found[row] = plain(eval(row, {"torch": torch, **names}))  # noqa: S307 - rows of this folder
        except Exception as e:  # noqa: BLE001 - any error is a result
            found[row] = type(e).__name__
    return found
