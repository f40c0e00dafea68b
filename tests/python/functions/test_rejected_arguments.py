"""Arguments that PyTorch rejects and that would otherwise broadcast, be converted or be ignored."""

import numpy as np
import pytest

REJECTED = [
    ("einsum('ii', x)", RuntimeError, "subscript i is repeated for operand 0 but the sizes don't match"),
    ("einsum('ii', x[:1])", RuntimeError, "subscript i is repeated for operand 0 but the sizes don't match, 3 != 1"),
    ("einsum('ij,ij->i', x, x[:, :2])", RuntimeError, "subscript j has size 2 for operand 1 which does not broadcast"),
    ("einsum('ij->iij', x)", RuntimeError, "output subscript i appears more than once"),
    ("einsum('ij->ik', x)", RuntimeError, "output subscript k does not appear"),
    ("einsum('i1->i', x)", RuntimeError, "subscripts must be in"),
    ("einsum('i...j...', x)", RuntimeError, "not part of an ellipsis"),
    ("einsum(x, [0, -1])", ValueError, "not within the valid range"),
    ("histogram(x * float('nan'), 3)", RuntimeError, "a finite range, got 3 and"),
    ("histogram(x, 0)", RuntimeError, "a positive number of bins"),
    ("cosine_similarity(x, x, eps=-1).tolist()", RuntimeError, "eps must be non-negative"),
    ("mode(x[:, :0])", IndexError, "Expected reduction dim 1 to have non-zero size"),
    ("kthvalue(x[:, :0], 1)", IndexError, "Expected reduction dim 1 to have non-zero size"),
    ("vander(x)", RuntimeError, "x must be a one-dimensional tensor"),
    ("vander(v, N=-1)", RuntimeError, "N must be non-negative"),
    ("trapezoid(x, x, dx=2)", TypeError, "invalid combination of arguments"),
    ("trapezoid(x, v[:2])", RuntimeError, "one `x` value for each sample point"),
    ("cumulative_trapezoid(x, x[:, :1])", RuntimeError, "one `x` value for each sample point"),
    ("tensor_split(v, [1], 3)", IndexError, "Dimension out of range"),
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
    ("tensor(['a'])", ValueError, "too many dimensions 'str'"),
    ("tensor(['ab'], dtype=torch.float32)", ValueError, "too many dimensions 'str'"),
    ("tensor('a')", TypeError, "invalid data type 'str'"),
    ("tensor([1, 'a'])", TypeError, "invalid data type 'str'"),
    ("tensor(None)", RuntimeError, "Could not infer dtype of NoneType"),
    ("tensor([None])", RuntimeError, "Could not infer dtype of NoneType"),
    ("tensor([None], dtype=torch.float32)", TypeError, "must be real number, not NoneType"),
    ("as_tensor([object()])", RuntimeError, "Could not infer dtype of object"),
    ("tensor({})", RuntimeError, "Could not infer dtype of dict"),
    ("tensor([2**70])", ValueError, "Overflow when unpacking long long"),
    ("ones(1).new_tensor(['a'])", ValueError, "too many dimensions 'str'"),
    ("FloatTensor(['a'])", ValueError, "too many dimensions 'str'"),
    ("from_numpy(np.zeros(2, '>i4'))", ValueError, "byte order different"),
    ("tensor([np.zeros(2, '>i4')])", ValueError, "byte order different"),
    ("asarray(np.zeros(2, '>i4'))", ValueError, "byte order different"),
    ("nn.utils.rnn.pad_sequence([])", RuntimeError, "received an empty list of sequences"),
    ("set_default_device(True)", TypeError, "got bool"),
    ("set_default_tensor_type(torch.float32)", TypeError, "invalid type object"),
    ("set_default_tensor_type(torch.Tensor)", TypeError, "invalid type object"),
    ("Tensor.new(x, 2, device='meta')", RuntimeError, "legacy constructor expects device type: cpu but device type: meta was passed"),
    ("Tensor.new(x, x, device='cpu')", RuntimeError, "tensor.new\\(tensor, device=device\\) is not supported"),
    ("Tensor.new(x, x.int())", TypeError, "dtype=torch.int32"),
    ("Tensor.new(x, x.to('meta'))", TypeError, "device=meta"),
    ("FloatTensor(x, device='cpu')", RuntimeError, "torch.Tensor\\(tensor, device=device\\) is not supported"),
    ("FloatTensor(x.long())", TypeError, "dtype=torch.int64"),
    ("FloatTensor(x.to('meta'))", TypeError, "device=meta"),
    ("FloatTensor(x.to_sparse())", TypeError, "layout=torch.sparse_coo"),
    ("manual_seed(2**64)", ValueError, "Overflow when unpacking long long"),
    ("Generator().manual_seed(-(2**63) - 1)", ValueError, "Overflow when unpacking long long"),
    ("Generator().manual_seed(1.5)", RuntimeError, "manual_seed expected a long, but got float"),
    ("Generator().manual_seed(True)", RuntimeError, "manual_seed expected a long, but got bool"),
    ("add(x, 2**64)", OverflowError, "int too big to convert"),
    ("full((2,), 2**64)", OverflowError, "int too big to convert"),
    ("Tensor.__lt__(x, -(2**63) - 1)", OverflowError, "can't convert negative int to unsigned"),
    ("nn.functional.layer_norm(x, (3,), eps=10**400)", OverflowError, "int too large to convert to float"),
    ("softmax(x, 2**64)", ValueError, "Overflow when unpacking long long"),
    ("nn.functional.avg_pool2d(x[None], 2**63)", ValueError, "Overflow when unpacking long long"),
    ("Tensor.__getitem__(x, 2**70)", ValueError, "Overflow when unpacking long long"),
    ("Tensor.__setitem__(x, 0, 2**70)", ValueError, "Overflow when unpacking long long"),
    ("zeros(2, 2**63)", TypeError, "argument 'size' .*failed to unpack the object at pos 2 with error \"Overflow"),
    ("Tensor.sum(x, (0, 2**63))", TypeError, "argument 'dim' failed to unpack the object at pos 2 with error \"Overflow"),
    ("tensor([10**400])", ValueError, "Overflow when unpacking long long"),
    ("tensor([10**400], dtype=torch.float64)", OverflowError, "int too large to convert to float"),
    ("tensor([2**64], dtype=torch.uint64)", OverflowError, "int too big to convert"),
    ("linalg.vecdot(x, x.double())", RuntimeError, "Expected x and y to have the same dtype"),
    ("cross(torch.ones(3), torch.ones(3).int())", RuntimeError, "have the same dtype"),
    ("isclose(x, x.double())", RuntimeError, "have the same dtype"),
    ("linalg.householder_product(x.mT, x[0, :2].double())", RuntimeError, "tau dtype torch.float64 does not match input dtype"),
    ("Tensor.masked_scatter(x, x > 0, v).tolist()", RuntimeError, "Number of elements of source < number of ones in mask"),
    ("linalg.vecdot(x.int(), x.int())", NotImplementedError, "Expected a floating point or complex tensor as input"),
    ("cholesky_inverse(torch.zeros(2, 2))", RuntimeError, "cholesky_inverse: The diagonal element 1 is zero"),
    ("ones(1, device='meta').to('cpu')", NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 9, [])", ValueError, "a sequence of length larger than 0"),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 9, [2.5, 5])", ValueError, "unique, positive integers sorted"),
]


@pytest.mark.parametrize("call, error, message", REJECTED)
def test_rejected_arguments(torch, call, error, message):
    values = {"torch": torch, "np": np, "x": torch.ones(2, 3), "v": torch.arange(3.0)}
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


@pytest.mark.parametrize(
    "subtract",
    [
        lambda torch, x, b: x - b, lambda torch, x, b: b - x, lambda torch, x, b: 1 - b, lambda torch, x, b: b - 1,
        lambda torch, x, b: x - True, lambda torch, x, b: True - x, lambda torch, x, b: torch.sub(x, b),
        lambda torch, x, b: torch.rsub(b, x), lambda torch, x, b: x.sub_(b), lambda torch, x, b: x.subtract_(True),
        lambda torch, x, b: torch.sub(x, b, out=torch.empty(2)), lambda torch, x, b: torch._foreach_sub([x], [b]),
        lambda torch, x, b: x - torch.tensor(True),
    ],
)  # fmt: skip
def test_booleans_are_not_subtracted(torch, subtract):
    with pytest.raises(NotImplementedError, match="Subtraction, the `-` operator, with a bool tensor is not supported"):
        subtract(torch, torch.ones(2), torch.tensor([True, False]))


def test_signs_of_booleans(torch):
    b = torch.tensor([True, False])
    for call, message in (
        (lambda: b - b, "with two bool tensors"), (lambda: b - True, "with two bool tensors"), (lambda: -b, "Negation"),
        (lambda: +b, "The `.` operator"), (lambda: torch.positive(b), "The `.` operator"),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match=message):
            call()
    assert torch.diff(b).tolist() == [True]
