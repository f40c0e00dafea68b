# ruff: noqa: E501
"""Sizes of recordings: each method by which Python or C code uses one computes a number of the graph, or is a guard."""

from __future__ import annotations

import copy
import decimal
import fractions
import json
import math
import operator
import struct

import numpy
import pytest

from .test_random_sizes import guards_hold

NAMES = {
    "math": math, "operator": operator, "copy": copy, "Fraction": fractions.Fraction, "Decimal": decimal.Decimal, "struct": struct, "numpy": numpy,
    "json": json,
}  # fmt: skip
# Numbers of n = x.shape[0] that the graph computes. The graph serves all sizes.
COMPUTED = [
    "n + 3", "3 + n", "n - 3", "3 - n", "n * 3", "3 * n", "n // 3", "20 // n", "n % 3", "20 % n", "-n", "+n", "n ** 2", "True * n", "n + True", "n - False",
    "round(n)", "round(n, None)", "math.ceil(n)", "math.floor(n)", "math.trunc(n)", "n.real", "n.numerator", "n.conjugate()", "n.imag", "n.denominator",
    "divmod(n, 4)[0]", "divmod(n, 4)[1]", "divmod(20, n)[0]", "divmod(20, n)[1]", "sum([n, 1])", "math.prod((n, 2))", "copy.copy(n)", "copy.deepcopy([n])[0]",
    "operator.add(n, 1)", "operator.mul(2, n)", "n + numpy.int64(2)", "n * numpy.int32(2)", "n * n", "n - n // 2", "n % (n - 1 + 2)", "n.__add__(2)",
    "0.5 * n", "n * 0.5", "1.0 / n", "n / 2", "2 / n", "n / n", "3.5 - n", "n - 3.5", "0.25 + n", "n + 0.25", "7.5 // n", "n // 2.5", "7.5 % n", "n % 2.5",
    "n ** 0.5", "n ** -1", "2.0 ** -n", "0.5 * n * n + 2.0 * n", "0.1 / n * 0.3", "round(0.3 * n)", "math.ceil(0.3 * n)", "math.floor(0.3 * n)",
    "math.trunc(0.3 * n)", "abs(n - 4)", "abs(0.5 * n)", "n ** (0.5 * n / n)", "n * numpy.float64(0.5)", "numpy.float64(0.5) * n", "numpy.int64(2) * n", "numpy.int64(4) == n", "divmod(n, 2.5)[1]", "n << 1", "n >> 1", "n & 3", "~n", "3 & n",
]  # fmt: skip
# Conversions to numbers of Python, or of C: the size is constant.
CONSTANT = [
    "int(n)", "float(n)", "complex(n).real", "operator.index(n)", "hash(n)", "len(str(n))", "len(repr(n))", "len(f'{n:3d}')", "len('%d' % n)", "len('%s' % n)",
    "len('{}'.format(n))", "len(bytes(n))", "len(range(n))", "[5, 6, 7, 8, 9] [n]", "len([0] * n)", "len((n // 2) * 'ab')", "[1, 2, 3, 4, 5, 6][:n][-1]",
    "math.sqrt(n)", "math.log(n)", "math.log2(n)", "math.exp(-n)", "math.isqrt(n)", "math.gcd(n, 6)", "math.factorial(n)", "math.comb(n, 2)", "math.pow(n, 2)",
    "n & 5", "n | 8", "n ^ 1", "1 << n", "64 >> n", "5 & n", "3 | n", "3 ^ n", "n.bit_length()", "n.bit_count()", "round(n, -1)",
    "n.to_bytes(2, 'big')[1]", "n.as_integer_ratio()[0]", "{4: 7}.get(n, 3)", "len({n, 4})", "struct.pack('i', n)[0]", "abs(1j * n)", "abs(n * 1j)", "2 ** n",
    "float(Fraction(1, 2) * n)", "float(n * Fraction(1, 2))", "float(Decimal(2) * n)", 
    "len(numpy.zeros(n))", "int(numpy.array([n, 2]).sum())", "int(numpy.asarray(n))", "numpy.ones(9)[n] * 2", "len(list(range(2, n)))", "chr(n + 90) == 'z'",
    "len(hex(n * 7))", "divmod(Fraction(9), n)[0]", "pow(n, 2, 3)", "pow(n, n)", "min(range(20), key=lambda i: abs(i - int(n)))", "n in {4, 7}",
    "float(n == 4 + 0j)", "len('x'.ljust(n))", "len(bytearray(n))", "memoryview(b'abcdefghij')[n]",
]  # fmt: skip
# Comparisons: what they decide is a guard.
COMPARED = [
    "(2 if n == 4 else 3)", "(2 if 4 == n else 3)", "(2 if n != 4 else 3)", "(2 if n > 4 else 3)", "(2 if 4 > n else 3)", "(2 if n >= 4.0 else 3)",
    "(2 if 4.5 < n else 3)", "(2 if 0.5 * n == 2 else 3)", "(2 if 2.0 == 0.5 * n else 3)", "(2 if 1.0 / n == 0.25 else 3)", "(2 if n in (1, 4, 9) else 3)",
    "(2 if n in [4] else 3)", "max(n, 5)", "min(5, n)", "max(0.5 * n, 2.5)", "bool(n - 4)", "not n - 4", "(2 if n % 4 else 3)", "sorted([n, 5])[0]",
    "(2 if n == numpy.int64(4) else 3)", "(n > 4) * 2", "(n > 4) + n", "n * (n > 4)", "[4, 5].index(n) if n < 6 else 2", "[4, 4, 5].count(n)", "(n - 5 or 3)",
    "(n - 4 and 3)", "(2 if (n, 3) == (4, 3) else 3)", "(2 if x.shape == (4,) else 3)", "(2 if 400.0 // n == 100 else 3)", "(2 if n * n == True * n else 3)",
    "(2 if 3.5 * n + 2.0 == 16.0 else 3)", "(2 if n * n == 16 else 3)", "(2 if not n > 4 else 3)", "(2 if any(n == i for i in (4, 9)) else 3)",
]  # fmt: skip
SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 30, 100)


def recorded(torch, text, example=4):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    f = eval(f"lambda x, n=None: x * (lambda n: {text})(x.shape[0])", dict(NAMES))  # noqa: S307
    return f, make_fx(lambda x: f(x), tracing_mode="symbolic")(torch.ones(example))


def served(torch, f, module) -> list[int]:
    """The sizes that the guards permit, for which the graph computes what the function does."""
    found = []
    for n in SIZES:
        x = torch.ones(n)
        if guards_hold(torch, module, (x,)):
            torch.testing.assert_close(module(x), f(x))
            found.append(n)
    return found


@pytest.mark.parametrize("text", COMPUTED)
def test_numbers_of_the_graph(torch, text):
    f, module = recorded(torch, text)
    assert not module.shape_env.format_guards().strip()
    assert served(torch, f, module) == list(SIZES)


@pytest.mark.parametrize("text", CONSTANT)
def test_numbers_of_python(torch, text):
    f, module = recorded(torch, text)
    found = served(torch, f, module)
    assert 4 in found and len(found) < (4 if "Fraction" in text else 3)


@pytest.mark.parametrize("text", COMPARED)
def test_comparisons(torch, text):
    for example in (4, 5, 6):
        f, module = recorded(torch, text, example)
        assert module.shape_env.format_guards().strip() or "True * n" in text  # known to be equal
        assert example in served(torch, f, module)


@pytest.mark.parametrize("text", [*CONSTANT, *COMPARED])
def test_exports_require_no_more_than_they_state(torch, text):
    """An export either states the sizes that it serves, or refuses them."""
    f = eval(f"lambda x: x * (lambda n: {text})(x.shape[0])", dict(NAMES))  # noqa: S307

    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x)

    for dim in (torch.export.Dim.DYNAMIC, torch.export.Dim.AUTO):
        try:
            module = torch.export.export(Module(), (torch.ones(4),), dynamic_shapes=({0: dim},)).module()
        except RuntimeError as e:
            assert "s0" in str(e) and dim is torch.export.Dim.DYNAMIC
            continue
        torch.testing.assert_close(module(torch.ones(4)), f(torch.ones(4)))
        refused = 0
        for n in SIZES:
            try:
                got = module(torch.ones(n))
            except AssertionError:
                refused += 1
            else:
                torch.testing.assert_close(got, f(torch.ones(n)))
        assert refused > 0 or "True * n" in text  # which is n * n in each run


def test_a_size_is_accepted_as_an_int(torch):
    """isinstance() says so, and that it is a SymInt."""
    seen = []

    def f(x):
        n = x.shape[0]
        seen.append((isinstance(n, int), isinstance(n, torch.SymInt), type(n) is int, isinstance(n + 1, (int, torch.SymInt)), hasattr(n, "__index__")))
        with pytest.raises(TypeError):
            json.dumps({"size": n})
        with pytest.raises(TypeError):
            n + "a"
        with pytest.raises(TypeError):
            n < "a"  # noqa: B015
        assert n != "a" and n is not None and not (n == None)  # noqa: E711
        return x + 1

    from teletensor.fx.experimental.proxy_tensor import make_fx

    module = make_fx(f, tracing_mode="symbolic")(torch.ones(4))
    assert set(seen) == {(True, True, False, True, True)} and not module.shape_env.format_guards().strip()


# Arguments of functions that are ints, or lists of ints, of sizes. All graphs serve all sizes of x (m, n) of at least 4.
ARGUMENTS = [
    "x.view(n, m)", "x.view(m * n)", "x.view(-1, n)", "x.view((n, m))", "x.view([m, n])", "x.reshape(m, 1, n)", "x.reshape(torch.Size([n, m]))", "torch.zeros(m, n)",
    "torch.zeros((m, n))", "torch.ones([m, 2])", "torch.empty(m, n).fill_(2)", "torch.full((m,), 3.0)", "torch.full((2,), n)", "torch.arange(n)", "torch.arange(1, n, 2)",
    "torch.linspace(0, 1, n)", "torch.eye(n)", "torch.eye(m, n)", "x[:, : n // 2]", "x[1 : m - 1]", "x[m - 1]", "x[m - 1, n - 2]", "x[..., n - 1]", "x[-(m - 1) :]",
    "x.narrow(0, 1, m - 1)", "x.select(0, m - 1)", "x.expand(2, m, n)", "x.expand(2, *x.shape)", "x.repeat(1, n // n + 1)", "x.tile((1, 2))", "x.roll(m - 1, 0)", "x.roll((m, n), (0, 1))",
    "x.unfold(0, m - 1, 1)", "x.new_zeros(m, n)", "x.new_full((n,), m)", "x.new_empty(n).fill_(m)", "x.split(m - 1)[0]", "x.split([m - 1, 1])[1]", "x * n", "n * x", "x + n", "n - x", "x / n",
    "n / (x + 9)", "x // n", "n // (x + 9)", "x % n", "x ** n", "x == n", "x < m", "n > x", "x.clamp(max=n)", "torch.where(x > 0, x, n)", "x.masked_fill(x > 0, n)", "torch.add(x, x, alpha=n)",
    "x.clone().fill_(n)", "x.clone().add_(n)", "torch.sub(n, x)", "F.pad(x, (1, m))", "F.pad(x, (0, n - 1), value=1.0)", "F.layer_norm(x, (n,))", "F.layer_norm(x, [n])",
    "F.interpolate(x[None], size=n + 1)", "F.interpolate(x[None, None], size=(m + 1, n))", "F.adaptive_avg_pool1d(x[None], m)", "F.adaptive_avg_pool2d(x[None], (m, 2))", "F.avg_pool1d(x[None], n - 1)",
    "F.max_pool1d(x[None], n - 2)", "F.unfold(x[None, None], (m - 1, 2))", "x.movedim(0, 1).reshape(n * m)", "x.unflatten(1, (1, n))", "x.unflatten(0, (-1, m))",
    "x.flatten().unflatten(0, (m, n))", "torch.broadcast_to(x, (2, m, n))", "x.sum(0).expand(m, n)", "torch.stack([x] * 2).view(2 * m, n)", "x.as_strided((m, n), (n, 1))", "torch.randn(m, n) * 0 + x",
    "torch.rand(n) * 0", "torch.randint(0, n, (m,)) * 0", "torch.randperm(n).sort().values", "torch.normal(0.0, 1.0, (m, n)) * 0", "torch.empty_strided((m, n), (n, 1)).fill_(1)", "x.new_ones((m,))",
    "torch.repeat_interleave(x, 2, dim=0)", "x.repeat_interleave(2)", "torch.ops.aten.view.default(x, [n, m])", "torch.ops.aten.arange(n)", "torch.ops.aten.add.Scalar(x, n)", "torch.ops.aten.slice(x, 0, 1, m - 1)",
    "torch.ops.aten.select(x, 0, m - 1)", "torch.ops.aten.expand(x, [m, n])", "torch.ops.aten.full([m], 1)", "torch.nn.functional.one_hot(torch.arange(m), m)", "torch.cat([x, x.new_zeros(m, 1)], 1)",
    "torch.hann_window(n)", "torch.fft.rfft(x, n - 1)", "torch.fft.fft(x, n=n + 1).real", "x.index_select(0, torch.arange(m - 1))", "torch.bincount(torch.arange(3), minlength=3) * n", "x.kthvalue(m - 1, 0).values",
    "x.topk(m - 1, 0).values", "F.group_norm(x[None], m)", "torch.nn.functional.fold(x.flatten()[None, : 1 * 1].view(1, 1, 1), (1, 1), (1, 1)) * n", "x.swapaxes(0, 1).contiguous().view(m, n)",
    "torch.sum(x.view(m, n), 0) / m", "torch.vander(x[0], n - 1)", "x.view(*x.shape)", "x.view(x.size())", "torch.zeros(*x.shape)", "torch.zeros(x.shape + (2,))", "torch.zeros(x.shape[:1])",
    "x.reshape(x.shape[1:] + x.shape[:1])", "torch.zeros(len(x.shape), n)", "x.new_tensor([1.0]).expand(m)", "F.softplus(x, beta=n)", "F.leaky_relu(x, n)", "x.baddbmm(x[None], x[None].transpose(1, 2) @ x[None], beta=n) if False else x * 1",
]  # fmt: skip


@pytest.mark.parametrize("text", ARGUMENTS)
def test_sizes_as_arguments(torch, text):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    f = eval(f"lambda x: (lambda m, n: {text})(*x.shape)", {"torch": torch, "F": torch.nn.functional})  # noqa: S307

    def example(m, n):
        return torch.arange(1.0, m * n + 1).view(m, n) / 7

    graph = make_fx(f, tracing_mode="symbolic")(example(5, 7))

    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x)

    dims = {0: torch.export.Dim("m", min=4), 1: torch.export.Dim("n", min=4)}
    program = torch.export.export(Module(), (example(5, 7),), dynamic_shapes=(dims,)).module()
    for size in ((5, 7), (4, 4), (6, 5), (9, 30), (31, 8)):
        want = f(example(*size))
        assert guards_hold(torch, graph, (example(*size),)), graph.shape_env.format_guards()
        for made in (graph, program):
            torch.testing.assert_close(made(example(*size)), want, equal_nan=True)
