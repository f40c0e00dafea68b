"""Tensor.to_mkldnn: a copy, with PyTorch's conditions."""

import pytest


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "uint8", "int8"])
def test_copy(torch, dtype):
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    y = x.to_mkldnn()
    x.zero_()
    assert y.dtype == x.dtype and y.to_dense().tolist() == [[0, 1, 2], [3, 4, 5]] and y.layout == torch.strided


def test_dtype_and_gradient(torch):
    x = torch.tensor([1.5, 2.5], requires_grad=True)
    y = x.to_mkldnn(torch.bfloat16)
    (y.to_dense().float() * 2).sum().backward()
    assert y.dtype == torch.bfloat16 and x.grad.tolist() == [2, 2]
    assert torch.ops.aten.to_mkldnn(x).tolist() == [1.5, 2.5]


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool", "complex64"])
def test_refused(torch, dtype):
    with pytest.raises(RuntimeError, match="dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input"):
        torch.ones(2).to(getattr(torch, dtype)).to_mkldnn()


def test_meta(torch):
    with pytest.raises(RuntimeError, match="expected a tensor on the CPU, got one on meta"):
        torch.ones(2, device="meta").to_mkldnn()
