"""Which bodies are compiled at run time, and to which instructions."""

from __future__ import annotations

import pytest

from engine.codegen.body_code import code_of
from tests.generator.test_pointwise import operator

# Operands: tensors from 0, numbers from 4 (alpha, then constants), results from 32.
TENSORS = "(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor"


@pytest.mark.parametrize(
    ("body", "code", "constants"),
    [
        ("input + alpha * other", [("kMultiplyAdd", [4, 1, 0])], []),
        ("input * other - alpha", [("kMultiplySubtract", [0, 1, 4])], []),
        ("alpha - input * other", [("kSubtractProduct", [0, 1, 4])], []),
        # A product that something else reads, too, is computed; of two products one becomes part of the sum.
        ("input * other + abs(input * other)", [("kMultiply", [0, 1]), ("kAbs", [32]), ("kAdd", [32, 33])], []),
        ("input * input + other * other", [("kMultiply", [1, 1]), ("kMultiplyAdd", [0, 0, 32])], []),
        ("(input - other) * 2", [("kSubtract", [0, 1]), ("kMultiply", [32, 5])], [2.0]),
        ("input < 0 ? T(0) : input", [("kLarger", [5, 0])], [0.0]),
        ("input > other ? other : input", [("kSmaller", [1, 0])], []),
        ("input > 0 ? input : other", [("kGreater", [0, 5]), ("kSelect", [32, 0, 1])], [0.0]),
        ("isnan(input) || input <= other ? other : input",
         [("kNotEqual", [0, 0]), ("kLessEqual", [0, 1]), ("kOr", [32, 33]), ("kSelect", [34, 1, 0])], []),
        ("input >= other", [("kGreaterEqual", [0, 1]), ("kSelect", [32, 5, 6])], [1.0, 0.0]),
        ("rsqrt(maximum(input, other))", [("kMaximum", [0, 1]), ("kSqrt", [32]), ("kDivide", [5, 33])], [1.0]),
        ("-input * -2", [("kNegate", [0]), ("kMultiply", [32, 5])], [-2.0]),
    ],
)  # fmt: skip
def test_instructions(body, code, constants):
    assert code_of(operator(body, TENSORS)) == (code, constants)


@pytest.mark.parametrize(
    "body",
    [
        "exp(input) + other",  # a function of many instructions: a call would empty the registers
        "input",  # nothing to compute
        "(input > 0) != (other > 0)",
        "input & other",
        "input" + " + other * input" * 30,  # too long
    ],
)
def test_other_bodies_are_not_compiled(body):
    assert code_of(operator(body, TENSORS)) is None
