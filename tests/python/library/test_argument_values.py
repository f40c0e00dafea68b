"""Operators receive for values of all kinds what they receive in PyTorch 2.15, or refuse them with its errors."""

from __future__ import annotations

import json
import re

import pytest

import teletensor as torch

from .argument_values import TABLE, TYPES, Whole, outcomes, values

RECORDED = json.loads(TABLE.read_text())
NAMES = list(values(torch))
# Differences. PyTorch reads iterators for SymInt[] before it converts them, so that their operators receive empty lists; and it
# converts ints that are no number of an enumeration to other objects.
CONSUMED = {"generator": "list(int 1, int 2)", "map": "list(int 1, int 2)", "iterator": "list(int 1, int 2)", "zip": "RuntimeError"}
BEYOND = {kind: ("-2**63",) for kind in ("ScalarType", "Layout")} | {"MemoryFormat": ("-2**63", "int subclass", "Indexed")}


def expected(kind: str, name: str) -> str:
    """What the operator receives, or the type of the error."""
    recorded = RECORDED[kind]
    if kind.startswith("SymInt[") and name in CONSUMED:
        return CONSUMED[name]
    if name in BEYOND.get(kind.removesuffix("?"), ()):
        return "RuntimeError"
    return recorded["received"].get(name) or recorded["errors"].get(name, "RuntimeError")


@pytest.fixture(scope="module")
def found():
    return dict(outcomes(torch))


@pytest.mark.filterwarnings("ignore:.*discards the imaginary part", "ignore:.*requires_grad=True to a scalar")
@pytest.mark.parametrize("kind", TYPES)
def test_operators_receive_what_they_receive_in_pytorch(found, kind):
    got = found[kind]
    assert got["expected"] == RECORDED[kind]["expected"]
    for name in NAMES:
        assert (got["received"].get(name) or got["errors"].get(name, "RuntimeError")) == expected(kind, name), name


def test_the_table_has_all_types_and_values():
    assert list(RECORDED) == TYPES and len(RECORDED) * len(NAMES) > 5000
    named = {name for row in RECORDED.values() for name in (*row["received"], *row["errors"])}
    assert named <= set(NAMES)


@pytest.fixture(scope="module")
def op():
    library = torch.library.Library("argument_defaults", "FRAGMENT")
    library.define("f(Tensor x, float g=2, int[2] n=3, MemoryFormat m=contiguous_format, *, float[] fs=[1, 2], Scalar s=1) -> Tensor")
    received = []
    library.impl("f", lambda *args, **kwargs: received.append((args[1:], kwargs)) or args[0] + 1, "CompositeExplicitAutograd")
    return torch.ops.argument_defaults.f, received


def test_defaults_are_converted(op):
    call, received = op
    call(torch.ones(1))
    (g, n, m), kwargs = received.pop()
    assert type(g) is float and n == [3, 3] and m is torch.contiguous_format
    assert [*map(type, kwargs["fs"])] == [float, float] and kwargs["s"] == 1


def test_values_by_name_are_converted(op):
    call, received = op
    call(torch.ones(1), n=(True, Whole(2)), g=3, fs=(i for i in (1, 2)))
    (g, n, _), kwargs = received.pop()
    assert type(g) is float and n == [1, 2] and [*map(type, n)] == [int, int] and kwargs["fs"] == [1.0, 2.0]


def test_lists_are_copies(op):
    call, received = op
    given = [1, 2]
    call(torch.ones(1), 1.0, given)
    received.pop()[0][1].append(3)
    assert given == [1, 2]


def test_numbers_of_more_than_64_bits(op):
    call, _ = op
    text = "int too big to convert: argument_defaults::f() expected a number of at most 64 bits for argument 's', got 18446744073709551616"
    with pytest.raises(OverflowError, match=f"^{re.escape(text)}$"):
        call(torch.ones(1), s=2**64)


def test_a_failed_conversion_is_the_cause(op):
    class Broken:
        def __float__(self) -> float:
            raise ValueError("no number")

    call, _ = op
    with pytest.raises(RuntimeError, match="Expected a value of type 'float' for argument 'g' but instead found type 'Broken'") as raised:
        call(torch.ones(1), Broken())
    assert isinstance(raised.value.__cause__, ValueError)


def test_functions_of_custom_operators_receive_converted_values():
    received = []

    @torch.library.custom_op("argument_defaults::annotated", mutates_args=())
    def annotated(x: torch.Tensor, i: int, g: float, b: bool, n: list[int], c: int | float | bool) -> torch.Tensor:
        received.extend((i, g, b, n, c))
        return x + 1

    annotated(torch.ones(1), torch.tensor(3), 2, None, torch.tensor([4, 5]), 7)
    assert [*map(type, received)] == [int, float, bool, list, int] and received == [3, 2.0, False, [4, 5], 7]
    with pytest.raises(RuntimeError, match="Expected a value of type 'number' for argument 'c'"):
        annotated(torch.ones(1), 1, 2.0, True, [], torch.tensor(1))


def test_sizes_of_an_exported_program_are_not_converted():
    @torch.library.custom_op("argument_defaults::sized", mutates_args=())
    def sized(x: torch.Tensor, n: int, sizes: list[int]) -> torch.Tensor:
        return x.new_ones(n + sum(sizes))

    @sized.register_fake
    def _(x, n, sizes):
        return x.new_empty(n + sum(sizes))

    class Module(torch.nn.Module):
        def forward(self, x):
            return sized(x, x.size(0), [x.size(0), 2])

    shapes = {"x": {0: torch.export.Dim("n", min=2)}}
    exported = torch.export.export(Module(), (torch.ones(3),), dynamic_shapes=shapes).module()
    assert exported(torch.ones(5)).shape == (12,) and exported(torch.ones(3)).shape == (8,)
