"""Values equal PyTorch's. Integers of quantized tensors are equal; float numbers differ by 2e-5 at most."""

import json
import math

import pytest

from .flows_cases import quantized
from .record import STATE, VALUES, cases, plain, run, values

CASES, RECORDED = cases(), json.loads(VALUES.read_text())


def check(actual, expected, path: str) -> None:
    """Compares nested values."""
    if isinstance(expected, float) and isinstance(actual, (int, float)):
        assert (
            math.isclose(actual, expected, rel_tol=2e-5, abs_tol=2e-5) or actual != actual and expected != expected
        ), path
    elif isinstance(expected, list):
        assert isinstance(actual, list) and len(actual) == len(expected), (path, actual, expected)
        for i, (a, e) in enumerate(zip(actual, expected)):
            check(a, e, f"{path}[{i}]")
    elif isinstance(expected, dict):
        assert isinstance(actual, dict) and list(actual) == list(expected), (path, list(actual), list(expected))
        for key in expected:
            check(actual[key], expected[key], f"{path}.{key}")
    else:
        assert actual == expected, path


@pytest.mark.parametrize("name", CASES)
def test_value_equals_pytorchs(torch, name):
    check(run(CASES[name], torch), RECORDED[name], name)


def test_every_recorded_value_has_a_case():
    assert set(RECORDED) == set(CASES)


def observed(torch, module, x):
    """The module with a configuration and the observer of its results."""
    q = torch.ao.quantization
    module.qconfig = q.default_quint8_weight_qconfig
    module.activation_post_process = q.MinMaxObserver()
    module.activation_post_process(module(x))
    return module


@pytest.mark.parametrize("slope", [0.25, -0.5])
def test_prelu_multiplies_negative_numbers_only(torch, slope):
    """PyTorch's kernel multiplies some of the positive numbers too."""
    x = torch.quantize_per_tensor(torch.linspace(-2, 2, 41), 1 / 32, 100, torch.quint8)
    module = torch.nn.PReLU(init=slope)
    made = torch.ao.nn.quantized.PReLU.from_float(observed(torch, module, x.dequantize()))
    assert torch.allclose(made(x).dequantize(), module(x.dequantize()), atol=0.02)


def test_embeddings_of_a_loaded_state_are_equal(torch):
    q, nnq = torch.ao.quantization, torch.ao.nn.quantized
    module = torch.nn.Embedding(6, 12)
    module.qconfig = q.float_qparams_weight_only_qconfig
    made, other = nnq.Embedding.from_float(module), nnq.Embedding(6, 12)
    other.load_state_dict(made.state_dict())
    indices = torch.arange(6)
    assert torch.equal(made(indices), other(indices))
    assert torch.allclose(made(indices), module(indices), atol=0.05)


def test_observing_waits_for_nothing(torch):
    """Observers and fake quantizations compute in the engine."""
    q, x = torch.ao.quantization, torch.randn(8, 4)
    modules = [
        q.HistogramObserver(), q.MinMaxObserver(), q.MovingAverageMinMaxObserver(), q.default_per_channel_weight_observer(),
        q.default_fake_quant(), q.default_fused_act_fake_quant(), q.default_per_channel_weight_fake_quant(),
        q.default_embedding_fake_quant(),
    ]  # fmt: skip
    before = torch.connection().counters()["waits"]
    for module in modules:
        for _ in range(2):
            module(x)
    assert torch.connection().counters()["waits"] == before


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_state_that_pytorch_wrote_is_loaded(torch, tmp_path):
    net, _, made = quantized(torch, "x86")
    other = torch.ao.quantization.convert(torch.ao.quantization.prepare(net))
    assert list(torch.load(STATE)) == list(made.state_dict())
    other.load_state_dict(torch.load(STATE))
    assert plain(other(values(torch, 2, 1, 6, 6))) == RECORDED["flows.static"][0][2]
    torch.save(made.state_dict(), tmp_path / "state.pt")
    assert (tmp_path / "state.pt").stat().st_size < 2 * STATE.stat().st_size


@pytest.mark.parametrize("name", ["MinMaxObserver", "MovingAverageMinMaxObserver", "PerChannelMinMaxObserver"])
def test_reduced_symmetric_ranges_of_quint8_are_refused(torch, name):
    symmetric = torch.per_channel_symmetric if "Channel" in name else torch.per_tensor_symmetric
    with pytest.raises(NotImplementedError, match="Cannot reduce range"):
        getattr(torch.ao.quantization, name)(dtype=torch.quint8, qscheme=symmetric, reduce_range=True)
