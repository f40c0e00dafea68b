"""Convolution modules: string paddings, padding modes, output sizes and invalid arguments."""

import pytest

MODES = ("zeros", "reflect", "replicate", "circular")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding, around", [("same", (1, 1, 0, 1)), ("valid", (0, 0, 0, 0)), ((1, 0), (0, 0, 1, 1))])
def test_padding_mode_pads_before_the_convolution(torch, mode, padding, around):
    x = torch.arange(60.0).reshape(1, 2, 5, 6)
    conv = torch.nn.Conv2d(2, 3, (2, 3), padding=padding, padding_mode=mode)
    padded = torch.nn.functional.pad(x, list(around), "constant" if mode == "zeros" else mode)
    assert torch.allclose(conv(x), torch.nn.functional.conv2d(padded, conv.weight, conv.bias))


def test_same_padding_of_each_dimension(torch):
    same = torch.nn.Conv3d(1, 1, (2, 3, 4), padding="same", padding_mode="circular", dilation=(1, 2, 1))
    assert same(torch.ones(1, 5, 6, 7)).shape == (1, 5, 6, 7)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"padding": "some"}, "Invalid padding string 'some'"),
        ({"padding": "same", "stride": (1, 2)}, "padding='same' is not supported for strided convolutions"),
        ({"padding_mode": "constant"}, "padding_mode must be one of"),
        ({"groups": 0}, "groups must be a positive integer"),
        ({"groups": 3}, "in_channels must be divisible by groups"),
        ({"groups": 4}, "out_channels must be divisible by groups"),
    ],
)
def test_invalid_arguments_are_rejected_by_the_constructor(torch, options, message):
    with pytest.raises(ValueError, match=message):
        torch.nn.Conv2d(4, 6, 3, **options)


def test_repr_contains_every_option(torch):
    nn = torch.nn
    conv = nn.Conv1d(2, 2, 3, padding="valid", bias=False, padding_mode="reflect")
    assert "padding=valid, bias=False, padding_mode=reflect" in repr(conv)
    assert "output_padding=(1,)" in repr(nn.ConvTranspose1d(2, 2, 3, stride=2, output_padding=1))


def test_output_size_of_a_transposed_convolution(torch):
    conv, x = torch.nn.ConvTranspose2d(2, 2, 3, stride=2, dilation=4), torch.ones(1, 2, 5, 5)
    assert conv(x, output_size=[17, 18]).shape == conv(x, output_size=(1, 2, 17, 18)).shape == (1, 2, 17, 18)
    for size in ([19, 17], [17, 16]):
        with pytest.raises(ValueError, match="valid sizes range from"):
            conv(x, output_size=size)
    for size in ([17], [2, 17, 17]):
        with pytest.raises(ValueError, match="output_size must have 2 or 4 elements"):
            conv(x, output_size=size)
