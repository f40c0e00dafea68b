"""Compiled functions follow changes of classes, of weak references, of the default device, and of elements' types."""

from __future__ import annotations

import abc
import collections.abc
import enum
import math
import typing
import weakref

import numpy as np
import pytest

import teletensor as torch
from teletensor import nn


def make_tensors():
    global X
    X = torch.ones(3)


BACKENDS = ("eager", "inductor")


@pytest.fixture(params=BACKENDS)
def compiled(request):
    torch._dynamo.reset()
    return lambda f: torch.compile(f, backend=request.param)


def test_the_default_device(compiled):
    f = compiled(lambda: torch.zeros(2))
    assert f().device.type == "cpu"
    with torch.device("meta"):
        assert f().device.type == "meta"
    assert f().device.type == "cpu"


class Referent:
    k = 2.0


@pytest.mark.parametrize("of", ["argument", "variable", "attribute", "proxy"])
def test_weak_references(compiled, of):
    held = [Referent()]
    ref = weakref.ref(held[0])
    model = nn.Identity()
    model.ref, proxy = ref, weakref.proxy(held[0])

    def value_of_proxy(x, w):
        try:
            return x * proxy.k
        except ReferenceError:
            return x

    function = {
        "argument": lambda x, w: x if w() is None else x * w().k,
        "variable": lambda x, w: x if ref() is None else x * ref().k,
        "attribute": lambda x, w: x if model.ref() is None else x * model.ref().k,
        "proxy": value_of_proxy,
    }[of]
    f = compiled(function)
    assert f(X, ref).tolist() == [2] * 3 and f(X, ref).tolist() == [2] * 3
    Referent.k = 5.0
    assert f(X, ref).tolist() == [5] * 3
    Referent.k = 2.0
    held.clear()
    assert ref() is None  # the compiled code does not hold it
    assert f(X, ref).tolist() == [1] * 3


def test_weak_containers(compiled):
    held = [Referent(), Referent()]
    elements, keys = weakref.WeakSet(held), weakref.WeakKeyDictionary(dict.fromkeys(held))
    values = weakref.WeakValueDictionary(enumerate(held))
    for container in (elements, keys, values):
        f = compiled(lambda x: x * len(container))
        more = [Referent(), Referent(), Referent()]
        assert f(X)[0] == 2
        if container is elements:
            container.add(more[0])
        elif container is keys:
            container[more[0]] = 1
        else:
            container[7] = more[0]
        assert f(X)[0] == 3
        more.clear()
        assert f(X)[0] == 2


@pytest.mark.parametrize("cls", [set, frozenset])
def test_types_of_elements(compiled, cls):
    f = compiled(lambda x, s: (x, [(type(e).__name__, str(e)) for e in s]))
    for elements in ([1], [1.0], [True], [0.0], [-0.0], [False], [1, 2], [1.0, 2], [1, 2.0]):
        expected = sorted((type(e).__name__, str(e)) for e in elements)
        assert sorted(f(X, cls(elements))[1]) == expected


def test_methods_of_tensors(compiled, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "test_method", lambda self, k: self + k, raising=False)
    monkeypatch.setattr(torch.Tensor, "test_property", property(lambda self: self.ndim + 1), raising=False)
    f = compiled(lambda x: x.test_method(2) * x.test_property)
    assert f(X)[0] == 6 and f(X)[0] == 6
    torch.Tensor.test_method = lambda self, k: self - k
    assert f(X)[0] == -2
    torch.Tensor.test_property = property(lambda self: 10)
    assert f(X)[0] == -10
    has = compiled(lambda x: x * (2 if hasattr(x, "test_other") else 3))
    assert has(X)[0] == 3
    monkeypatch.setattr(torch.Tensor, "test_other", 1, raising=False)
    assert has(X)[0] == 2


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("relu", lambda x: x.relu()), ("__add__", lambda x: x + 1), ("__radd__", lambda x: 1 + x), ("__iadd__", lambda x: _iadd(x)),
        ("__neg__", lambda x: -x), ("__getitem__", lambda x: x[0]), ("__lt__", lambda x: x < 0), ("__matmul__", lambda x: x @ x),
        ("__iter__", lambda x: sum(x)), ("__len__", lambda x: x * len(x)), ("__abs__", lambda x: abs(x)),
        ("ndim", lambda x: x * x.ndim), ("T", lambda x: x.T + 1), ("__and__", lambda x: x.bool() & True),
    ],
)  # fmt: skip
def test_replaced_methods_of_tensors(compiled, monkeypatch, name, function):
    x = torch.ones(3)
    f = compiled(function)
    before, unpatched = f(x.clone()), function(x.clone())
    replacement = property(lambda self: torch.full((3,), 50.0)) if name in ("ndim", "T") else lambda self, *a: torch.full((3,), 50.0)
    if name == "__len__":
        replacement = lambda self: 7  # noqa: E731
    if name == "__iter__":
        replacement = lambda self: iter([torch.full((3,), 50.0)])  # noqa: E731
    with monkeypatch.context() as m:
        m.setattr(torch.Tensor, name, replacement)
        got, expected = f(x.clone()), function(x.clone())
    torch.testing.assert_close(before, unpatched)
    torch.testing.assert_close(got, expected)
    assert expected.shape != unpatched.shape or not torch.equal(expected, unpatched)
    torch.testing.assert_close(f(x.clone()), unpatched)


def test_a_method_that_calls_the_one_it_replaces(compiled, monkeypatch):
    original = torch.Tensor.relu
    by_class, kept = compiled(lambda x: torch.Tensor.relu(x) + 1), compiled(lambda x: original(x) + 1)
    assert by_class(X)[0] == 2 and kept(X)[0] == 2
    with monkeypatch.context() as m:
        m.setattr(torch.Tensor, "relu", lambda self: original(self) * 10)
        assert by_class(X)[0] == 11 and kept(X)[0] == 2 and compiled(lambda x: x.relu() + 2)(X)[0] == 12
    assert by_class(X)[0] == 2 and kept(X)[0] == 2


def _iadd(x):
    x += 1
    return x


class Base(abc.ABC):  # noqa: B024
    pass


@typing.runtime_checkable
class HasName(typing.Protocol):
    name: str


def test_abstract_classes_and_protocols(compiled):
    class Plain:
        pass

    plain = Plain()
    f = compiled(lambda x, a: x * (2 if isinstance(a, Base) else 3) * (5 if issubclass(type(a), collections.abc.Sequence) else 7))
    assert f(X, plain)[0] == 21
    Base.register(Plain)
    assert f(X, plain)[0] == 14
    collections.abc.Sequence.register(Plain)
    assert f(X, plain)[0] == 10
    g = compiled(lambda x, a: x * (2 if isinstance(a, int | HasName) else 3))
    assert g(X, plain)[0] == 3
    plain.name = "a"
    assert g(X, plain)[0] == 2
    del plain.name
    assert g(X, plain)[0] == 3


class Color(enum.Enum):
    RED = 2.0


def test_values_of_enums(compiled, monkeypatch):
    f = compiled(lambda x: x * Color.RED.value)
    assert f(X)[0] == 2
    monkeypatch.setattr(Color.RED, "_value_", 3.0)
    assert f(X)[0] == 3


def test_a_metaclass_with_hooks(compiled):
    answer = [True]

    class Meta(type):
        def __instancecheck__(cls, instance):
            return answer[0]

        def __subclasscheck__(cls, subclass):
            return answer[0]

    class Any(metaclass=Meta):
        pass

    f = compiled(lambda x: x * (2 if isinstance(3, Any) else 3) * (5 if issubclass(int, Any) else 7))
    assert f(X)[0] == 10
    answer[0] = False
    assert f(X)[0] == 21


def test_getattr_of_modules(compiled, monkeypatch):
    model = nn.Linear(3, 3)
    f = compiled(lambda x: x + model.bias)
    torch.testing.assert_close(f(X), X + model.bias)
    with monkeypatch.context() as m:
        m.setattr(nn.Module, "__getattr__", lambda self, name: torch.full((3,), 9.0))
        assert f(X).tolist() == [10] * 3
    torch.testing.assert_close(f(X), X + model.bias)


@pytest.mark.parametrize("scalar", [np.float64(2.5), np.int64(3), np.float32(0.1), np.int32(3), np.bool_(True), np.uint8(200)])
def test_scalars_of_numpy(compiled, scalar):
    for function in (lambda x, s: x * s, lambda x, s: torch.full((2,), s), lambda x, s: x.add(1, alpha=s), lambda x, s: x[: int(s)]):
        for x in (X, torch.ones(3, dtype=torch.int32)):
            got = []
            for f in (function, compiled(function)):
                try:
                    got.append(f(x, scalar))
                except (TypeError, RuntimeError) as e:
                    got.append((type(e), str(e)))
            if isinstance(got[0], tuple):
                assert got[0] == got[1]
            else:
                torch.testing.assert_close(got[1], got[0], rtol=0, atol=0)
    g = compiled(lambda x: x * scalar)
    torch.testing.assert_close(g(X), X * scalar, rtol=0, atol=0)


@pytest.mark.parametrize("cls", [np.float64, np.float32, np.float16])
def test_signs_of_zeros_of_numpy(compiled, cls):
    f = compiled(lambda x, s: x * math.copysign(2.0, float(s)))
    for value in (0.0, -0.0, 0.0, 1.0, -1.0, -0.0):
        assert f(X, cls(value))[0] == math.copysign(2.0, value)
    g = compiled(lambda x, s: x * (2 if s == s else 3))
    assert g(X, cls("nan"))[0] == 3 and g(X, cls(1))[0] == 2 and g(X, cls("nan"))[0] == 3
