"""Wide convolutions are computed in pieces. Turned by 90 degrees they are not, and have the same results, infinities too."""

import numpy as np
import pytest

# width, kernel, stride, padding, dilation, groups
ROWS = [
    (2049, 3, 1, 1, 1, 1),
    (4133, 7, 1, 3, 1, 2),
    (6000, 5, 2, 2, 3, 1),
    (5000, 9, 1, 0, 1, 1),
    (2100, 3, 1, 40, 1, 1),
    (2300, 4, 3, 64, 2, 1),
    (500, 5, 1, 300, 1, 1),
    (40_000, 3, 11, 1, 1, 1),
]


def run(torch, x, w, b, g, turned, stride, padding, dilation, groups):
    x, w, b = (t.clone().requires_grad_() for t in (x, w, b))
    if turned:
        options = {"stride": (stride, 1), "padding": (padding, 0), "dilation": (dilation, 1), "groups": groups}
        y = torch.conv2d(x[..., None], w[..., None], b, **options).squeeze(-1)
    else:
        y = torch.conv1d(x, w, b, stride, padding, dilation, groups)
    y.backward(g)
    return [t.detach().numpy() for t in (y, x.grad, w.grad, b.grad)]


@pytest.mark.parametrize("special", [None, float("inf"), float("nan")], ids=str)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_equals_the_turned_convolution(torch, row, special):
    width, kernel, stride, padding, dilation, groups = row
    x, w, b = torch.randn(2, 4, width), torch.randn(6, 4 // groups, kernel), torch.randn(6)
    columns = (width + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    g = torch.randn(2, 6, columns)
    if special is not None:
        reads = range(0, width, max(1, width // 5))
        for i, at in enumerate((*reads, width - 1)):
            x[i % 2, i % 4, at] = special
        # Whether zeros of the padding are multiplied is not defined, so these columns read others too.
        g[0, 0, columns - 1 - padding // stride] = g[1, 1, columns // 2] = special
    results = [run(torch, x, w, b, g, turned, stride, padding, dilation, groups) for turned in (False, True)]
    for piecewise, whole in zip(*results, strict=True):
        np.testing.assert_allclose(piecewise, whole, rtol=2e-4, atol=2e-3)
