"""Operators of quantized_decomposed, and fake quantization, as QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .test_rows import check, session_of

pytest.importorskip("onnxruntime")

_SCHEMAS = {
    "quantize_per_tensor": "(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
    "dequantize_per_tensor": "(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, "
    "ScalarType? out_dtype=None) -> Tensor",
    "quantize_per_channel": "(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType dtype) "
    "-> Tensor",
    "dequantize_per_channel": "(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, "
    "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
}


def _wide(v: Any, x: Any, axis: int) -> Any:
    return v.reshape([-1 if d == axis else 1 for d in range(x.dim())])


_CALLS = {
    "quantize_per_tensor": lambda x, s, z, low, high, dtype: ((x / s).round() + z).clamp(low, high).to(dtype),
    "dequantize_per_tensor": lambda x, s, z, low, high, dtype, *, out_dtype=None: (x.to(out_dtype or x.float().dtype) - z) * s,
    "quantize_per_channel": lambda x, s, z, axis, low, high, dtype: (
        ((x / _wide(s, x, axis)).round() + _wide(z, x, axis)).clamp(low, high).to(dtype)
    ),
    "dequantize_per_channel": lambda x, s, z, axis, low, high, dtype, *, out_dtype=None: (
        (x.float() - _wide(z, x, axis)) * _wide(s, x, axis)
    ),
}


@pytest.fixture
def ops(torch: Any) -> Any:
    """torch.ops.quantized_decomposed; its operators are defined here if the package lacks them."""
    for name, schema in _SCHEMAS.items():
        if not hasattr(torch.ops.quantized_decomposed, name):
            made = torch.library.custom_op(f"quantized_decomposed::{name}", mutates_args=(), schema=schema)(_CALLS[name])
            made.register_fake(_CALLS[name])
    return torch.ops.quantized_decomposed


def compare(torch: Any, forward: Any, *args: Any) -> list[str]:
    """Exports a function in two opsets, compares its values, and returns the kinds of nodes."""

    class Function(torch.nn.Module):
        """The function as a module."""

        def forward(self, *given: Any) -> Any:
            """Calls it."""
            return forward(*given)

    kinds: list[str] = []
    for opset in (18, 23):
        model = torch.onnx.export(Function(), args, opset_version=opset).model_proto
        check(model)
        session = session_of(model)
        found = session.run(None, {i.name: a.numpy() for i, a in zip(session.get_inputs(), args, strict=True)})
        for a, b in zip(found, torch.utils._pytree.tree_leaves(forward(*args)), strict=True):
            np.testing.assert_allclose(a, b.numpy(), atol=1e-5)
            assert a.dtype == b.numpy().dtype
        kinds = [n.op_type for n in model.graph.node]
    return kinds


@pytest.mark.parametrize("low, high, kind", [(-128, 127, "int8"), (0, 255, "uint8"), (-127, 127, "int8"), (0, 127, "uint8")])
def test_per_tensor(torch: Any, ops: Any, low: int, high: int, kind: str) -> None:
    dtype = getattr(torch, kind)

    def forward(x: Any) -> Any:
        y = ops.quantize_per_tensor(x, 0.05, 3, low, high, dtype)
        return y, ops.dequantize_per_tensor(y, 0.05, 3, low, high, dtype)

    kinds = compare(torch, forward, torch.randn(3, 40) * 4)
    assert kinds[0] == "QuantizeLinear" and kinds[-1] == "DequantizeLinear"


def test_per_channel(torch: Any, ops: Any) -> None:
    scales, zeros = torch.tensor([0.1, 0.05, 0.02]), torch.tensor([0, 3, -5])

    def forward(x: Any) -> Any:
        y = ops.quantize_per_channel(x, scales, zeros, 1, -128, 127, torch.int8)
        return y, ops.dequantize_per_channel(y, scales, zeros, 1, -128, 127, torch.int8)

    assert "DequantizeLinear" in compare(torch, forward, torch.randn(2, 3, 9) * 4)


def test_quantized_linear(torch: Any, ops: Any) -> None:
    weight, scales = torch.randint(-127, 128, (4, 8), dtype=torch.int8), torch.rand(4) * 0.1
    zeros = torch.zeros(4, dtype=torch.int64)

    def forward(x: Any) -> Any:
        y = ops.quantize_per_tensor(x, 0.05, 10, 0, 255, torch.uint8)
        y = ops.dequantize_per_tensor(y, 0.05, 10, 0, 255, torch.uint8)
        w = ops.dequantize_per_channel(weight, scales, zeros, 0, -127, 127, torch.int8)
        return torch.nn.functional.linear(y, w)

    kinds = compare(torch, forward, torch.randn(5, 8))
    assert kinds.count("DequantizeLinear") == 2


def test_int32_bias(torch: Any, ops: Any) -> None:
    def forward(x: Any) -> Any:
        return ops.dequantize_per_tensor(x, 0.001, 0, -(2**31), 2**31 - 1, torch.int32)

    assert compare(torch, forward, torch.randint(-1000, 1000, (7,), dtype=torch.int32)) == ["DequantizeLinear"]


def test_fake_quantize(torch: Any) -> None:
    x = torch.randn(2, 3, 9) * 4
    assert "DequantizeLinear" in compare(torch, lambda v: torch.fake_quantize_per_tensor_affine(v, 0.05, 3, -128, 127), x)
    assert "Round" in compare(torch, lambda v: torch.fake_quantize_per_tensor_affine(v, 0.5, 1, 0, 15), x)
    scales, zeros = torch.tensor([0.1, 0.05, 0.02]), torch.tensor([0, 3, -5], dtype=torch.int32)
    compare(torch, lambda v: torch.fake_quantize_per_channel_affine(v, scales, zeros, 1, -128, 127), x)
