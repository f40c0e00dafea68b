"""Functions that PyTorch's autocast does not list on CPUs, or lists under another name: dtypes of results, as in PyTorch."""

from __future__ import annotations

import pytest

F32, F64, F16, BF16 = "float32", "float64", "float16", "bfloat16"
# A call with tensors x and y, their dtypes, and the dtype of PyTorch's result under autocast to bfloat16.
CASES = [
    ("torch.einsum('i,i->i', x, y)", F32, F32, F32),
    ("torch.einsum('i,j->ij', x, y)", F16, F16, F16),
    ("torch.einsum('ik,kj->ij', x[:, None], y[None])", F32, BF16, F32),
    ("torch.einsum('i,i->i', x, y)", BF16, F64, F64),
    ("torch.einsum('i,j,jk->ik', x, x, y.expand(3, 3))", F32, F32, BF16),
    ("torch.einsum('jk,j,i->ki', x.expand(3, 3), x, y)", F32, F32, F32),
    ("torch.einsum('i,j,k,kl->ijl', x, x, x, y.expand(3, 3))", F32, F32, BF16),
    ("torch.block_diag(x, y)", F16, F16, F16),
    ("torch.block_diag(x, y)", F16, F32, F32),
    ("torch.convolution(x.view(1, 1, 3), y.view(1, 1, 3), None, [1], [0], [1], False, [0], 1)", F32, F32, F32),
    ("F.max_unpool1d(x[None, :1], torch.zeros(1, 1, dtype=torch.int64), 2)", BF16, F32, F32),
    ("F.mse_loss(x, x * 2, weight=x)", BF16, F32, BF16),
    ("torch.nn.utils.rnn.pad_sequence([x, y[:2]])", BF16, F32, BF16),
    ("torch.nn.utils.rnn.pad_sequence([x, y[:2]])", F32, F64, F32),
    ("torch.nn.utils.rnn.pad_sequence([x, y[:2]])", F16, F32, F16),
    ("F.l1_loss(x, x * 2, weight=x)", BF16, F32, BF16),
    ("torch.dist(x, y)", F16, F16, F16),
    ("torch.dist(x, y)", F16, F32, F32),
    ("F.affine_grid(x.expand(1, 2, 3), (1, 1, 2, 2), align_corners=False)", F32, F32, BF16),
    ("torch.mv(x.view(1, 3).to_sparse(), y)", F32, F32, BF16),
    ("torch.mv(x.view(1, 3).to_sparse_csr(), y)", F32, F32, F32),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "x", "y", "expected"), CASES)
def test_dtypes_on_cpus(torch, call, x, y, expected):
    names = {"torch": torch, "F": torch.nn.functional}
    names |= {name: torch.rand(3).to(getattr(torch, dtype)) for name, dtype in (("x", x), ("y", y))}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = eval(call, names)
    assert got.dtype == getattr(torch, expected)
    wide = {k: v.double() if k in ("x", "y") else v for k, v in names.items()}
    torch.testing.assert_close(got.double(), eval(call, wide), rtol=0.02, atol=0.02)
