"""Arguments that PyTorch rejects and that would otherwise broadcast, be converted or be ignored."""

import pytest

REJECTED = [
    ("vander(x)", RuntimeError, "x must be a one-dimensional tensor"),
    ("vander(v, N=-1)", RuntimeError, "N must be non-negative"),
    ("trapezoid(x, x, dx=2)", TypeError, "invalid combination of arguments"),
    ("trapezoid(x, v[:2])", RuntimeError, "one `x` value for each sample point"),
    ("cumulative_trapezoid(x, x[:, :1])", RuntimeError, "one `x` value for each sample point"),
    ("range(3)", TypeError, 'missing 1 required positional arguments: "end"'),
    ("range(0, -1)", RuntimeError, "inconsistent with step sign"),
    ("range(0, 1, 0)", RuntimeError, "step must be nonzero"),
    ("cartesian_prod(x, x)", RuntimeError, "Expect a 1D vector"),
    ("pdist(x, -1.0)", RuntimeError, "non-negative p values"),
    ("meshgrid(v, x)", RuntimeError, "Expected 0D or 1D tensor"),
    ("meshgrid(v, v.int())", RuntimeError, "to have the same dtype"),
    ("meshgrid()", RuntimeError, "non-empty TensorList"),
    ("allclose(x, x.double())", RuntimeError, "one dtype"),
    ("finfo('float32')", TypeError, "must be torch.dtype, not str"),
    ("iinfo('int8')", TypeError, "must be torch.dtype, not str"),
    ("linalg.vector_norm(x.double(), dtype=torch.float32)", RuntimeError, "without narrowing"),
    ("linalg.vector_norm(x, dtype=torch.complex64)", RuntimeError, "dtype should be real for real inputs"),
    ("linalg.matrix_norm(x * 1j, dtype=torch.float32)", RuntimeError, "dtype should be complex for complex inputs"),
    ("linalg.norm(x, 1, dtype=torch.int64)", RuntimeError, "dtype should be floating point or complex"),
    ("linalg.matrix_norm(x.int(), dtype=torch.float32)", NotImplementedError, "floating point or complex tensor as input"),
]


@pytest.mark.parametrize("call, error, message", REJECTED)
def test_rejected_arguments(torch, call, error, message):
    values = {"torch": torch, "x": torch.ones(2, 3), "v": torch.arange(3.0)}
    with pytest.raises(error, match=message):
        eval(f"torch.{call}", values)


def test_empty_inputs(torch):
    assert torch.trapezoid(torch.ones(0)).tolist() == 0 and torch.cumulative_trapezoid(torch.ones(0)).shape == (0,)
    assert torch.broadcast_tensors() == () and torch.broadcast_shapes() == ()
    assert torch.linalg.norm(torch.ones(2, 2), dtype=torch.float64).dtype is torch.float64
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"


def test_bernoulli_of_a_keyword_and_no_combinations(torch):
    assert torch.bernoulli(input=torch.ones(3)).tolist() == [1.0, 1.0, 1.0]
    none = torch.combinations(torch.ones(2, requires_grad=True), 4)
    assert none.shape == (0, 4) and none.requires_grad
    assert torch.combinations(torch.ones(0), 3).shape == (0, 3)
