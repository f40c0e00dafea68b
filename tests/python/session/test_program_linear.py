"""Linear layers of Programs that compute the sum and the activation after them."""

from __future__ import annotations

import pytest

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F

trace = torch.compiler.trace


def final(program, *args) -> str:
    """The Program after the last pass."""
    return program.explain(*args).split("# after")[-1].split("# not fused")[0]


ACTIVATIONS = {
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "relu": torch.relu,
    "sigmoid": torch.sigmoid, "tanh": torch.tanh,
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_activations(name, bias):
    layer, x = nn.Linear(80, 128, bias=bias), torch.randn(4, 33, 80) * 3
    with torch.no_grad():
        program = trace(lambda x: ACTIVATIONS[name](layer(x)), x)
        assert f"activation='{name}'" in final(program, x)
        torch.testing.assert_close(program(x), ACTIVATIONS[name](layer(x)), rtol=1e-5, atol=2e-6)
        x[0, 0] = float("nan")
        x[1, 0, 0], x[2, 1, 3] = float("inf"), float("-inf")
        torch.testing.assert_close(program(x), ACTIVATIONS[name](layer(x)), rtol=1e-5, atol=2e-6, equal_nan=True)


def test_sums_and_what_others_read():
    layer, x, residual = nn.Linear(96, 96), torch.randn(50, 96), torch.randn(50, 96)
    with torch.no_grad():
        program = trace(lambda x, r: r + layer(x), x, residual)
        assert "fused_linear" in final(program, x, residual) and "add(" not in final(program, x, residual)
        torch.testing.assert_close(program(x, residual), residual + layer(x))
        both = trace(lambda x, r: F.gelu(layer(x) + r), x, residual)
        assert final(both, x, residual).count(" = ") == 1
        torch.testing.assert_close(both(x, residual), F.gelu(layer(x) + residual), rtol=1e-5, atol=2e-6)
        # Another value than the layer's own result, a result that is read twice, and other sizes stay sums.
        for f in (lambda x, r: layer(x) + layer(x).mean(), lambda x, r: layer(x) + 1, lambda x, r: layer(x) + r[:1]):
            assert "fused_linear" not in final(trace(f, x, residual), x, residual)

        def read_twice(x, r):
            value = layer(x)
            return value, F.silu(value) + r

        twice = trace(read_twice, x, residual)
        assert "fused_linear" not in final(twice, x, residual)
        small = torch.randn(2, 96)
        torch.testing.assert_close(program(small, residual[:2]), residual[:2] + layer(small))


def test_exact_programs_and_other_dtypes_are_left_alone(monkeypatch):
    layer, x = nn.Linear(80, 128), torch.randn(64, 80)
    with torch.no_grad():
        wide = nn.Linear(80, 128, dtype=torch.float64)
        assert "fused_linear" not in final(trace(lambda x: F.gelu(wide(x)), x.double()), x.double())
        monkeypatch.setenv("TELETENSOR_EXACT_PROGRAMS", "1")
        program = trace(lambda x: F.gelu(layer(x)), x)
        assert "fused_linear" not in final(program, x)
        assert torch.equal(program(x), F.gelu(layer(x)))


def test_training_fuses_sums():
    def make():
        torch.manual_seed(0)
        return nn.ModuleList([nn.Linear(96, 192), nn.Linear(192, 96), nn.Linear(96, 96)])

    def step_of(layers, optimizer):
        def step(x):
            optimizer.zero_grad()
            h = x
            for _ in range(2):
                h = h + layers[1](F.gelu(layers[0](h)))
                h = h + layers[2](h).tanh()
            loss = h.square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    models = make(), make()
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in models]
    x = torch.randn(64, 96)
    program, eager = step_of(models[0], optimizers[0]), step_of(models[1], optimizers[1])
    program = trace(program, x)
    text = final(program, x)
    # Backward reads the argument of GELU, and the result of tanh.
    assert text.count("activation='none'") == 2 and text.count("activation='tanh'") == 2 and "= backward(" not in text
    for _ in range(4):
        torch.testing.assert_close(program(x), eager(x), rtol=1e-5, atol=1e-6)
    for p, q in zip(models[0].parameters(), models[1].parameters()):
        torch.testing.assert_close(p.detach(), q.detach(), rtol=1e-4, atol=1e-6)


def test_sizes_that_change_and_errors():
    layer = nn.Linear(80, 128)
    with torch.no_grad():
        program = trace(lambda x: F.silu(layer(x)), torch.randn(64, 80))
        for rows in (1, 3, 64, 500):
            x = torch.randn(rows, 80)
            torch.testing.assert_close(program(x), F.silu(layer(x)), rtol=1e-5, atol=2e-6)
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            program(torch.randn(64, 81))
