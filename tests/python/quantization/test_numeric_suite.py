"""torch.ao.ns: weights and values of a float model beside those of the quantized one."""

import copy

import pytest


@pytest.fixture
def models(torch):
    import teletensor.ao.quantization as q

    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(q.QuantStub(), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 3), q.DeQuantStub()).eval()
    model.qconfig = q.get_default_qconfig("x86")
    x = torch.randn(4, 1, 6, 6)
    observed = q.prepare(model)
    observed(x)
    return model, q.convert(observed), x


def test_weights(torch, models):
    from teletensor.ao.ns._numeric_suite import compare_weights
    from teletensor.ao.ns.fx.utils import compute_cosine_similarity, compute_normalized_l2_error, compute_sqnr

    model, quantized, _ = models
    found = compare_weights(model.state_dict(), quantized.state_dict())
    assert sorted(found) == ["1.weight", "4._packed_params._packed_params"]
    for pair in found.values():
        assert float(compute_sqnr(pair["float"], pair["quantized"])) > 35
        assert float(compute_normalized_l2_error(pair["float"], pair["quantized"])) < 0.02
        assert float(compute_cosine_similarity(pair["float"], pair["quantized"])) > 0.999
    x = torch.ones(2)
    assert float(compute_sqnr(x, x * 1.1)) == pytest.approx(20, abs=1e-3)
    assert compute_sqnr([x, x.long()], [x * 1.1, x])[1] is None


def test_values_of_modules(torch, models):
    from teletensor.ao.ns._numeric_suite import compare_model_outputs

    model, quantized, x = models
    found = compare_model_outputs(copy.deepcopy(model), copy.deepcopy(quantized), x)
    assert "4.stats" in found and "1.stats" in found
    a, b = found["4.stats"]["float"][0], found["4.stats"]["quantized"][0]
    assert torch.equal(a, model(x)) and float((a - b.dequantize()).abs().max()) < 0.1


def test_shadows(torch, models):
    from teletensor.ao.ns._numeric_suite import compare_model_stub

    model, quantized, x = models
    expected = quantized(x)
    shadowed = copy.deepcopy(quantized)
    found = compare_model_stub(model, shadowed, {torch.nn.Conv2d, torch.nn.Linear}, x)
    assert sorted(found) == ["1.stats", "4.stats"]
    for stats in found.values():
        a, b = stats["float"][0], stats["quantized"][0].dequantize()
        assert a.shape == b.shape and float((a - b).abs().max()) < 0.1
    assert torch.equal(shadowed(x), expected)
