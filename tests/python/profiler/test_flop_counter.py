"""FlopCounterMode: the numbers of PyTorch 2.15; and the ranges that profiles name as PyTorch does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .flop_models import counts, models

RECORDED = json.loads(Path(__file__).with_name("flops.json").read_text())


def test_counts_by_module_and_operator(torch):
    from teletensor.utils.flop_counter import FlopCounterMode

    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with FlopCounterMode(display=False) as counter:
        module(torch.ones(3, 4)).sum().backward()
    assert counter.get_total_flops() == 672
    assert "Sequential.0" in counter.get_table() and "Sequential.0" not in counter.get_table(depth=1)
    with counter, pytest.raises(RuntimeError, match="no profile in progress"):
        FlopCounterMode().__enter__()
    assert counter.get_total_flops() == 0


@pytest.mark.parametrize("name", RECORDED)
def test_counts_are_those_of_pytorch(torch, name):
    from teletensor.utils.flop_counter import FlopCounterMode

    assert counts(FlopCounterMode, *models(torch)[name]()) == RECORDED[name]


def test_formulas_of_a_program(torch):
    from teletensor.utils import flop_counter

    op = torch.library.custom_op("flops::twice", lambda x, w: (x @ w) * 2, mutates_args=(), schema="(Tensor x, Tensor w) -> Tensor")
    aten, x, w = torch.ops.aten, torch.ones(2, 3), torch.ones(3, 4)
    mapping = {torch.ops.flops.twice: lambda x, w, out_shape=None: 1000 + out_shape[1], aten.mm: lambda a, b, out_shape=None: a[0] + b[1]}
    with flop_counter.FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        op(x, w), x @ w
        torch.nn.Linear(3, 4, bias=False)(x).sum().backward()
    assert counter.get_flop_counts()["Global"] == {torch.ops.flops.twice: 1004, aten.mm: 6 + 6 + 7}  # x w, the layer, dW: 4 + 3
    assert counter.get_flop_counts()["Linear"] == {aten.mm: 13}
    with pytest.raises(NotImplementedError, match="expected a custom operator, or one of aten.mm"):
        flop_counter.FlopCounterMode(custom_mapping={aten.sin: lambda x, out_shape=None: 1})
    try:
        flop_counter.register_flop_formula(torch.ops.flops.twice, get_raw=True)(lambda x, w, out_val: x.dim() + out_val.numel())
        with flop_counter.FlopCounterMode(display=False) as counter:
            op(x, w)
        assert counter.get_flop_counts() == {"Global": {torch.ops.flops.twice: 10}}
        with pytest.raises(RuntimeError, match="duplicate registrations for flops.twice"):
            flop_counter.register_flop_formula(op)(lambda *_, **__: 0)
    finally:
        flop_counter._registered.clear()


@pytest.mark.parametrize(("call", "total"), [
    ("F.conv2d(T(2, 3, 8, 8), T(4, 3, 3, 3)).sum().backward()", 15552 * 3), ("torch.bmm(T(2, 3, 4), T(2, 4, 5))", 240),
    ("torch.addmm(T(2, 2), T(2, 3), T(3, 2))", 24), ("F.scaled_dot_product_attention(*[T(1, 2, 4, 8)] * 3)", 1024),
    ("F.conv_transpose2d(T(2, 3, 8, 8), T(3, 4, 3, 3))", 27648), ("T(3, 4) * 2", 0),
    ("T(3, 4).mv(T(4))", 0), ("T(4).dot(T(4))", 0), ("torch.vdot(T(4), T(4))", 0), ("T(2, 3, 4) @ T(4)", 0),
    ("torch.addmv(T(3), T(3, 4), T(4))", 0), ("(T(4) @ T(4)).backward()", 0), ("T(3) @ T(3, 4)", 24), ("F.linear(T(4), T(3, 4))", 24),
    ("torch.inner(T(3, 4), T(4))", 24), ("torch.tensordot(T(3, 4), T(4), 1)", 24), ("torch.einsum('ij,j->i', T(3, 4), T(4))", 24),
])  # fmt: skip
def test_totals(torch, call, total):
    from teletensor.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        eval(call, {"torch": torch, "F": torch.nn.functional, "T": lambda *s: torch.ones(s, requires_grad=True)})  # noqa: S307
    assert counter.get_total_flops() == total


def test_ranges_of_optimizers(torch):
    p = torch.nn.Parameter(torch.ones(2))
    with torch.profiler.profile() as profile:
        for optimizer in (torch.optim.SGD([p], lr=0.1), torch.optim.Adam([p])):
            (p * p).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    found = {e.key: e.count for e in profile.key_averages() if e.key.startswith("Optimizer")}
    assert found == {f"Optimizer.{name}#{kind}.{name}": 1 for kind in ("Adam", "SGD") for name in ("step", "zero_grad")}
