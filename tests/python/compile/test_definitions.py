"""Classes that a compiled function defines: named tuples are parts of graphs, class statements end them, as in PyTorch."""

from __future__ import annotations

import collections
import dataclasses
import enum
import typing

import pytest

import teletensor as torch


def of_named_tuple(x):
    made = collections.namedtuple("Pair", "first second")
    pair = made(x + 1, second=2)
    return pair.first * pair.second, pair._replace(second=3).second, made.__name__, made.__module__


def with_defaults(x):
    made = collections.namedtuple("Pair", ["first", "second"], defaults=[4])
    return made(x).first * made(x).second, made._field_defaults


def with_equal_fields(x):
    try:
        return collections.namedtuple("Pair", "first first")
    except ValueError as e:
        return x + len(str(e))


def of_statement(x):
    class Kept:
        factor = 3

        def __init__(self, value):
            self.value = value

        @classmethod
        def scaled(cls, value):
            return cls(value * cls.factor)

        @property
        def doubled(self):
            return self.value * 2

    return Kept.scaled(x + 1).doubled


def of_closure(x):
    y = x * 2

    class Kept:
        def __call__(self):
            return y + 1

    return Kept()() * 3


def of_typed_tuple(x):
    class Pair(typing.NamedTuple):
        first: object
        second: int = 3

    return Pair(x + 1).first * Pair(x).second


def of_dataclass(x):
    @dataclasses.dataclass
    class Pair:
        first: object
        second: int = 2

    return Pair(x).first * Pair(x, 5).second


def of_exception(x):
    class Refused(Exception):  # noqa: N818
        pass

    try:
        raise Refused(2)
    except Refused as e:
        return x * e.args[0]


def of_enumeration(x):
    class Kind(enum.Enum):
        FIRST = 1

    return x + Kind.FIRST.value


def of_module(x):
    class Layer(torch.nn.Module):
        def forward(self, x):
            return x.sin() + 1

    return Layer()(x)


NAMED = [of_named_tuple, with_defaults, with_equal_fields]
STATEMENTS = [of_statement, of_closure, of_typed_tuple, of_dataclass, of_exception, of_enumeration, of_module]


@pytest.mark.parametrize("function", NAMED + STATEMENTS)
def test_values_are_those_of_the_function(function):
    compiled = torch.compile(function)
    for n in (2, 3, 4):
        x = torch.arange(float(n))
        got, wanted = compiled(x), function(x)
        got, wanted = (v if isinstance(v, tuple) else (v,) for v in (got, wanted))
        assert torch.equal(got[0], wanted[0]) and got[1:] == wanted[1:]


@pytest.mark.parametrize("function", NAMED)
def test_named_tuples_are_parts_of_the_graph(function):
    torch.compile(function, fullgraph=True)(torch.ones(2))


@pytest.mark.parametrize("function", STATEMENTS)
def test_class_statements_end_the_graph(function):
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(function, fullgraph=True)(torch.ones(2))
