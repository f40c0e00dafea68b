"""Tensors without values under use_deterministic_algorithms: NaN, or the largest number of the dtype."""

from __future__ import annotations

import math

import pytest

CALLS = [
    "empty(3)", "empty(3, out=zeros(1))", "empty(3, dtype=float64)", "empty(3, dtype=float16)", "empty(3, dtype=complex64)",
    "empty(3, dtype=int32)",
    "empty(3, dtype=int64)", "empty(3, dtype=uint8)", "empty(3, dtype=bool)", "empty_like(ones(3))", "ones(1).new_empty(3)",
    "empty_strided((3,), (2,))", "empty_permuted((3, 1), (1, 0))", "ones(1).new_empty_strided((3,), (1,))", "Tensor(3)", "ones(1).new(3)",
    "ones(1).resize_(4)[1:]",
]  # fmt: skip


@pytest.fixture
def deterministic(torch):
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_fills(torch, deterministic, call):
    values = eval(f"torch.{call}", {"torch": torch, **{name: getattr(torch, name) for name in dir(torch)}}).flatten()
    assert values.numel() == 3
    if values.dtype is torch.bool:
        assert values.all()
    elif values.is_floating_point() or values.is_complex():
        assert values.isnan().all() and (not values.is_complex() or math.isnan(values[0].real))
    else:
        assert values.tolist() == [torch.iinfo(values.dtype).max] * 3


@pytest.mark.filterwarnings("ignore")
def test_filling_can_be_turned_off(torch, deterministic):
    assert torch.utils.deterministic.fill_uninitialized_memory is True
    kept = torch.empty(3)
    torch.utils.deterministic.fill_uninitialized_memory = False
    zeros = torch.zeros(1000)
    del zeros
    assert not torch.empty(1000).isnan().all() and kept.isnan().all()
    torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.empty(1000).isnan().all()
