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


@pytest.mark.parametrize("weight", [F32, BF16, "float16"])
def test_lstm_cell_as_a_function(torch, weight):
    shapes = (2, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,), (16,)
    x, h, c, *w = (torch.randn(shape) for shape in shapes)
    want = torch.lstm_cell(x, (h, c), *w)
    w = [t.to(getattr(torch, weight)) for t in w]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for state in (c, c.bfloat16()):
            got = torch.lstm_cell(x, (h.half(), state), *w)
            assert type(got) is tuple and got[0].dtype == got[1].dtype == state.dtype  # as in PyTorch
            for a, b in zip(got, want, strict=True):
                torch.testing.assert_close(a.float(), b, rtol=0.05, atol=0.05)
        with pytest.raises(RuntimeError, match="weight_hh first dim must be 4 \\* hidden_size = 16, but got 12"):
            torch.lstm_cell(x, (h, c), w[0], w[1][:12])
        with pytest.raises(RuntimeError, match="lstm_cell expects two hidden states"):
            torch.lstm_cell(x, (h,), w[0], w[1])


@pytest.mark.parametrize("is_cast", [False, True])
def test_lstm_cell_checks_dimensions_and_dtypes(torch, is_cast):
    x, w, cell = torch.randn(2, 3), torch.randn(12, 3), torch.nn.LSTMCell(3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_cast):
        for y in (x[0], x[None]):
            with pytest.raises(RuntimeError, match=f"Expected 2D input \\(batch x feature\\), but got {y.dim()}D input"):
                torch.lstm_cell(y, (x, x), w, w)
            with pytest.raises(RuntimeError, match=f"Expected 2D hidden1 \\(batch x hidden_size\\), but got {y.dim()}D tensor"):
                torch.lstm_cell(x, (x, y), w, w)
        for weights in ((w.double(), w), (w, w.double())):
            with pytest.raises(RuntimeError, match="to have the same dtype"):
                torch.lstm_cell(x, (x, x), *weights)
        with pytest.raises(RuntimeError, match="to have the same dtype"):
            cell(x.double())
        assert torch.lstm_cell(x, (x, x.double()), w, w)[0].dtype == torch.float64
        for a, b in zip(cell(x[0]), cell(x[:1]), strict=True):
            torch.testing.assert_close(a, b[0])
