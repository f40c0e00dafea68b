"""The comparison of signatures with PyTorch's recorded declarations, and the comparison itself."""

from __future__ import annotations

import pytest

from tests.conformance.signatures import check
from tests.conformance.signatures.compare import differences
from tests.conformance.signatures.reasons import TABLE


@pytest.fixture
def result(torch):
    return check.check()


def test_every_difference_has_a_reason(result):
    assert result.unexplained == []


def test_reasons_are_complete():
    assert [entry for entry in TABLE if set(entry) - {"saying"} != {"names", "why"} or not entry["why"]] == []


def test_most_names_are_compared(result):
    assert result.compared > 2900


ROWS = [
    ("input, dim=None", "input, dim=None", []),
    ("input, dim=None", "x, dim=None", ["lacks input (position 1 is x)", "requires x"]),
    ("input, *, out=None", "input", ["lacks out"]),
    ("a, b=1", "a, *, b=1", ["b: position 2 in PyTorch; keyword-only here"]),
    ("a, b=1", "a, b=2", ["b: default 2, in PyTorch 1"]),
    ("a, b=1", "a, b", ["b: required here, default 1 in PyTorch"]),
    ("a, b=True", "a, b=1", ["b: default 1, in PyTorch True"]),
    ("a: Tensor|Number", "a: Tensor", ["a: does not accept Number"]),
    ("a: int", "a: Number", []),
    ("*size: int", "size: ints", ["does not accept any number of positional arguments", "size: not a variable number of arguments"]),
    ("a", "a, b=None", ["further parameter b"]),
    ("a", "a, b", ["requires b"]),
    ("a, /", "b, /", []),
    ("a", "*args, **kwargs", ["accepts any keyword", "accepts any number of positional arguments"]),
    ("a, b", "b, a", ["a: position 1 in PyTorch, not here", "b: position 2 in PyTorch, not here"]),
]


@pytest.mark.parametrize("theirs, ours, expected", ROWS)
def test_differences(theirs, ours, expected):
    assert differences([theirs], [ours]) == expected


def test_one_of_several_overloads_is_enough():
    assert differences(["a, b", "a"], ["a, b=None"]) == []
    assert differences(["a, unbiased=True"], ["a, unbiased", "a"]) == []
