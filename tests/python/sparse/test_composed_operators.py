"""Operators that layouts have because they are composed of others: the results are those of dense tensors."""

from __future__ import annotations

import pytest

import teletensor as torch

F = torch.nn.functional
DATA = OTHER = torch.Tensor  # set for each test


@pytest.fixture(autouse=True)
def tensors() -> None:
    global DATA, OTHER
    DATA = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [0.0, 3.0, 1.0]])
    OTHER = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0], [1.0, 1.0, -1.0]])


ELEMENTWISE = {
    "softsign": F.softsign, "tanhshrink": F.tanhshrink, "isfinite": torch.isfinite, "isreal": torch.isreal, "ndtr": torch.special.ndtr,
    "float_power": lambda x: torch.float_power(x, 2), "max": lambda x: torch.max(x, x * 0.5), "min": lambda x: torch.min(x, x * 2),
    "isclose": lambda x: torch.isclose(x, x + 1e-9), "ldexp": lambda x: torch.ldexp(x, x * 0 + 2),
    "kl_div": lambda x: F.kl_div(x, x * 0.5, reduction="none", log_target=True),
    "poisson": lambda x: F.poisson_nll_loss(x, x.abs() + 1.5, reduction="none"),
    "gaussian": lambda x: F.gaussian_nll_loss(x, x * 2, 0.5, full=True, reduction="none"),
    "l1_loss": lambda x: F.l1_loss(x, x * 3, reduction="none"),
}  # fmt: skip


def _masked(data: torch.Tensor) -> torch.Tensor:
    return torch.masked.masked_tensor(data, OTHER > 0, requires_grad=True)


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_masked_and_jagged_tensors(name: str) -> None:
    function = ELEMENTWISE[name]
    wanted = function(DATA)
    found = function(_masked(DATA))
    torch.testing.assert_close(found.to_tensor(0), torch.where(OTHER > 0, wanted, torch.zeros_like(wanted)))
    jagged = function(torch.nested.nested_tensor([DATA[:2], DATA[2:]], layout=torch.jagged))
    torch.testing.assert_close(jagged.values(), wanted)


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
def test_gradients_and_moved_elements_of_masked_tensors() -> None:
    x = _masked(DATA)
    F.softsign(x).sum().backward()
    torch.testing.assert_close(x.grad.to_tensor(0), (OTHER > 0) / (DATA.abs() + 1) ** 2)
    mask = OTHER > 0
    for function in (
        lambda t: torch.hstack([t, t]), lambda t: torch.vstack([t, t]), lambda t: t.repeat_interleave(2, 0),
        lambda t: t.repeat_interleave(2),
        lambda t: t.expand_as(torch.ones(2, 3, 3)), lambda t: t.view_as(torch.ones(9)), lambda t: t.reshape_as(torch.ones(1, 9)),
    ):  # fmt: skip
        moved = function(x)
        assert torch.equal(moved.get_data(), function(DATA)) and torch.equal(moved.get_mask(), function(mask))
    torch.testing.assert_close(torch.kron(x, torch.eye(2)).get_data(), torch.kron(DATA, torch.eye(2)))
    loss = F.l1_loss(x, DATA * 0)
    torch.testing.assert_close(loss.get_data(), DATA[mask].abs().mean())
    weighted = F.multilabel_soft_margin_loss(DATA, (OTHER > 0).float(), _masked(DATA))
    log = F.logsigmoid
    losses = -(mask * log(DATA) + ~mask * log(-DATA)) * DATA * mask
    torch.testing.assert_close(weighted.get_data(), (losses.sum(-1) / 3).mean())


def test_losses_of_jagged_tensors() -> None:
    def jagged(t):
        return torch.nested.nested_tensor([t[:2], t[2:]], layout=torch.jagged)

    x = jagged(DATA)
    signs = x._with(OTHER)
    for function in (
        lambda a, s: F.hinge_embedding_loss(a, s, margin=0.8), lambda a, s: F.margin_ranking_loss(a, a * 0.5, s, margin=0.1),
        lambda a, s: F.poisson_nll_loss(a, s.abs() * 2, reduction="sum"),
    ):  # fmt: skip
        torch.testing.assert_close(function(x, signs), function(DATA, OTHER))
    torch.testing.assert_close(torch.trapezoid(x, dim=-1).values(), torch.trapezoid(DATA, dim=-1))
    places = torch.tensor([0.0, 1.0, 3.0])
    torch.testing.assert_close(torch.trapezoid(x, places).values(), torch.trapezoid(DATA, places))
    with pytest.raises(NotImplementedError, match="repeat_interleave"):
        x.repeat_interleave(2, dim=1)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr"])
def test_sparse_arguments(kind: str) -> None:
    s = getattr(DATA, f"to_sparse_{kind}")(*([(1, 3)] if kind == "bsr" else []))
    row = torch.ones(3)
    assert torch.equal(row.expand_as(s), torch.ones(3, 3)) and torch.equal(torch.arange(9).view_as(s), torch.arange(9).reshape(3, 3))
    torch.testing.assert_close(F.linear(s, s).to_dense(), DATA @ DATA.t())
    torch.testing.assert_close(F.hinge_embedding_loss(DATA, OTHER), F.hinge_embedding_loss(DATA, OTHER))
    total = torch.addmm(s, s, s) if kind != "bsr" else s + s @ s
    torch.testing.assert_close(total.to_dense(), DATA + DATA @ DATA)
    detached = s.clone().requires_grad_() * 2
    assert not torch.detach_(detached).requires_grad
    assert torch.zero_(s.clone())._nnz() == 0
    assert torch.equal(torch.select_copy(s, 0, 1).to_dense(), DATA[1])
    with pytest.raises(RuntimeError, match="softsign"):
        F.softsign(s)
    with pytest.raises(NotImplementedError, match="cholesky_solve"):
        torch.cholesky_solve(DATA, s)
    if kind == "coo":
        assert torch.equal(s.clone().swapaxes_(0, 1).to_dense(), DATA.t())
        for dim in (None, True, (0, 1)):
            with pytest.raises(TypeError, match="'dim' .* must be int"):
                torch.sparse.softmax(s, dim)


def test_triangular_solve_of_blocks() -> None:
    a = torch.tril(DATA) + torch.eye(3)
    found = torch.triangular_solve(DATA, a.to_sparse_bsr((1, 1)), upper=False).solution
    torch.testing.assert_close(found, torch.linalg.solve_triangular(a, DATA, upper=False))


def test_masked_functions_take_the_least_of_several_dimensions() -> None:
    mask = OTHER > 0
    for name in ("cumsum", "cumprod", "softmax", "log_softmax"):
        function = getattr(torch.masked, name)
        torch.testing.assert_close(function(DATA, (1, 0), mask=mask), function(DATA, 0, mask=mask))


def test_outer_products_of_sparse_vectors() -> None:
    v = DATA[2].to_sparse().requires_grad_()
    product = torch.outer(v, DATA[0])
    torch.testing.assert_close(product.to_dense(), torch.outer(DATA[2], DATA[0]))
    product.sum().backward()
    torch.testing.assert_close(v.grad.to_dense(), (DATA[2] != 0) * DATA[0].sum())
    with pytest.raises(RuntimeError, match="outer: Expected 1-D argument self, but got 2-D"):
        torch.outer(DATA.to_sparse(), DATA[0])


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_cross_entropy_of_sparse_probabilities(layout: str) -> None:
    target = torch.tensor([[0.2, 0.0, 0.8], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    given, weight = target.to_sparse(layout=getattr(torch, layout)), torch.tensor([1.0, 2.0, 3.0])
    for reduction in ("mean", "sum"):
        for options in ({}, {"weight": weight}):
            x, y = DATA.clone().requires_grad_(), DATA.clone().requires_grad_()
            found = F.cross_entropy(x, given, reduction=reduction, **options)
            wanted = F.cross_entropy(y, target, reduction=reduction, **options)
            torch.testing.assert_close(found, wanted)
            found.backward(), wanted.backward()
            torch.testing.assert_close(x.grad, y.grad)


def test_sums_with_products_of_integers() -> None:
    d = torch.tensor([[1, 0, 2], [0, 3, 0], [4, 0, 5]])
    for given in (d.to_sparse(), d.to_sparse_csr()):
        assert torch.sparse.addmm(d, given, d).tolist() == (d + d @ d).tolist()
        assert torch.sparse.addmm(d, given, d, beta=2).tolist() == (2 * d + d @ d).tolist()


def test_parts_of_complex_numbers() -> None:
    d = torch.tensor([[1 + 2j, 0], [0, 3 - 1j]])
    for given in (d.to_sparse(), d.to_sparse_csr()):
        assert torch.real(given).to_dense().tolist() == d.real.tolist() and torch.imag(given).to_dense().tolist() == d.imag.tolist()
        assert torch.real(given).layout == given.layout


def test_linear_cross_entropy_with_a_sparse_weight() -> None:
    weight, classes = torch.tensor([[0.2, 0.0, 0.8], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]), torch.tensor([0, 2, 1])
    for given in (weight.to_sparse(), weight.to_sparse_csr()):
        torch.testing.assert_close(F.linear_cross_entropy(DATA, given, classes), F.linear_cross_entropy(DATA, weight, classes))


def test_linear_of_two_sparse_matrices_and_a_bias():
    bias = torch.tensor([1.0, -2.0, 0.5])
    got = F.linear(DATA.to_sparse_csr(), OTHER.to_sparse_csr(), bias)
    torch.testing.assert_close(got, F.linear(DATA, OTHER, bias))
    with pytest.raises(RuntimeError, match="'mat2' to have strided layout, got 'mat1' with layout Sparse"):
        F.linear(DATA.to_sparse(), OTHER.to_sparse(), bias)
    torch.testing.assert_close(F.linear(DATA.to_sparse(), OTHER.to_sparse()).to_dense(), F.linear(DATA, OTHER))
