"""Compares the expressions of cases.py with PyTorch's results in rows.json."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import teletensor as torch

from .cases import MORE, ROWS, results

RECORDED = json.loads((Path(__file__).with_name("rows.json")).read_text())


def close(ours, recorded) -> bool:
    """Whether two results are equal, numbers within an error of 2e-5."""
    if isinstance(recorded, list):
        return isinstance(ours, list) and len(ours) == len(recorded) and all(map(close, ours, recorded))
    if isinstance(recorded, float) or isinstance(ours, float):
        if not isinstance(ours, (int, float)) or not isinstance(recorded, (int, float)):
            return False
        both_nan = math.isnan(ours) and math.isnan(recorded)
        return both_nan or ours == recorded or math.isclose(ours, recorded, rel_tol=2e-5, abs_tol=2e-5)
    return type(ours) is type(recorded) and ours == recorded


@pytest.mark.parametrize("row", ROWS)
def test_row(row):
    found = results(torch, [row])[row]
    assert close(found, RECORDED[row]), (found, RECORDED[row])


@pytest.mark.parametrize("row", MORE)
def test_more(row):
    """Operators on all sequences at once are those on each sequence."""
    found = results(torch, [row, MORE[row]])
    ours, each = found[row], found[MORE[row]]
    if ours[0] not in ("jagged", "nested"):  # a dense tensor, one row per sequence
        ours = ["rows", found[row][2]]
        each = ["rows", [number for t in each for number in t[2]]]
    assert close(ours[1], each[1] if each[0] == "rows" else each), (ours, each)
