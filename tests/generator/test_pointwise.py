"""Tests of the code generated from a `body:`, and of its error messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.codegen import pointwise, pointwise_cuda
from engine.codegen.declaration import DeclarationError, parse_entry

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = pointwise.vocabulary("".join((ROOT / "kernels/common/math" / h).read_text() for h in pointwise.VOCABULARY))

LOOPS = pointwise.loops("".join((ROOT / "kernels" / header).read_text() for header in pointwise.LOOPS))


def operator(body, sig="(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor", **fields):
    entry = {
        "op": "probe", "id": 4008, "sig": sig, "doc": "A probe.", "dtype": "promote(input)", "shape": "same(input)",
        "body": body, "grad": "none", "ref": "none: a probe", "samples": [[2]],
    }  # fmt: skip
    return parse_entry(entry | fields, "probe.yaml")


def expression(body: str, **fields) -> str:
    """The C++ expression of a body's first function."""
    text = pointwise.emit_file([operator(body, **fields)], 4008 % pointwise.NUM_FILES, FUNCTIONS)
    return re.search(r"return (.*);", text)[1]


@pytest.mark.parametrize(
    ("body", "cpp"),
    [
        ("input + alpha * other", "input + alpha * other"),
        ("0.5 * input", "T(0.5) * input"),
        ("input > 20 ? input : log1p(exp(input))", "where(input > T(20), input, log1p(exp(input)))"),
        ("input < 0 ? 0 : input > 6 ? 6 : input", "where(input < T(0), T(0), where(input > T(6), T(6), input))"),
        ("input * (other > 1e-3 ? 2 : 3)", "input *(where(other > T(1e-3), T(2), T(3)))"),
        ("pow(input > 0 ? input : 1, other)", "pow(where(input > T(0), input, T(1)), other)"),
        ("input != 0 && other != 0", "input != T(0) && other != T(0)"),
        ("-input", "- input"),
    ],
)
def test_bodies_become_branchless_and_typed(body, cpp):
    assert expression(body) == cpp


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("frobnicate(input)", r"frobnicate\(\) is not a function of"),
        ("input + mystery", "'mystery' .* is not a parameter"),
        ("input +* $", "expected a name, a number or an operator"),
        ("(input", "expected '\\)'"),
        ("input ? other", "expected ':'"),
        ("input)", "expected the end of the body, got '\\)'"),
    ],
)
def test_invalid_body_is_rejected_by_name(body, match):
    with pytest.raises(DeclarationError, match=f"probe.yaml: probe: .*{match}"):
        expression(body)


def test_optional_numbers_have_a_presence_flag():
    text = pointwise.emit_file(
        [operator("has_low && input < low ? low : input", sig="(Tensor input, Scalar? low=None) -> Tensor")],
        4008 % pointwise.NUM_FILES, FUNCTIONS,
    )  # fmt: skip
    assert "const bool has_low = (scalar_args.present >> 0) & 1;" in text


def test_parameters_unsupported_in_bodies_are_rejected():
    with pytest.raises(DeclarationError, match="cannot take mode, a str"):
        expression("input", sig="(Tensor input, str mode='x') -> Tensor")


def test_index_of_the_divisor_is_emitted():
    row = pointwise.emit_file([operator("floor_divide(input, other)")], 4008 % pointwise.NUM_FILES, FUNCTIONS)
    assert "{op_id::kProbe, 2, 1, true, " in row
    plain = pointwise.emit_file([operator("input * other")], 4008 % pointwise.NUM_FILES, FUNCTIONS)
    assert "{op_id::kProbe, 2, -1, false, " in plain


def test_floats_use_the_functions_own_loop():
    def text(body: str, sig: str = "(Tensor input, Tensor other) -> Tensor") -> str:
        return pointwise.emit_file([operator(body, sig=sig)], 4008 % pointwise.NUM_FILES, FUNCTIONS, LOOPS)

    assert {"fmod", "nextafter"} <= LOOPS
    own = text("fmod(input, other)")
    assert "if constexpr (Real<T>) return loop_of_fmod(length & -kLanes, in, out);" in own
    assert '#include "kernels/cpu/isa/loops.h"' in own
    for body in ("fmod(other, input)", "fmod(input, 2)", "fmod(input, other) + 1", "input * other"):
        assert "loop_of_" not in text(body)
    assert "loop_of_" not in text("fmod(input, other)", "(Tensor input, Scalar other) -> Tensor")


def test_an_operator_may_have_its_own_loop():
    fields = {"sig": "(Tensor input, Tensor n) -> Tensor"}
    text = pointwise.emit_file([operator("2 * input - n", **fields)], 4008 % pointwise.NUM_FILES, FUNCTIONS, {"operator_probe"})
    assert "if constexpr (Real<T>) return loop_of_operator_probe(length & -kLanes, in, out);" in text
    assert "operator_special_shifted_chebyshev_polynomial_t" in LOOPS


def test_floating_results_are_not_computed_in_integers():
    row = pointwise.emit_file([operator("exp(input)", dtype="floating(input)")], 4008 % pointwise.NUM_FILES, FUNCTIONS)
    assert "find_probe_float<float>(), find_probe_float<double>(), nullptr, nullptr, nullptr" in row


def test_bodies_by_kind():
    row = pointwise.emit_file([operator({"int": "~input", "bool": "input == 0"})], 4008 % pointwise.NUM_FILES, FUNCTIONS)
    assert "nullptr, nullptr, find_probe_int<int32_t>(), find_probe_int<int64_t>(), find_probe_bool<int32_t>()" in row
    with pytest.raises(DeclarationError, match="body keys must be float, half, int, bool or complex"):
        pointwise.bodies(operator({"decimal": "input"}))


def test_complex_loops_are_generated_if_declared():
    row = pointwise.emit_file([operator({"float": "input", "complex": "conj(input)"})], 4008 % pointwise.NUM_FILES, FUNCTIONS)
    assert "nullptr, find_probe_complex<Complex<float>>(), find_probe_complex<Complex<double>>(), find_probe_float<BFloat16>()}," in row
    op = operator("input * other")
    op.entry["complex"] = True
    row = pointwise.emit_file([op], 4008 % pointwise.NUM_FILES, FUNCTIONS)
    assert "find_probe_float<Complex<float>>(), find_probe_float<Complex<double>>(), find_probe_float<BFloat16>()}," in row


def test_cheap_bfloat16_bodies_are_computed_in_place():
    def text(body: str, dtype: str) -> str:
        return pointwise.emit_file([operator(body, dtype=dtype)], 4008 % pointwise.NUM_FILES, FUNCTIONS)

    assert "find_probe_float<BFloat16>()}," in text("maximum(input, other)", "promote(input, other)")
    assert "BFloat16" not in text("maximum(input, other)", "boolean()")
    assert "BFloat16" not in text("exp(input)", "floating(input)")


def test_uint64_uses_int64_if_bits_are_equal():
    row = pointwise.emit_file([operator("input * other + 1")], 4008 % pointwise.NUM_FILES, FUNCTIONS)
    assert "find_probe_float<int64_t>(), find_probe_float<int32_t>(), find_probe_float<int64_t>(), nullptr" in row
    row = pointwise.emit_file([operator("input / other")], 4008 % pointwise.NUM_FILES, FUNCTIONS)
    assert "find_unsigned_probe<uint64_t>(), nullptr" in row


def test_each_operator_is_in_one_file():
    op = operator("input")
    files = [pointwise.emit_file([op], i, FUNCTIONS) for i in range(pointwise.NUM_FILES)]
    assert sum("kProbe" in text for text in files) == 1


def test_cuda_shares_the_bodies():
    op = operator("floor_divide(input, other)")
    text = pointwise_cuda.emit_file([op], 4008 % pointwise_cuda.NUM_FILES, FUNCTIONS)
    assert "return floor_divide(input, other);" in text
    assert "struct ProbeFloat {\n  static constexpr int kInputs = 2, kScalarArgs = 1, kDivisor = 1;" in text
    assert "{op_id::kProbe, 1, find<ProbeFloat, float>(), find<ProbeFloat, double>(), " in text
    assert "find<ProbeFloat, int64_t>(), find<ProbeFloat, int64_t>()}," in text  # one body for integers and bool


def test_cuda_has_bodies_for_half_and_float():
    op = operator({"float": "input / other", "half": "input * other"}, sig="(Tensor input, Tensor other) -> Tensor")
    text = pointwise_cuda.emit_file([op], 4008 % pointwise_cuda.NUM_FILES, FUNCTIONS)
    assert "return number<T>(body_probe_half<T>(in[0], in[1]));" in text
    assert "struct ProbeFloat {\n  using Half = ProbeHalf;\n" in text
    assert "half" not in pointwise.emit_file([op], 4008 % pointwise.NUM_FILES, FUNCTIONS)
    with pytest.raises(DeclarationError, match="a half body requires a float body"):
        pointwise.emit_file([operator({"half": "input"})], 4008 % pointwise.NUM_FILES, FUNCTIONS)


def further(body: str, **fields) -> str:
    return pointwise_cuda.emit_extended_dtypes_file([operator(body, **fields)], 4008 % pointwise_cuda.NUM_EXTENDED_FILES, FUNCTIONS)


def test_cuda_compiles_complex_and_unsigned_bodies_separately():
    text = further("input * other", complex=True)
    assert "return input * other;" in text
    assert "{op_id::kProbe, true, nullptr, find<ProbeComplex, Complex<float>>(), find<ProbeComplex, Complex<double>>()}," in text
    assert "{op_id::kProbe, false, find<ProbeInt, uint64_t>(), nullptr, nullptr}," in further("maximum(input, other)")
    op = operator("input * other", complex=True)
    assert "Complex" not in pointwise_cuda.emit_file([op], 4008 % pointwise_cuda.NUM_FILES, FUNCTIONS)


def test_chains_have_source_bodies_except_integer_division():
    text = pointwise_cuda.emit_bodies(
        [operator("floor_divide(input, other)")], FUNCTIONS, '#pragma once\n#include <bit>\nint f();\n', set()
    )
    assert '{op_id::kProbe, "body_probe_float", R"TT(template <typename T>' in text
    assert ')TT", "", ""},' in text
    assert 'R"TT(int f();\n)TT"' in text
