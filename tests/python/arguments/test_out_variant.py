"""`out=`: results are written to the given tensors, which are resized."""

from __future__ import annotations

import numpy as np
import pytest


def test_empty_out_is_resized(torch):
    out = torch.empty(0)
    assert torch.add(torch.ones(2, 3), 1.0, out=out) is out
    assert out.shape == (2, 3) and out.sum().item() == 12


def test_out_of_other_sizes_is_resized(torch):
    values, indices = torch.empty(7), torch.empty(0, dtype=torch.int64)
    torch.max(torch.tensor([[1.0, 3.0], [4.0, 2.0]]), 1, out=(values, indices))
    assert values.tolist() == [3, 4] and indices.tolist() == [1, 0]


def test_out_keeps_its_dtype(torch):
    out = torch.empty(0, dtype=torch.float64)
    torch.mul(torch.ones(3), 2, out=out)
    assert out.dtype is torch.float64 and out.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.mul(torch.ones(3), 2, out=torch.empty(0, dtype=torch.int32))


def test_out_with_data_dependent_sizes(torch):
    out = torch.empty(0)
    torch.masked_select(torch.arange(4.0), torch.tensor([True, False, True, True]), out=out)
    assert out.tolist() == [0, 2, 3]


@pytest.mark.parametrize("name", ["kron", "column_stack", "dstack", "logcumsumexp", "frexp", "diff", "angle"])
def test_composite_functions_accept_out(torch, name):
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    arguments = {"kron": (x, x), "column_stack": ((x, x),), "dstack": ((x, x),), "logcumsumexp": (x, 0)}.get(name, (x,))
    function = getattr(torch, name)
    expected = function(*arguments)
    if name == "frexp":
        out = (torch.empty(0), torch.empty(0, dtype=torch.int32))
        found = function(*arguments, out=out)
        assert found.mantissa is out[0] and found.exponent is out[1]
        assert [t.tolist() for t in out] == [t.tolist() for t in expected]
        return
    out = torch.empty(0)
    assert function(*arguments, out=out) is out
    np.testing.assert_array_equal(out.numpy(), expected.numpy())


def test_linear_algebra_accepts_out(torch):
    A = torch.tensor([[2.0, 0.0], [0.0, 4.0]])  # noqa: N806
    out = torch.empty(2, 2)
    assert torch.linalg.inv(A, out=out) is out and out.tolist() == [[0.5, 0], [0, 0.25]]
    assert torch.inverse(A, out=torch.empty(0)).tolist() == [[0.5, 0], [0, 0.25]]


def test_view_functions_copy_to_out(torch):
    x, out = torch.arange(4.0), torch.empty(0)
    assert torch.unsqueeze_copy(x, 0, out=out) is out and out.shape == (1, 4)
    out.fill_(9)
    assert x.tolist() == [0, 1, 2, 3]


def test_out_has_no_gradient(torch):
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.linalg.matrix_power(torch.ones(2, 2, requires_grad=True), 2, out=torch.empty(2, 2))


@pytest.mark.parametrize("name", ["abs", "masked_select", "neg", "unsqueeze_copy"])
def test_some_operators_require_the_result_dtype(torch, name):
    x, of = torch.ones(3), {"masked_select": (torch.ones(3) > 0,), "unsqueeze_copy": (0,)}
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype .*float.*, but got .*(double|float64) instead"):
        getattr(torch, name)(x, *of.get(name, ()), out=torch.empty(3, dtype=torch.float64))


def test_dtype_defaults_to_that_of_out(torch):
    assert torch.linspace(0, 10, 5, out=torch.empty(5, dtype=torch.int64)).tolist() == [0, 2, 5, 7, 10]
    assert torch.cumsum(torch.tensor([1.5, 2.5]), 0, out=torch.empty(2, dtype=torch.int64)).tolist() == [1, 3]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        torch.ones(2, dtype=torch.float32, out=torch.empty(2, dtype=torch.float64))


def test_two_results_require_two_out_tensors(torch):
    out = torch.empty(2)
    with pytest.raises(ValueError, match="must not overlap"):
        torch.aminmax(torch.ones(2, 3), dim=1, out=(out, out))


def test_in_place_keeps_the_dtype(torch):
    x = torch.tensor([1, 2, 3], dtype=torch.int32)
    assert x.cumsum_(0).dtype is torch.int32 and x.tolist() == [1, 3, 6]
