"""Kernels with paths of their own for small, interior or narrow operands, compared with the general paths."""

from __future__ import annotations

import math

import numpy as np
import pytest


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("kernel, stride, padding, dilation, ceil_mode", [
    (3, 2, 1, 1, False), (2, None, 0, 1, True), (8, 1, 4, 3, False), (1, 3, 0, 1, False), (9, 2, 4, 1, True),
])  # fmt: skip
def test_max_pool1d_of_small_batches(torch, dtype, kernel, stride, padding, dilation, ceil_mode):
    x = torch.randn(2, 3, 40).to(getattr(torch, dtype))
    x[0, 1, 7] = math.nan
    x[1, 2] = -math.inf
    arguments = (kernel, stride, padding, dilation, ceil_mode)
    got = torch.nn.functional.max_pool1d(x, *arguments)
    want, _ = torch.nn.functional.max_pool1d(x, kernel, stride, padding, dilation, ceil_mode, return_indices=True)
    recorded = torch.nn.functional.max_pool1d(x.clone().requires_grad_(), *arguments)
    assert got.shape == want.shape and got.dtype == getattr(torch, dtype)
    for other in (want, recorded.detach()):
        np.testing.assert_array_equal(got.double().numpy(), other.double().numpy())


@pytest.mark.parametrize("arguments", [(50,), (3, 0), (3, 1, 2), (0,), (3, 1, 1, 0)])
def test_max_pool1d_reports_the_same_errors(torch, arguments):
    x = torch.randn(2, 3, 40)
    texts = []
    for each in (x, x.clone().requires_grad_()):
        with pytest.raises(RuntimeError) as raised:
            torch.nn.functional.max_pool1d(each, *arguments)
        texts.append(str(raised.value).splitlines()[0])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_grid_sample_reads_only_the_elements_around_a_position(torch, padding_mode, align_corners):
    x = torch.ones(1, 2, 5, 6)
    x[0, :, 0, 0] = math.inf
    x[0, :, 4, 5] = math.nan
    # Positions between elements that exclude the first and the last, and a NaN, in more samples than a block has.
    columns = torch.linspace(-0.3, 0.3, 300)
    grid = torch.stack([columns, columns.flip(0)], -1).reshape(1, 300, 1, 2)
    got = torch.nn.functional.grid_sample(x, grid, "bilinear", padding_mode, align_corners)
    np.testing.assert_allclose(got.numpy(), np.ones((1, 2, 300, 1)), rtol=1e-6)
    grid[0, 299, 0, 0] = math.nan
    got = torch.nn.functional.grid_sample(x, grid, "bilinear", padding_mode, align_corners)
    np.testing.assert_allclose(got[:, :, :299].numpy(), np.ones((1, 2, 299, 1)), rtol=1e-6)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_grid_sample_stays_inside_lengths_that_are_no_floats(torch, mode, padding_mode):
    length = 16777220  # float32 rounds the last position, 16777219, up to it
    x = torch.zeros(2, 1, length, 1)
    x[1] = 7
    grid = torch.zeros(2, 1, 2, 2)
    grid[..., 1] = 1
    got = torch.nn.functional.grid_sample(x, grid, mode, padding_mode, align_corners=True).flatten()
    assert got.tolist()[:2] == [0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_grid_sample_agrees_with_its_taps(torch, dtype):
    """The gradients use the positions and weights as tensors: the result is linear in the input."""
    x = torch.randn(2, 3, 9, 7, dtype=getattr(torch, dtype), requires_grad=True)
    grid = (torch.rand(2, 11, 31, 2, dtype=getattr(torch, dtype)) * 2.4 - 1.2).requires_grad_()
    result = torch.nn.functional.grid_sample(x, grid, align_corners=False)
    weights = torch.randn_like(result)
    (dx,) = torch.autograd.grad((result * weights).sum(), x)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    assert abs(float((dx * x).sum() - (result * weights).sum())) < tolerance * weights.numel()
    small = x[:1, :1].detach().double().requires_grad_()
    places = (torch.rand(1, 3, 2, 2, dtype=torch.float64) * 1.2 - 0.6).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: torch.nn.functional.grid_sample(a, b, align_corners=False), (small, places))
    assert torch.autograd.gradgradcheck(lambda a, b: torch.nn.functional.grid_sample(a, b, align_corners=False), (small, places))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("shape", [(3, 130), (70, 5, 65), (2, 1, 64), (4100, 3)])
@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_softmax_of_columns_in_16_bits(torch, dtype, shape, function):
    x = (torch.randn(*shape) * 4).to(getattr(torch, dtype))
    compute = getattr(torch, function)
    for dim in range(len(shape)):
        want = compute(x.float(), dim).to(getattr(torch, dtype))
        np.testing.assert_array_equal(compute(x, dim).float().numpy(), want.float().numpy())


def test_log_softmax_of_long_rows(torch):
    x = torch.randn(3, 1700)
    want = x.double() - x.double().exp().sum(1, keepdim=True).log()
    np.testing.assert_allclose(torch.log_softmax(x, 1).numpy(), want.numpy(), atol=2e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("count", [1, 3, 4, 9])
def test_nll_loss_without_ignored_targets(torch, reduction, count):
    x = torch.log_softmax(torch.randn(count, 5, dtype=torch.float64), 1)
    target = torch.arange(count) % 5
    target[count // 2] = -100
    kept = [i for i in range(count) if i != count // 2]
    values = [-float(x[i, int(target[i])]) for i in kept]
    want = sum(values) / (len(values) or math.nan) if reduction == "mean" else sum(values)
    got = float(torch.nn.functional.nll_loss(x, target, reduction=reduction))
    assert got == pytest.approx(want, rel=1e-12, nan_ok=True)
    assert math.copysign(1, float(torch.nn.functional.nll_loss(x[:1], target[:1] * 0 - 100, reduction="sum"))) == 1


@pytest.mark.parametrize("rows, length", [(3, 128), (130, 64), (5, 255), (129, 200), (7, 513)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16"])
def test_rows_with_operands_of_other_strides(torch, rows, length, dtype):
    table = (torch.arange(2 * rows * (length + 3)) % 251).reshape(2, rows, length + 3).to(getattr(torch, dtype))
    inside, column, row = table[:, :, 1 : length + 1], table[:, :, :1], table[0, 0, :length]
    exact = [t.to(torch.int64).numpy() for t in (inside, column, row)]
    for first, second in ((0, 1), (1, 0), (0, 2), (1, 2), (0, 0)):
        operands = (inside, column, row)
        got = operands[first] - operands[second]
        np.testing.assert_array_equal(got.to(torch.int64).numpy(), exact[first] - exact[second])
    np.testing.assert_array_equal((table[:, :, 1:] - table[:, :, :-1]).to(torch.int64).numpy(),
                                  np.diff(table.to(torch.int64).numpy()))  # fmt: skip


@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "int16", "complex64", "bool"])
def test_pixel_shuffle_of_views(torch, factor, dtype):
    shuffle, unshuffle = torch.nn.functional.pixel_shuffle, torch.nn.functional.pixel_unshuffle
    numbers = (torch.arange(2 * 2 * factor * factor * 3 * 5) % 7).to(getattr(torch, dtype))
    deep = numbers.reshape(3, 5, 2, 2 * factor * factor).permute(2, 3, 0, 1)
    large = shuffle(deep, factor)
    folded = deep.numpy().reshape(2, 2, factor, factor, 3, 5)
    want = folded.transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 3 * factor, 5 * factor)
    np.testing.assert_array_equal(large.numpy(), want)
    np.testing.assert_array_equal(unshuffle(large, factor).numpy(), deep.numpy())
    view = large.transpose(2, 3)
    np.testing.assert_array_equal(unshuffle(view, factor).numpy(), unshuffle(view.contiguous(), factor).numpy())
    large[0, 0, 0, 0] = 1 if dtype == "bool" else 9
    assert deep[0, 0, 0, 0].item() in (0, False)  # the result is a copy, also for the factor 1
