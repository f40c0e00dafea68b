"""Bilinear and the modules that change shapes."""

import pytest


def test_bilinear_module(torch):
    layer = torch.nn.Bilinear(2, 3, 4, device="cpu", dtype=torch.float64)
    assert (layer.in1_features, layer.in2_features, layer.out_features) == (2, 3, 4)
    assert layer.weight.dtype is layer.bias.dtype is torch.float64
    assert repr(layer) == "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)"
    before = layer.weight.detach().clone()
    layer.reset_parameters()
    assert not torch.equal(before, layer.weight) and layer.weight.abs().max() <= 0.5**0.5
    x, y = torch.ones(5, 2, dtype=torch.float64), torch.ones(5, 3, dtype=torch.float64)
    assert torch.allclose(layer(x, y), (layer.weight.sum((1, 2)) + layer.bias).expand(5, 4))
    with pytest.raises(ValueError, match="in1_features must be > 0"):
        torch.nn.Bilinear(0, 3, 4)


@pytest.mark.parametrize(
    "first, second, bias, message",
    [
        ((5, 2), (1, 3), 4, "input batch dimensions do not match at dim 0: got 5 and 1"),
        ((5, 2), (3,), 4, "input dimensions do not match: got 2 and 1"),
        ((5, 3), (5, 3), 4, "input1 size does not match weight size: got 3 but expected 2"),
        ((5, 2), (5, 1), 4, "input2 size does not match weight size: got 1 but expected 3"),
        ((5, 2), (5, 3), 1, "bias size does not match weight size: got 1 but expected 4"),
    ],
)
def test_bilinear_does_not_broadcast(torch, first, second, bias, message):
    with pytest.raises(RuntimeError, match=message):
        torch.nn.functional.bilinear(torch.ones(first), torch.ones(second), torch.ones(4, 2, 3), torch.ones(bias))


def test_repr_of_shape_modules(torch):
    nn = torch.nn
    assert repr(nn.Unflatten(1, (2, 2))) == "Unflatten(dim=1, unflattened_size=(2, 2))"
    assert repr(nn.PixelShuffle(2)) == "PixelShuffle(upscale_factor=2)"
    assert repr(nn.PixelUnshuffle(2)) == "PixelUnshuffle(downscale_factor=2)"
    with pytest.raises(TypeError, match="unflattened_size must be a tuple of ints"):
        nn.Unflatten(1, 4)
