"""Sizes that models compute from Shape and constants, in torch.export: constants are numbers of the program, sizes stay open."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from .graphs import model

TEXTS = {
    "expand": """{ zero = Constant <value_ints = [0]> ()  n = Gather <axis = 0> (s, zero)
        four = Constant <value_ints = [4]> ()  d = Concat <axis = 0> (n, four)  row = Constant <value_floats = [1.0, 2.0, 3.0, 4.0]> ()
        e = Expand(row, d)  y = Add(x, e) }""",
    "reshape": """{ zero = Constant <value_ints = [0]> ()  n = Gather <axis = 0> (s, zero)
        two = Constant <value_ints = [2]> ()  m = Mul(n, two)  d = Concat <axis = 0> (m, two)  z = Reshape(x, d)
        w = Exp(z)  y = Reshape(w, s) }""",
    "slice": """{ zero = Constant <value_ints = [0]> ()  one = Constant <value_ints = [1]> ()  n = Gather <axis = 0> (s, zero)
        m = Sub(n, one)  y = Slice(x, zero, m, zero, one) }""",
}  # fmt: skip
SHAPE_AND_BIAS = """g (float[N,4] x) => (float[N,4] y) <float[4] w = {1, 2, 3, 4}, int64[1] k = {4}, int64[1] zero = {0}>
{ s = Shape(x)  n = Gather <axis = 0> (s, zero)  d = Concat <axis = 0> (n, k)  e = Expand(w, d)  y = Add(x, e) }"""
# The constant is an operand of the engine, and is read as sizes as well.
ROWS = """g (int64[N,2] x) => (int64[N,M] y) <int64[2] k = {1, 2}> { r = Mul(x, k)  y = Tile(r, k) }"""


def proto_of(name: str) -> onnx.ModelProto:
    return model(f"g (float[N,4] x) => (float[M,K] y) {TEXTS[name]}".replace("{ ", "{ s = Shape(x)  ", 1))


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, 4)).astype(np.float32)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "fixed"])
def test_constants_beside_sizes_are_exported(torch, name, is_open):
    proto = proto_of(name)
    loaded = torch.onnx.load(proto)
    shapes = ({0: torch.export.Dim("n", min=2)},) if is_open else None
    program = torch.export.export(loaded, (torch.from_numpy(rows(3)),), dynamic_shapes=shapes and {"args": shapes})
    for count in (3, 5, 2) if is_open else (3,):
        x = rows(count)
        (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
        np.testing.assert_allclose(program.module()(torch.from_numpy(x)).numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(loaded(torch.from_numpy(x)).numpy(), expected, rtol=1e-6)


def test_weights_beside_them_stay_inputs_of_the_program(torch):
    program = torch.export.export(torch.onnx.load(model(SHAPE_AND_BIAS)), (torch.ones(3, 4),))
    program.state_dict["w"].mul_(10)
    assert program.module()(torch.zeros(3, 4)).tolist() == [[10.0, 20.0, 30.0, 40.0]] * 3


@pytest.mark.parametrize("change", ["written", "replaced", "loaded"])
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "fixed"])
def test_changed_constants_are_used(torch, change, is_open):
    loaded = torch.onnx.load(model(ROWS))
    if change == "written":
        loaded.k.copy_(torch.tensor([2, 3]))
    elif change == "replaced":
        loaded.k = torch.tensor([2, 3])
    else:
        loaded.load_state_dict({"k": torch.tensor([2, 3])})
    shapes = {"args": ({0: torch.export.Dim("n", min=2)},)} if is_open else None
    program = torch.export.export(loaded, (torch.ones(3, 2, dtype=torch.int64),), dynamic_shapes=shapes)
    for count in (3, 5) if is_open else (3,):
        x = np.arange(2 * count).reshape(count, 2)
        expected = np.tile(x * [2, 3], (2, 3)).tolist()
        assert loaded(torch.from_numpy(x)).tolist() == expected
        assert program.module()(torch.from_numpy(x)).tolist() == expected


@pytest.mark.parametrize("before", [True, False])
def test_constants_that_the_program_changes_are_refused(torch, before):
    """Each call of the program would have other values, which its sizes depend on."""

    class Changing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torch.onnx.load(model(ROWS))

        def forward(self, x):
            if before:
                self.model.k.add_(1)
            y = self.model(x)
            if not before:
                self.model.k.add_(1)
            return y

    with pytest.raises(torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode):
        torch.export.export(Changing(), (torch.ones(3, 2, dtype=torch.int64),))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("options", [[], ["--static"]], ids=["open", "static"])
def test_they_are_converted_by_the_command(torch, tmp_path, capsys, name, options):
    from teletensor import cli

    proto = proto_of(name)
    onnx.save(proto, tmp_path / "m.onnx")
    assert cli.main(["convert", str(tmp_path / "m.onnx"), str(tmp_path / "m.pt2"), *options]) == 0
    assert ("open sizes: N" in capsys.readouterr().out) == (not options)
    module = torch.export.load(tmp_path / "m.pt2").module()
    for count in (2,) if options else (2, 7):
        x = rows(count)
        (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
        np.testing.assert_allclose(module(torch.from_numpy(x)).numpy(), expected, rtol=1e-6)
