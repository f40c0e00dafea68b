"""Dtypes that functions of torch.nn.functional accept and refuse, as PyTorch 2.15 does on a CPU."""

from __future__ import annotations

import pytest

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


def _calls(torch):
    """Functions of a tensor of each dtype in the list, with the exception's type."""
    F, ones = torch.nn.functional, torch.ones
    i = torch.tensor([[0, 1]])
    x1, x2, x3 = (lambda d, n=n: ones(1, 2, *[4] * n, dtype=d) for n in (1, 2, 3))

    def unpooled(n):
        sizes = (1, 1, *[2] * n)
        return lambda d: getattr(F, f"max_unpool{n}d")(ones(sizes, dtype=d), torch.arange(2**n).reshape(sizes), 2)

    return {
        "max_pool1d": (lambda d: F.max_pool1d(x1(d), 2), INTEGERS),
        "unfold": (lambda d: F.unfold(x2(d), 2), INTEGERS),
        **{f"max_unpool{n}d": (unpooled(n), (*INTEGERS, "bool", "complex64")) for n in (1, 2, 3)},
        **{
            f"interpolate {mode} {n}": (lambda d, x=x, m=mode: F.interpolate(x(d), size=3, mode=m), ("int8", "int32", "complex64"))
            for mode in ("nearest", "nearest-exact", "area") for n, x in enumerate((x1, x2, x3))
        },
        "embedding_bag": (lambda d: F.embedding_bag(i, ones(3, 2, dtype=d)), INTEGERS),
        "per_sample_weights": (
            lambda d: F.embedding_bag(i, ones(3, 2, dtype=d), mode="sum", per_sample_weights=ones(1, 2, dtype=d)), INTEGERS,
        ),
        "gaussian_nll_loss": (lambda d: F.gaussian_nll_loss(ones(2), ones(2), ones(2, dtype=d)), INTEGERS),
        "multi_margin_loss": (lambda d: F.multi_margin_loss(ones(2, 3, dtype=d), i[0]), INTEGERS),
        "multi_margin_loss weight": (lambda d: F.multi_margin_loss(ones(2, 3), i[0], weight=ones(3, dtype=d)), (*INTEGERS, "float64")),
        "multi_margin_loss target": (lambda d: F.multi_margin_loss(ones(2, 3), i[0].to(d)), ("int32", "uint8", "float32")),
        "multilabel_margin_loss": (lambda d: F.multilabel_margin_loss(ones(1, 2, dtype=d), i), INTEGERS),
        "multilabel_margin_loss target": (lambda d: F.multilabel_margin_loss(ones(1, 2), i.to(d)), ("int32", "bool")),
        "pdist": (lambda d: F.pdist(ones(3, 2, dtype=d)), ("complex64", "int32")),
        "max_unpool2d indices": (lambda d: F.max_unpool2d(ones(1, 1, 2, 2), i.reshape(1, 1, 2, 1).to(d), 2), ("int32",)),
        "attention": (
            lambda d: F.scaled_dot_product_attention(*[ones(1, 2, 4)] * 3, attn_mask=ones(2, 2, dtype=d)),
            (*INTEGERS, "float16", "float64"),
        ),
        "batch_norm": (lambda d: F.batch_norm(ones(2, 3), ones(3, dtype=d), ones(3, dtype=d)), (*INTEGERS, "float16", "float64")),
        "batch_norm variance": (lambda d: F.batch_norm(ones(2, 3), ones(3), ones(3, dtype=d), training=True), (*INTEGERS, "float64")),
        "rms_norm weight": (lambda d: F.rms_norm(ones(2, 3), (3,), ones(3, dtype=d)), ("complex64",)),
    }  # fmt: skip


def test_refused(torch):
    for name, (call, dtypes) in _calls(torch).items():
        for dtype in dtypes:
            with pytest.raises(RuntimeError):
                call(getattr(torch, dtype))
                pytest.fail(f"{name} accepted {dtype}")


def test_accepted(torch):
    F = torch.nn.functional
    assert F.hardtanh(torch.tensor([0, 1, 2, 255], dtype=torch.uint8)).tolist() == [0, 1, 1, 1]
    assert F.max_pool1d(torch.arange(8).reshape(1, 1, 8), 2, return_indices=True)[0].tolist() == [[[1, 3, 5, 7]]]
    assert F.unfold(torch.ones(1, 1, 2, 2, dtype=torch.bool), 2).all()
    assert F.interpolate(torch.arange(4, dtype=torch.uint8).reshape(1, 1, 4), size=8).tolist() == [[[0, 0, 1, 1, 2, 2, 3, 3]]]
    scores, classes = torch.arange(6.0).reshape(2, 3).log_softmax(1), torch.tensor([0, 2])
    for loss in (F.nll_loss, F.cross_entropy, lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1)):
        assert torch.equal(loss(scores, classes.to(torch.uint8)), loss(scores, classes))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_weights_of_rms_norm(torch, dtype):
    """The result has the input's dtype, whatever the weight's is."""
    x = torch.arange(1.0, 9).reshape(2, 4).to(getattr(torch, dtype)).requires_grad_()
    weight = torch.tensor([0.5, 1.0, 2.0, 4.0])
    expected = torch.nn.functional.rms_norm(x, (4,), weight.to(x.dtype))
    for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        w = weight.detach().clone().to(kind).requires_grad_()
        result = torch.nn.functional.rms_norm(x, (4,), w)
        assert result.dtype == x.dtype
        torch.testing.assert_close(result, expected)
        result.real.sum().backward() if x.is_complex() else result.sum().backward()
        assert w.grad.dtype == kind and w.grad.shape == (4,)


def test_masks_of_attention(torch):
    """Masks of bool, float32 and the query's dtype are accepted."""
    for dtype in (torch.float16, torch.float32, torch.float64):
        q = torch.arange(8.0).reshape(1, 2, 4).to(dtype) / 8
        added = torch.tensor([[0.0, -1e4], [0, 0]])
        masks = (added == 0, added, added.to(dtype))
        results = [torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask) for mask in masks]
        for result in results:
            assert result.dtype == dtype
            torch.testing.assert_close(result, results[0], rtol=1e-3, atol=1e-3)
