"""Signatures of functions, and methods of classes that decide how objects are copied and read, which change between calls."""

from __future__ import annotations

import collections
import copy
import enum
import inspect
import sys
import types
import typing

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


def descriptors():
    shown = type("Shown", (), {"__get__": lambda self, obj, cls: 2.0})
    cls = type("Read", (Plain,), {"shown": shown()})
    value = cls()
    vars(value)["shown"] = 3.0

    def setter(name):
        return lambda: setattr(shown, name, lambda *_: None)

    return lambda x: x * value.shown, [setter("__set__"), lambda: setattr(shown, "__get__", lambda *_: 5.0)]


def attributes_of_a_metaclass():
    meta = type("Meta", (type,), {})
    cls = meta("Read", (), {})
    return lambda x: x * getattr(cls, "factor", 2.0), [lambda: setattr(meta, "factor", 3.0), lambda: setattr(cls, "factor", 5.0)]


def exceptions():
    cls = type("Failure", (Exception,), {})

    def function(x):
        failure = cls(3)
        return x * getattr(failure, "factor", 2.0) + len(str(failure))

    def initialize(self, *_):
        self.factor = 5.0

    return function, [lambda: setattr(cls, "__init__", initialize), lambda: setattr(cls, "__str__", lambda _: "text")]


def namedtuples():
    cls = collections.namedtuple("Pair", "a b", defaults=[2.0])
    cls.method = lambda self: self.b
    value = cls(1.0, 3.0)
    new = vars(cls)["__new__"].__func__
    return lambda x: x * cls(1.0).b + value.method() + value.a, [
        lambda: setattr(new, "__defaults__", (5.0,)),
        lambda: setattr(cls, "method", lambda self: 7.0),
        lambda: setattr(cls, "a", property(lambda self: 11.0)),
    ]


def callables():
    cls = type("Called", (), {})
    value = cls()
    return lambda x: x * (2.0 if callable(value) else 3.0), [lambda: setattr(cls, "__call__", lambda self: None)]


def methods_of_an_enum():
    cls = enum.Enum("Kind", "FIRST")
    cls.factor = lambda self: 2.0
    member = cls.FIRST
    return lambda x: x * member.factor(), [lambda: setattr(cls, "factor", lambda self: 3.0)]


CASES = {
    f.__name__: f
    for f in (
        signature_of_defaults, signature_of_wrapped, signature_of_annotations, signature_of_method, missing, getattribute,
        super_of_classes_between, descriptors, attributes_of_a_metaclass, exceptions, namedtuples, callables, methods_of_an_enum,
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


class Special(typing.NamedTuple):
    a: float
    b: float = 2.0

    def __len__(self):
        return 7

    def __add__(self, other):
        return self.a + other

    def __str__(self):
        return f"a of {self.a}"


def test_special_methods_of_namedtuples():
    torch._dynamo.reset()

    def function(x):
        made = Special(x.shape[0] + 0.5)
        return x + len(made), made + 1, f"{made}", made.a

    assert repr(torch.compile(function)(torch.ones(2))) == repr(function(torch.ones(2)))


def test_texts_of_namedtuples():
    torch._dynamo.reset()
    cls = collections.namedtuple("Pair", "a")
    cls.__str__ = lambda self: f"{cls.prefix} {self.a}"
    cls.prefix = "first"
    compiled = torch.compile(lambda x: (x + 1, f"{cls(x.shape[0])}"), fullgraph=True)
    assert compiled(torch.ones(2))[1] == "first 2"
    cls.prefix = "second"
    assert compiled(torch.ones(2))[1] == "second 2"


def test_modules_that_are_imported_again(monkeypatch):
    torch._dynamo.reset()

    def function(x):
        try:
            import changed_module
            from changed_module import factor
        except ImportError:
            return x - 1
        return x * changed_module.factor + factor

    compiled = torch.compile(function)
    x = torch.ones(2)
    for found in (2.0, 3.0, None, 5.0):
        module = types.ModuleType("changed_module")
        module.factor = found
        monkeypatch.setitem(sys.modules, "changed_module", None if found is None else module)
        assert torch.equal(compiled(x), function(x))


def test_the_dtype_of_autocast():
    torch._dynamo.reset()

    def function(x):
        with torch.autocast("cpu"):
            return x @ x, torch.get_autocast_dtype("cpu")

    compiled = torch.compile(function)
    try:
        for dtype in (torch.bfloat16, torch.float16, torch.bfloat16):
            torch.set_autocast_dtype("cpu", dtype)
            assert compiled(torch.ones(2, 2))[0].dtype == dtype and compiled(torch.ones(2, 2))[1] == dtype
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)
