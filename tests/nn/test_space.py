"""Spatial layers: resampling, patches, transposed and three-dimensional convolutions."""

import numpy as np
import pytest


def image(torch, rows):
    return torch.tensor([[rows]])


def test_bilinear_upsampling_as_documented(torch):
    x = image(torch, [[1.0, 2.0], [3.0, 4.0]])
    row = [1.0, 1.25, 1.75, 2.0]
    expected = [[v + 2 * w for v in row] for w in (0, 0.25, 0.75, 1)]
    result = torch.nn.Upsample(scale_factor=2, mode="bilinear")(x)
    np.testing.assert_allclose(result.numpy()[0, 0], expected, rtol=1e-6)
    corners = torch.nn.UpsamplingBilinear2d(scale_factor=2)(x).numpy()[0, 0]
    np.testing.assert_allclose(corners, np.linspace(1, 2, 4) + 2 * np.linspace(0, 1, 4)[:, None], rtol=1e-6)


def test_nearest_by_size_and_by_factor(torch):
    x = image(torch, [[1.0, 2.0], [3.0, 4.0]])
    result = torch.nn.functional.interpolate(x, scale_factor=(2, 1.5))
    assert result.tolist() == [[[[1.0, 1.0, 2.0]] * 2 + [[3.0, 3.0, 4.0]] * 2]]
    assert torch.nn.functional.interpolate(x, size=3).shape == (1, 1, 3, 3)
    with pytest.raises(ValueError, match="only one of size or scale_factor should be defined"):
        torch.nn.functional.interpolate(x)


def test_bicubic_weighs_four_neighbours(torch):
    line = torch.arange(8.0).reshape(1, 1, 1, 8).expand(1, 1, 8, 8)
    wide = torch.nn.functional.interpolate(line, size=(8, 16), mode="bicubic").numpy()[0, 0, 0]
    # Position 1.75, between 1 and 2, with the cubic convolution kernel of parameter -0.75.
    weights = [-0.03515625, 0.26171875, 0.87890625, -0.10546875]
    np.testing.assert_allclose(wide[4], np.dot(weights, range(4)), rtol=1e-6)
    corners = torch.nn.functional.interpolate(line, size=(8, 15), mode="bicubic", align_corners=True)
    np.testing.assert_allclose(corners.numpy()[0, 0, 0, ::2], range(8), atol=1e-6)


def test_area_interpolation_is_a_mean(torch):
    line = torch.arange(8.0).reshape(1, 1, 1, 8).expand(1, 1, 8, 8)
    assert torch.nn.functional.interpolate(line, size=(1, 2), mode="area").tolist() == [[[[1.5, 5.5]]]]


def test_fold_of_unfold_counts_windows(torch):
    x = torch.rand(2, 3, 6, 5)
    fold, unfold = torch.nn.Fold((6, 5), 3, padding=1), torch.nn.Unfold(3, padding=1)
    counts = fold(unfold(torch.ones_like(x)))
    np.testing.assert_allclose(fold(unfold(x)).numpy(), (x * counts).numpy(), rtol=1e-5)
    assert counts.max().item() == 9 and counts.min().item() == 4


def test_unfold_times_weights_is_a_convolution(torch):
    layer = torch.nn.Conv2d(3, 4, 3, padding=1, bias=False)
    x = torch.rand(2, 3, 6, 5)
    columns = torch.nn.functional.unfold(x, 3, padding=1)
    product = (layer.weight.reshape(4, -1) @ columns).reshape(2, 4, 6, 5)
    np.testing.assert_allclose(product.detach().numpy(), layer(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_layers_of_three_dimensions(torch):
    x = torch.rand(2, 3, 4, 6, 5, requires_grad=True)
    net = torch.nn.Sequential(
        torch.nn.Conv3d(3, 4, 3, padding=1), torch.nn.MaxPool3d(2), torch.nn.ConvTranspose3d(4, 2, 2, stride=2),
        torch.nn.AvgPool3d(2), torch.nn.AdaptiveAvgPool3d(1),
    )  # fmt: skip
    y = net(x)
    assert y.shape == (2, 2, 1, 1, 1)
    y.sum().backward()
    assert x.grad.shape == x.shape and x.grad.abs().sum().item() > 0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_transposed_convolutions_accept_output_size(torch, n):
    down = getattr(torch.nn, f"Conv{n}d")(2, 3, 3, stride=2, padding=1)
    up = getattr(torch.nn, f"ConvTranspose{n}d")(3, 2, 3, stride=2, padding=1)
    x = torch.rand(1, 2, *[8, 7, 6][:n])
    assert up(down(x), output_size=x.shape).shape == x.shape


def test_adaptive_max_pooling_keeps_none_sizes(torch):
    x = torch.rand(1, 2, 4, 6)
    assert torch.nn.AdaptiveMaxPool2d((None, 2))(x).shape == (1, 2, 4, 2)
    values, places = torch.nn.functional.adaptive_max_pool2d(x, 1, return_indices=True)
    assert values.reshape(-1).tolist() == x.amax((2, 3)).reshape(-1).tolist()
    assert places.reshape(-1).tolist() == x.flatten(2).argmax(2).reshape(-1).tolist()


@pytest.mark.parametrize("call, sizes", [
    (lambda F, x: F.pixel_shuffle(x, 1), (1, 9, 2, 2)), (lambda F, x: F.pixel_shuffle(x, 2), (1, 4, 1, 1)),
    (lambda F, x: F.pixel_unshuffle(x, 1), (1, 9, 2, 2)), (lambda F, x: F.channel_shuffle(x, 1), (1, 4, 2, 2)),
])  # fmt: skip
def test_results_share_no_memory_with_the_input(torch, call, sizes):
    x = torch.ones(*sizes)
    call(torch.nn.functional, x).zero_()
    assert x.sum() == x.numel()
