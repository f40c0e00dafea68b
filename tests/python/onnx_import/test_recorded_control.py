"""Conditions that the engine computes, in Programs and in torch.export: If and Loop of imported models."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

IF = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,N] x) => (float[2,N] y) {
    total = ReduceSum <keepdims = 0> (x)
    zero = Constant <value = float {0.0}> ()
    positive = Greater(total, zero)
    z = If (positive) <then_branch = a () => (float[2,N] p) { p = Mul(x, x) }, else_branch = b () => (float[2,N] q) { q = Neg(x) }>
    y = Add(z, x)
}"""
LOOP = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) {
    count = Constant <value = int64 {6}> ()
    limit = Constant <value = float {20.0}> ()
    going = Constant <value = bool {1}> ()
    y = Loop (count, going, x) <body = b (int64 i, bool c, float[2] t) => (bool more, float[2] new) {
        new = Add(t, t)
        total = ReduceSum <keepdims = 0> (new)
        more = Less(total, limit)
    }>
}"""
ROWS = LOOP.replace("y = Loop", "y, rows = Loop").replace("(bool more, float[2] new)", "(bool more, float[2] new, float[2] row)").replace(
    "total = Reduce", "row = Identity(new)\n        total = Reduce"
)


def arrays(name):
    sizes = (2, 3) if name == "if" else (2,)
    base = np.arange(1, 1 + np.prod(sizes), dtype=np.float32).reshape(sizes)
    return [base, -base, base * 0.01, base * 3]


@pytest.mark.parametrize(("name", "text"), [("if", IF), ("loop", LOOP)])
@pytest.mark.parametrize("recording", ["program", "export"])
def test_outcomes_are_decided_by_the_program(torch, name, text, recording):
    proto = onnx.parser.parse_model(text)
    model, given = torch.onnx.load(proto), arrays(name)
    first = torch.from_numpy(given[0])
    program = model.program(first) if recording == "program" else torch.export.export(model, (first,)).module()
    for x in given:
        (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
        np.testing.assert_allclose(program(torch.from_numpy(x)).numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(model(torch.from_numpy(x)).numpy(), expected, rtol=1e-6)


def test_exported_branches_are_nodes(torch):
    program = torch.export.export(torch.onnx.load(onnx.parser.parse_model(IF)), (torch.ones(2, 3),))
    assert any(str(n.target) == "cond" for n in program.graph.nodes)


def test_gradients_of_selected_values(torch):
    model = torch.onnx.load(onnx.parser.parse_model(IF))
    program = model.program(torch.ones(2, 3))
    x = torch.ones(2, 3, requires_grad=True)
    program(x).sum().backward()
    assert x.grad.tolist() == [[3.0] * 3] * 2


DOMAINS = """<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) {
    total = ReduceSum <keepdims = 0> (x)
    zero = Constant <value = float {0.0}> ()
    positive = Greater(total, zero)
    y = If (positive) <then_branch = a () => (float[3] p) { p = Mul(x, x) },
        else_branch = b () => (float[3] q) { r = Sqrt(x) q = Log(r) }>
}"""
ROOTS = """<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) {
    count = Constant <value = int64 {6}> ()
    limit = Constant <value = float {1.5}> ()
    going = Constant <value = bool {1}> ()
    y = Loop (count, going, x) <body = b (int64 i, bool c, float[3] t) => (bool more, float[3] new) {
        one = Constant <value = float {1.0}> ()
        less = Sub(t, one)
        new = Sqrt(less)
        total = ReduceSum <keepdims = 0> (new)
        more = Greater(total, limit)
    }>
}"""


@pytest.mark.parametrize(("text", "values"), [(DOMAINS, [0.0, 1.0, 2.0]), (DOMAINS, [-4.0, 1.0, 2.0]), (ROOTS, [6.0, 6.0, 6.0])])
@pytest.mark.parametrize("recording", ["program", "export"])
def test_what_is_not_selected_gives_no_nan(torch, text, values, recording):
    model = torch.onnx.load(onnx.parser.parse_model(text))
    example = torch.ones(3)
    run = model.program(example) if recording == "program" else torch.export.export(model, (example,)).module()
    found = []
    for function in (model, run):
        x = torch.tensor(values, requires_grad=True)
        y = function(x)
        y[1:].sum().backward()
        found.append((y.detach(), x.grad))
    for expected, actual in zip(*found):
        torch.testing.assert_close(actual, expected, equal_nan=True)


def test_sizes_that_would_depend_on_the_condition(torch):
    model = torch.onnx.load(onnx.parser.parse_model(ROWS.replace("=> (float[2] y)", "=> (float[2] y, float[K,2] rows)")))
    assert tuple(model(torch.ones(2))[1].shape) == (4, 2)
    with pytest.raises(NotImplementedError, match="scanned outputs"):
        model.program(torch.ones(2))
