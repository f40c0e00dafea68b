"""Further ways to pass arguments that PyTorch accepts: older orders, other names, by keyword and by position."""

import math

import pytest

from .spelling_rows import check_same

# Pairs of expressions with the same value. x, y, v and i are tensors.
SAME = [
    ("torch.add(input=x, alpha=2, other=y)", "x + 2 * y"),
    ("torch.addmm(beta=2, input=x, alpha=3, mat1=x, mat2=y)", "2 * x + 3 * (x @ y)"),
    ("torch.addr(2, x, 3, v, v)", "2 * x + 3 * torch.outer(v, v)"),
    ("x.addr(2, v, v)", "2 * x + torch.outer(v, v)"),
    ("torch.rsub(x, y, alpha=2)", "y - 2 * x"),
    ("torch.sin(x=x)", "x.sin()"),
    ("torch.linalg.det(A=x)", "x.det()"),
    ("torch.linalg.det(input=x)", "x.det()"),
    ("torch.linalg.inv(input=x)", "x.inverse()"),
    ("torch.linalg.vector_norm(x=x)", "x.norm()"),
    ("torch.linalg.pinv(x, 1e-6, False)", "torch.linalg.pinv(x)"),
    ("torch.inverse(A=x)", "x.inverse()"),
    ("x.sum(axis=0, keepdims=True)", "x.sum(0, True)"),
    ("torch.hsplit(x, sections=2)[1]", "x[:, 1:]"),
    ("torch.hsplit(x, indices=[1])[1]", "x[:, 1:]"),
    ("x.vsplit(1)[0]", "x"),
    ("x.hsplit(1, 1)[2]", "x[:, 1:]"),
    ("torch.tensor_split(x, sections=2)[0]", "x[:1]"),
    ("torch.tensor_split(x, indices=[1])[1]", "x[1:]"),
    ("x.tensor_split(tensor_indices_or_sections=torch.tensor([1]))[1]", "x[1:]"),
    ("torch.split(tensor=x, split_size_or_sections=1)[1]", "x[1:]"),
    ("torch.repeat_interleave(repeats=i)", "torch.tensor([1])"),
    ("torch.narrow(x, 0, torch.tensor(1), 1)", "x[1:]"),
    ("x.narrow(dim=0, start=torch.tensor(1), length=1)", "x[1:]"),
    ("torch.fill(x, torch.tensor(3.0))", "torch.full((2, 2), 3.0)"),
    ("x.clone().index_fill_(0, i, torch.tensor(3.0))", "x.index_fill(0, i, 3.0)"),
    ("torch.cholesky_solve(x, input2=y)", "torch.cholesky_solve(x, y)"),
    ("torch.isin(element=1, test_elements=i)", "torch.tensor(True)"),
    ("torch.isin(elements=i, test_element=0)", "torch.tensor([True, False])"),
    ("torch.norm(x, 2, None, False, None, torch.float64)", "x.double().norm()"),
    ("torch.tensordot(x, y, 1, torch.empty(2, 2))", "x @ y"),
    ("torch.column_stack(tensors=[v, v])", "torch.stack([v, v], 1)"),
    ("torch.einsum('ij,jk', [x, y])", "x @ y"),
    ("torch.adaptive_max_pool1d(x, 1)[1]", "torch.tensor([[1], [1]])"),
    ("torch.dropout(x, 0.5, False)", "x"),
    ("torch.triplet_margin_loss(x, y, x, 1.0, 2.0, 1e-6, False, 2)", "F.triplet_margin_loss(x, y, x, reduction='sum')"),
    ("torch.layer_norm(x, (2,), None, None, 1e-5, False)", "F.layer_norm(x, (2,))"),
    ("F.one_hot(input=i)", "torch.eye(2, dtype=torch.int64)"),
    ("F.normalize(x, 2.0, 1, 1e-12, torch.empty(2, 2))", "F.normalize(x)"),
    ("F.normalize(x, p='fro', dim=None)", "x / x.norm()"),
    ("F.normalize(x, 'nuc', (0, 1), out=torch.empty(2, 2))", "x / x.norm('nuc')"),
    ("torch.trapz(x, dx=2)", "2 * torch.trapz(x)"),
    ("torch.histogramdd(x, [2, 2], None)[0]", "torch.histogramdd(x, [2, 2])[0]"),
    ("torch.cuda.FloatTensor and x.copy_(other=x)", "x"),
    ("x.to(torch.float64, False, True)", "x.double()"),
    ("x.new_zeros(size=(2,))", "torch.zeros(2)"),
    ("torch.can_cast(torch.float32, to=torch.int32) and x", "torch.tensor(False)"),
]


@pytest.mark.filterwarnings("ignore:.*is deprecated")
@pytest.mark.parametrize("code, same", SAME)
def test_same(names, code, same):
    check_same(names, code, same)


# Calls that PyTorch rejects.
REFUSED = [
    "torch.column_stack(v, v)", "torch.subtract(x, y, 2)", "torch.add(x, y, y)", "torch.addmm(x, x, x, x)",
    "torch.hsplit(x)", "x.eq_(y, y)", "torch.is_grad_enabled(1)", "torch.dropout(x, 0.5, training=True)",
    "x.requires_grad_(mode=True)", "x.size(3, 4)", "torch.isin(elements=i)", "torch.result_type(x)",
    "torch.swapaxes(x, axis0=0)",
]  # fmt: skip


@pytest.mark.parametrize("code", REFUSED)
def test_refused(names, code):
    with pytest.raises(TypeError):
        eval(code, names)  # noqa: S307


def test_fill_is_differentiated(torch):
    value = torch.tensor(3.0, requires_grad=True)
    torch.fill(torch.ones(2, 2), value).sum().backward()
    assert value.grad.item() == 4


def test_initialisation_from_a_generator(torch):
    init, generator = torch.nn.init, torch.Generator()
    for fill in (
        init.uniform_, init.normal_, init.trunc_normal_, init.xavier_uniform_, init.xavier_normal_, init.kaiming_uniform_,
        init.kaiming_normal_, init.orthogonal_, lambda t, generator: init.sparse_(t, 0.5, generator=generator),
    ):  # fmt: skip
        first = fill(torch.empty(4, 4), generator=generator.manual_seed(3))
        assert torch.equal(fill(torch.empty(4, 4), generator=generator.manual_seed(3)), first)
        assert not torch.equal(fill(torch.empty(4, 4), generator=generator), first)


def test_random_functions_by_position(torch):
    x = torch.full((100,), 3.0)
    generator = torch.Generator()
    draws = [torch.poisson(x, generator.manual_seed(1)) for _ in range(2)]
    assert torch.equal(*draws)
    assert torch.bernoulli(x, 1.0).sum() == 100 and x.bernoulli(0.0).sum() == 0
    assert set(x.clone().random_(**{"from": 2, "to": 4}).tolist()) == {2, 3}
    assert torch.randint_like(x, high=1).sum() == 0 and torch.randint_like(x, low=4, high=5).sum() == 400
    assert math.isclose(x.clone().bernoulli_(torch.full((100,), 1.0)).sum().item(), 100)


@pytest.mark.parametrize(
    "other, options, message",
    [
        ("x.double()", {}, "dtype"),
        ("x.T.contiguous().T", {"check_stride": True}, "stride"),
        ("torch.zeros(2, 2)", {}, "not close"),
    ],
)
def test_assert_close(torch, names, other, options, message):
    with pytest.raises(AssertionError, match=message):
        torch.testing.assert_close(names["x"], eval(other, names), **options)  # noqa: S307
    torch.testing.assert_close(names["x"], names["x"].clone(), check_stride=True, check_device=True, check_layout=False)
