"""Compiled functions must give the results of plain Python when arguments are one object or two equal ones."""

from __future__ import annotations

import collections
import functools

import pytest

import teletensor as torch


class Thing:
    pass


def make(n):
    return lambda x: x * n


def things():
    return Thing(), Thing()


def functions():
    return make(1), make(2)


def methods():
    return Thing().__eq__, make(3).__call__


def partials():
    return functools.partial(make, 1), functools.partial(make, 1)


def lists():
    return [1], [1]


def deques():
    return collections.deque([1]), collections.deque([1])


CASES = {
    "is": lambda a, b, x: x + 1 if a is b else x + 2,
    "==": lambda a, b, x: x + 1 if a == b else x + 2,
    "!=": lambda a, b, x: x + 1 if a != b else x + 2,
    "in": lambda a, b, x: x + 1 if a in (3, b) else x + 2,
    "index": lambda a, b, x: x * [a, b].index(b),
    "count": lambda a, b, x: x * [a, b].count(a),
    "id": lambda a, b, x: x + (id(a) == id(b)),
    "set": lambda a, b, x: x * len({a, b}),
    "dict": lambda a, b, x: x * len({a: 1, b: 2}),
    "sequences": lambda a, b, x: x + ([a] == [b]),
    "dicts": lambda a, b, x: x + ({"k": a} == {"k": b}),
    "deque": lambda a, b, x: x * collections.deque([a, b]).count(b),
}
HASHED = ("set", "dict")


def outcome(function, *args):
    try:
        return function(*args).tolist()
    except TypeError as e:
        return str(e)


@pytest.mark.parametrize("operation", CASES)
@pytest.mark.parametrize("pair", [things, functions, methods, partials, lists, deques], ids=lambda f: f.__name__)
@pytest.mark.parametrize("starts_with_one", [False, True], ids=["two", "one"])
def test_one_object_and_two(operation, pair, starts_with_one):
    function = CASES[operation]
    a, b = pair()
    x = torch.ones(3)
    calls = [(a, b), (a, a), (b, b), (b, a)]
    if starts_with_one:
        calls = [(a, a), (a, b), (a, a)]
    compiled = torch.compile(function, backend="eager")
    for one, other in calls:
        assert outcome(compiled, one, other, x) == outcome(function, one, other, x)


def test_tensors_as_keys():
    def f(x, y):
        return x * len({x, y})

    x, y = torch.ones(3), torch.ones(3)
    compiled = torch.compile(f, backend="eager")
    for pair in ((x, y), (x, x), (y, x)):
        assert compiled(*pair).tolist() == f(*pair).tolist()


def test_not_a_number_in_containers():
    nan, other = float("nan"), float("nan")

    def f(x, a, b):
        return x + ([a] == [b]), {"k": a} == {"k": b}, a in [b]

    compiled = torch.compile(f, backend="eager")
    for pair in ((nan, nan), (nan, other), (other, other)):
        (got, *flags), (want, *expected) = compiled(torch.ones(2), *pair), f(torch.ones(2), *pair)
        assert (got.tolist(), flags) == (want.tolist(), expected)
