"""Counting of comparisons, by check and dtype."""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import Any, Callable

from ..op_db.checks import REFUSALS, CheckCounts
from ..op_db.convert import Unconvertible
from .differences import reason


class Tally:
    """The results of all comparisons of one module or optimizer."""

    def __init__(self, name: str):
        self.name = name
        self.counts: dict[tuple[str, str], CheckCounts] = defaultdict(CheckCounts)

    def compare(self, check: str, dtype: str, text: str, found: Callable[[], str | None]) -> None:
        """Counts one comparison. `found` returns the difference, "" if there is none, None if nothing was compared."""
        counts = self.counts[check, dtype]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                difference = found()
            except Unconvertible as e:
                counts.skip(str(e))
                return
            except Exception as e:  # noqa: BLE001 - ours raises, PyTorch does not
                difference = f"{type(e).__name__}: {e}"
        if difference is None:
            return
        if difference and (why := reason(self.name, check, f"{difference} <- {text}")):
            counts.add_expected(why)
        else:
            counts.add(difference, text)


def outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """The result or the exception."""
    try:
        return call(), None
    except REFUSALS as e:
        return None, e
