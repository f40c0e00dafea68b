"""The command `teletensor convert` and convert(): between .onnx, .pt2, native folders and .safetensors."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import teletensor as torch
from teletensor import cli
from teletensor.convert import ConversionFailed, convert

from .graphs import model


@pytest.fixture
def source(tmp_path):
    """An .onnx file with an open batch and length, and weights."""
    numbers = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("ReduceMean", ["d", "axis"], ["y"], keepdims=0),
    ]  # fmt: skip
    weights = {
        "w": numbers.standard_normal((4, 3)).astype(np.float32),
        "b": np.ones(3, np.float32),
        "axis": np.asarray([1]),
    }
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "length", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def test_onnx_to_pt2_and_back(source, tmp_path):
    x = torch.randn(5, 7, 4)
    expected = torch.onnx.load(source)(x)
    report = convert(source, tmp_path / "m.pt2")
    assert report.kept_symbols == ["batch", "length"] and report.difference == 0 and not report.problems
    assert torch.allclose(torch.export.load(tmp_path / "m.pt2").module()(x), expected)
    report = convert(tmp_path / "m.pt2", tmp_path / "again.onnx", opset=18)
    assert report.kept_symbols == ["batch", "length"]
    assert torch.allclose(torch.onnx.load(tmp_path / "again.onnx")(x), expected)


def test_to_a_native_model(source, tmp_path):
    from teletensor import serving

    report = convert(source, tmp_path / "native")
    assert {p.name for p in (tmp_path / "native").iterdir()} == {"program.pb", "model.safetensors"}
    assert report.kept_symbols == ["batch", "length"] and report.formats == ("ONNX", "native model")
    entry = serving.read(tmp_path / "native")["entries"][0]
    assert entry["inputs"][0]["name"] == "x" and entry["outputs"][0]["name"] == "y"
    convert(source, tmp_path / "m.pt2")
    assert convert(tmp_path / "m.pt2", tmp_path / "native2").kept_symbols == ["batch", "length"]


def test_weights_alone(source, tmp_path):
    convert(source, tmp_path / "w.safetensors")
    weights = torch.load(tmp_path / "w.safetensors")
    assert sorted(tuple(t.shape) for t in weights.values()) == [(3,), (4, 3)]


def test_the_command_writes_a_report(source, tmp_path, capsys):
    report = tmp_path / "report.json"
    assert (
        cli.main(["convert", str(source), str(tmp_path / "m.pt2"), "--size", "batch=6", "--report", str(report)]) == 0
    )
    found = json.loads(report.read_text())
    assert found["failed"] is False and found["weights"] == 2 and found["inputs"] == ["x: float32[batch, length, 4]"]
    assert "converted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "text"),
    [("copy.onnx", "both have the format ONNX"), ("m.txt", "ends in .onnx"), ("nowhere/m.pt2", "nowhere")],
)
def test_a_failure_has_status_1(source, tmp_path, capsys, target, text):
    assert cli.main(["convert", str(source), str(tmp_path / target)]) == 1
    assert text in capsys.readouterr().err


def test_operators_that_cannot_be_converted_are_listed(tmp_path, capsys):
    path = tmp_path / "m.onnx"
    onnx.save(model("g (float[N] x) => (float[N] y) { a = own.Thing(x)  y = own.Other(a) }", own=1), path)
    assert cli.main(["convert", str(path), str(tmp_path / "m.pt2")]) == 1
    assert "own.Other-1, own.Thing-1" in capsys.readouterr().err
    assert not (tmp_path / "m.pt2").exists()


def test_results_that_depend_on_values_are_no_program(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(model("g (float[N] x) => (int64[1, M] y) { y = NonZero(x) }"), path)
    with pytest.raises(ConversionFailed) as caught:
        convert(path, tmp_path / "native")
    assert caught.value.report.failed and "nonzero" in caught.value.report.problems[0].lower()


@pytest.mark.parametrize("name", ["m.pt2", "folder", "w.safetensors"])
def test_sources_without_a_model(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "w.safetensors").write_bytes(b"\0" * 8)
    (tmp_path / "m.pt2").write_bytes(b"text")
    with pytest.raises(ConversionFailed):
        convert(tmp_path / name, tmp_path / "out.onnx")
