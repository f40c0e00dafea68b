"""Weights of GPTQ and AWQ: packed with NumPy here, and compared with the same formulas."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

AWQ = (0, 2, 4, 6, 1, 3, 5, 7)  # the column of each 4 bits of a word


def words(values, axis, order=range(8)):
    values = np.moveaxis(values.astype(np.uint32), axis, -1)
    grouped = values.reshape(*values.shape[:-1], -1, 8)
    packed = sum(grouped[..., column] << np.uint32(4 * place) for place, column in enumerate(order))
    return np.moveaxis(packed.astype(np.uint32), -1, axis).view(np.int32)


def layer(rng, inputs=32, outputs=16, group=8):
    q = rng.integers(0, 16, (inputs, outputs))
    zeros = rng.integers(1, 16, (inputs // group, outputs))
    scales = (rng.random((inputs // group, outputs)) * 0.1 + 0.01).astype(np.float16)
    return q, zeros, scales


def model_of(torch):
    return torch.nn.ModuleDict({"up": torch.nn.Linear(32, 16, bias=False), "norm": torch.nn.LayerNorm(16)})


@pytest.mark.parametrize("order", ["runs", "sorted by activation"])
@pytest.mark.parametrize("zero_offset", [1, 0])
def test_gptq(torch, order, zero_offset):
    from teletensor.ao.packed_weights import load_packed_linears

    rng = np.random.default_rng(0)
    q, zeros, scales = layer(rng)
    groups = np.arange(32) // 8
    if order != "runs":
        groups = rng.permutation(groups)
    weight = ((q - zeros[groups]) * scales[groups].astype(np.float32)).T
    tensors = {
        "up.qweight": words(q, 0), "up.qzeros": words(zeros - zero_offset, 1), "up.scales": scales, "up.g_idx": groups.astype(np.int32),
        "norm.weight": np.ones(16, np.float32),
    }  # fmt: skip
    model = model_of(torch)
    rest = load_packed_linears(model, {k: torch.tensor(np.ascontiguousarray(v)) for k, v in tensors.items()}, zero_offset=zero_offset)
    assert rest == ["norm.weight"]
    x = torch.randn(2, 3, 32)
    np.testing.assert_allclose(model["up"](x).numpy(), x.numpy() @ weight.T, rtol=1e-4, atol=1e-4)
    assert model["up"].weight._packed.nbytes == 32 * 16 // 2
    again = model_of(torch)
    again["up"] = type(model["up"])(model["up"].weight, None, model["up"].input_order)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again["up"](x), model["up"](x))


def test_awq(torch):
    from teletensor.ao.packed_weights import load_packed_linears

    rng = np.random.default_rng(1)
    q, zeros, scales = layer(rng)
    weight = ((q - zeros.repeat(8, 0)) * scales.repeat(8, 0).astype(np.float32)).T
    bias = rng.standard_normal(16).astype(np.float32)
    tensors = {"up.qweight": words(q, 1, AWQ), "up.qzeros": words(zeros, 1, AWQ), "up.scales": scales, "up.bias": bias}
    model = model_of(torch)
    assert load_packed_linears(model, {k: torch.tensor(np.ascontiguousarray(v)) for k, v in tensors.items()}) == []
    x = torch.randn(5, 32)
    np.testing.assert_allclose(model["up"](x).numpy(), x.numpy() @ weight.T + bias, rtol=1e-4, atol=1e-4)


def test_errors(torch):
    from teletensor.ao.packed_weights import awq_weight, gptq_weight, load_packed_linears

    rng = np.random.default_rng(2)
    q, zeros, scales = layer(rng)
    good = [torch.tensor(np.ascontiguousarray(v)) for v in (words(q, 0), words(zeros - 1, 1), scales)]
    with pytest.raises(ValueError, match="int32"):
        gptq_weight(good[0].float(), *good[1:])
    with pytest.raises(ValueError, match="groups"):
        gptq_weight(good[0], good[1], good[2][:3])
    with pytest.raises(ValueError, match="g_idx"):
        gptq_weight(*good, torch.zeros(5, dtype=torch.int32))
    with pytest.raises(ValueError, match="groups of 8"):
        gptq_weight(*good, torch.zeros(32, dtype=torch.int32))
    with pytest.raises(ValueError, match="expected zeros"):
        awq_weight(*good)
    with pytest.raises(KeyError):
        load_packed_linears(model_of(torch), {"up.qweight": good[0]})
    with pytest.raises(ValueError, match="nn.Linear"):
        load_packed_linears(model_of(torch), {f"norm.{n}": t for n, t in zip(("qweight", "qzeros", "scales"), good)})


def test_a_safetensors_file(torch, tmp_path):
    from teletensor.ao.packed_weights import load_packed_linears

    q, zeros, scales = layer(np.random.default_rng(3))
    kinds = {"qweight": ("I32", words(q, 0)), "qzeros": ("I32", words(zeros - 1, 1)), "scales": ("F16", scales)}
    header, data = {}, b""
    for name, (kind, values) in kinds.items():
        content = np.ascontiguousarray(values).tobytes()
        header[f"up.{name}"] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    model = model_of(torch)
    assert load_packed_linears(model, torch.load(path)) == []
    weight = ((q - zeros.repeat(8, 0)) * scales.repeat(8, 0).astype(np.float32)).T
    np.testing.assert_allclose(model["up"].weight.dequantize().numpy(), weight, rtol=1e-4, atol=1e-5)


def test_tensors_that_do_not_fit(torch):
    from teletensor.ao.packed_weights import gptq_weight, load_packed_linears

    def integers(*shape):
        return torch.zeros(*shape, dtype=torch.int32)

    good = {"up.qweight": integers(4, 16), "up.qzeros": integers(4, 2), "up.scales": torch.ones(4, 16)}
    wrong = (
        {"up.bias": torch.zeros(1)}, {"up.scales": integers(4, 16)}, {"up.scales": torch.ones(16)},
        {"up.g_idx": torch.arange(32) / 8.0}, {"up.g_idx": torch.full((32,), -1)}, {"up.g_idx": torch.tensor([0] * 20 + [1] * 12)},
    )  # fmt: skip
    for change in wrong:
        with pytest.raises(ValueError, match="packed_weights"):
            load_packed_linears(model_of(torch), {**good, **change})
    for bits in (2, 3, 8):  # other widths have other shapes
        with pytest.raises(ValueError, match="expected zeros and scales"):
            gptq_weight(integers(64 * bits // 32, 64), integers(2, 64 * bits // 32), torch.ones(2, 64))
    groups = torch.arange(32) % 4
    model = model_of(torch)
    load_packed_linears(model, {**good, "up.g_idx": groups})
    with pytest.raises(RuntimeError, match="32 input features"):  # the order would select 32 of them
        model["up"](torch.ones(2, 64))
