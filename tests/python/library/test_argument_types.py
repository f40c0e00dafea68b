"""Values that the schema of an operator excludes, with PyTorch's errors."""

from __future__ import annotations

import re
import signal

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


@pytest.fixture(scope="module")
def other():
    library = torch.library.Library("argument_types", "FRAGMENT")
    library.define(
        "h(Tensor x, Tensor? t=None, int[] n=[], str s='', Scalar c=1, int[2] two=0, int[]? on=None, str? os=None, "
        "Scalar? oc=None) -> Tensor"
    )
    library.impl("h", lambda x, *rest: x + 1, "CompositeExplicitAutograd")
    return torch.ops.argument_types.h


@pytest.mark.parametrize(("name", "position", "value", "expected"), [
    ("t", 1, 3, "Optional[Tensor]"), ("t", 1, [x], "Optional[Tensor]"), ("n", 2, "a", "List[int]"), ("n", 2, [1.5], "List[int]"),
    ("n", 2, 3, "List[int]"), ("n", 2, None, "List[int]"), ("n", 2, ["a"], "List[int]"), ("n", 2, number, "List[int]"),
    ("s", 3, 3, "str"), ("s", 3, None, "str"), ("s", 3, ["a"], "str"), ("c", 4, "a", "number"), ("c", 4, None, "number"),
    ("c", 4, [1], "number"), ("c", 4, x, "number"),
    ("c", 4, number, "number"), ("c", 4, numpy.int64(2), "number"), ("two", 5, 1.5, "List[int]"), ("two", 5, "a", "List[int]"),
    ("on", 6, 3.5, "Optional[List[int]]"), ("os", 7, 1, "Optional[str]"), ("oc", 8, "a", "Optional[number]"),
])  # fmt: skip
def test_refused_of_other_types(other, name, position, value, expected):
    value = arguments("v", value)["v"]
    with pytest.raises(RuntimeError) as raised:
        other(torch.ones(2), **{name: value})
    first, *lines = str(raised.value).split("\n", 3)
    kind = type(value).__name__
    assert first == f"argument_types::h() Expected a value of type '{expected}' for argument '{name}' but instead found type '{kind}'."
    assert lines[0] == f"Position: {position}" and lines[1].startswith("Value: ")
    assert lines[-1].split("Declaration: ")[1].startswith("argument_types::h(Tensor x, Tensor? t=None, int[] n=[],")


@pytest.mark.parametrize(("name", "value"), [
    ("t", None), ("t", x), ("n", []), ("n", (1, True)), ("n", range(2)), ("n", [number]), ("n", [numpy.int64(3)]), ("s", "a"), ("c", 1j),
    ("c", 2.5), ("c", numpy.float64(2)), ("two", 3), ("two", [1, 2]), ("on", None), ("on", [1]), ("os", None), ("os", "a"),
    ("oc", None), ("oc", 3), ("n", torch.Size([1, 2])), ("two", True), ("two", signal.SIGINT),  # an IntEnum
])  # fmt: skip
def test_accepted_of_other_types(other, name, value):
    assert other(torch.ones(2), **{name: arguments("v", value)["v"]}).tolist() == [2, 2]


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
