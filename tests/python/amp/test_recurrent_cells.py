"""Recurrent cells under autocast on the CPU, whose states have other dtypes than the input."""

from __future__ import annotations

import pytest

F32, BF16 = "float32", "bfloat16"


@pytest.mark.parametrize("state", [(F32, F32), (F32, BF16), (BF16, F32), (BF16, BF16)])
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_lstm_cell(torch, dtype, state):
    torch.manual_seed(0)
    cell = torch.nn.LSTMCell(3, 4)
    x = torch.randn(2, 3)
    h, c = torch.randn(2, 4), torch.randn(2, 4)
    for _ in range(2):
        want = h, c = cell(x, (h, c))
    torch.manual_seed(0)
    cell = torch.nn.LSTMCell(3, 4)
    x = torch.randn(2, 3).to(getattr(torch, dtype))
    h, c = (torch.randn(2, 4).to(getattr(torch, name)) for name in state)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(2):
            h, c = cell(x, (h, c))
    assert h.dtype == c.dtype == getattr(torch, state[1])  # as in PyTorch
    for a, b in zip((h, c), want, strict=True):
        torch.testing.assert_close(a.float(), b, rtol=0.05, atol=0.05)
    (h.float().sum() + c.float().sum()).backward()
    assert cell.weight_hh.grad.dtype == torch.float32 and cell.weight_hh.grad.isfinite().all()
