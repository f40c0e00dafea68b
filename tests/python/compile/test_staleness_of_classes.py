"""Signatures of functions, and methods of classes that decide how objects are copied and read, which change between calls."""

from __future__ import annotations

import copy
import inspect
import types

import pytest

import teletensor as torch


def signature_of_defaults():
    def described(a, b=2, *, c=3):
        return a

    def function(x):
        parameters = inspect.signature(described).parameters
        return x * parameters["b"].default * parameters["c"].default

    def keyword_default():
        described.__kwdefaults__["c"] = 11

    def other():
        described.__signature__ = inspect.signature(lambda a, b=13, c=17: a)

    return function, [lambda: setattr(described, "__defaults__", (5,)), keyword_default, other]


def signature_of_wrapped():
    def described(a, b=2):
        return a

    def wrapped(a, c, b=5):
        return a

    def function(x):
        parameters = inspect.signature(described).parameters
        return x * len(parameters) * parameters["b"].default

    return function, [
        lambda: setattr(described, "__wrapped__", wrapped),
        lambda: setattr(wrapped, "__defaults__", (7,)),
        lambda: delattr(described, "__wrapped__"),
    ]


def signature_of_annotations():
    def described(a: int):
        return a

    def function(x):
        return x * (2 if inspect.signature(described).parameters["a"].annotation == "int" else 3)

    return function, [lambda: described.__annotations__.update(a="str")]


def signature_of_method():
    class Described:
        def method(self, a, b=2):
            return a

    described = Described()

    def function(x):
        return x * inspect.signature(described.method).parameters["b"].default

    return function, [lambda: setattr(Described.method, "__defaults__", (5,))]


class Plain:
    def __init__(self):
        self.factor = 3.0


def copies(copying, name, replacement):
    def make():
        cls = type("Copied", (Plain,), {})
        value = cls()

        def function(x):
            return x * copying(value).factor

        return function, [lambda: setattr(cls, name, replacement)]

    return make


def copies_of_slots(copying):
    def make():
        cls = type("Slots", (), {"__slots__": ("slot", "__dict__")})
        value = cls()
        value.slot, value.factor = 2.0, 3.0

        def function(x):
            made = copying(value)
            return x * made.slot + made.factor

        return function, [lambda: setattr(value, "slot", 5.0)]

    return make


def missing():
    class Table(dict):
        pass

    table = Table(a=2.0)

    def function(x):
        try:
            return x * table["b"]
        except KeyError:
            return x * 100

    return function, [
        lambda: setattr(Table, "__missing__", lambda self, key: 4.0),
        lambda: setattr(Table, "__missing__", lambda self, key: 6.0),
        lambda: table.update(b=5.0),
    ]


def getattribute():
    cls = type("Read", (Plain,), {})
    value = cls()

    def function(x):
        return x * value.factor

    return function, [lambda: setattr(cls, "__getattribute__", lambda self, name: 50.0)]


def super_of_classes_between():
    first = type("First", (Plain,), {"scale": lambda self: 2.0})
    second = type("Second", (first,), {})

    class Third(second):
        def scale(self):
            return super().scale() * 10

    value = Third()
    other = type("Other", (Plain,), {"scale": lambda self: 7.0})
    return lambda x: x * value.scale(), [
        lambda: setattr(second, "scale", lambda self: 3.0),
        lambda: delattr(second, "scale"),
        lambda: setattr(first, "scale", lambda self: 5.0),
        lambda: setattr(Third, "__bases__", (other,)),
    ]


CASES = {
    f.__name__: f
    for f in (
        signature_of_defaults, signature_of_wrapped, signature_of_annotations, signature_of_method, missing, getattribute,
        super_of_classes_between,
    )
}  # fmt: skip
CASES |= {
    "__copy__": copies(copy.copy, "__copy__", lambda self: types.SimpleNamespace(factor=100.0)),
    "__deepcopy__": copies(copy.deepcopy, "__deepcopy__", lambda self, memo: types.SimpleNamespace(factor=100.0)),
    "__getstate__": copies(copy.copy, "__getstate__", lambda self: {"factor": 50.0}),
    "__setstate__": copies(copy.copy, "__setstate__", lambda self, state: vars(self).update(factor=70.0)),
    "copy of slots": copies_of_slots(copy.copy),
    "deepcopy of slots": copies_of_slots(copy.deepcopy),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_changes_are_seen(name):
    torch._dynamo.reset()
    function, changes = CASES[name]()
    compiled = torch.compile(function, backend="eager")
    x = torch.tensor([1.0, 2.0])
    for change in [None, *changes]:
        if change is not None:
            before = function(x)
            change()
            assert not torch.equal(function(x), before)  # the change has an effect
        for _ in range(2):
            assert torch.equal(compiled(x), function(x))
