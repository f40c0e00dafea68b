"""Dropout of whole channels: which dimension counts as the channels, for each number of dimensions."""

import pytest

CHANNEL_DIMENSION = [
    # (the module, the input's number of dimensions, the number of dimensions before each channel's elements)
    ("Dropout1d", 2, 1), ("Dropout1d", 3, 2), ("Dropout2d", 2, 2), ("Dropout2d", 3, 2), ("Dropout2d", 4, 2),
    ("Dropout3d", 1, 1), ("Dropout3d", 2, 1), ("Dropout3d", 4, 1), ("Dropout3d", 5, 2), ("Dropout3d", 6, 1),
    ("FeatureAlphaDropout", 3, 2), ("AlphaDropout", 3, 3), ("Dropout", 3, 3),
]  # fmt: skip


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("name, ndim, before", CHANNEL_DIMENSION)
def test_dropout_draws_one_number_per_channel(torch, name, ndim, before, inplace):
    torch.manual_seed(0)
    x = torch.ones([6] * ndim)
    y = getattr(torch.nn, name)(0.5, inplace)(x)
    constant = [bool((y.amax(d) == y.amin(d)).all()) for d in range(ndim)]
    assert constant == [d >= before for d in range(ndim)]
    assert (y is x) is inplace


@pytest.mark.parametrize("name, ndims", [("dropout1d", (0, 1, 4, 5)), ("dropout2d", (0, 1)), ("feature_alpha_dropout", (1,))])
def test_dropout_of_too_few_or_too_many_dimensions(torch, name, ndims):
    for ndim in ndims:
        with pytest.raises(RuntimeError, match="2D or 3D input|at least 2 dimensions"):
            getattr(torch.nn.functional, name)(torch.ones([2] * ndim), 0.5, True)


def test_dropout3d_in_place_without_effect_does_not_write(torch):
    leaf = torch.ones(2, 3, requires_grad=True)
    assert torch.nn.functional.dropout3d(leaf, 0.5, False, True) is leaf
    assert torch.nn.functional.dropout3d(leaf, 0.0, True, True) is leaf
