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


def test_a_native_model_in_a_new_repository(source, tmp_path, monkeypatch, capsys):
    """The folders of a model and of its repository are made, unless the conversion fails."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["convert", "m.onnx", "models/net/1"]) == 0
    assert "converted" in capsys.readouterr().out
    assert sorted(files(tmp_path / "models")) == ["net/1/model.safetensors", "net/1/program.pb"]
    assert cli.main(["convert", "m.onnx", "m.onnx/net/1"]) == 1

    def fails(*_args):
        raise RuntimeError("the results differ")

    from teletensor.convert import _convert

    monkeypatch.setattr(_convert, "_compare", fails)
    assert cli.main(["convert", "m.onnx", "models/other/1"]) == 1
    assert cli.main(["convert", "m.onnx", "others/net/1"]) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "models"]
    assert [p.name for p in (tmp_path / "models").iterdir()] == ["net"]


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


def files(folder) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("target", ["m.pt2", "native", "w.safetensors", "native/inner"])
def test_a_failed_conversion_leaves_everything_as_it_was(source, tmp_path, monkeypatch, target):
    """Whether it fails while it writes, or because results differ."""
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "program.pb").write_bytes(b"old")
    (tmp_path / "m.pt2").write_bytes(b"old")
    before = files(tmp_path)
    from teletensor.convert import _convert

    def fails(*_args):
        raise RuntimeError("the results differ")

    monkeypatch.setattr(_convert, "_write" if target.endswith(".safetensors") else "_compare", fails)
    with pytest.raises(ConversionFailed, match="differ"):
        convert(source, tmp_path / target)
    assert files(tmp_path) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.pt2", "native"]


def test_an_existing_target_is_replaced(source, tmp_path):
    (tmp_path / "m.pt2").write_bytes(b"old")
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "program.pb").write_bytes(b"old")
    (tmp_path / "native" / "notes.txt").write_bytes(b"kept")
    convert(source, tmp_path / "m.pt2")
    convert(source, tmp_path / "native")
    assert (tmp_path / "m.pt2").read_bytes() != b"old" and (tmp_path / "native" / "program.pb").read_bytes() != b"old"
    assert sorted(files(tmp_path / "native")) == ["model.safetensors", "notes.txt", "program.pb"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.pt2", "native"]


@pytest.mark.parametrize(
    ("target", "options", "text"),
    [
        ("missing/m.pt2", {}, "does not exist"),
        ("file", {}, "expected a folder"),
        ("m.pt2", {"sizes": {"btach": 3}}, "btach"),
        ("m.pt2", {"sizes": {"batch": -3}}, "at least 1"),
    ],
)
def test_targets_and_sizes_that_make_no_sense_are_refused(source, tmp_path, target, options, text):
    (tmp_path / "file").write_bytes(b"kept")
    with pytest.raises(ConversionFailed, match=text):
        convert(source, tmp_path / target, **options)
    assert (tmp_path / "file").read_bytes() == b"kept" and not (tmp_path / "m.pt2").exists()


def test_results_that_are_no_numbers_differ(source, tmp_path, monkeypatch):
    """A target whose results are NaN is not that of the source."""
    load = torch.export.load

    class Broken:
        def module(self):
            return lambda *args: torch.full([2, 3], float("nan"))

    monkeypatch.setattr(torch.export, "load", lambda path: Broken())
    with pytest.raises(ConversionFailed, match="not a number"):
        convert(source, tmp_path / "m.pt2")
    assert load is not torch.export.load and not (tmp_path / "m.pt2").exists()


def test_a_negative_size_of_an_input_is_open(tmp_path):
    loaded = torch.onnx.load(model("g (float[N] x) => (float[N] y) { y = Abs(x) }"))
    assert loaded.inputs["x"][1] == ("N",)
    proto = model("g (float[N] x) => (float[N] y) { y = Abs(x) }")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert torch.onnx.load(proto)(torch.tensor([-1.0, 2.0])).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="expected a file"):
        torch.onnx.load(tmp_path)


def test_quantized_layers_of_a_native_model_compute_with_integers(tmp_path):
    from tests.python.pt2e.test_graphs import converted

    quantized, samples = converted(torch, "mlp", "xnnpack")
    torch.export.save(torch.export.export(quantized, (samples[0],)), tmp_path / "q.pt2")
    lowered = convert(tmp_path / "q.pt2", tmp_path / "lowered")
    kept = convert(tmp_path / "q.pt2", tmp_path / "kept", lower=False)
    assert (lowered.notes, kept.notes) == (["2 quantized layers compute with integers"], [])
    sizes = [(tmp_path / name / "program.pb").stat().st_size for name in ("lowered", "kept")]
    assert sizes[0] < sizes[1]  # fewer operators
