"""ATen functions, masked reductions, windows and low-rank factorisations, compared with NumPy and SciPy."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.signal.windows as windows


def test_norms_with_their_statistics(torch):
    x = np.random.default_rng(0).normal(size=(2, 6, 5))
    t = torch.tensor(x)
    result, mean, scale = torch.native_layer_norm(t, (5,), None, None, 1e-5)
    np.testing.assert_allclose(mean.numpy()[..., 0], x.mean(-1))
    np.testing.assert_allclose(scale.numpy()[..., 0], 1 / np.sqrt(x.var(-1) + 1e-5))
    np.testing.assert_allclose(result.numpy(), (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5))
    grouped = x.reshape(2, 3, 10)
    _, mean, scale = torch.native_group_norm(t, None, None, 2, 6, 5, 3, 1e-5)
    np.testing.assert_allclose(mean.numpy(), grouped.mean(-1))
    _, mean, scale = torch.native_batch_norm(t, None, None, None, None, True, 0.1, 1e-5)
    np.testing.assert_allclose(mean.numpy(), x.mean((0, 2)))
    np.testing.assert_allclose(scale.numpy(), 1 / np.sqrt(x.var((0, 2)) + 1e-5))


def test_dropout_with_its_mask(torch):
    result, kept = torch.native_dropout(torch.ones(100), 0.5, True)
    assert result.tolist() == [2.0 if k else 0.0 for k in kept.tolist()] and 20 < kept.sum().item() < 80
    assert torch.native_dropout(torch.ones(3), 0.5, False)[1].all()


def test_histogramdd(torch):
    points, weight = np.random.default_rng(1).random((50, 2)), np.random.default_rng(2).random(50)
    hist, edges = torch.histogramdd(torch.tensor(points), [3, 4], weight=torch.tensor(weight), density=True)
    expected, limits = np.histogramdd(points, [3, 4], weights=weight, density=True)
    np.testing.assert_allclose(hist.numpy(), expected)
    for edge, limit in zip(edges, limits):
        np.testing.assert_allclose(edge.numpy(), limit)


def test_nonzero_static(torch):
    x = torch.tensor([[0, 3], [5, 0]])
    assert torch.nonzero_static(x, size=3).tolist() == [[0, 1], [1, 0], [-1, -1]]
    assert torch.nonzero_static(x, size=1).tolist() == [[0, 1]]


def test_segment_reduce(torch):
    x, lengths = torch.arange(5.0), torch.tensor([2, 0, 3])
    assert torch.segment_reduce(x, "sum", lengths=lengths).tolist() == [1, 0, 9]
    assert torch.segment_reduce(x, "max", lengths=lengths, initial=3.0).tolist() == [3, 3, 4]
    with pytest.raises(RuntimeError, match="Expected all rows of lengths"):
        torch.segment_reduce(x, "sum", lengths=torch.tensor([2]))
    assert torch.segment_reduce(x, "amin", lengths=torch.tensor([1, 2]), unsafe=True).tolist() == [0, 1]
    assert torch.segment_reduce(x, "sum", offsets=torch.tensor([1, 2, 4])).tolist() == [1, 5]
    with pytest.raises(RuntimeError, match="negative"):
        torch.segment_reduce(x, "sum", lengths=torch.tensor([6, -1]))
    with pytest.raises(NotImplementedError, match="int32 or int64"):
        torch.segment_reduce(x, "sum", lengths=torch.tensor([2.0, 3.0]))


NAN = float("nan")


@pytest.mark.parametrize(
    ("reduction", "initial", "expected"),
    [
        ("max", 5.0, [0, 0, 0.5, 0.5, 1, 0]),
        ("max", 4.0, [0, 0, 0.5, 0.5, 1, 0]),
        ("max", 6.0, [0, 0, 0, 0, 1, 0]),
        ("min", 1.0, [1, 0, 0, 0, 1, 0]),
        ("min", 0.0, [0, 0, 0, 0, 1, 0]),
        ("max", NAN, [0, 0, 0, 0, 1, 0]),
    ],
)
def test_gradient_of_segment_reduce_with_an_initial_value(torch, reduction, initial, expected):
    """Elements that equal the initial value share the gradient; a NaN gets all of it."""
    x = torch.tensor([1.0, 2.0, 5.0, 5.0, NAN, 7.0], requires_grad=True)
    torch.segment_reduce(x, reduction, lengths=torch.tensor([4, 2]), initial=initial).sum().backward()
    assert x.grad.tolist() == expected


def test_gradient_of_segment_reduce_of_empty_segments(torch):
    x = torch.zeros(0, 2, requires_grad=True)
    result = torch.segment_reduce(x, "max", lengths=torch.tensor([0, 0]))
    result.sum().backward()
    assert result.tolist() == [[-float("inf")] * 2] * 2 and x.grad.shape == (0, 2)


def test_conv_tbc(torch):
    x, w, b = torch.randn(7, 2, 3), torch.randn(3, 3, 4), torch.randn(4)
    expected = torch.nn.functional.conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), b, padding=1).permute(2, 0, 1)
    assert torch.conv_tbc(x, w, b, 1).tolist() == expected.tolist()


def test_low_ranks(torch):
    torch.manual_seed(1)
    A = torch.randn(30, 3, dtype=torch.float64) @ torch.randn(3, 20, dtype=torch.float64)  # noqa: N806
    U, S, V = torch.svd_lowrank(A, 4)  # noqa: N806
    np.testing.assert_allclose((U * S @ V.mT).numpy(), A.numpy(), atol=1e-9)
    U, S, V = torch.pca_lowrank(A, 3)  # noqa: N806
    np.testing.assert_allclose(S.numpy(), np.linalg.svd(A.numpy() - A.numpy().mean(0))[1][:3], rtol=1e-6)


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_windows(torch, length, sym):
    ours = torch.signal.windows
    rows = [
        (ours.bartlett, windows.bartlett, {}), (ours.blackman, windows.blackman, {}), (ours.cosine, windows.cosine, {}),
        (ours.exponential, windows.exponential, {"tau": 2.0}), (ours.gaussian, windows.gaussian, {"std": 1.5}),
        (ours.hamming, windows.hamming, {}), (ours.hann, windows.hann, {}), (ours.kaiser, windows.kaiser, {"beta": 14.0}),
        (ours.nuttall, windows.nuttall, {}), (ours.general_cosine, windows.general_cosine, {"a": [0.4, 0.3, 0.3]}),
        (ours.general_hamming, windows.general_hamming, {"alpha": 0.6}),
    ]  # fmt: skip
    for mine, other, options in rows:
        expected = other(length, sym=sym, **options) if length else np.zeros(0)
        np.testing.assert_allclose(mine(length, sym=sym, dtype=torch.float64, **options).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean", "var", "std", "argmax", "cumsum"])
def test_masked(torch, name):
    rng = np.random.default_rng(3)
    x, mask = rng.normal(size=(4, 5)), rng.random((4, 5)) < 0.6
    mask[:, :2] = True  # at least two unmasked elements per row
    values = np.ma.array(x, mask=~mask)
    options = {"var": {"ddof": 1}, "std": {"ddof": 1}}.get(name, {})
    expected = {"amax": values.max, "amin": values.min}.get(name, getattr(values, name, None))(axis=1, **options)
    got = getattr(torch.masked, name)(torch.tensor(x), 1, mask=torch.tensor(mask)).numpy()
    if name == "cumsum":
        expected = np.where(mask, x, 0).cumsum(1)
    np.testing.assert_allclose(got, np.asarray(expected))


def test_masked_softmax_and_norm(torch):
    x, mask = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[True, False, True]])
    got = torch.masked.softmax(x, 1, mask=mask).numpy()
    np.testing.assert_allclose(got, [[1 / (1 + np.e**2), 0, np.e**2 / (1 + np.e**2)]], rtol=1e-6)
    assert torch.masked.norm(x, 2.0, 1, mask=mask).item() == pytest.approx(np.sqrt(10))
    assert torch.masked.median(x, 1, mask=mask).item() == 1


def test_addmm_activation(torch, device):
    bias, a, b = torch.randn(5), torch.randn(3, 4), torch.randn(4, 5)
    plain = torch.addmm(bias, a, b)
    torch.testing.assert_close(torch._addmm_activation(bias, a, b).cpu(), plain.relu().cpu())
    gelu = torch.nn.functional.gelu(plain, approximate="tanh")
    torch.testing.assert_close(bias._addmm_activation(a, b, use_gelu=True).cpu(), gelu.cpu())
    out = torch.empty(3, 5)
    assert torch._addmm_activation(bias, a, b, out=out) is out
    torch.testing.assert_close(out.cpu(), plain.relu().cpu())
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        torch._addmm_activation(bias, a, b, out=torch.empty(3, 5, dtype=torch.float64))
    with pytest.raises(NotImplementedError, match="derivative for _addmm_activation is not implemented"):
        x = a.clone().requires_grad_()
        torch._addmm_activation(bias, x, b).sum().backward()
        x.grad.tolist()


def test_nan_propagates(torch, device):
    """Activations propagate NaN, on the CPU and on GPUs, where our own kernels apply them."""
    bad = torch.tensor([[float("nan"), 1.0]])
    weight, bias = torch.ones(5, 2), torch.ones(5)
    assert torch.nn.functional.linear(bad, weight, bias).relu().isnan().all().item()
    fused = torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.ReLU()).to(bad.device)
    assert fused(bad).isnan().all().item()
    cpu = [t.cpu() for t in (bias, bad, weight.t())]
    assert torch._addmm_activation(*cpu).isnan().all().item() and torch._addmm_activation(*cpu, use_gelu=True).isnan().all().item()


def test_assert_close_compares_on_any_device_and_imaginary_parts(torch, device):
    x = torch.tensor([1 + 2j, 3 - 1j], device=device)
    torch.testing.assert_close(x, x.clone())
    torch.testing.assert_close(x.real, x.real.clone())
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_close(x, x.conj())


def test_copies_of_operators_and_dtypes_are_the_same_objects(torch):
    add = torch.ops.aten.add
    assert copy.deepcopy(add) is add and copy.deepcopy(add.Tensor) is add.Tensor
    assert isinstance(torch.complex32, torch.dtype) and copy.deepcopy(torch.complex32) is torch.complex32
