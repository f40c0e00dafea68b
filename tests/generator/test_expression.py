"""Tests of the expression language of `grad` and `composite`: generated code and error messages."""

import re

import pytest

from engine.codegen.composites import emit_composites
from engine.codegen.declaration import parse_entry
from engine.codegen.gradients import emit_gradients
from engine.codegen.saved import saved_parts
from engine.codegen.signature import DeclarationError


def operator(name: str, id: int, sig: str, **fields):
    entry = {"op": name, "id": id, "sig": sig, "doc": "A test's.", "ref": "none: a test's", "samples": []}
    entry |= {"dtype": "same(input)", "shape": "same(input)"} if "-> Tensor[]" not in sig else {}
    if "composite" not in fields:
        entry |= {"grad": "none"}
    if not {"body", "composite", "kernel"} & set(fields):
        entry |= {"kernel": name}
    return parse_entry(entry | fields, "test.yaml")


UNARY, BINARY = "(Tensor input) -> Tensor", "(Tensor input, Tensor other) -> Tensor"


@pytest.fixture
def operators():
    return [
        operator("add", 1, "(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor", body="input + alpha * other"),
        operator("mul", 2, BINARY, body="input * other"),
        operator("neg", 3, UNARY, body="-input"),
        operator("exp", 4, UNARY, body="exp(input)"),
        operator("full_like", 5, "(Tensor input, Scalar fill_value, *, DType? dtype=None, Device? device=None) -> Tensor"),
        operator("sum", 6, "(Tensor input, int[1]? dim=None, bool keepdim=False) -> Tensor"),
        operator("split", 7, "(Tensor input, int size, int dim=0) -> Tensor[]"),
        operator("gt", 8, BINARY, body="input > other"),
    ]


@pytest.fixture
def headers(tmp_path):
    header = tmp_path / "formulas.h"
    header.write_text("Tensor expand_reduced(const Tensor& g, SizesView sizes);\nSizes shifted(SizesView list);\n")
    return [header]


def gradient(operators, headers, **fields) -> str:
    """The generated function body for an operator declared with `fields`."""
    op = operator("probe", 50, fields.pop("sig", BINARY), **fields)
    text = emit_gradients([*operators, op], headers)
    return re.search(r"void gradient_probe\(Backward& b\) \{\n(.*?)\n\}", text, re.DOTALL)[1].strip()


def composite(operators, headers, sig: str, expression: str) -> str:
    """The expression that the generated function of a composite returns."""
    text = emit_composites([*operators, operator("probe", 50, sig, composite=expression)], headers)
    return re.search(r"finish_composite\(call, (.*)\);", text)[1]


def test_gradient_reads_named_values(operators, headers):
    text = gradient(operators, headers, body="input * other", grad={"input": "g * other"})
    assert text == "if (b.needs(0)) b.set_gradient(0, ops::mul(b.gradient(0), b.operand(1)));"


def test_only_values_read_by_formulas_are_saved(operators, headers):
    sig = "(Tensor input, Tensor other, float scale, int[] dims) -> Tensor"
    op = operator("probe", 50, sig, grad={"input": "expand_reduced(g, input.sizes) * scale", "other": "g * exp(result)"})
    text = emit_gradients([*operators, op], headers)
    #                           params, args, metas, results
    assert "k_parts_probe[] = {{0x1, 0x0, 0x1, 0x0}, {0x2, 0x0, 0x0, 0x1}}" in text
    assert "{&gradient_probe, k_parts_probe, 0x4, true}" in text
    assert [(part.args, part.results) for part in saved_parts(op)] == [(0, 0), (0, 1)]


def test_formula_of_several_parameters(operators, headers):
    text = gradient(operators, headers, grad={"input, other": "[g, -g if needs(other) else None]"})
    assert text == (
        "if (b.needs(0) || b.needs(1)) b.set_gradients({0, 1}, "
        "Tensors{b.gradient(0), (b.needs(1) ? (ops::neg(b.gradient(0))) : (Tensor()))});"
    )


def test_lists_of_gradients(operators, headers):
    sig = "(Tensor[] tensors, int dim=0) -> Tensor"
    rules = {"dtype": "same(tensors)", "shape": "same(tensors)"}
    text = gradient(operators, headers, sig=sig, grad={"tensors": "split(g, len(tensors.sizes), dim)"}, **rules)
    assert "b.set_gradient_list(0, ops::split(b.gradient(0), static_cast<int64_t>(b.shapes().size()), b.arg(1).integer))" in text


def test_gradients_read_the_sizes_of_one_list_only(operators, headers):
    sig = "(Tensor[] first, Tensor[] second) -> Tensor"
    rules = {"dtype": "same(first)", "shape": "same(first)"}
    grad = {"first": "split(g, len(first.sizes))", "second": "split(g, len(second.sizes))"}
    with pytest.raises(DeclarationError, match="gradients may read the sizes of one list, got first, second"):
        gradient(operators, headers, sig=sig, grad=grad, **rules)


@pytest.mark.parametrize(
    ("sig", "expression", "cpp"),
    [
        (UNARY, "input * 2 + 1.5", "ops::add(ops::mul(input, int64_t{2}), 1.5, Scalar(int64_t{1}))"),
        ("(Tensor input, Scalar alpha) -> Tensor", "add(input, 1, alpha=-alpha)", "ops::add(input, int64_t{1}, number::neg(alpha))"),
        ("(Tensor input, int n) -> Tensor", "input * (n // 2 % 3)", "ops::mul(input, number::mod(number::floordiv(n, int64_t{2}), int64_t{3}))"),
        ("(Tensor input, int n) -> Tensor", "input * (1 / n)", "ops::mul(input, number::div(static_cast<double>(int64_t{1}), static_cast<double>(n)))"),
        (UNARY, "sum(input, [0, -1])", "ops::sum(input, std::optional<SizesView>(Sizes{int64_t{0}, (-int64_t{1})}), false)"),
        (UNARY, "sum(input)", "ops::sum(input, std::nullopt, false)"),
        ("(Tensor input, str how) -> Tensor", "exp(input) if how == 'exp' else input", '((how == std::string_view("exp")) ? (ops::exp(input)) : (input))'),
        ("(Tensor input, Tensor? bias=None) -> Tensor", "input if bias is None else input + bias", "((!static_cast<bool>(bias)) ? (input) : (ops::add(input, bias, Scalar(int64_t{1}))))"),
        (UNARY, "split(input, input.sizes[-1] - 1)[0]", "at(ops::split(input, number::sub(at(sizes_of(input), (-int64_t{1})), int64_t{1}), int64_t{0}), int64_t{0})"),
        (UNARY, "input > 0", "ops::gt(input, int64_t{0})"),
        ("(Tensor input, float? p=None) -> Tensor", "input * given_or(p, 2)", "ops::mul(input, p.value_or(static_cast<double>(int64_t{2})))"),
    ],
)  # fmt: skip
def test_composites(operators, headers, sig, expression, cpp):
    assert composite(operators, headers, sig, expression).replace(" ", "") == cpp.replace(" ", "")


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("absent(input)", "'absent' is neither an operator nor a function of composites"),
        ("input + missing", "'missing' is unknown"),
        ("given_or(input, 1)", "expected an optional, got input of type Tensor"),
        ("full_like(input, given_or(1, 2))", "expected an optional, got int64_t{1} of type int"),
        ("add(input)", "add requires the argument 'other'"),
        ("exp(input, input)", "exp takes 1 arguments, got 2"),
        ("add(input, 1, gamma=2)", "add has no parameter 'gamma', or it is given twice"),
        ("sum(input, 'all')", 'expected ints, got std::string_view("all") of type str'),
        ("input.shape", "a tensor has sizes, dtype, dim, numel, device, not 'shape'"),
        ("input.sizes", "a composite must return tensors, not ints"),
        ("input if input else input", "expected bool"),
        ("[i for i in input]", "is not supported"),
        ("input +", "expected a Python expression, got 'input +'"),
        ("split(input, 1) + 1", "operands"),
    ],
)
def test_errors_name_file_and_operator(operators, headers, expression, complaint):
    with pytest.raises(DeclarationError, match=r"^test.yaml: probe: ") as error:
        composite(operators, headers, UNARY, expression)
    if complaint != "operands":
        assert complaint in str(error.value)


def test_gradient_of_unknown_parameter_is_rejected():
    with pytest.raises(DeclarationError, match="declares a gradient for 'weight', which is not a parameter"):
        operator("probe", 50, UNARY, grad={"input, weight": "[g, g]"})
