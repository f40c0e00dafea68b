"""Tensors combined with NumPy's arrays, numbers and functions: results and exceptions are PyTorch's."""

from __future__ import annotations

import operator

import numpy as np
import pytest

NEEDS_GRAD = "Can't call numpy\\(\\) on Tensor that requires grad"


def array(dtype="float64"):
    return np.array([1, 2, 4], dtype=dtype)


# (operator, tensor's dtype, array's dtype, result's dtype): NumPy promotes, and PyTorch converts the result to a
# tensor.
ARITHMETIC = [
    (operator.add, "float32", "float64", "float64"),
    (operator.add, "float32", "float32", "float32"),
    (operator.add, "float32", "int32", "float64"),
    (operator.add, "float32", "bool", "float32"),
    (operator.add, "int64", "float32", "float64"),
    (operator.add, "int64", "int32", "int64"),
    (operator.add, "complex64", "float64", "complex128"),
    (operator.add, "float16", "float64", "float64"),
    (operator.sub, "float32", "float64", "float64"),
    (operator.mul, "float32", "float32", "float32"),
    (operator.truediv, "int64", "int32", "float64"),
    (operator.floordiv, "float32", "float64", "float64"),
    (operator.mod, "int64", "int32", "int64"),
    (operator.pow, "float32", "float32", "float32"),
    (operator.matmul, "float32", "float64", "float64"),
    (operator.and_, "int64", "int32", "int64"),
    (operator.or_, "bool", "bool", "uint8"),
    (operator.xor, "int64", "bool", "int64"),
    (operator.lshift, "int64", "int32", "int64"),
    (operator.iadd, "float32", "float64", "float64"),  # the name is bound to a new tensor
    (operator.imul, "int64", "float32", "float64"),
    (operator.itruediv, "float32", "float32", "float32"),
    (operator.ipow, "float32", "int32", "float64"),
]


@pytest.mark.parametrize(("function", "of_tensor", "of_array", "expected"), ARITHMETIC)
def test_tensor_operator_array(torch, function, of_tensor, of_array, expected):
    tensor = torch.tensor([3, 2, 1]).to(getattr(torch, of_tensor))
    result = function(tensor, array(of_array))
    assert type(result) is torch.Tensor and result.dtype is getattr(torch, expected)
    reference = {"iadd": "add", "imul": "mul", "itruediv": "truediv", "ipow": "pow"}.get(function.__name__, function.__name__)
    np.testing.assert_allclose(result.numpy(), getattr(operator, reference)(tensor.numpy(), array(of_array)))


COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("function", COMPARISONS)
@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
def test_comparisons(torch, function, dtype):
    tensor = torch.tensor([3.0, 2.0, 0.0], requires_grad=True)
    for result, expected in (
        (function(tensor, array(dtype)), function(np.array([3.0, 2.0, 0.0]), array(dtype))),
        (function(array(dtype), tensor), function(array(dtype), np.array([3.0, 2.0, 0.0]))),
    ):
        assert type(result) is torch.Tensor and result.dtype is torch.bool
        assert result.tolist() == expected.tolist()
    with pytest.raises(RuntimeError, match="must match the size"):
        function(tensor, np.ones(2))
    with pytest.raises(TypeError, match="can't convert np.ndarray"):
        function(tensor, np.array(["a", "b", "c"]))


def test_array_operator_tensor(torch):
    tensor = torch.tensor([1.0, 2.0, 4.0])
    for function in (operator.add, operator.sub, operator.mul, operator.pow, operator.matmul, operator.iadd):
        with pytest.raises(TypeError):
            function(array(), tensor)
    result = array() / tensor
    assert type(result) is torch.Tensor and result.dtype is torch.float64 and result.tolist() == [1, 1, 1]


def test_gradients_are_not_lost_silently(torch):
    tensor = torch.ones(3, requires_grad=True)
    for function in (
        lambda: tensor + array(), lambda: array() / tensor, lambda: np.add(array(), tensor), lambda: np.sin(tensor),
        lambda: np.asarray(tensor), lambda: np.stack([tensor, tensor]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=NEEDS_GRAD):
            function()


# A NumPy number combined with a tensor is a scalar: it does not change the tensor's dtype within its kind.
NUMBERS = [
    ("float32", np.float32(2), "float32"),
    ("float32", np.float64(2), "float32"),
    ("float32", np.int64(2), "float32"),
    ("int64", np.int64(2), "int64"),
    ("int64", np.float32(2), "float32"),
    ("bfloat16", np.float64(2), "bfloat16"),
    ("float32", np.complex128(2), "complex64"),
    ("float32", np.complex64(2), "complex64"),  # PyTorch drops the imaginary part
]


@pytest.mark.parametrize(("of_tensor", "number", "expected"), NUMBERS)
def test_numbers(torch, of_tensor, number, expected):
    tensor = torch.tensor([1, 2, 3]).to(getattr(torch, of_tensor))
    for result in (tensor * number, number * tensor):
        assert type(result) is torch.Tensor and result.dtype is getattr(torch, expected)
        assert result.tolist() == [2, 4, 6]
    assert (tensor == number).tolist() == [False, True, False]
    if tensor.is_floating_point() and not isinstance(number, np.complexfloating):
        leaf = tensor.clone().requires_grad_()
        (number * leaf).sum().backward()
        assert leaf.grad.tolist() == [2, 2, 2]


def test_complex_numbers_keep_both_parts(torch):
    assert (torch.ones(1) * np.complex64(1 + 2j)).tolist() == [1 + 2j]


UFUNCS = [
    (np.sin, "float32", "float32"), (np.sin, "int64", "float64"), (np.abs, "int64", "int64"), (np.isnan, "float32", "uint8"),
    (np.logical_not, "bool", "uint8"), (np.add.reduce, "int64", "int64"), (np.cumsum, "float32", "float32"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "dtype", "expected"), UFUNCS)
def test_ufuncs(torch, function, dtype, expected):
    tensor = torch.tensor([1, 0, 3]).to(getattr(torch, dtype))
    result = function(tensor)
    assert type(result) is torch.Tensor and result.dtype is getattr(torch, expected)
    np.testing.assert_allclose(result.numpy(), function(tensor.numpy()), rtol=1e-6)


def test_functions_of_several_arguments(torch):
    tensor = torch.tensor([1.0, 2.0, 3.0])
    fraction, whole = np.modf(tensor)
    assert type(fraction) is type(whole) is torch.Tensor and whole.tolist() == [1, 2, 3]
    assert np.greater(tensor, array()).dtype is torch.uint8
    assert np.maximum(array(), tensor).tolist() == [1, 2, 4]
    assert isinstance(np.stack([tensor, tensor]), np.ndarray) and isinstance(np.where(tensor > 1, tensor, 0), np.ndarray)
    assert isinstance(np.asarray(tensor, dtype="float16"), np.ndarray)
    target = array()
    target[:] = tensor
    assert target.tolist() == [1, 2, 3]
    with pytest.raises(TypeError):
        np.add(array(), 1, out=tensor)
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.asarray(tensor, copy=False)


def test_objects_without_array(torch):
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        torch.ones(3, device="meta") + array()
    with pytest.raises(TypeError, match="unsupported ScalarType BFloat16"):
        torch.ones(3).bfloat16() + array()
    with pytest.raises(TypeError):
        torch.ones(3).add(array())


def test_lists_of_arrays(torch):
    assert torch.tensor([np.ones(2), np.ones(2)]).dtype is torch.float64
    assert torch.tensor([np.float32(1), np.int32(2)]).dtype is torch.float32
    assert torch.tensor([np.int32(1), np.int32(2)]).dtype is torch.int32
    assert torch.tensor([torch.tensor(1), 2.5]).tolist() == [1, 2.5]


def test_contains(torch):
    tensor = torch.tensor([1.0, 2.0])
    assert 2 in tensor and np.float32(2) in tensor and 3 not in tensor
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in tensor  # noqa: B015
