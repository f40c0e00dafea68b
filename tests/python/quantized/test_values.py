"""Values of quantized tensors and operators equal PyTorch's, which record.py stored in values.json."""

import json
import math

import pytest

from .record import VALUES, plain, value_of
from .rows import rows

RECORDED = json.loads(VALUES.read_text())
# Rows of which a rounded integer may differ by one, because PyTorch's vector code computes with a fused multiplication
# and addition, or in another order.
ROUNDED = ("Q.layer_norm", "Q.group_norm", "Q.instance_norm", "Q.batch_norm", "torch.quantized_batch_norm")


def check(actual, expected, path: str, steps: int = 0) -> None:
    """Compares nested values: numbers within a relative and absolute error of 2e-5, integers within `steps`."""
    if isinstance(expected, float) and isinstance(actual, (int, float)):
        close = math.isclose(actual, expected, rel_tol=2e-5, abs_tol=2e-5)
        assert close or actual != actual and expected != expected, (path, actual, expected)
    elif isinstance(expected, list):
        assert isinstance(actual, list) and len(actual) == len(expected), (path, actual, expected)
        for i, (a, e) in enumerate(zip(actual, expected)):
            check(a, e, f"{path}[{i}]", steps)
    elif steps and isinstance(expected, int) and isinstance(actual, int):
        assert abs(actual - expected) <= steps, (path, actual, expected)
    else:
        assert actual == expected, (path, actual, expected)


@pytest.mark.parametrize("row", rows())
def test_value_equals_pytorchs(torch, row):
    check(value_of(row, torch), RECORDED[row], row, steps=1 if row.startswith(ROUNDED) else 0)


def test_every_row_is_recorded_once():
    assert list(RECORDED) == rows()


def test_check_detects_differences():
    for actual, expected in (([1, 2.0], [1, 2.1]), ([1], [2]), ([1], [1, 1]), ("a", "b"), (["quint8", [3]], ["qint8", [3]])):
        with pytest.raises(AssertionError):
            check(actual, expected, "")
    assert plain((1, None)) == [1, None]
