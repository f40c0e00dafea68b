"""Views of other strides, and operators that ask for strides, in exported models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .test_export_api import of


def check(torch: Any, function: Any, x: Any) -> None:
    program = torch.onnx.export(of(torch, function), (x,))
    np.testing.assert_array_equal(program.call_reference(x)[0].numpy(), function(x).numpy())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.as_strided((3, 2), (1, 3)),
        lambda x: x.as_strided((2, 2, 3), (3, 3, 1)),
        lambda x: x.t().as_strided((5,), (2,), 1),
        lambda x: (x * 2).as_strided((2, 2), (0, 1)) + 1,
        lambda x: x.permute(1, 0).contiguous().as_strided((2, 3), (3, 1)),
    ],
)
def test_views(torch: Any, function: Any) -> None:
    check(torch, function, torch.arange(12.0).reshape(4, 3))


def test_scatter_into_a_view(torch: Any) -> None:
    function = lambda x: torch.as_strided_scatter(x, torch.ones(2, 2), (2, 2), (1, 4), 1)  # noqa: E731
    check(torch, function, torch.arange(12.0).reshape(4, 3))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x[1:].as_strided((2,), (1,), 0), "begins within its memory"),
        (lambda x: x[:, :2].as_strided((2,), (1,)), "all elements of its memory"),
        (lambda x: x[:2].as_strided((12,), (1,)), "beyond the elements"),
    ],
)
def test_what_has_no_form(torch: Any, function: Any, reason: str) -> None:
    with pytest.raises(torch.onnx.OnnxExporterError, match=reason):
        torch.onnx.export(of(torch, function), (torch.arange(12.0).reshape(4, 3),))


def test_strides_as_nodes(torch: Any) -> None:
    """Programs of PyTorch's files contain such nodes."""
    batch = torch.export.Dim("batch")
    program = torch.export.export(of(torch, lambda x: x * 1.0), (torch.ones(2, 3, 4),), dynamic_shapes=({0: batch, 1: batch * 1 + 1},))
    graph = program.graph
    x, output = next(iter(graph.nodes)), next(reversed(graph.nodes))
    product = output.args[0][0]
    with graph.inserting_before(product):
        stride = graph.call_function(torch.ops.aten.sym_stride.int, (x, 0))
        offset = graph.call_function(torch.ops.aten.sym_storage_offset.default, (x,))
    stride.meta["val"], offset.meta["val"] = 12, 0
    product.args = (x, stride)
    with graph.inserting_after(product):
        total = graph.call_function(torch.ops.aten.add.Tensor, (product, offset))
    total.meta = dict(product.meta)
    output.args = ((total,),)
    program.graph_signature.output_specs[0].arg.name = total.name
    made = torch.onnx.export(program)
    x = torch.ones(4, 5, 4)
    np.testing.assert_array_equal(made.call_reference(x)[0].numpy(), np.full((4, 5, 4), 20.0))
