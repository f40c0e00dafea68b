"""Functions of itertools in compiled functions: when they read their arguments, and what they share."""

from __future__ import annotations

import itertools

import pytest

import teletensor as torch


def pools(x):
    found = []
    for make in (
        lambda a: itertools.product(a, repeat=2), itertools.permutations, lambda a: itertools.combinations(a, 2),
        lambda a: itertools.combinations_with_replacement(a, r=2),
    ):  # fmt: skip
        elements = [1, 2]
        tuples = make(elements)
        elements.append(3)
        found.append(list(tuples))
    return found, x + 1


def refused(x):
    try:
        itertools.combinations([1, 2], -1)
    except ValueError:
        return x + 1
    return x


def groups(x):
    stale = list(itertools.groupby([1, 1, 2]))
    partly = [(k, next(v)) for k, v in itertools.groupby([1, 1, 2, 2, 1])]
    endless = itertools.groupby(itertools.count(), key=lambda n: n // 3)
    return [(k, list(v)) for k, v in stale], partly, [list(next(endless)[1]) for _ in range(2)], x + 1


def many(x):
    return len(list(itertools.combinations(range(12), 5))), list(itertools.product([x], [1])), list(itertools.product())


def counted(x):
    numbers = itertools.count(x, 1)
    return next(numbers), next(numbers), x


@pytest.mark.parametrize("function", [pools, refused, groups, many, counted])
def test_as_plain_python(function):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager", fullgraph=True)
    for _ in range(2):
        got, want = compiled(torch.arange(3.0)), function(torch.arange(3.0))
        assert str(got) == str(want)
