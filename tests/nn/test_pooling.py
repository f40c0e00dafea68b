"""Pooling with indices, unpooling, embedding bags, and antialiased resampling."""

import numpy as np
import pytest


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_puts_values_back(torch, n):
    x = torch.randn(2, 3, *[4, 6, 8][:n])
    pool = getattr(torch.nn, f"MaxPool{n}d")(2, return_indices=True)
    values, places = pool(x)
    back = getattr(torch.nn, f"MaxUnpool{n}d")(2)(values, places)
    assert back.shape == x.shape
    kept = back.numpy() != 0
    np.testing.assert_array_equal(back.numpy()[kept], x.numpy()[kept])
    assert kept.sum() == values.numel()


def test_unpooling_to_a_size(torch):
    x = torch.arange(1.0, 10.0).reshape(1, 1, 9)
    values, places = torch.nn.functional.max_pool1d(x, 2, return_indices=True)
    assert torch.nn.functional.max_unpool1d(values, places, 2, output_size=x.shape).tolist() == [[[0, 2, 0, 4, 0, 6, 0, 8, 0]]]
    with pytest.raises(ValueError, match="invalid output_size"):
        torch.nn.functional.max_unpool1d(values, places, 2, output_size=(12,))


def test_adaptive_max_pooling(torch):
    x = torch.randn(2, 3, 4, 6, 5)
    result = torch.nn.AdaptiveMaxPool3d((2, 3, 1))(x)
    expected = x.numpy().reshape(2, 3, 2, 2, 3, 2, 5).max((3, 5, 6))[..., None]
    np.testing.assert_array_equal(result.numpy(), expected)
    lines = x[0, 0, :, :4, 0]
    values, places = torch.nn.AdaptiveMaxPool1d(2, return_indices=True)(lines)
    assert values.shape == (4, 2) and places.tolist() == (lines.reshape(4, 2, 2).argmax(2) + torch.tensor([0, 2])).tolist()


def test_lp_pooling_and_local_response_norm(torch):
    x = torch.rand(1, 2, 4, 4)
    result = torch.nn.LPPool2d(2, 2)(x).numpy()
    windows = x.numpy().reshape(1, 2, 2, 2, 2, 2)
    np.testing.assert_allclose(result, np.sqrt((windows**2).sum((3, 5))), rtol=1e-5)
    y = torch.nn.LocalResponseNorm(3, alpha=0.5, beta=1.0, k=2.0)(torch.ones(1, 4, 2, 2)).numpy()
    np.testing.assert_allclose(y[0, :, 0, 0], 1 / (2 + 0.5 * np.array([2, 3, 3, 2]) / 3), rtol=1e-6)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(torch, mode):
    table, index = torch.randn(6, 3), torch.tensor([1, 2, 4, 5, 4, 0])
    result = torch.nn.functional.embedding_bag(index, table, torch.tensor([0, 2, 2]), mode=mode)
    combine = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    rows = table.numpy()
    expected = [combine(rows[[1, 2]], 0), np.zeros(3), combine(rows[[4, 5, 4, 0]], 0)]
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)


def test_embedding_bags_with_weights_padding_and_gradients(torch):
    bag = torch.nn.EmbeddingBag(5, 2, mode="sum", padding_idx=0)
    index, weights = torch.tensor([[1, 0, 2], [3, 3, 0]]), torch.tensor([[1.0, 9.0, 2.0], [0.5, 0.5, 9.0]])
    result = bag(index, per_sample_weights=weights)
    rows = bag.weight.detach().numpy()
    np.testing.assert_allclose(result.detach().numpy(), [rows[1] + 2 * rows[2], rows[3]], rtol=1e-5)
    result.sum().backward()
    assert bag.weight.grad.tolist() == [[0, 0], [1, 1], [2, 2], [1, 1], [0, 0]]


def test_embedding_max_norm_and_scaled_gradients(torch):
    layer = torch.nn.Embedding(4, 3, max_norm=1.0, scale_grad_by_freq=True)
    torch.nn.init.constant_(layer.weight, 2.0)
    rows = layer(torch.tensor([[0, 2], [2, 2]]))
    np.testing.assert_allclose(rows.detach().norm(2, -1).numpy(), np.ones((2, 2)), rtol=1e-5)
    assert layer.weight[1].tolist() == [2, 2, 2]
    rows.sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), [[1] * 3, [0] * 3, [1] * 3, [0] * 3], rtol=1e-6)


def test_circular_padding(torch):
    x = torch.arange(4.0).reshape(1, 1, 4)
    assert torch.nn.CircularPad1d((1, 2))(x).tolist() == [[[3, 0, 1, 2, 3, 0, 1]]]


def test_antialiasing_averages_skipped_pixels(torch):
    line = torch.arange(8.0).reshape(1, 1, 1, 8).expand(1, 1, 8, 8)
    resize = torch.nn.functional.interpolate
    small = resize(line, size=(4, 4), mode="bilinear", antialias=True).numpy()[0, 0, 0]
    # A triangle filter of width 2 on either side of 2 i + 1: weights 1, 3, 3, 1; weights outside the input are
    # dropped.
    expected = [(3 * 0 + 3 * 1 + 1 * 2) / 7, (1 + 3 * 2 + 3 * 3 + 4) / 8, (3 + 3 * 4 + 3 * 5 + 6) / 8, (5 + 3 * 6 + 3 * 7) / 7]
    np.testing.assert_allclose(small, expected, rtol=1e-6)
    large = resize(line, size=(8, 16), mode="bilinear", antialias=True)
    np.testing.assert_allclose(large.numpy(), resize(line, size=(8, 16), mode="bilinear").numpy(), rtol=1e-5)
    assert resize(line, size=(3, 5), mode="bicubic", antialias=True).shape == (1, 1, 3, 5)


def test_identity_and_rotated_grids(torch):
    x = torch.rand(1, 2, 3, 4)
    F = torch.nn.functional
    grid = F.affine_grid(torch.tensor([[[1.0, 0, 0], [0, 1, 0]]]), [1, 2, 3, 4], align_corners=False)
    np.testing.assert_allclose(F.grid_sample(x, grid, align_corners=False).numpy(), x.numpy(), rtol=1e-5, atol=1e-6)
    turned = F.affine_grid(torch.tensor([[[-1.0, 0, 0], [0, -1, 0]]]), [1, 2, 3, 4], align_corners=True)
    np.testing.assert_allclose(F.grid_sample(x, turned, align_corners=True).numpy(), x.numpy()[:, :, ::-1, ::-1], rtol=1e-5, atol=1e-6)
