"""Loops over elements, rows and lines at the sizes at which their implementation changes, compared with NumPy and single elements."""

from __future__ import annotations

import numpy as np
import pytest

import teletensor as torch
import teletensor.nn.functional as F
from teletensor import _C

pytestmark = pytest.mark.usefixtures("torch")


def same(result, expected):
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 31, 33, 511, 513, 1100])
def test_the_last_vector_of_a_loop_repeats_no_element(count):
    x, y = torch.randn(count), torch.randn(count)
    a, b = x.numpy(), y.numpy()
    same(x * y, a * b)
    same(x.clone().mul_(y), a * b)  # the result is an operand
    same(x - y, a - b)
    z = x.clone()
    z += z
    same(z, a + a)
    z = x.clone()
    z[1:] = z[1:].abs() + z[:-1].clone()
    same(z, np.concatenate([a[:1], np.abs(a[1:]) + a[:-1]]))


@pytest.mark.parametrize("sizes", [(3, 64), (5, 255), (2, 3, 300), (40, 1030), (1, 70), (0, 80)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16", "bool"])
def test_rows_of_broadcast_and_sliced_operands(sizes, dtype):
    make = lambda *s: (torch.randn(s) * 4).to(getattr(torch, dtype))  # noqa: E731
    x, row, column = make(*sizes), make(sizes[-1]), make(*sizes[:-1], 1)
    wide = make(*sizes[:-1], sizes[-1] + 9)
    plain = lambda t: t.to(torch.float64).numpy()  # noqa: E731
    largest = lambda a, b: torch.maximum(a, b)  # noqa: E731 - exact in every dtype
    for a, b in ((x, row), (x, column), (column, row), (x, wide[..., 4:-5]), (wide[..., 9:], wide[..., :-9]), (x, x.flip(0)),
                 (x.transpose(0, 1), column.transpose(0, 1))):  # fmt: skip
        same(largest(a, b).to(torch.float64), np.maximum(plain(a), plain(b)))
    out = torch.empty(*sizes[:-1], 2 * sizes[-1]).to(x.dtype)[..., ::2]
    torch.maximum(x, column, out=out)
    same(out.to(torch.float64), np.maximum(plain(x), plain(column)))


def test_a_long_row_is_read_from_the_middle():
    x, y = torch.randn(3, 70_001), torch.randn(3, 70_010)
    same(x * y[:, 5:-4], x.numpy() * y.numpy()[:, 5:-4])


def test_division_by_zero_at_the_end_of_a_row():
    x = torch.ones(4, 100, dtype=torch.int64)
    by = torch.ones(4, 105, dtype=torch.int64)[:, :100]
    by[3, 99] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.floor_divide(x, by).sum().item()


def test_bfloat16_selects_bits():
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    x = bits.view(torch.bfloat16)
    number = ~torch.isnan(x)
    word = bits.numpy().astype(np.uint16)
    as_words = lambda t: t.view(torch.int16).numpy().astype(np.uint16)  # noqa: E731
    mask = number.numpy()
    np.testing.assert_array_equal(as_words(-x)[mask], (word ^ 0x8000)[mask])
    np.testing.assert_array_equal(as_words(x.abs())[mask], (word & 0x7FFF)[mask])
    np.testing.assert_array_equal(as_words(torch.copysign(x, -x))[mask], (word ^ 0x8000)[mask])
    assert torch.isnan((-x)[~number]).all() and torch.isnan(x.abs()[~number]).all() and torch.isnan(F.relu(x)[~number]).all()
    # a number that bfloat16 does not have is rounded
    assert torch.maximum(torch.tensor([0.0], dtype=torch.bfloat16), torch.tensor(1.001)).item() == 1.0


@pytest.mark.parametrize("keys", [1, 2, 31, 32, 33, 100])
@pytest.mark.parametrize("dtype", ["float32", "int64", "float64", "int8"])
def test_short_rows_are_sorted(keys, dtype):
    x = (torch.randn(7, keys) * 9).to(getattr(torch, dtype))
    values, indices = torch.sort(x, dim=1, stable=True)
    order = np.argsort(x.numpy(), 1, kind="stable")
    same(indices, order)
    same(values, np.take_along_axis(x.numpy(), order, 1))
    same(torch.median(x, 1).values, np.sort(x.numpy(), 1)[:, (keys - 1) // 2])


def test_gather_reports_an_index_at_the_end_of_a_line():
    x, index = torch.randn(5, 40), torch.randint(0, 40, (5, 33))
    same(torch.gather(x, 1, index), np.take_along_axis(x.numpy(), index.numpy(), 1))
    index[4, 32] = 40
    with pytest.raises(IndexError, match="index 40 is out of bounds for dimension 1 with size 40"):
        torch.gather(x, 1, index).sum().item()


def test_rot90_has_transposed_strides():
    x = torch.randn(3, 5)
    for k in range(-3, 4):
        same(torch.rot90(x, k), np.rot90(x.numpy(), k))
    assert torch.rot90(x).stride() == (1, 5) and torch.rot90(x, 2).stride() == (5, 1)


@pytest.mark.parametrize("arguments", [
    dict(kernel_size=(1, 3), stride=(1, 2), padding=(0, 1)), dict(kernel_size=(2, 1), dilation=(3, 1)),
    dict(kernel_size=(1, 8), stride=1, dilation=(1, 2)), dict(kernel_size=(1, 2), ceil_mode=True, stride=(2, 3)),
    dict(kernel_size=(8, 1), padding=(4, 0)),
])  # fmt: skip
def test_max_pooling_without_positions_has_the_bits_of_that_with(arguments):
    x = torch.randn(2, 3, 9, 1100)
    x[:, :, ::2, ::3] = -0.0
    x[:, :, ::3, ::2] = 0.0
    x[0, 0, 4, 50:60] = float("nan")
    x[1, 1] = float("-inf")
    plain = F.max_pool2d(x, **arguments)
    values, _ = F.max_pool2d(x, **arguments, return_indices=True)
    same(plain.view(torch.int32), values.view(torch.int32).numpy())


def test_a_hostile_window_takes_no_time():
    x = torch.randn(1, 1, 2000, 4)
    width = 2**27  # of padding but for 4 elements; an element per step would take an hour
    assert F.max_pool2d(x, (1, width), stride=1, padding=(0, width // 2)).max().item() == x.max().item()
    result = _C.ops.max_pool_values(x, [1, width], [1, 1], [0, width // 2], [1, 1], False)
    assert result.max().item() == x.max().item()
