"""Sets of strings and numbers that a function makes have Python's order in this process."""

from __future__ import annotations

import pytest


def letters(x):
    names = {"query", "key", "value", "out", "gate"}
    return [x * len(name) + i for i, name in enumerate(names)]


def numbers(x):
    found = set()
    for i in (17, 3, 1024, -5):
        found.add(i)
    found.discard(3)
    return [x + n for n in found]


def popped(x):
    names, total = {"a", "bb", "ccc"}, x
    while names:
        total = total * 2 + len(names.pop())
    return total


@pytest.mark.parametrize("function", [letters, numbers, popped])
def test_order(torch, function):
    x = torch.ones(2)
    expected, found = function(x), torch.compile(function, fullgraph=True)(x)
    as_lists = lambda value: [t.tolist() for t in value] if isinstance(value, list) else value.tolist()  # noqa: E731
    assert as_lists(found) == as_lists(expected)
