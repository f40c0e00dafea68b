"""FlopCounterMode: the numbers of PyTorch 2.15; and the ranges that profiles name as PyTorch does."""

from __future__ import annotations

import pytest


def test_counts_by_module_and_operator(torch):
    from teletensor.utils.flop_counter import FlopCounterMode

    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with FlopCounterMode(display=False) as counter:
        module(torch.ones(3, 4)).sum().backward()
    counts = {name: {str(op): n for op, n in of_module.items()} for name, of_module in counter.get_flop_counts().items()}
    assert counts.pop("Global") == {"aten.addmm": 288, "aten.mm": 384} and counter.get_total_flops() == 672
    assert counts == {name: {"aten.addmm": n} for name, n in (("Sequential", 288), ("Sequential.0", 192), ("Sequential.2", 96))}
    assert "Sequential.0" in counter.get_table() and "Sequential.0" not in counter.get_table(depth=1)
    with counter, pytest.raises(RuntimeError, match="no profile in progress"):
        FlopCounterMode().__enter__()
    assert counter.get_total_flops() == 0


@pytest.mark.parametrize(("call", "total"), [
    ("F.conv2d(T(2, 3, 8, 8), T(4, 3, 3, 3)).sum().backward()", 15552 * 3), ("torch.bmm(T(2, 3, 4), T(2, 4, 5))", 240),
    ("torch.addmm(T(2, 2), T(2, 3), T(3, 2))", 24), ("F.scaled_dot_product_attention(*[T(1, 2, 4, 8)] * 3)", 1024),
    ("F.conv_transpose2d(T(2, 3, 8, 8), T(3, 4, 3, 3))", 27648), ("T(3, 4) * 2", 0),
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
