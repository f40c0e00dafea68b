"""Compiled functions must give the results of plain Python when arguments are one object or two equal ones."""

from __future__ import annotations

import collections
import functools
from typing import NamedTuple

import pytest

import teletensor as torch


class Thing:
    def go(self):
        return 1


class Pair(NamedTuple):
    a: object
    b: object


def make(n):
    return lambda x: x * n


def things():
    return Thing(), Thing()


def functions():
    return make(1), make(2)


def methods():
    return Thing().go, Thing().go


def methods_of_one():
    thing = Thing()
    return thing.go, thing.go


def methods_in_c():
    return Thing().__eq__, make(3).__call__


def tuples():
    return (1, *[2]), (1, *[2])


def tuples_of_tensors():
    return (torch.ones(1),), (torch.ones(1),)


def namedtuples():
    return Pair(1, 2), Pair(1, 2)


def slices():
    return slice(1, 2), slice(1, 2)


def ranges():
    return range(3), range(3)


def strings():
    return "".join(["a", "b"]), "".join(["a", "b"])


def numbers():
    return 2.5 * len([1]), 2.5 * len([1])


def sets():
    return frozenset([1]), frozenset([1])


def partials():
    return functools.partial(make, 1), functools.partial(make, 1)


def lists():
    return [1], [1]


def deques():
    return collections.deque([1]), collections.deque([1])


PAIRS = (
    things, functions, methods, methods_of_one, methods_in_c, partials, lists, deques, tuples, tuples_of_tensors, namedtuples, slices,
    ranges, strings, numbers, sets,
)  # fmt: skip
CASES = {
    "is": lambda a, b, x: x + 1 if a is b else x + 2,
    "any is": lambda a, b, x: x + any(c is a for c in [b]),
    "other than": lambda a, b, x: x * len([c for c in (a, b) if c is not b]),
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
@pytest.mark.parametrize("pair", PAIRS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("starts_with_one", [False, True], ids=["two", "one"])
def test_one_object_and_two(operation, pair, starts_with_one):
    torch._dynamo.reset()  # all pairs share a function, of which a limited number of graphs is kept
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


def test_tuples_of_objects():
    holder, sentinel, other, empty = Thing(), (1, *[2]), (1, *[2]), ()

    def f(x):
        new = tuple([])
        return x + 1, holder.t is holder.u, holder.t is sentinel, holder.t is new, [v for v in (holder.t,) if v is not holder.u] == []

    compiled = torch.compile(f, backend="eager")
    for holder.t, holder.u in ((sentinel, other), (sentinel, sentinel), (other, sentinel), (other, other), (empty, empty), (empty, other)):
        assert compiled(torch.ones(2))[1:] == f(torch.ones(2))[1:]


def test_removed_callbacks():
    thing = Thing()
    first, second = thing.go, thing.go

    def f(x, handlers, callback):
        return x + 1, [h for h in handlers if h is not callback]

    compiled = torch.compile(f, backend="eager")
    for callback in (thing.go, first, second):
        got, want = compiled(torch.ones(2), [first, second], callback)[1], f(torch.ones(2), [first, second], callback)[1]
        assert [id(h) for h in got] == [id(h) for h in want]
