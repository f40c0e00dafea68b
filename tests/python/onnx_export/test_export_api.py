"""torch.onnx.export: arguments, names, errors, files, custom translations and reports."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def small(torch: Any) -> Any:
    """A module with parameters."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval()


def of(torch: Any, forward: Any) -> Any:
    """A module that calls a function."""

    class Function(torch.nn.Module):
        """The function as a module."""

        def forward(self, x: Any) -> Any:
            """Calls it."""
            return forward(x)

    return Function()


def test_program(torch: Any) -> None:
    module, x = small(torch), torch.randn(2, 3)
    program = torch.onnx.export(module, (x,))
    assert isinstance(program, torch.onnx.ONNXProgram)
    assert program.exported_program.graph_signature.user_inputs
    model = program.model_proto
    assert model.opset_import[0].version == 20
    assert [i.name for i in model.graph.initializer] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [n.op_type for n in model.graph.node] == ["Gemm", "Relu", "Gemm"]
    np.testing.assert_allclose(program(x)[0].numpy(), module(x).detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(program.call_reference(x)[0].numpy(), module(x).detach().numpy(), atol=1e-6)
    assert program.compute_values(["relu"], (x,))[0].shape == (2, 4)
    with pytest.raises(ValueError, match="no values"):
        program.compute_values(["nothing"], (x,))
    assert "Gemm" in repr(program)


def test_names(torch: Any) -> None:
    program = torch.onnx.export(small(torch), (torch.randn(2, 3),), input_names=["image"], output_names=["scores"])
    graph = program.model_proto.graph
    assert (graph.input[0].name, graph.output[0].name, graph.node[0].input[0]) == ("image", "scores", "image")
    swapped = torch.onnx.export(of(torch, lambda x: (x + 1, x * 2)), (torch.ones(2),), output_names=["mul", "add"])
    onnx.checker.check_model(swapped.model_proto, full_check=True)
    assert [o.name for o in swapped.model_proto.graph.output] == ["mul", "add"]
    assert [v.tolist() for v in swapped(torch.ones(2))] == [[2, 2], [2, 2]]
    with pytest.raises(ValueError, match="different names"):
        torch.onnx.export(small(torch), (torch.randn(2, 3),), input_names=["a"], output_names=["a"])


def test_names_of_inputs_and_weights_that_are_equal(torch: Any) -> None:
    class Scaled(torch.nn.Module):
        """A parameter with the name of an input."""

        def __init__(self) -> None:
            super().__init__()
            self.x = torch.nn.Parameter(torch.ones(3))

        def forward(self, x: Any) -> Any:
            """The product."""
            return x * self.x

    program = torch.onnx.export(Scaled(), (torch.randn(2, 3),))
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert program.model_proto.graph.input[0].name == "x"


def test_dynamic_shapes_by_name(torch: Any) -> None:
    module, x = small(torch), torch.randn(2, 3)
    for shapes in ({"input": {0: "batch size"}}, ({0: "batch size"},), {"input": {0: torch.export.Dim("b")}}):
        program = torch.onnx.export(module, (x,), dynamic_shapes=shapes)
        name = program.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param
        assert name == program.model_proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param
        assert name in ("batch size", "b")
        assert program(torch.randn(7, 3))[0].shape == (7, 2)


def test_names_of_dimensions_that_must_be_equal(torch: Any) -> None:
    class Sum(torch.nn.Module):
        """A sum, whose inputs have the same sizes."""

        def forward(self, x: Any, y: Any) -> Any:
            """The sum."""
            return x + y

    program = torch.onnx.export(Sum(), (torch.ones(3), torch.ones(3)), dynamic_shapes={"x": {0: "left"}, "y": {0: "right"}})
    dims = [i.type.tensor_type.shape.dim[0].dim_param for i in program.model_proto.graph.input]
    assert dims == ["left", "left"]


def test_dynamic_axes_and_dynamo_false(torch: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "model.onnx")
    axes = {"x": {0: "batch"}, "y": {0: "batch"}}
    assert (
        torch.onnx.export(
            small(torch), torch.randn(2, 3), path, input_names=["x"], output_names=["y"], dynamic_axes=axes, dynamo=False,
            external_data=False,
        )
        is None
    )  # fmt: skip
    model = onnx.load(path)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert model.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    listed = torch.onnx.export(small(torch), (torch.randn(2, 3),), input_names=["x"], dynamic_axes={"x": [0]})
    assert listed.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "x_dynamic_axes_1"


def test_keyword_arguments_and_containers(torch: Any) -> None:
    class Nested(torch.nn.Module):
        """A dict of inputs, a number and a keyword."""

        def forward(self, pair: Any, factor: Any, *, shift: Any = None) -> Any:
            """A dict of results."""
            return {"sum": pair["a"] + pair["b"][0], "shifted": pair["a"] * factor + shift}

    a, b, shift = torch.randn(2), torch.randn(2), torch.randn(2)
    args = ({"a": a, "b": [b]}, 3.0)
    program = torch.onnx.export(Nested(), args, kwargs={"shift": shift})
    assert [i.name for i in program.model_proto.graph.input] == ["pair_a", "pair_b_0", "shift"]
    found = program(*args, shift=shift)
    np.testing.assert_allclose(found[0].numpy(), (a + b).numpy())
    np.testing.assert_allclose(found[1].numpy(), (a * 3 + shift).numpy(), rtol=1e-6)


def test_external_data(torch: Any, tmp_path: Any) -> None:
    module, x = torch.nn.Linear(64, 64), torch.randn(2, 64)
    path = tmp_path / "model.onnx"
    program = torch.onnx.export(module, (x,), str(path))
    assert sorted(os.listdir(tmp_path)) == ["model.onnx", "model.onnx.data"]
    assert os.path.getsize(path) < 64 * 64 * 4 <= os.path.getsize(f"{path}.data")
    loaded = onnx.load(str(path))
    assert onnx.numpy_helper.to_array(loaded.graph.initializer[0]).tolist() == module.weight.tolist()
    onnx.checker.check_model(str(path), full_check=True)
    inside = tmp_path / "inside.onnx"
    program.save(inside, external_data=False)
    assert not os.path.exists(f"{inside}.data") and os.path.getsize(inside) > 64 * 64 * 4
    without = tmp_path / "without.onnx"
    program.save(without, include_initializers=False)
    assert [i.name for i in onnx.load(str(without)).graph.input] == ["input", "weight", "bias"]
    program.save(without, keep_initializers_as_inputs=True)
    assert len(onnx.load(str(without)).graph.initializer) == 2 and len(onnx.load(str(without)).graph.input) == 3


def test_apply_weights(torch: Any) -> None:
    module, x = small(torch), torch.randn(2, 3)
    program = torch.onnx.export(module, (x,))
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    program.apply_weights(other.state_dict())
    np.testing.assert_allclose(program(x)[0].numpy(), other(x).detach().numpy(), atol=1e-6)
    with pytest.raises(ValueError, match=r"0\.weight"):
        program.apply_weights({"0.weight": torch.ones(1)})


def test_errors_list_all_operators_with_lines(torch: Any) -> None:
    def forward(x: Any) -> Any:
        y = torch.linalg.svd(x)[0]  # the first line
        z = torch.special.i0(x)  # the second line
        return y + z + torch.as_strided(x[1:], (1, 2), (1, 1))

    with pytest.raises(torch.onnx.OnnxExporterError) as found:
        torch.onnx.export(of(torch, forward), (torch.randn(2, 2),))
    text = str(found.value)
    for part in ("svd", "i0", "as_strided", "the first line", "the second line", __file__):
        assert part in text


def test_errors_of_the_recording(torch: Any) -> None:
    from teletensor.onnx import errors

    with pytest.raises(errors.TorchExportError, match="could not record"):
        torch.onnx.export(of(torch, lambda x: x if x.sum() > 0 else -x), (torch.ones(2),))
    with pytest.raises(ValueError, match="opset_version from 18 to 24"):
        torch.onnx.export(small(torch), (torch.randn(2, 3),), opset_version=9)
    with pytest.raises(TypeError, match=r"torch\.nn\.Module"):
        torch.onnx.export(len, (torch.ones(2),))
    with pytest.raises(torch.onnx.OnnxExporterError, match="complex"):
        torch.onnx.export(of(torch, lambda x: torch.fft.fft(x).tanh().abs()), (torch.ones(4),))
    with pytest.raises(torch.onnx.OnnxExporterError, match="view_as_real"):
        torch.onnx.export(of(torch, torch.fft.fft), (torch.ones(4),))


def test_metadata(torch: Any) -> None:
    model = torch.onnx.export(of(torch, lambda x: x.sin()), (torch.ones(2),)).model_proto
    found = {p.key: p.value for p in model.graph.node[0].metadata_props}
    assert f'File "{__file__}"' in found["pkg.torch.onnx.stack_trace"]
    assert "x.sin()" in found["pkg.torch.onnx.stack_trace"]
    layers = torch.onnx.export(small(torch), (torch.ones(1, 3),)).model_proto
    scopes = [p.value for p in layers.graph.node[0].metadata_props if p.key == "namespace"]
    assert scopes == ["model/0/linear"]


def test_writes_to_buffers_are_reported(torch: Any) -> None:
    class Counter(torch.nn.Module):
        """A module that counts its calls."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            """The input plus the number of calls."""
            self.calls.add_(1)
            return x + self.calls

    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="calls"):
        program = torch.onnx.export(Counter(), (torch.ones(2),))
    assert program(torch.ones(2))[0].tolist() == [2, 2]


def test_batch_norm_in_training_mode(torch: Any) -> None:
    module, x = torch.nn.BatchNorm1d(3), torch.randn(5, 3)
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="running_mean"):
        program = torch.onnx.export(module, (x,))
    expected = torch.nn.functional.batch_norm(x, None, None, training=True)
    np.testing.assert_allclose(program(x)[0].numpy(), expected.numpy(), atol=1e-5)


def test_instance_norm_in_training_mode(torch: Any) -> None:
    module, x = torch.nn.InstanceNorm1d(3, track_running_stats=True), torch.randn(2, 3, 5)
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="running_mean, running_var"):
        program = torch.onnx.export(module, (x,))
    np.testing.assert_allclose(program(x)[0].numpy(), torch.nn.functional.instance_norm(x).numpy(), atol=1e-5)


def test_optimize(torch: Any) -> None:
    def forward(x: Any) -> Any:
        unused = x.cos()  # noqa: F841
        return (x.sin() + x.sin(), x.permute(1, 0).permute(1, 0) + torch.arange(3) * 2)

    plain = torch.onnx.export(of(torch, forward), (torch.ones(2, 3),), optimize=False)
    before = [n.op_type for n in plain.model_proto.graph.node]
    plain.optimize()
    after = [n.op_type for n in plain.model_proto.graph.node]
    assert before.count("Sin") == 2 and after == ["Sin", "Add", "Add"]
    onnx.checker.check_model(plain.model_proto, full_check=True)
    np.testing.assert_allclose(plain(torch.ones(2, 3))[1].numpy(), 1 + np.arange(3) * 2.0 + np.zeros((2, 1)))


def test_report_profile_dump_and_verify(torch: Any, tmp_path: Any, capsys: Any) -> None:
    torch.onnx.export(
        small(torch), (torch.randn(2, 3),), report=True, profile=True, dump_exported_program=True, verify=True, verbose=True,
        artifacts_dir=tmp_path,
    )  # fmt: skip
    files = sorted(os.listdir(tmp_path))
    assert [f.rsplit("_", 1)[1] if f.endswith(".md") else f[-4:] for f in files] == [".pt2", "profile.md", "report.md"]
    report = (tmp_path / files[2]).read_text()
    assert "| Gemm | 2 |" in report and "## Verification" in report
    assert "conversion... done" in capsys.readouterr().out
    assert torch.export.load(str(tmp_path / files[0])).graph_signature.user_inputs
    with pytest.raises(torch.onnx.OnnxExporterError):
        torch.onnx.export(of(torch, torch.special.i0), (torch.ones(2),), report=True, artifacts_dir=tmp_path / "failed")
    assert "i0" in (tmp_path / "failed" / os.listdir(tmp_path / "failed")[0]).read_text()


def test_is_in_onnx_export(torch: Any) -> None:
    seen = []

    def forward(x: Any) -> Any:
        seen.append(torch.onnx.is_in_onnx_export())
        return x + 1

    torch.onnx.export(of(torch, forward), (torch.ones(2),))
    assert seen == [True] and not torch.onnx.is_in_onnx_export()


def test_arguments_that_are_refused(torch: Any) -> None:
    module, args = small(torch), (torch.randn(2, 3),)
    with pytest.raises(ValueError, match="expected a path"):
        torch.onnx.export(module, args, dynamo=False)
    with pytest.raises(ValueError, match="training"):
        torch.onnx.export(module, args, training=torch.onnx.TrainingMode.TRAINING)
    with pytest.raises(NotImplementedError, match="custom_opsets"):
        torch.onnx.export(module, args, custom_opsets={"a": 1})
    torch.onnx.register_custom_op_symbolic("my::op", len, 18)
    with pytest.raises(NotImplementedError, match="custom_translation_table"):
        torch.onnx.export(module, args)
    torch.onnx.unregister_custom_op_symbolic("my::op", 18)
    torch.onnx.export(module, args)


def test_exported_programs(torch: Any) -> None:
    module = torch.export.export(small(torch), (torch.randn(2, 3),), dynamic_shapes=({0: torch.export.Dim("n")},))
    program = torch.onnx.export(module, opset_version=18, verify=True)
    assert program.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    with pytest.raises(ValueError, match="no dynamic_shapes"):
        torch.onnx.export(module, dynamic_shapes=({0: "n"},))


@pytest.mark.parametrize("opset", range(18, 25))
def test_opsets(torch: Any, opset: int) -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu").eval()
    program = torch.onnx.export(layer, (torch.randn(2, 3, 8),), opset_version=opset)
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert program.model_proto.opset_import[0].version == opset
    kinds = {n.op_type for n in program.model_proto.graph.node}
    assert ("Attention" in kinds, "Gelu" in kinds) == (opset >= 23, opset >= 20)


def test_bfloat16_weights(torch: Any) -> None:
    module = torch.nn.Linear(3, 2).to(torch.bfloat16)
    program = torch.onnx.export(module, (torch.ones(1, 3, dtype=torch.bfloat16),))
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert program.model_proto.graph.initializer[0].data_type == onnx.TensorProto.BFLOAT16
    raw = np.frombuffer(program.model_proto.graph.initializer[0].raw_data, np.uint16).astype(np.uint32) << 16
    assert raw.view(np.float32).tolist() == module.weight.float().flatten().tolist()


def test_models_that_are_too_large_for_one_file(torch: Any, tmp_path: Any, monkeypatch: Any) -> None:
    from teletensor.onnx import _program

    module, x = torch.nn.Linear(64, 64), torch.randn(2, 64)
    program = torch.onnx.export(module, (x,))
    monkeypatch.setattr(_program, "_LARGEST_FILE", 4096)
    with pytest.raises(torch.onnx.OnnxExporterError, match="external_data=True"):
        program.save(tmp_path / "model.onnx", external_data=False)
    program.save(tmp_path / "model.onnx")
    assert os.path.getsize(tmp_path / "model.onnx.data") >= 64 * 64 * 4
    np.testing.assert_allclose(program(x)[0].numpy(), module(x).detach().numpy(), atol=1e-5)
    program.release()


def test_empty_batches(torch: Any) -> None:
    module = of(torch, lambda x: x.reshape(3, x.shape[0]))
    program = torch.onnx.export(module, (torch.ones(2, 3),), dynamic_shapes=({0: torch.export.Dim("n", min=0)},))
    assert program(torch.ones(0, 3))[0].shape == (3, 0)
    assert program(torch.ones(5, 3))[0].shape == (3, 5)
