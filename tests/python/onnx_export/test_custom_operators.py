"""Custom translations, nodes of other domains, and ONNX's operators as functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.fixture
def scaled(torch: Any) -> Any:
    """A custom operator."""
    name = "onnxtests::scaled"
    packet = getattr(torch.ops.onnxtests, "scaled", None) if hasattr(torch.ops, "onnxtests") else None
    if packet is None:

        @torch.library.custom_op(name, mutates_args=(), schema="(Tensor x, float factor) -> Tensor")
        def operator(x: Any, factor: float) -> Any:
            return x * factor

        operator.register_fake(lambda x, factor: x.new_empty(x.shape))
    return torch.ops.onnxtests.scaled


def module_of(torch: Any, function: Any) -> Any:
    """A module that calls a function."""

    class Function(torch.nn.Module):
        """The function as a module."""

        def forward(self, *args: Any) -> Any:
            """Calls it."""
            return function(*args)

    return Function()


def test_without_a_translation(torch: Any, scaled: Any) -> None:
    with pytest.raises(torch.onnx.OnnxExporterError, match="onnxtests"):
        torch.onnx.export(module_of(torch, lambda x: scaled(x, 2.0)), (torch.ones(2),))


def test_translation_with_the_builder(torch: Any, scaled: Any) -> None:
    def translate(builder: Any, x: Any, factor: float) -> Any:
        return builder.op("Mul", x, builder.const(factor, x.dtype)) + 0

    program = torch.onnx.export(
        module_of(torch, lambda x: scaled(x, 2.0) + 1), (torch.ones(2),), custom_translation_table={scaled.default: translate}
    )
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert program(torch.ones(2))[0].tolist() == [3, 3]


def test_translation_of_an_operator_of_aten(torch: Any) -> None:
    def translate(builder: Any, x: Any) -> Any:
        return builder.op("Cos", x)

    program = torch.onnx.export(
        module_of(torch, lambda x: x.sin()), (torch.zeros(2),), custom_translation_table={torch.ops.aten.sin.default: translate}
    )
    assert program(torch.zeros(2))[0].tolist() == [1, 1]


def test_translation_with_onnxscript(torch: Any, scaled: Any) -> None:
    onnxscript = pytest.importorskip("onnxscript")
    op = onnxscript.opset20

    def traced(x: Any, factor: float) -> Any:
        return op.Mul(x, op.CastLike(op.Constant(value_float=factor), x))

    custom = onnxscript.values.Opset("onnxtests.functions", 1)

    @onnxscript.script(custom)
    def written(x, factor: float):  # noqa: ANN001, ANN202 - onnxscript reads the annotations
        return op.Mul(x, op.CastLike(op.Constant(value_float=factor), x))

    for function in (traced, written):
        program = torch.onnx.export(
            module_of(torch, lambda x: scaled(x, 2.0) + 1), (torch.ones(2),), custom_translation_table={scaled.default: function}
        )
        onnx.checker.check_model(program.model_proto, full_check=True)
        assert program(torch.ones(2))[0].tolist() == [3, 3]
    assert [f.name for f in program.model_proto.functions] == ["written"]


def test_symbolic(torch: Any) -> None:
    def forward(x: Any) -> Any:
        y = torch.onnx.ops.symbolic(
            "my.domain::Op", (x, None), {"number": 1, "text": "a", "list": [1.5, 2]}, dtype=torch.float32, shape=(*x.shape, 2), version=3,
            metadata_props={"key": "value"},
        )  # fmt: skip
        return y + 1

    assert forward(torch.ones(2)).tolist() == [[1, 1], [1, 1]]
    program = torch.onnx.export(module_of(torch, forward), (torch.ones(3),), dynamic_shapes={"args": ({0: "n"},)})
    model = program.model_proto
    node = model.graph.node[-2]
    assert (node.domain, node.op_type, {o.domain: o.version for o in model.opset_import}["my.domain"]) == ("my.domain", "Op", 3)
    found = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert found == {"number": 1, "text": b"a", "list": [1.5, 2.0]}
    assert any((p.key, p.value) == ("key", "value") for p in node.metadata_props)
    assert [d.dim_param or d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim] == ["n", 2]


def test_symbolic_with_several_results(torch: Any) -> None:
    def forward(x: Any) -> Any:
        values, places = torch.onnx.ops.symbolic_multi_out(
            "TopK", (x, torch.tensor([2])), {"axis": 0}, dtypes=[torch.float32, torch.int64], shapes=[[2], [2]]
        )
        return values, places

    program = torch.onnx.export(module_of(torch, forward), (torch.zeros(4),))
    found = program(torch.tensor([3.0, 1, 4, 2]))
    assert [v.tolist() for v in found] == [[4, 3], [2, 0]]
    with pytest.raises(ValueError, match="Unsupported attribute type"):
        torch.onnx.ops.symbolic("Op", (torch.ones(2),), {"a": object()}, dtype=torch.float32, shape=(2,))


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(torch: Any, opset: int, interleaved: bool) -> None:
    def forward(x: Any, cos: Any, sin: Any, places: Any) -> Any:
        return torch.onnx.ops.rotary_embedding(x, cos, sin, places, interleaved=interleaved)

    args = (torch.randn(2, 3, 4, 8), torch.randn(9, 4), torch.randn(9, 4), torch.randint(0, 9, (2, 4)))
    program = torch.onnx.export(module_of(torch, forward), args, opset_version=opset)
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert ("RotaryEmbedding" in [n.op_type for n in program.model_proto.graph.node]) == (opset == 23)
    np.testing.assert_allclose(program(*args)[0].numpy(), forward(*args).numpy(), atol=1e-5)
    flat = torch.onnx.ops.rotary_embedding(args[0].transpose(1, 2).flatten(2), *args[1:], interleaved=interleaved, num_heads=3)
    np.testing.assert_allclose(flat.numpy(), forward(*args).transpose(1, 2).flatten(2).numpy(), atol=1e-6)


@pytest.mark.parametrize("opset", [18, 23])
def test_attention(torch: Any, opset: int) -> None:
    def forward(q: Any, k: Any, v: Any, mask: Any, past: Any) -> Any:
        return torch.onnx.ops.attention(q, k, v, mask, past, past * 2)[:3]

    args = (torch.randn(2, 4, 3, 8), torch.randn(2, 2, 3, 8), torch.randn(2, 2, 3, 8), torch.randn(3, 5), torch.randn(2, 2, 2, 8))
    program = torch.onnx.export(module_of(torch, forward), args, opset_version=opset)
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert ("Attention" in [n.op_type for n in program.model_proto.graph.node]) == (opset == 23)
    for a, b in zip(program(*args), forward(*args), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-5)


def test_exportable_module(torch: Any) -> None:
    class Model(torch.onnx.ExportableModule):
        """A module that knows its arguments."""

        def forward(self, x: Any, *, shift: Any) -> Any:
            """The sum."""
            return x + shift

        def example_arguments(self) -> Any:
            """Two tensors."""
            return (torch.ones(2, 3),), {"shift": torch.ones(3)}

        def dynamic_shapes(self) -> Any:
            """A batch."""
            return {"x": {0: "batch"}, "shift": None}

        def input_names(self) -> Any:
            """Names."""
            return ("a", "b")

        def output_names(self) -> Any:
            """Names."""
            return ("c",)

    for program in (Model().to_onnx(opset_version=18), torch.onnx.export(Model())):
        graph = program.model_proto.graph
        assert [v.name for v in (*graph.input, *graph.output)] == ["a", "b", "c"]
        assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_input_observer(torch: Any) -> None:
    module = torch.nn.Linear(3, 2)
    observer = torch.onnx.InputObserver()
    with pytest.raises(RuntimeError, match="No inputs"):
        observer.infer_arguments()
    with observer(module):
        for n in (2, 4):
            module(torch.randn(n, 3))
    assert observer.num_obs() == 2
    shapes = observer.infer_dynamic_shapes()
    assert list(shapes["input"]) == [0]
    assert observer.infer_dynamic_shapes(set_batch_dimension_for=True)["input"].keys() == {0}
    arguments = observer.infer_arguments()
    assert arguments["input"].shape == (4, 3)
    program = torch.onnx.export(module, (), kwargs=arguments, dynamic_shapes=shapes)
    assert all(row["SUCCESS"] for row in observer.check_discrepancies(program))


def test_verification(torch: Any) -> None:
    program = torch.onnx.export(torch.nn.Linear(3, 2), (torch.randn(2, 3),))
    from teletensor.onnx import verification

    [info] = verification.verify_onnx_program(program)
    assert info.max_abs_diff < 1e-5 and info.asdict()["expected_dtype"] == "torch.float32"
    program.apply_weights({"bias": torch.ones(2) * 100})
    assert verification.verify_onnx_program(program)[0].max_abs_diff > 1
    with pytest.raises(NotImplementedError, match="compare_intermediates"):
        verification.verify_onnx_program(program, compare_intermediates=True)
