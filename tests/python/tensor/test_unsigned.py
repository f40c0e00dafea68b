"""uint16, uint32 and uint64: the whole range, including values above int64's."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("device")

DTYPES = ("uint16", "uint32", "uint64")


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_and_back(torch, name):
    array = np.array([0, 1, np.iinfo(name).max], name)
    t = torch.tensor(array)
    assert t.dtype is getattr(torch, name) and not t.dtype.is_signed
    np.testing.assert_array_equal(t.cpu().numpy(), array)
    assert t.tolist() == array.tolist() and t[2].item() == int(array[2])
    assert torch.iinfo(t.dtype).max == np.iinfo(name).max and torch.iinfo(t.dtype).min == 0
    assert torch.arange(3, dtype=t.dtype).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", DTYPES)
def test_arithmetic_is_unsigned(torch, name):
    most = np.iinfo(name).max
    a, b = np.array([most, most - 1, 5, 7], name), np.array([2, most, 9, 3], name)
    s, t = torch.tensor(a), torch.tensor(b)
    with np.errstate(over="ignore"):
        for f in ("add", "subtract", "multiply", "floor_divide", "remainder", "maximum", "minimum", "bitwise_xor", "less", "greater_equal"):
            np.testing.assert_array_equal(getattr(torch, f)(s, t).cpu().numpy(), getattr(np, f)(a, b), err_msg=f)
        np.testing.assert_array_equal((s >> 1).cpu().numpy(), a >> 1)
        np.testing.assert_array_equal((-s).cpu().numpy(), np.negative(a))
    np.testing.assert_allclose((s / t).cpu().numpy(), (a / b).astype("float32"), rtol=1e-6)
    assert s.max().item() == most and s.argmin().item() == 2 and s.amin().item() == 5
    np.testing.assert_array_equal(s.sort().values.cpu().numpy(), np.sort(a))
    np.testing.assert_array_equal(s.to(torch.float64).cpu().numpy(), a.astype("float64"))
    np.testing.assert_array_equal(s.cummax(0).values.cpu().numpy(), np.maximum.accumulate(a))


def test_numbers_beyond_int64(torch):
    assert torch.full((2,), 2**63, dtype=torch.uint64).tolist() == [2**63] * 2
    assert (torch.tensor([1], dtype=torch.uint64) + (2**64 - 2)).item() == 2**64 - 1
    assert (torch.tensor([1.0]) * 2**63).item() == 2.0**63
    with pytest.raises(ValueError, match="Overflow when unpacking long"):
        torch.tensor([2**63])
    with pytest.raises(OverflowError, match="int too big to convert"):
        torch.full((1,), 2**64)


def test_promotion_with_floating_types_only(torch):
    x = torch.ones(2, dtype=torch.uint16)
    assert (x + 1).dtype is torch.uint16 and (x + 1.5).dtype is torch.float32
    assert (x + torch.ones(2, dtype=torch.float16)).dtype is torch.float16
    message = "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote UInt16 and Long"
    with pytest.raises(RuntimeError, match=message):
        x + torch.ones(2, dtype=torch.int64)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
def test_hash_uses_all_bits(torch, dtype):
    numbers = np.random.default_rng(2).standard_normal((3, 5)).astype(dtype)
    wide = numbers.astype("float64" if dtype.startswith("float") else "int64").view("uint64")
    assert torch.hash_tensor(torch.tensor(numbers)).item() == np.bitwise_xor.reduce(wide.reshape(-1))
    rows = torch.hash_tensor(torch.tensor(numbers), 1, keepdim=True)
    np.testing.assert_array_equal(rows.numpy(force=True), np.bitwise_xor.reduce(wide, 1, keepdims=True))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_scatter_reduce_without_the_input_itself(torch, name, reduce):
    top = int(np.iinfo(name).max)
    values = torch.tensor(np.array([top, 1, 2, top - 1], name))
    start = torch.tensor(np.array([5, 5], name))
    result = start.scatter_reduce(0, torch.tensor([0, 0, 1, 1]), values, reduce, include_self=False)
    assert result.tolist() == ([top, top - 1] if reduce == "amax" else [1, 2])
