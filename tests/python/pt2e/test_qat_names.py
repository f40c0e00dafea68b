"""Values of torchao.quantization.qat equal those that record_qat.py stored."""

import json
import math

import pytest

from .qat_cases import CASES, value_of
from .record_qat import VALUES

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


def test_trained_scales_are_not_converted(torch):
    from teletensor.torchao.quantization import IntxWeightOnlyConfig, PerGroup, qat, quantize_

    model, base = torch.nn.Sequential(torch.nn.Linear(16, 4)), IntxWeightOnlyConfig(torch.int4, PerGroup(8))
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
