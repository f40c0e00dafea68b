"""Products of 8-bit floats whose scales are those of blocks: torch._scaled_mm and torch.nn.functional.scaled_mm.

PyTorch computes them on GPUs only; the expected values are those of the definition in float64.
"""

import numpy as np
import pytest

SIZES = [(5, 300, 7), (200, 256, 130), (1, 129, 1), (3, 33, 5), (130, 32, 260), (0, 128, 4), (130, 0, 4)]


def parts(size: int, block: int) -> int:
    return -(-size // block)


def operands(torch, m: int, k: int, n: int):
    rng = np.random.default_rng(m * k + n)
    a = torch.tensor(rng.standard_normal((m, k), "float32")).to(torch.float8_e4m3fn)
    b = torch.tensor(rng.standard_normal((n, k), "float32")).to(torch.float8_e5m2)
    return a, b.t(), rng


def scales(torch, rng, *size: int):
    return torch.tensor(rng.uniform(0.1, 2, size).astype("float32"))


def defined(a, b, scale_a, scale_b, block: int) -> np.ndarray:
    """The product in float64; scales have a row per row of a, or column of b, or per 128 of them."""

    def scaled(matrix, scale):
        values, s = matrix.float().numpy().astype("float64"), scale.numpy().astype("float64")
        s = np.repeat(s, block, 1)[:, : values.shape[1]]
        return values * (s if s.shape[0] == values.shape[0] else np.repeat(s, 128, 0)[: values.shape[0]])

    return scaled(a, scale_a) @ scaled(b.t(), scale_b).T


def close(found, expected: np.ndarray) -> None:
    assert tuple(found.shape) == expected.shape
    np.testing.assert_allclose(found.float().numpy(), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_blocks_of_128(torch, m, k, n):
    F, S = torch.nn.functional, torch.nn.functional.ScalingType  # noqa: N806
    a, b, rng = operands(torch, m, k, n)
    blocks = parts(k, 128)
    rows, columns = scales(torch, rng, m, blocks), scales(torch, rng, n, blocks)
    tiles_a, tiles_b = scales(torch, rng, parts(m, 128), blocks), scales(torch, rng, parts(n, 128), blocks)
    lines, tiles, bias = S.BlockWise1x128, S.BlockWise128x128, torch.arange(n).float()
    padded = torch.cat([tiles_a.t(), torch.full((-blocks % 4, tiles_a.shape[0]), float("nan"))])  # PyTorch's padding is not read
    expected = defined(a, b, rows, columns, 128)
    close(F.scaled_mm(a, b, rows, lines, columns, lines, output_dtype=torch.float32), expected)
    column_major = rows.t().contiguous().t()
    close(F.scaled_mm(a, b, [column_major], [lines], [columns], [lines], output_dtype=torch.float32), expected)
    close(torch._scaled_mm(a, b, rows, columns.t(), out_dtype=torch.float32), expected)
    found = F.scaled_mm(a, b, rows, lines, tiles_b.t(), tiles, bias=bias, output_dtype=torch.float32)
    close(found, defined(a, b, rows, tiles_b, 128) + bias.numpy())
    close(F.scaled_mm(a, b, padded, tiles, columns, lines, output_dtype=torch.float32), defined(a, b, tiles_a, columns, 128))
    assert F.scaled_mm(a, b, rows, lines, columns, lines).dtype is torch.bfloat16


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_blocks_of_32_with_exponents(torch, m, k, n):
    F, S, W = torch.nn.functional, torch.nn.functional.ScalingType.BlockWise1x32, torch.nn.functional.SwizzleType  # noqa: N806
    a, b, rng = operands(torch, m, k, n)
    blocks = parts(k, 32)

    def bytes_of(lines):
        return torch.tensor(rng.integers(120, 134, (lines, blocks)).astype("uint8"))

    def swizzled(scale):
        """PyTorch's order: tiles of 128x4, each as 32 rows of 4x4."""
        rows, columns = parts(scale.shape[0], 128), parts(blocks, 4)
        full = np.zeros((rows * 128, columns * 4), "uint8")
        full[: scale.shape[0], :blocks] = scale.numpy()
        return torch.tensor(full.reshape(rows, 4, 32, columns, 4).transpose(0, 3, 2, 1, 4).reshape(-1).copy())

    ea, eb = bytes_of(m), bytes_of(n)
    expected = defined(a, b, 2.0 ** (ea.float() - 127), 2.0 ** (eb.float() - 127), 32)
    close(F.scaled_mm(a, b, ea, S, eb, S, output_dtype=torch.float32), expected)
    order = W.SWIZZLE_32_4_4
    close(F.scaled_mm(a, b, swizzled(ea), S, swizzled(eb), S, order, order, output_dtype=torch.float32), expected)
    floats = [2.0 ** (e.float() - 127) for e in (ea, eb)]
    close(torch._scaled_mm(a, b, floats[0], floats[1].t(), out_dtype=torch.float32), expected)


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_products_of_scaled_matrices(torch, m, k, n):
    """What scaled_mm computes on GPUs."""
    from teletensor.nn._functional_names import _multiplied_blocks

    a, b, rng = operands(torch, m, k, n)
    blocks, bias = parts(k, 128), torch.arange(n).float()
    rows, tiles = scales(torch, rng, m, blocks), scales(torch, rng, parts(n, 128), blocks)
    found = _multiplied_blocks(a, b, rows, tiles, 128, bias, torch.float32)
    close(found, defined(a, b, rows, tiles, 128) + bias.numpy())
    small = scales(torch, rng, m, parts(k, 32)), scales(torch, rng, n, parts(k, 32))
    close(_multiplied_blocks(a, b, *small, 32, None, torch.float32), defined(a, b, *small, 32))


def test_first_and_last_exponent(torch):
    F, S = torch.nn.functional, torch.nn.functional.ScalingType.BlockWise1x32  # noqa: N806
    a = torch.full((3, 64), 2.0).to(torch.float8_e4m3fn)

    def bytes_of(*exponents):
        return torch.tensor([[e, e] for e in exponents], dtype=torch.uint8)

    def product(one):
        found = F.scaled_mm(a, a[:1].t(), bytes_of(0, 255, 254), S, bytes_of(one), S, output_dtype=torch.float32)
        return found.flatten().tolist()

    first, not_a_number, last = product(127)
    assert first == 2.0**-119 and not_a_number != not_a_number and last == float("inf")
    assert product(0)[2] == 2.0**8  # 2**127 * 2**-127


def test_results_of_8_bits_are_scaled_and_saturate(torch):
    a, b, rng = operands(torch, 4, 256, 16)
    rows, columns = scales(torch, rng, 4, 2), scales(torch, rng, 2, 16)
    half = torch.tensor(0.5)
    whole = torch._scaled_mm(a, b, rows, columns, out_dtype=torch.float32)
    found = torch._scaled_mm(a, b, rows, columns, scale_result=half, out_dtype=torch.float8_e4m3fn)
    assert torch.equal(found.float(), (whole * half).clamp(-448, 448).to(torch.float8_e4m3fn).float())


def test_invalid_scales_are_rejected(torch):
    F, S = torch.nn.functional, torch.nn.functional.ScalingType  # noqa: N806
    a, b, _ = operands(torch, 130, 300, 7)
    ones, lines, tiles = torch.ones, S.BlockWise1x128, S.BlockWise128x128
    for scale_a, scale_b in [
        (ones(130, 2), ones(3, 7)), (ones(130, 3), ones(7, 3)), (ones(2, 3), ones(3, 1)), (ones(130, 3), ones(3, 2)), (ones(130), ones(7)),
        (ones(130, 10), ones(3, 7)), (ones(130, 3).double(), ones(3, 7)), (ones(130, 3), ones(())), (ones(130, 3, 1), ones(3, 7)),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match="Invalid scaling configuration"):
            torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.float32)
    rows, columns = ones(130, 3), ones(7, 3)
    for error, words, call in [
        (ValueError, "scale_a of shape", lambda: F.scaled_mm(a, b, ones(130, 2), lines, columns, lines)),
        (ValueError, "scale_b of shape", lambda: F.scaled_mm(a, b, rows, lines, columns.t(), lines)),
        (ValueError, "scale_a of float32", lambda: F.scaled_mm(a, b, rows.double(), lines, columns, lines)),
        (ValueError, "scale_b of shape", lambda: F.scaled_mm(a, b, rows, lines, ones(1, 3), tiles)),
        (ValueError, "unsupported recipe", lambda: F.scaled_mm(a, b, ones(3, 2), tiles, ones(3, 1), tiles)),
        (ValueError, "unsupported recipe", lambda: F.scaled_mm(a, b, rows, lines, ones(1, 7), S.RowWise)),
        (ValueError, "bytes of float8_e8m0fnu", lambda: F.scaled_mm(a, b, ones(130, 10), S.BlockWise1x32, ones(7, 10), S.BlockWise1x32)),
        (NotImplementedError, "4-bit", lambda: F.scaled_mm(a, b, rows, S.BlockWise1x16, columns, S.BlockWise1x16)),
        (NotImplementedError, "NO_SWIZZLE", lambda: F.scaled_mm(a, b, rows, lines, columns, lines, F.SwizzleType.SWIZZLE_32_4_4)),
        (RuntimeError, "cannot be multiplied", lambda: F.scaled_mm(a[:, :299], b, rows, lines, columns, lines)),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            call()


def test_exported_products_have_one_operator(torch):
    class Product(torch.nn.Module):
        def forward(self, x, y, rows, columns):
            return torch._scaled_mm(x, y, rows, columns, out_dtype=torch.float32)

    a, b, rng = operands(torch, 4, 256, 16)
    arguments = (a, b, scales(torch, rng, 4, 2), scales(torch, rng, 2, 16))
    program = torch.export.export(Product(), arguments)
    assert "_scaled_mm" in program.graph_module.code
    assert torch.equal(program.module()(*arguments), torch._scaled_mm(*arguments, out_dtype=torch.float32))
    shapes = torch._scaled_mm(*(t.to("meta") for t in arguments), out_dtype=torch.float32)
    assert tuple(shapes.shape) == (4, 16) and shapes.device.type == "meta"


def test_common_dimension_without_results(torch):
    """Empty results need no memory, and no time, whatever the size of the common dimension."""
    k = 2**40
    one, scale = torch.ones(1, 1).to(torch.float8_e4m3fn), torch.ones(1, 1)
    a, b = one.expand(1, k)[:0], one.expand(k, 1)[:, :0]
    found = torch._scaled_mm(a, b, scale.expand(1, k // 128)[:0], scale.expand(k // 128, 1)[:, :0], out_dtype=torch.float32)
    assert found.tolist() == []
