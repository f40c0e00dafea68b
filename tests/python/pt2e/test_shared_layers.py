"""Layers whose weight has several uses, with batch norms after some of them; unusual numbers and dtypes in lowered models."""

from __future__ import annotations

import numpy as np
import pytest

from tests.python.pt2e import models
from tests.python.pt2e.test_graphs import names


def network(torch, name, bias):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.other = (nn.Conv2d(4, 4, 3, padding=1, bias=bias) for _ in range(2))
            self.norm, self.norm2 = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
            if name == "tied":
                self.other.weight = self.conv.weight

        def forward(self, x):
            y = self.norm(self.conv(x))
            if name == "same":
                return self.norm(self.conv(torch.relu(y)))
            if name == "two":
                return y + self.norm2(self.conv(x + 1))
            if name == "one":
                return y + self.conv(x + 1)
            return y + (self.other(x) if name == "tied" else self.conv.bias.sum())

    made, rng = Net(), np.random.default_rng(1)
    with torch.no_grad():
        for key, value in sorted(made.state_dict().items()):
            if value.is_floating_point():
                values = rng.standard_normal(tuple(value.shape)).astype(np.float32) * 0.4
                value.copy_(torch.tensor(np.abs(values) + 0.5 if key.endswith("var") else values))
    return made.eval(), [torch.tensor(rng.standard_normal((2, 4, 7, 7)).astype(np.float32)) for _ in range(3)]


CASES = [(name, bias) for name in ("same", "two", "one", "tied") for bias in (True, False)] + [("bias", True)]


@pytest.mark.parametrize("is_qat", [False, True])
@pytest.mark.parametrize(("name", "bias"), CASES)
def test_batch_norms_of_shared_layers(torch, name, bias, is_qat):
    from teletensor.ao.quantization.pt2e import move_exported_model_to_eval
    from teletensor.ao.quantization.pt2e.lowering import lower_pt2e
    from teletensor.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
    from teletensor.ao.quantization.quantizer import xnnpack_quantizer

    model, samples = network(torch, name, bias)
    config = xnnpack_quantizer.get_symmetric_quantization_config(is_per_channel=True, is_qat=is_qat)
    quantizer = xnnpack_quantizer.XNNPACKQuantizer().set_global(config)
    expected = model(samples[0])
    graph = torch.export.export(model.train() if is_qat else model, (samples[0],)).module()
    ready = (prepare_qat_pt2e if is_qat else prepare_pt2e)(graph, quantizer)
    for x in samples:
        ready(x)
    if is_qat:
        move_exported_model_to_eval(ready)
        expected = ready(samples[0])
    converted = convert_pt2e(ready)
    result = (move_exported_model_to_eval(converted) or converted)(samples[0])
    limit = 0.03 * float(expected.abs().max())
    torch.testing.assert_close(result, expected, rtol=0, atol=max(limit, 0.1))
    torch.testing.assert_close(lower_pt2e(converted)(samples[0]), result, rtol=0, atol=0.1)


def converted(torch, model, sample, kind):
    from teletensor.ao.quantization.pt2e.lowering import lower_pt2e
    from teletensor.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e

    ready = prepare_pt2e(torch.export.export(model.eval(), (sample,)).module(), models.quantizer(names(torch), kind))
    ready(sample)
    found = convert_pt2e(ready)
    return found, lower_pt2e(found)


@pytest.mark.parametrize("kind", ["x86-dynamic", "xnnpack-dynamic"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_dynamic_layers_do_not_hide_nan(torch, kind, value):
    model, lowered = converted(torch, torch.nn.Sequential(torch.nn.Linear(8, 4)), torch.randn(3, 8), kind)
    assert "int8_linear_dynamic" in str(lowered.graph)
    x = torch.randn(3, 8)
    x[1, 2] = value
    assert bool(model(x).isnan().all())
    if value == value:
        assert bool(lowered(x).isnan().all())
    else:  # as PyTorch's choose_qparams
        with pytest.raises(RuntimeError, match="min should be less"):
            lowered(x).tolist()


def test_rows_do_not_hide_nan(torch):
    import teletensor.torchao.quantization as q

    layer = torch.nn.Linear(8, 4)
    q.quantize_(layer, q.Int8DynamicActivationInt8WeightConfig(act_mapping_type=q.MappingType.ASYMMETRIC))
    x = torch.randn(3, 8)
    x[1, 2] = float("nan")
    assert layer(x).isnan().all(-1).tolist() == [False, True, False]  # one scale per row


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_lowered_models_keep_their_dtype(torch, dtype):
    dtype = getattr(torch, dtype)
    x = torch.randn(2, 4, 6, 6).to(dtype)
    model, lowered = converted(torch, torch.nn.Sequential(torch.nn.Conv2d(4, 4, 3)).to(dtype), x, "x86")
    assert "int8_convolution" in str(lowered.graph)
    assert model(x).dtype == lowered(x).dtype == dtype
    torch.testing.assert_close(lowered(x), model(x), rtol=0.02, atol=0.02)


def test_an_image_without_a_batch(torch):
    x = torch.randn(4, 9, 9)
    model, lowered = converted(torch, torch.nn.Sequential(torch.nn.Conv2d(4, 4, 3)), x, "x86")
    torch.testing.assert_close(lowered(x), model(x))
