"""float8_e4m3fn and float8_e5m2: storage, conversion, and products of matrices."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import SIMULATED

pytestmark = pytest.mark.usefixtures("device")

FORMATS = {"float8_e4m3fn": (3, 7), "float8_e5m2": (2, 15)}  # mantissa bits, exponent bias
WORDS = {"float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2"}
NAMES = tuple(FORMATS)
OTHERS = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64")


def meanings(name: str) -> np.ndarray:
    """The value of each of the 256 bit patterns, by the format's definition."""
    mantissa, bias = FORMATS[name]
    bits = np.arange(256)
    exponent, fraction = (bits & 0x7F) >> mantissa, bits & (2**mantissa - 1)
    value = np.where(
        exponent == 0, fraction * 2.0 ** (1 - bias - mantissa), (fraction + 2**mantissa) * 2.0 ** (exponent - bias - mantissa)
    )
    if name == "float8_e4m3fn":
        value[[0x7F, 0xFF]] = np.nan
    else:
        value[(bits & 0x7F) > 0x7C] = np.nan
        value[[0x7C, 0xFC]] = np.inf
    return np.where(bits >= 128, -value, value)


def nearest(name: str, numbers: np.ndarray) -> np.ndarray:
    """The bit patterns of the nearest numbers, ties to even. e4m3fn has no infinity and saturates."""
    table, numbers = meanings(name)[:128], numbers.astype("float64")
    finite = table[np.isfinite(table)]
    middles = (finite[1:] + finite[:-1]) / 2
    size = np.abs(np.nan_to_num(numbers, nan=0.0, posinf=1e300, neginf=-1e300))
    below = np.searchsorted(middles, size, "left")  # the smaller neighbour of a midpoint
    bits = np.where(np.isin(size, middles) & (below % 2 == 1), below + 1, below)
    if name == "float8_e5m2":
        bits = np.where(size >= (finite[-1] + 65536) / 2, 0x7C, bits)
    bits = np.where(np.isnan(numbers), 0x7F, bits)
    return (bits | np.where(np.signbit(numbers), 0x80, 0)).astype("uint8")


def bits_of(torch, t) -> np.ndarray:
    """The bit patterns of a tensor's elements."""
    return t.contiguous().view(torch.uint8).cpu().numpy()


def expect_bits(torch, t, want: np.ndarray) -> None:
    """Compares bit patterns; NaNs of any sign are equal."""
    got, nan = bits_of(torch, t), t.float().isnan().cpu().numpy()
    np.testing.assert_array_equal(np.where(nan, 0x7F, got), np.where(want & 0x7F == 0x7F, 0x7F, want))


def table_of(torch, name: str):
    """A tensor of all 256 bit patterns."""
    return torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))


def numbers(name: str) -> np.ndarray:
    """Every number of the format, the midpoints between them, their float32 neighbours, and numbers that overflow."""
    own = meanings(name)
    own = np.sort(own[np.isfinite(own)]).astype("float32")
    middles = (own[1:] + own[:-1]) / 2
    around = [np.nextafter(middles, np.float32(s)) for s in (-np.inf, np.inf)]
    far = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 464, 465, 480, 1e9, 61439, 61440, 61441, -1e30, 3e38], "float32")
    return np.concatenate([own, middles, *around, far, -far])


@pytest.mark.parametrize("name", NAMES)
def test_every_pattern_in_every_dtype(torch, name):
    values, t = meanings(name), table_of(torch, name)
    for other in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        got = t.to(getattr(torch, other))
        got = (got.float() if other in ("float16", "bfloat16") else got).cpu().numpy()
        np.testing.assert_array_equal(got.real, values, err_msg=other)
        known = ~np.isnan(values)  # the sign of a NaN is unspecified
        np.testing.assert_array_equal(np.signbit(got.real)[known], np.arange(256)[known] >= 128, err_msg=other)
    finite = np.isfinite(values)
    for other in ("int8", "int16", "int32", "int64"):
        got = t.to(getattr(torch, other)).cpu().numpy()
        np.testing.assert_array_equal(got[finite], values[finite].astype("int32").astype(other), err_msg=other)
    np.testing.assert_array_equal(t.to(torch.bool).cpu().numpy(), values != 0)
    assert t[3].item() == values[3] and t[64:70].tolist() == values[64:70].tolist() and float(t[0x40]) == values[0x40]


@pytest.mark.parametrize("name", NAMES)
def test_casts_round_to_nearest_even(torch, name):
    x, dtype = numbers(name), getattr(torch, name)
    want = nearest(name, x)
    for t in (torch.tensor(x), torch.tensor(x).double(), torch.complex(torch.tensor(x), torch.ones(len(x)))):
        expect_bits(torch, t.to(dtype), want)
    spread = torch.stack([torch.tensor(x), torch.zeros(len(x))], 1)[:, 0]
    expect_bits(torch, spread.to(dtype), want)
    for half in ("float16", "bfloat16"):
        rounded = torch.tensor(x).to(getattr(torch, half))
        expect_bits(torch, rounded.to(dtype), nearest(name, rounded.float().cpu().numpy()))
    whole = np.array([0, 1, -1, 17, 100, 1000, -70000, 127], "int64")
    for other in ("int16", "int32", "int64"):
        np.testing.assert_array_equal(
            bits_of(torch, torch.tensor(whole).to(getattr(torch, other)).to(dtype)), nearest(name, whole.astype(other).astype("float32"))
        )
    assert torch.tensor([True, False]).to(dtype).tolist() == [1, 0]
    expect_bits(torch, torch.tensor(x.tolist(), dtype=dtype), want)


def test_casts_between_formats(torch):
    for name, other in (NAMES, NAMES[::-1]):
        got = bits_of(torch, table_of(torch, name).to(getattr(torch, other)))
        np.testing.assert_array_equal(got & 0x7F, nearest(other, meanings(name)) & 0x7F)
        numbers = ~np.isnan(meanings(name))
        np.testing.assert_array_equal((got & 0x80)[numbers], (np.arange(256) & 0x80)[numbers])


@pytest.mark.parametrize("name", NAMES)
def test_indexing_and_joining(torch, name):
    dtype = getattr(torch, name)
    x = np.arange(24, dtype="float32").reshape(4, 6) / 4 - 3
    t = torch.tensor(x).to(dtype)
    values = t.float().cpu().numpy()
    index, mask = torch.tensor([3, 0]), torch.tensor(x > 0)
    same = {
        "clone": (t.clone(), values), "t": (t.t().contiguous(), values.T), "view": (t.view(6, 4), values.reshape(6, 4)),
        "slice": (t[1:, ::2].clone(), values[1:, ::2]), "select": (t[2], values[2]), "expand": (t[0].expand(2, 6), values[[0, 0]]),
        "index": (t[index], values[[3, 0]]), "index_select": (t.index_select(0, index), values[[3, 0]]),
        "mask": (t[mask], values[x > 0]), "cat": (torch.cat([t, t], 1), np.concatenate([values, values], 1)),
        "stack": (torch.stack([t, t]), np.stack([values, values])), "flip": (t.flip(0), values[::-1]),
        "roll": (t.roll(1, 0), np.roll(values, 1, 0)), "repeat": (t.repeat(1, 2), np.tile(values, (1, 2))),
        "where": (torch.where(mask, t, t.flip(1)), np.where(x > 0, values, values[:, ::-1])),
        "pad": (torch.nn.functional.pad(t, (1, 2)), np.pad(values, ((0, 0), (1, 2)))),
        "zeros_like": (torch.zeros_like(t), 0 * values), "full_like": (torch.full_like(t, 1.5), 0 * values + 1.5),
        "new_ones": (t.new_ones(2), np.ones(2)), "eye": (torch.eye(2, dtype=dtype), np.eye(2)),
        "diag": (t.diag(), np.diag(values)), "chunk": (t.chunk(2, 1)[1].contiguous(), values[:, 3:]),
    }  # fmt: skip
    for what, (got, want) in same.items():
        assert got.dtype is dtype, what
        np.testing.assert_array_equal(got.float().cpu().numpy(), want, err_msg=what)
    assert (t == t).all().item() and not (t != t).any().item() and torch.equal(t, t.clone())
    np.testing.assert_array_equal((t == 1.5).cpu().numpy(), values == 1.5)
    np.testing.assert_array_equal((t == t.flip(0)).cpu().numpy(), values == values[::-1])
    special = table_of(torch, name)
    for ask in ("isnan", "isinf", "isfinite"):
        np.testing.assert_array_equal(getattr(torch, ask)(special).cpu().numpy(), getattr(np, ask)(meanings(name)), err_msg=ask)


@pytest.mark.parametrize("name", NAMES)
def test_writing_in_place(torch, name):
    dtype = getattr(torch, name)
    t = torch.zeros(3, 4, dtype=dtype)
    t[1] = 2.0
    t[:, 0] = torch.tensor([1e9, 0.3, -7.0])
    t[torch.tensor([2, 0]), torch.tensor([3, 3])] = torch.tensor([5.0, 6.0]).to(dtype)
    largest = torch.finfo(dtype).max if name == "float8_e4m3fn" else np.inf
    assert t.tolist() == [[largest, 0, 0, 6], [0.3125, 2, 2, 2], [-7, 0, 0, 5]]
    assert t.fill_(3).tolist() == [[3] * 4] * 3 and t.zero_().tolist() == [[0] * 4] * 3
    t.copy_(torch.full((4,), -0.5, dtype=torch.float64))
    assert t.tolist() == [[-0.5] * 4] * 3
    wide = torch.zeros(3, 4).copy_(t)
    assert wide.tolist() == [[-0.5] * 4] * 3
    assert torch.add(torch.ones(2), 0.06, out=torch.zeros(2, dtype=dtype)).tolist() == [1, 1]


@pytest.mark.parametrize("name", NAMES)
def test_arithmetic_is_not_implemented(torch, name):
    dtype, word = getattr(torch, name), WORDS[name]
    t = torch.ones(2, 2, dtype=dtype)
    refused = {
        "add": lambda: t + t, "add a number": lambda: t + 1, "in place": lambda: t.add_(t), "negate": lambda: -t,
        "less": lambda: t < t, "sum": lambda: t.sum(), "max": lambda: t.max(), "exp": lambda: t.exp(), "sort": lambda: t.sort(),
        "relu": lambda: torch.relu(t), "gather": lambda: t.gather(0, torch.zeros(1, 2, dtype=torch.int64)),
        "tril": lambda: t.tril(), "masked_fill": lambda: t.masked_fill(t == 1, 0), "randn": lambda: torch.randn(2, dtype=dtype),
        "arange": lambda: torch.arange(3, dtype=dtype), "softmax": lambda: t.softmax(0), "matmul": lambda: t @ t,
        "accumulate": lambda: t.index_put((torch.tensor([0]),), t[:1], accumulate=True).tolist(),
    }  # fmt: skip
    for what, call in refused.items():
        with pytest.raises(NotImplementedError, match="not implemented for"):
            call()
            pytest.fail(what)
    with pytest.raises(NotImplementedError, match=f"not implemented for '{word}'"):
        t + t


@pytest.mark.parametrize("name", NAMES)
def test_promotion_is_rejected(torch, name):
    dtype, word = getattr(torch, name), WORDS[name]
    assert torch.promote_types(dtype, dtype) is dtype and torch.result_type(torch.ones(2, dtype=dtype), 1.5) is dtype
    for other, theirs in ((torch.float32, "Float"), (torch.bool, "Bool"), (torch.uint16, "UInt16")):
        with pytest.raises(RuntimeError, match=f"Promotion for Float8 Types is not supported, attempted to promote {word} and {theirs}"):
            torch.promote_types(dtype, other)
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
        torch.ones(2, dtype=dtype) + torch.ones(2)
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
        torch.cat([torch.ones(2, dtype=dtype), torch.ones(2)])
    with pytest.raises(RuntimeError, match=f"Unknown Complex ScalarType for {word}"):
        dtype.to_complex()
    assert torch.can_cast(dtype, torch.float16) and torch.can_cast(torch.float32, dtype) and not torch.can_cast(dtype, torch.int32)


@pytest.mark.parametrize("name", NAMES)
def test_dtype_properties(torch, name):
    dtype = getattr(torch, name)
    t = torch.tensor([0.5, 1.25], dtype=dtype)
    assert repr(dtype) == f"torch.{name}" and dtype.is_floating_point and dtype.is_signed and not dtype.is_complex
    assert (t.element_size(), t.itemsize, dtype.itemsize, t.is_floating_point()) == (1, 1, 1, True)
    assert f"dtype=torch.{name}" in repr(t) and "[0.5000, 1.2500]" in repr(t)
    limits, mantissa = torch.finfo(dtype), FORMATS[name][0]
    values = meanings(name)
    assert limits.bits == 8 and limits.max == values[np.isfinite(values)].max() and limits.min == -limits.max
    assert limits.eps == 2.0**-mantissa and limits.tiny == limits.smallest_normal == 2.0 ** (1 - FORMATS[name][1])
    assert limits.resolution == 1
    with pytest.raises(TypeError, match=f"Got unsupported ScalarType {WORDS[name]}"):
        t.cpu().numpy()
    with pytest.raises(BufferError, match=name):
        t.cpu().__dlpack__()
    with pytest.raises(TypeError):
        torch.set_default_dtype(dtype)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_pass_through_casts(torch, name):
    x = torch.tensor([0.3, 1.0, -2.2], requires_grad=True)
    (x.to(getattr(torch, name)).float() * torch.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert x.grad.dtype is torch.float32 and x.grad.tolist() == [1, 2, 4]


@pytest.mark.parametrize("name", NAMES)
def test_saving_and_loading(torch, name, tmp_path):
    t = table_of(torch, name)
    torch.save({"w": t}, tmp_path / "w.tt")
    loaded = torch.load(tmp_path / "w.tt")["w"]
    assert loaded.dtype is t.dtype and bits_of(torch, loaded).tolist() == list(range(256))


# ---- torch._scaled_mm


def matrices(torch, left: str = "float8_e4m3fn", right: str = "float8_e4m3fn", m: int = 5, k: int = 32, n: int = 16):
    """(input, column-major mat2), and their values."""
    rng = np.random.default_rng(m + k)
    a = torch.tensor(rng.standard_normal((m, k), "float32")).to(getattr(torch, left))
    b = torch.tensor(rng.standard_normal((n, k), "float32")).to(getattr(torch, right)).t()
    return a, b, a.float().cpu().numpy().astype("float64"), b.float().cpu().numpy().astype("float64")


TOLERANCES = {"float32": 1e-6, "float16": 2e-3, "bfloat16": 1e-2, "float8_e4m3fn": 0.07, "float8_e5m2": 0.13}


def close(torch, got, want: np.ndarray, out: str) -> None:
    assert got.dtype is getattr(torch, out) and got.is_contiguous()
    relative, absolute = TOLERANCES[out], 1e-5 if out == "float32" else 2e-3
    if got.is_cuda and not SIMULATED:  # tensor cores of compute capability 9.0 add products with about 13 bits
        relative, absolute = max(relative, 1e-3), 5e-3
    np.testing.assert_allclose(got.float().cpu().numpy(), want, rtol=relative, atol=absolute)


@pytest.mark.parametrize("out", TOLERANCES)
@pytest.mark.parametrize(("left", "right"), [(NAMES[0], NAMES[0]), (NAMES[1], NAMES[0]), (NAMES[0], NAMES[1])])
def test_scaled_products(torch, left, right, out):
    a, b, x, y = matrices(torch, left, right)
    one, half, three = torch.tensor(1.0), torch.tensor(0.5), torch.tensor([[3.0]])
    dtype = getattr(torch, out)
    close(torch, torch._scaled_mm(a, b, one, one, out_dtype=dtype), x @ y, out)
    close(torch, torch._scaled_mm(a, b, half, half, out_dtype=dtype, use_fast_accum=True), x @ y / 4, out)
    close(torch, torch._scaled_mm(a, b, half.reshape(1, 1), three, out_dtype=dtype), x @ y * 1.5, out)
    if out != "float32":
        bias = torch.arange(16).to(torch.float16 if out == "float16" else torch.bfloat16)
        close(torch, torch._scaled_mm(a, b, half, half, bias=bias, out_dtype=dtype), x @ y / 4 + np.arange(16), out)
    if out.startswith("float8"):
        close(torch, torch._scaled_mm(a, b, half, half, scale_result=half, out_dtype=dtype), x @ y / 8, out)
    rows, columns = np.linspace(0.1, 2, 5, dtype="float32")[:, None], np.linspace(-1, 1, 16, dtype="float32")[None]
    got = torch._scaled_mm(a, b, torch.tensor(rows), torch.tensor(columns), out_dtype=dtype)
    close(torch, got, x @ y * rows * columns, out)
    assert torch._scaled_mm(a, b, one, one).dtype is a.dtype


def test_scaled_products_of_empty_or_strided_matrices(torch):
    a, b, x, y = matrices(torch)
    one = torch.tensor(1.0)
    assert torch._scaled_mm(a[:0], b, one, one).shape == (0, 16)
    assert torch._scaled_mm(a[:, :0], b[:0], one, one, out_dtype=torch.float32).tolist() == [[0.0] * 16] * 5
    wide = torch.cat([a, a], 1)
    close(torch, torch._scaled_mm(wide[:, 3:35], b, one, one, out_dtype=torch.float32), np.roll(x, -3, 1) @ y, "float32")
    out = torch.zeros(81, dtype=a.dtype)[1:].view(5, 16)  # without the alignment that libraries require
    assert torch._scaled_mm(a, b, one, one, out=out) is out
    close(torch, out, x @ y, "float8_e4m3fn")
    big = torch.full((16, 16), 448.0).to(a.dtype)
    assert torch._scaled_mm(big, big.t(), one, one)[0, 0].item() == 448  # overflow saturates


def test_invalid_scaled_products_are_rejected(torch):
    a, b, _, _ = matrices(torch)
    one, many = torch.tensor(1.0), torch.ones(2)
    S = torch._scaled_mm  # noqa: N806 - used often, hence short
    refused = [
        (RuntimeError, "mat1 must be a matrix", lambda: S(a[0], b, one, one)),
        (RuntimeError, "mat2 must be a matrix", lambda: S(a, b[:, 0], one, one)),
        (RuntimeError, r"mat_a and mat_b shapes cannot be multiplied \(5x32 and 16x16\)", lambda: S(a, b[:16], one, one)),
        (ValueError, "Invalid scaling configuration", lambda: S(a.float(), b.float(), one, one)),
        (ValueError, "Invalid scaling configuration", lambda: S(a, b, one.double(), one)),
        (ValueError, "Invalid scaling configuration", lambda: S(a, b, many, one)),
        (ValueError, "Invalid scaling configuration", lambda: S(a, b, torch.ones(5, 1), one)),
        (ValueError, "Invalid scaling configuration", lambda: S(a, b, torch.ones(1, 5), torch.ones(16, 1))),
        (RuntimeError, "Bias must be size 16 but got 2", lambda: S(a, b, one, one, bias=many)),
        (RuntimeError, "Bias must be Float32 or BFloat16 or Half, but got Int", lambda: S(a, b, one, one, bias=torch.arange(16).int())),
        (RuntimeError, "scale_result must be a float scalar", lambda: S(a, b, one, one, scale_result=many)),
        (NotImplementedError, "not implemented for 'Int'", lambda: S(a, b, one, one, out_dtype=torch.int32)),
    ]  # fmt: skip
    for kind, words, call in refused:
        with pytest.raises(kind, match=words):
            call()
    x = a.float().requires_grad_()
    with pytest.raises(NotImplementedError, match="derivative for _scaled_mm is not implemented"):
        S(x.to(a.dtype), b, one, one, out_dtype=torch.float32).sum().backward()
        x.grad.tolist()


def test_gpu_supports_layouts_of_its_library(torch, device):
    a, b, _, _ = matrices(torch)
    one, f32 = torch.tensor(1.0), torch.float32
    e5m2, bias = torch.float8_e5m2, torch.ones(16)
    S, half = torch._scaled_mm, bias.half()  # noqa: N806
    refused = [
        (r"Expected trailing dimension of mat1 to be divisible by 16 but got mat1 shape: \(5x17\)", lambda: S(a[:, :17], b[:17], one, one)),
        (r"mat2 shape \(32x3\) must be divisible by 16", lambda: S(a, b[:, :3], one, one)),
        ("Multiplication of two Float8_e5m2 matrices is not supported", lambda: S(a.to(e5m2), b.to(e5m2), one, one)),
        ("Only multiplication of row-major and column-major matrices", lambda: S(a, b.contiguous(), one, one)),
        ("Bias is not supported when out_dtype is set to Float32", lambda: S(a, b, one, one, bias=bias, out_dtype=f32)),
        ("Bias must be BFloat16 or Half, but got Float", lambda: S(a, b, one, one, bias=bias)),
        ("Bias must be BFloat16 to compute BFloat16 output, but got Half", lambda: S(a, b, one, one, bias=half, out_dtype=torch.bfloat16)),
    ]  # fmt: skip
    for words, call in refused:
        if str(a.device) == "cpu":
            assert call().dim() == 2
            continue
        with pytest.raises(RuntimeError, match=words):
            call()
