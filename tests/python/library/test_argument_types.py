"""Values that the schema of an operator excludes, with PyTorch's errors."""

from __future__ import annotations

import re

import numpy
import pytest

import teletensor as torch

x, number = object(), object()  # stand for tensors, which are made in a test
BASE = {"x": x, "i": 1, "g": 1.0, "b": True, "ts": [x]}


def arguments(name, value, **defaults):
    """The arguments of a call, with one of them replaced."""

    def made(found):
        if isinstance(found, (list, tuple)):
            return type(found)(map(made, found))
        return torch.ones(2) if found is x else torch.tensor(3) if found is number else found

    return {key: made(found) for key, found in {**BASE, **defaults, name: value}.items()}


@pytest.fixture(scope="module")
def op():
    library = torch.library.Library("argument_types", "FRAGMENT")
    library.define("f(Tensor x, int i, float g, bool b, Tensor[] ts, int? oi=None, float? og=None, bool? ob=None) -> Tensor")
    library.impl("f", lambda x, i, g, b, ts, oi, og, ob: x + i, "CompositeExplicitAutograd")
    return torch.ops.argument_types.f


# The types that PyTorch 2.15 expects of an argument, and that it finds.
REFUSED = [
    ("i", 1.5, "int", "float"), ("i", "a", "int", "str"), ("i", None, "int", "NoneType"), ("i", [1], "int", "list"),
    ("i", numpy.float64(1), "int", "float64"), ("g", "a", "float", "str"), ("g", None, "float", "NoneType"),
    ("g", 1j, "float", "complex"), ("b", "a", "bool", "str"), ("b", [1], "bool", "list"), ("ts", x, "List[Tensor]", "Tensor"),
    ("ts", [x, 3], "List[Tensor]", "list"), ("ts", [None], "List[Tensor]", "list"), ("ts", None, "List[Tensor]", "NoneType"),
    ("oi", 1.5, "Optional[int]", "float"), ("og", "a", "Optional[float]", "str"), ("ob", "a", "Optional[bool]", "str"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "expected", "found"), REFUSED)
def test_refused(op, name, value, expected, found):
    text = f"argument_types::f() Expected a value of type '{expected}' for argument '{name}' but instead found type '{found}'."
    defaults = {"oi": None, "og": None, "ob": None}
    for call in (lambda: op(**arguments(name, value)), lambda: op(*arguments(name, value, **defaults).values())):
        with pytest.raises(RuntimeError, match=re.escape(text)):
            call()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("i", True), ("i", numpy.int64(3)), ("i", number), ("g", 1), ("g", True), ("g", numpy.float32(2)), ("b", 1), ("b", 0.0),
        ("b", None), ("ts", (x,)), ("ts", []), ("oi", None), ("oi", 2), ("og", 1), ("ob", 0),
    ],
)  # fmt: skip
def test_accepted(op, name, value):
    assert op(**arguments(name, value)).shape == (2,)
    assert op(*arguments(name, value, oi=None, og=None, ob=None).values()).shape == (2,)


def test_overloads_are_found_by_the_type_of_a_number():
    library = torch.library.Library("argument_overloads", "FRAGMENT")
    library.define("g.whole(Tensor x, int i) -> Tensor")
    library.define("g.real(Tensor x, float i) -> Tensor")
    library.impl("g.whole", lambda x, i: x * 10, "CompositeExplicitAutograd")
    library.impl("g.real", lambda x, i: x * 20, "CompositeExplicitAutograd")
    g = torch.ops.argument_overloads.g
    ones = torch.ones(2)
    assert g(ones, 1).tolist() == [10, 10] and g(ones, 1.5).tolist() == [20, 20]


def test_zero_points_of_quantized_operators():
    weight = torch.quantize_per_tensor(torch.ones(3, 2), 0.5, 0, torch.qint8)
    q = torch.quantize_per_tensor(torch.ones(1, 2), 0.5, 0, torch.quint8)
    packed = torch.ops.quantized.linear_prepack(weight, None)
    assert torch.ops.quantized.linear(q, packed, 0.1, 1).dequantize().shape == (1, 3)
    with pytest.raises(RuntimeError, match="Expected a value of type 'int' for argument '.*' but instead found type 'float'"):
        torch.ops.quantized.linear(q, packed, 0.1, 1.5)


def test_limits_of_complex32():
    assert torch.finfo(torch.complex32) == torch.finfo(torch.float16) and torch.complex32.to_real() is torch.float16
