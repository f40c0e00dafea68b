"""Values equal PyTorch's. Integers of quantized tensors are equal; float numbers differ by 2e-5 at most."""

import json
import math

import pytest

from .record import VALUES, cases, run

CASES, RECORDED = cases(), json.loads(VALUES.read_text())


def check(actual, expected, path: str) -> None:
    """Compares nested values."""
    if isinstance(expected, float) and isinstance(actual, (int, float)):
        assert math.isclose(actual, expected, rel_tol=2e-5, abs_tol=2e-5) or actual != actual and expected != expected, path
    elif isinstance(expected, list):
        assert isinstance(actual, list) and len(actual) == len(expected), (path, actual, expected)
        for i, (a, e) in enumerate(zip(actual, expected)):
            check(a, e, f"{path}[{i}]")
    elif isinstance(expected, dict):
        assert isinstance(actual, dict) and list(actual) == list(expected), (path, list(actual), list(expected))
        for key in expected:
            check(actual[key], expected[key], f"{path}.{key}")
    else:
        assert actual == expected, path


@pytest.mark.parametrize("name", CASES)
def test_value_equals_pytorchs(torch, name):
    check(run(CASES[name], torch), RECORDED[name], name)


def test_every_recorded_value_has_a_case():
    assert set(RECORDED) == set(CASES)
