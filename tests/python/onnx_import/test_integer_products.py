"""Products of quantized integers equal NumPy's and onnx's reference evaluator, for all types and zero points, also in Programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
TYPES = (np.int8, np.uint8)


def integers(rng, dtype, *sizes):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, sizes).astype(dtype)


def model(op, inputs, output, **attributes):
    helper = onnx.helper
    names = [f"i{k}" if v is not None else "" for k, v in enumerate(inputs)]
    node = helper.make_node(op, names, ["y"], **attributes)
    kinds = onnx.helper.np_dtype_to_tensor_dtype
    infos = [helper.make_tensor_value_info(n, kinds(v.dtype), v.shape) for n, v in zip(names, inputs) if v is not None]
    result = helper.make_tensor_value_info("y", kinds(np.dtype(output)), None)
    return helper.make_model(helper.make_graph([node], "g", infos, [result]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def run(torch, made, inputs):
    given = [torch.from_numpy(np.array(v)) for v in inputs if v is not None]
    loaded = torch.onnx.load(made)
    found = loaded(*given).numpy()
    np.testing.assert_array_equal(loaded.program(*given)(*given).numpy(), found)
    return found


def product(a, b, za, zb):
    left = a.astype(np.int64) - (0 if za is None else za.astype(np.int64).reshape(-1, 1) if za.ndim else int(za))
    right = b.astype(np.int64) - (0 if zb is None else zb.astype(np.int64))
    return left @ right


@pytest.mark.parametrize(("left", "right"), list(itertools.product(TYPES, TYPES)))
@pytest.mark.parametrize("zeros", ["none", "scalars", "rows"])
def test_matmul_integer(torch, left, right, zeros):
    rng = np.random.default_rng(0)
    for rows, depth, columns in ((3, 4, 5), (1, 700, 2), (7, 1, 3)):
        a, b = integers(rng, left, rows, depth), integers(rng, right, depth, columns)
        za, zb = {"none": (None, None), "scalars": (integers(rng, left), integers(rng, right)),
                  "rows": (integers(rng, left, rows), integers(rng, right, columns))}[zeros]  # fmt: skip
        if za is not None and za.ndim == 0:
            za, zb = np.asarray(za), np.asarray(zb)
        inputs = [a, b, za, zb]
        np.testing.assert_array_equal(run(torch, model("MatMulInteger", inputs, np.int32), inputs), product(a, b, za, zb))


def test_batches_of_products(torch):
    rng = np.random.default_rng(0)
    a, za = integers(rng, np.uint8, 2, 3, 600), np.asarray(integers(rng, np.uint8))
    for b in (integers(rng, np.int8, 600, 4), integers(rng, np.int8, 2, 600, 4), integers(rng, np.int8, 600)):
        found = run(torch, model("MatMulInteger", [a, b, za], np.int32), [a, b, za])
        np.testing.assert_array_equal(found, (a.astype(np.int64) - int(za)) @ b.astype(np.int64))


@pytest.mark.parametrize(("data", "weights"), list(itertools.product(TYPES, TYPES)))
@pytest.mark.parametrize(("channels", "group"), [(2, 1), (70, 1), (4, 2)])
def test_convolutions(torch, data, weights, channels, group):
    from onnx.reference import ReferenceEvaluator

    rng = np.random.default_rng(0)
    x, w = integers(rng, data, 2, channels, 6, 5), integers(rng, weights, 4, channels // group, 3, 3)
    zx, zw = np.asarray(integers(rng, data)), np.asarray(integers(rng, weights))
    inputs = [x, w, zx, zw]
    made = model("ConvInteger", inputs, np.int32, pads=[1, 0, 1, 0], strides=[2, 1], group=group)
    padded = np.full((2, channels, 8, 5), int(zx), np.int64)
    padded[:, :, 1:-1] = x
    (expected,) = ReferenceEvaluator(
        model("Conv", [(padded - int(zx)).astype(np.float64), (w.astype(np.int64) - int(zw)).astype(np.float64)], np.float64,
              strides=[2, 1], group=group)
    ).run(None, {"i0": (padded - int(zx)).astype(np.float64), "i1": (w.astype(np.int64) - int(zw)).astype(np.float64)})  # fmt: skip
    np.testing.assert_array_equal(run(torch, made, inputs), expected)
    scales = [np.float32(0.01), np.float32(0.02), np.float32(4.0)]
    zy, bias = np.uint8(128), rng.integers(-1000, 1000, 4).astype(np.int32)
    inputs = [x, scales[0], zx, w, scales[1], zw, scales[2], zy, bias]
    inputs = [np.asarray(v) for v in inputs]
    found = run(torch, model("QLinearConv", inputs, np.uint8, pads=[1, 0, 1, 0], strides=[2, 1], group=group), inputs)
    factor = np.float32(scales[0] * scales[1] / scales[2])
    values = np.round((expected + bias.reshape(1, -1, 1, 1)).astype(np.float32) * factor) + 128
    np.testing.assert_array_equal(found, np.clip(values, 0, 255).astype(np.uint8))


def test_qlinear_matmul(torch):
    rng = np.random.default_rng(0)
    a, b = integers(rng, np.uint8, 3, 300), integers(rng, np.int8, 300, 4)
    inputs = [np.asarray(v) for v in (a, np.float32(0.01), np.uint8(120), b, np.float32(0.02), np.int8(3), np.float32(0.5), np.uint8(100))]
    found = run(torch, model("QLinearMatMul", inputs, np.uint8), inputs)
    sums = (a.astype(np.int64) - 120) @ (b.astype(np.int64) - 3)
    scale = np.float64(np.float32(0.01)) * np.float64(np.float32(0.02)) / 0.5
    np.testing.assert_array_equal(found, np.clip(np.round(sums * scale) + 100, 0, 255).astype(np.uint8))
