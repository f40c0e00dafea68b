"""Values of torchao's names equal those that record_torchao.py stored."""

import json
import math

import pytest

from .record_torchao import VALUES
from .torchao_cases import CASES, value_of

RECORDED = json.loads(VALUES.read_text())


def check(actual, expected, path: str, tolerance: float) -> None:
    if isinstance(expected, list):
        assert isinstance(actual, list) and len(actual) == len(expected), (path, actual, expected)
        bfloat16 = tolerance if expected[:1] != ["bfloat16"] else 2e-2
        for i, (a, e) in enumerate(zip(actual, expected)):
            check(a, e, f"{path}[{i}]", bfloat16)
    elif isinstance(expected, float):
        assert math.isclose(actual, expected, rel_tol=tolerance, abs_tol=tolerance), (path, actual, expected)
    else:
        assert actual == expected, (path, actual, expected)


@pytest.mark.parametrize("name", CASES)
def test_values_are_torchaos(torch, name):
    from teletensor.torchao import quantization
    from teletensor.torchao.quantization import qat

    check(value_of(name, torch, quantization, qat), RECORDED[name], name, 2e-5)


def test_every_case_is_recorded():
    assert list(RECORDED) == list(CASES)


def test_trained_scales_need_a_configuration_with_scales(torch):
    from teletensor.torchao.quantization import Int8WeightOnlyConfig, qat, quantize_

    model, base = torch.nn.Sequential(torch.nn.Linear(16, 4)), Int8WeightOnlyConfig()
    config = qat.IntxFakeQuantizeConfig(torch.int4, group_size=8, is_dynamic=False, range_learning=True)
    quantize_(model, qat.QATConfig(weight_config=config))
    qat.initialize_fake_quantizers(model, (torch.ones(2, 16),))
    with pytest.raises(NotImplementedError, match="trained scales"):
        quantize_(model, qat.QATConfig(base, step="convert"))


def test_training_reduces_the_loss(torch):
    from teletensor.torchao.quantization import Int8DynamicActivationIntxWeightConfig, PerGroup, qat, quantize_

    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)), torch.randn(64, 16)
    y = x[:, :1] * x[:, 1:2]
    base = Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(8))
    quantize_(model, qat.QATConfig(base, step="prepare"))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(60):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    assert losses[-1].item() < losses[0].item() / 3
    with torch.no_grad():
        rounded = model(x)
        quantize_(model, qat.QATConfig(base, step="convert"))
        assert (model(x) - rounded).abs().max().item() < 0.05


@pytest.mark.parametrize("block_size", [128, 32])
def test_float8_blocks(torch, block_size):
    from teletensor.torchao.kernel import blockwise_quantization as blocks

    torch.manual_seed(0)
    x, w = torch.randn(2, 3, 256), torch.randn(384, 256)
    a, a_s = blocks.fp8_blockwise_act_quant(x, block_size)
    b, b_s = blocks.fp8_blockwise_weight_quant(w, block_size)
    assert a.dtype is torch.float8_e4m3fn and a_s.shape == (2, 3, 256 // block_size) and b_s.shape == (384 // block_size, 256 // block_size)
    close = blocks.fp8_blockwise_weight_dequant(b, b_s, block_size)
    assert (close - w).abs().max().item() < 0.2 and close.dtype is torch.float32
    assert torch.equal(a.float().abs().reshape(-1, block_size).amax(1), torch.full((6 * 256 // block_size,), 448.0))
    numbers = a.float() * a_s.repeat_interleave(block_size, -1)
    found = blocks.blockwise_fp8_gemm(a, a_s, b, b_s, block_size)
    assert found.dtype is torch.bfloat16 and found.shape == (2, 3, 384)
    assert torch.allclose(found.float(), numbers @ close.t(), rtol=0.01, atol=0.1)
    for call in (
        lambda: blocks.fp8_blockwise_act_quant(x[..., :255], block_size), lambda: blocks.fp8_blockwise_weight_quant(w[:383], block_size),
        lambda: blocks.fp8_blockwise_act_quant(x, block_size, torch.int8), lambda: blocks.fp8_blockwise_act_quant(x, 0),
        lambda: blocks.blockwise_fp8_gemm(a, a_s[..., :1], b, b_s, block_size),
        lambda: blocks.blockwise_fp8_gemm(a, a_s, b, b_s.t(), block_size),
        lambda: blocks.fp8_blockwise_weight_dequant(b, b_s[:1], block_size), lambda: blocks.blockwise_fp8_gemm(a, a_s, b, b_s, -1),
    ):  # fmt: skip
        with pytest.raises(AssertionError):
            call()


def test_float8_weights_of_blocks(torch):
    from teletensor.torchao import quantization
    from teletensor.torchao.prototype.blockwise_fp8_inference import BlockwiseQuantLinear, fp8_blockwise_weight_quant

    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(256, 384)), torch.randn(2, 5, 256)
    layer = BlockwiseQuantLinear(256, 384, bias=True)
    values, scale = fp8_blockwise_weight_quant(model[0].weight.detach())
    layer.load_state_dict({"weight": values, "scale": scale, "bias": model[0].bias.detach()})
    expected = model(x)
    tiles = [quantization.PerBlock([1, 128]), quantization.PerBlock([128, 128])]
    quantization.quantize_(model, quantization.Float8DynamicActivationFloat8WeightConfig(granularity=tiles))
    assert model[0].weight.scale.shape == (3, 2) and torch.equal(model[0].weight.qdata, values)
    found = model(x)
    assert found.dtype is torch.float32 and quantization.compute_error(expected, found).item() > 25
    assert torch.allclose(layer(x).float(), found, atol=0.02)
    with pytest.raises(ValueError, match="PerBlock"):
        quantization.Float8DynamicActivationFloat8WeightConfig(granularity=tiles[::-1])


def test_nf4_is_saved_and_checked(torch, tmp_path):
    from teletensor.torchao.dtypes import NF4Tensor, to_nf4

    q = to_nf4(torch.randn(16, 64), 32, 16)
    torch.save({"w": q}, tmp_path / "w.pt")
    loaded = torch.load(tmp_path / "w.pt")["w"]
    assert type(loaded) is NF4Tensor and torch.equal(loaded.dequantize(), q.dequantize())
    assert torch.equal((q + 1), q.dequantize() + 1)
    state = {**q._state(), "quantized_data": q.quantized_data[:-1]}
    with pytest.raises(ValueError, match="quantized_data"):
        NF4Tensor(**state)
    with pytest.raises(ValueError, match="blocks of 0"):
        NF4Tensor(**{**q._state(), "block_size": 0})
    with pytest.raises(NotImplementedError, match="no views"):
        q.t()


def test_fixed_scales_of_float8_are_checked(torch):
    from teletensor.torchao.quantization import Float8StaticActivationFloat8WeightConfig, PerRow, quantize_

    with pytest.raises(ValueError, match="PerTensor"):
        Float8StaticActivationFloat8WeightConfig(granularity=PerRow())
    with pytest.raises(ValueError, match="not one of"):
        Float8StaticActivationFloat8WeightConfig(step="train")
    with pytest.raises(NotImplementedError, match="results"):
        Float8StaticActivationFloat8WeightConfig(quantize_and_dequantize_output=True)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4))
    for scale in (None, torch.ones(2)):
        with pytest.raises(ValueError, match="act_quant_scale"):
            quantize_(model, Float8StaticActivationFloat8WeightConfig(act_quant_scale=scale))
