"""Imported models: their inputs and outputs, weights, Programs with symbolic sizes, control flow, functions and strings."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import teletensor as torch
from tests.conftest import client_environment

from .graphs import model

FLATTEN = """
g (float[N, A, B] x) => (float[N, M] y) {
    sizes = Shape(x)
    zero = Constant <value_ints = [0]> ()
    batch = Gather(sizes, zero)
    rest = Constant <value_ints = [-1]> ()
    target = Concat <axis = 0> (batch, rest)
    y = Reshape(x, target)
}
"""


def test_inputs_by_position_and_by_name():
    loaded = torch.onnx.load(
        model("g (float[2] a, float[2] b) => (float[2] c, float[2] d) { c = Sub(a, b)  d = Neg(c) }")
    )
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([5.0, 5.0])
    assert loaded.input_names == ["a", "b"] and loaded.output_names == ["c", "d"]
    for found in (loaded(a, b), loaded(b=b, a=a), loaded({"a": a, "b": b}), loaded(a.numpy(), b.numpy())):
        assert [f.tolist() for f in found] == [[-4.0, -3.0], [4.0, 3.0]]


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "text"),
    [
        ((), {}, TypeError, "missing: \\['x'\\]"),
        ((1.0, 2.0), {}, TypeError, "at most 1 inputs"),
        ((), {"z": 1.0}, TypeError, "got 'z'"),
        ((np.zeros((2, 2), np.int64),), {}, TypeError, "expected torch.float32 for the input 'x', got torch.int64"),
        (
            (np.zeros((2, 3), np.float32),),
            {},
            ValueError,
            "expected sizes \\['N', 2\\] for the input 'x', got \\[2, 3\\]",
        ),
        ((["text"],), {}, TypeError, "expected a tensor"),
    ],
)
def test_wrong_inputs_are_refused(args, kwargs, error, text):
    loaded = torch.onnx.load(model("g (float[N, 2] x) => (float[N, 2] y) { y = Abs(x) }"))
    with pytest.raises(error, match=text):
        loaded(*args, **kwargs)


def test_a_program_keeps_sizes_symbolic():
    loaded = torch.onnx.load(model(FLATTEN))
    program = loaded.program(torch.zeros(2, 3, 4))
    for shape in ((2, 3, 4), (5, 7, 2), (9, 2, 2)):
        x = torch.randn(shape)
        assert torch.equal(program(x), x.reshape(shape[0], -1))
    assert "size(%1, 0)" in program.text


def test_sizes_do_not_wait_for_the_engine():
    loaded = torch.onnx.load(model(FLATTEN))
    x = torch.zeros(2, 3, 4)
    loaded(x)
    before = len(torch.sync_report())
    loaded(x)
    assert len(torch.sync_report()) == before


def test_weights_are_parameters_and_can_be_trained():
    weight, bias = np.ones((3, 2), np.float32), np.zeros(2, np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "layer.weight", "layer.bias"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
        [numpy_helper.from_array(weight, "layer.weight"), numpy_helper.from_array(bias, "layer.bias")],
    )  # fmt: skip
    loaded = torch.onnx.load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), trainable=True
    )
    names = loaded.weight_names()
    assert set(loaded.state_dict()) == set(names.values()) and set(names) == {"layer.weight", "layer.bias"}
    loaded(torch.ones(4, 3)).sum().backward()
    assert getattr(loaded, names["layer.weight"]).grad.tolist() == [[4.0, 4.0]] * 3
    with torch.no_grad():
        getattr(loaded, names["layer.bias"]).fill_(10.0)
    assert loaded(torch.ones(1, 3)).tolist() == [[13.0, 13.0]]
    frozen = torch.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))
    assert not any(p.requires_grad for p in frozen.parameters())


def test_an_initializer_can_be_overridden():
    loaded = torch.onnx.load(model("g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Mul(x, w) }"))
    x = torch.tensor([3.0, 4.0])
    assert loaded.input_names == ["x"]
    assert loaded(x).tolist() == [3.0, 8.0]
    assert loaded(x=x, w=torch.tensor([0.0, 1.0])).tolist() == [0.0, 4.0]


def test_a_file_with_external_data(tmp_path):
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])], [numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert (tmp_path / "w.bin").exists()
    loaded = torch.onnx.load(tmp_path / "m.onnx")
    assert np.array_equal(loaded(np.ones((2, 3), np.float32)).numpy(), weight + 1)
    with pytest.raises(ValueError, match="expected a path"):
        torch.onnx.load((tmp_path / "m.onnx").read_bytes())


def test_a_loop_that_depends_on_values():
    loaded = torch.onnx.load(model("""
        g (float limit) => (float total, float[K] seen) {
            more = Constant <value_int = 1> ()
            going = Cast <to = 9> (more)
            start = Constant <value_float = 1.0> ()
            total, seen = Loop ("", going, start) <body = b (int64 i, bool c, float t) => (bool go, float new, float row) {
                two = Constant <value_float = 2.0> ()
                new = Mul(t, two)
                go = Less(new, limit)
                row = Identity(new)
            }>
        }"""))  # fmt: skip
    total, seen = loaded(np.float32(20.0))
    assert total.item() == 32.0 and seen.tolist() == [2.0, 4.0, 8.0, 16.0, 32.0]
    with pytest.raises(RuntimeError, match="value"):
        loaded.program(torch.tensor(20.0))


def test_scan_and_if_read_values_from_outside():
    loaded = torch.onnx.load(model("""
        g (float[T, 2] x, float[2] start, bool up) => (float[2] last, float[T, 2] rows, float[2] chosen) {
            last, rows = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] r) => (float[2] s2, float[2] r2) {
                s2 = Add(s, r)
                r2 = Mul(s2, start)
            }> (start, x)
            chosen = If (up) <then_branch = t () => (float[2] a) { a = Neg(last) },
                else_branch = e () => (float[2] b) { b = Identity(start) }>
        }"""))  # fmt: skip
    x, start = np.asarray([[1, 2], [3, 4]], np.float32), np.asarray([10, 1], np.float32)
    last, rows, chosen = loaded(x, start, np.asarray(True))
    assert (
        last.tolist() == [14.0, 7.0]
        and rows.tolist() == [[110.0, 3.0], [140.0, 7.0]]
        and chosen.tolist() == [-14.0, -7.0]
    )
    assert loaded(x, start, np.asarray(False))[2].tolist() == [10.0, 1.0]


def test_local_functions_with_attributes():
    loaded = torch.onnx.load(onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[N] x) => (float[N] y) { t = own.scaled <factor = 3.0> (x)  y = own.scaled(t) }
        <domain: "own", opset_import: ["" : 18]>
        scaled <factor: float = 2.0> (a) => (b) { c = Constant <value_float: float = @factor> ()  b = Mul(a, c) }
    """))  # fmt: skip
    assert loaded(torch.tensor([1.0, 2.0])).tolist() == [6.0, 12.0]


def test_sequences_and_optional_inputs():
    loaded = torch.onnx.load(model("""
        g (seq(float[N]) items, float[N] x) => (float[M] joined, int64 count) {
            more = SequenceInsert(items, x)
            joined = ConcatFromSequence <axis = 0> (more)
            count = SequenceLength(more)
        }"""))  # fmt: skip
    joined, count = loaded([torch.tensor([1.0]), torch.tensor([2.0, 3.0])], torch.tensor([4.0]))
    assert joined.tolist() == [1.0, 2.0, 3.0, 4.0] and count.item() == 3


def test_strings_stay_in_the_client():
    loaded = torch.onnx.load(model("""
        g (string[N] a, string[N] b) => (string[N] joined, bool[N] same, string[2] picked) {
            joined = StringConcat(a, b)
            same = Equal(a, b)
            places = Constant <value_ints = [1, 0]> ()
            picked = Gather(joined, places)
        }""", 20))  # fmt: skip
    joined, same, picked = loaded(np.asarray(["x", "y"], object), np.asarray(["x", "z"], object))
    assert (
        joined.tolist() == ["xx", "yz"]
        and picked.tolist() == ["yz", "xx"]
        and np.asarray(same).tolist() == [True, False]
    )


def test_small_types_keep_their_values():
    loaded = torch.onnx.load(
        model(
            "g (float[N] x) => (int4[N] a, float8e4m3fnuz[N] b, float[N] c) {\n"
            "a = Cast <to = 22> (x)  b = Cast <to = 18> (x)  c = Cast <to = 1> (b) }",
            21,
        )
    )
    from teletensor.onnx.backend import PreparedModel

    x = np.asarray([-8.0, -1.3, 0.0, 7.0, 500.0], np.float32)
    a, b, c = PreparedModel(loaded).run([x[:4]])
    assert a.dtype.name == "int4" and a.astype(int).tolist() == [-8, -1, 0, 7]
    assert b.dtype.name == "float8_e4m3fnuz"
    assert PreparedModel(loaded).run([x])[2][-1] == 240.0  # the largest number of the type
    assert np.array_equal(c, x[:4].astype(b.dtype).astype(np.float32))


def test_gradients_of_values_in_the_graph():
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["c"]),
        helper.make_node("Mul", ["c", "a"], ["d"]),
        helper.make_node("Gradient", ["a", "b"], ["da", "db"], domain="ai.onnx.preview.training", xs=["a", "b"], y="d"),
        helper.make_node("Add", ["da", "db"], ["sum"]),
    ]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("a", "b", "d", "da", "db", "sum")]
    graph = helper.make_graph(nodes, "g", infos[:2], infos[2:])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.preview.training", 1)]
    loaded = torch.onnx.load(helper.make_model(graph, opset_imports=imports))
    with torch.no_grad():
        d, da, db, total = loaded(torch.tensor([2.0, 3.0]), torch.tensor([5.0, 7.0]))
    assert d.tolist() == [20.0, 63.0] and da.tolist() == [20.0, 42.0] and db.tolist() == [4.0, 9.0]
    assert total.tolist() == [24.0, 51.0]


def test_an_unknown_operator_is_named():
    with pytest.raises(NotImplementedError, match="company.Thing-1"):
        torch.onnx.load(model("g (float[N] x) => (float[N] y) { y = company.Thing(x) }", company=1))


def test_an_error_names_the_node():
    loaded = torch.onnx.load(
        model("g (float[N] x) => (float[M] y) { c = Constant <value_ints = [5, 7]> ()  y = Reshape(x, c) }")
    )
    with pytest.raises(RuntimeError) as caught:
        loaded(torch.ones(2))
    assert any("in the ONNX node Reshape" in note for note in caught.value.__notes__)


def test_the_missing_package_is_named(tmp_path):
    (tmp_path / "onnx.py").write_text("raise ImportError('none')\n")
    program = "import teletensor as torch\ntry:\n    torch.onnx.load(b'')\nexcept ImportError as e:\n    print(e)\n"
    environment = client_environment()
    environment["PYTHONPATH"] = f"{tmp_path}:{environment['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "pip install onnx" in done.stdout, done.stderr


def test_importing_teletensor_does_not_import_onnx():
    program = "import sys, teletensor as torch\nassert torch.onnx\nassert 'onnx' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", program], env=client_environment(), timeout=60, check=True)
