"""Sums of 16-bit floats are rounded once, as in PyTorch; and what else was less precise in 16 bits than PyTorch."""

import pytest


@pytest.fixture(params=["float16", "bfloat16"])
def half(request, torch):
    return getattr(torch, request.param)


def test_sums_of_a_thousand_ones(torch, half):
    many, ones = torch.zeros(1000, dtype=torch.int64), torch.ones(1000, dtype=half)
    assert torch.zeros(1, dtype=half).scatter_add(0, many, ones).item() == 1000
    assert torch.zeros(3, dtype=half)[::2].scatter_add_(0, many, ones).tolist() == [1000, 0]
    mean = torch.zeros(1, dtype=half).scatter_reduce(0, many, ones * 0.01, "mean", include_self=False)
    assert mean.item() == pytest.approx(0.01, rel=0.01)
    bag = torch.nn.functional.embedding_bag
    assert bag(many[None], torch.ones(1, 1, dtype=half), mode="sum").item() == 1000
    assert bag(many[None], torch.ones(1, 1, dtype=half), mode="mean").item() == 1
    x = torch.ones(1, dtype=half, requires_grad=True)
    for repeated in (x.gather(0, many), x.as_strided((1000,), (0,)), torch.take_along_dim(x, many, 0)):
        (gradient,) = torch.autograd.grad(repeated.sum(), x)
        assert gradient.item() == 1000


def test_sums_that_pytorch_rounds_in_each_step(torch, half):
    f, many, ones = torch.nn.functional, torch.zeros(5000, dtype=torch.int64), torch.ones(5000, dtype=half)
    total = torch.tensor(5000.0, dtype=half).item()
    assert torch.zeros(2, dtype=half).index_add(0, many, ones, alpha=2).tolist() == [2 * total, 0]
    assert torch.zeros(2, dtype=half).index_put((many,), ones, accumulate=True).tolist() == [total, 0]
    assert torch.zeros(3, dtype=half)[::2].index_put_((many,), ones[0], accumulate=True).tolist() == [total, 0]
    assert torch.zeros(2, dtype=half).put_(many, ones, accumulate=True).tolist() == [total, 0]
    x = torch.ones(2, dtype=half, requires_grad=True)
    table = torch.ones(2, 1, dtype=half, requires_grad=True)
    for source, read in (
        (x, x[many]), (x, x.index_select(0, many)), (x, x.take(many)), (table, f.embedding(many, table)),
        (table, f.embedding_bag(many[:, None], table, mode="sum")),
    ):  # fmt: skip
        (gradient,) = torch.autograd.grad(read.sum(), source)
        assert gradient.flatten().tolist() == [total, 0]


def test_few_sums_in_place_do_not_convert_the_whole_tensor(torch, half):
    many, ones, n = torch.zeros(5000, dtype=torch.int64), torch.ones(5000, dtype=half), 5000 * 8 + 8
    total, stops = torch.tensor(5000.0, dtype=half).item(), 256 if half == torch.bfloat16 else 2048
    assert torch.zeros(n, dtype=half).index_add(0, many, ones)[0].item() == total
    assert torch.zeros(n, dtype=half).index_add_(0, many, ones)[0].item() == stops
    assert torch.zeros(n, dtype=half).index_put_((many,), ones, accumulate=True)[0].item() == stops
    assert torch.zeros(n - 8, dtype=half).index_add_(0, many, ones)[0].item() == total


def test_formulas_of_several_steps(torch, half):
    f = torch.nn.functional
    assert torch.round(torch.tensor([0.35, -1.5, 2.449], dtype=half), decimals=1).tolist() == pytest.approx([0.35, -1.5, 2.4], rel=0.2)
    assert torch.round(torch.tensor(-1.5, dtype=half), decimals=1).item() == -1.5
    for function, x in ((f.hardswish, -1.51), (f.mish, -1.2)):
        wide = torch.tensor(x, dtype=half).double().requires_grad_()
        narrow = torch.tensor(x, dtype=half, requires_grad=True)
        function(wide).backward()
        function(narrow).backward()
        assert narrow.grad.item() == pytest.approx(wide.grad.item(), rel=0.01)
    assert torch.trapezoid(torch.full((9,), 0.1, dtype=half)).item() == pytest.approx(0.8, rel=0.005)


def test_ldexp_of_exponents_beyond_the_range(torch):
    inputs, exponents = [1e-30, 0.0, 1e-40, 3.0, 3.0, -1.0], [140, 255, 200, -150, 0.5, 1000]
    got = torch.ldexp(torch.tensor(inputs), torch.tensor(exponents, dtype=torch.float32))
    expected = torch.tensor(inputs).double() * 2.0 ** torch.tensor(exponents, dtype=torch.float64)
    torch.testing.assert_close(got, expected.float(), rtol=1e-6, atol=0)
    assert torch.ldexp(torch.tensor([1, 2]), torch.tensor(3)).tolist() == [8, 16]
    a, e = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([1.0, -2.0], requires_grad=True)
    torch.ldexp(a, e).sum().backward()
    torch.testing.assert_close(a.grad, torch.tensor([2.0, 0.25]))
    torch.testing.assert_close(e.grad, torch.tensor([4.0, 0.75]) * 0.6931472)


def test_gradient_has_the_coordinates_dtype(torch):
    places = torch.tensor([0.0, 1, 3], dtype=torch.float64)
    (slopes,) = torch.gradient(torch.tensor([1.0, 4, 9]), spacing=[places])
    assert slopes.dtype == torch.float64
    assert torch.gradient(torch.tensor([1, 4, 9]))[0].dtype == torch.float32


def test_ranges_are_written_in_order(torch):
    for call, expected in (
        (lambda v: torch.arange(0, 4, out=v), [0, 1, 2, 3]), (lambda v: torch.linspace(0, 3, 4, out=v), [0, 1, 2, 3]),
        (lambda v: torch.range(0, 3, out=v), [0, 1, 2, 3]), (lambda v: torch.logspace(0, 3, 4, out=v), [1, 10, 100, 1000]),
    ):  # fmt: skip
        x = torch.zeros(2, 3)
        view = x.narrow(1, 1, 2)
        assert call(view) is view and view.shape == (2, 2)
        torch.testing.assert_close(x, torch.tensor([[0, *expected[:2]], [0, *expected[2:]]], dtype=torch.float32))
    assert [t.shape for t in torch.hsplit(torch.ones(5, 0, 2), 2)] == [(5, 0, 2), (5, 0, 2)]


def test_ranges_are_computed_in_the_dtype_of_the_result(torch):
    start = 2**24  # from here on, float32 does not represent every integer
    assert torch.range(start, start + 3, out=torch.zeros(2, 2, dtype=torch.int64)).tolist() == [
        [start, start + 1], [start + 2, start + 3],
    ]  # fmt: skip
    assert torch.range(start, start + 1, out=torch.zeros(2, dtype=torch.float64)).tolist() == [start, start + 1]
    assert torch.range(0.1, 0.4, 0.1, dtype=torch.float64).tolist() == [0.1, 0.2, 0.1 + 2 * 0.1, 0.4]
    assert torch.range(0.5, 2.5, dtype=torch.int64).tolist() == [0, 1, 2]
    x = torch.zeros(3)
    assert torch.range(0, 2, out=x, requires_grad=True) is x and x.is_leaf and x.requires_grad
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.range(0, 2, out=x)
    with pytest.raises(RuntimeError, match="expected dtype to be that of out"):
        torch.range(0, 2, dtype=torch.float32, out=torch.zeros(3, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="expected a step of at least 1"):
        torch.range(0, 1, 0.5, dtype=torch.int64)
    with pytest.raises(NotImplementedError, match="expected an integer or floating-point dtype"):
        torch.range(0, 2, dtype=torch.bool)


def test_multinomial_gradient_where_a_count_is_zero(torch):
    v = torch.tensor([2.0, 0.0], requires_grad=True)
    torch.distributions.Multinomial(2, torch.tensor([0.5, 0.5]), validate_args=False).log_prob(v).backward()
    torch.testing.assert_close(v.grad, torch.tensor([-0.6931, 0.8069]), rtol=1e-3, atol=1e-3)
    certain = torch.distributions.Multinomial(2, torch.tensor([1.0, 0.0]))
    assert certain.log_prob(torch.tensor([2.0, 0.0])).item() == pytest.approx(0, abs=1e-5)
