"""Rules of autograd.Function that subclasses do not define, and control flow under vmap."""

from __future__ import annotations

import pytest


def test_jvp_and_vmap_are_attributes_of_the_class(torch):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    assert callable(Doubled.jvp) and callable(Doubled.vmap) and Doubled.generate_vmap_rule is False
    for rule in (Doubled.jvp, lambda ctx, x: Doubled.vmap(None, (0,), x)):
        with pytest.raises(NotImplementedError, match="You must implement"):
            rule(None, torch.ones(1))


def test_vmap_of_cond(torch):
    def function(p, x):
        return torch.cond(p, lambda x: x + 1, lambda x: x * 10, (x,))

    x = torch.tensor([1.0, 2.0, 3.0])
    mapped = torch.func.vmap(function)
    assert mapped(torch.tensor([True, False, True]), x).tolist() == [2, 20, 4]
    assert torch.func.vmap(function, in_dims=(None, 0))(torch.tensor(False), x).tolist() == [10, 20, 30]


def test_vmap_of_while_loop(torch):
    from teletensor._higher_order_ops import while_loop

    def function(x):
        return while_loop(lambda i, x: i < x, lambda i, x: (i + 2, x), (torch.tensor(0.0), x))[0]

    assert torch.func.vmap(function)(torch.tensor([0.0, 1.0, 5.0])).tolist() == [0, 2, 6]


def test_engines_of_quantization(torch):
    backend = torch.backends.quantized
    assert backend.engine in backend.supported_engines and "fbgemm" in backend.supported_engines
    before = backend.engine
    try:
        backend.engine = "fbgemm"
        assert torch.backends.quantized.engine == "fbgemm"
        with pytest.raises(RuntimeError, match="not supported"):
            backend.engine = "unknown"
    finally:
        backend.engine = before
