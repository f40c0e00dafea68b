"""Tensors in Python: creation, indexing, operators, in-place writes, printing and errors."""

from __future__ import annotations

import copy

import numpy as np
import pytest


def test_tensor_from_data(torch):
    assert torch.tensor([1, 2]).dtype is torch.int64
    assert torch.tensor([1.0, 2]).dtype is torch.float32
    assert torch.tensor([True]).dtype is torch.bool
    assert torch.tensor(np.ones(2)).dtype is torch.float64
    assert torch.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="expected sequence of length 2 at dim 1"):
        torch.tensor([[1, 2], [3]])
    with pytest.raises(ValueError, match="too many dimensions 'str'"):
        torch.tensor(["a"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool", "float16"])
def test_numpy_round_trip(torch, dtype):
    array = (np.arange(24).reshape(2, 3, 4) % 2 if dtype == "bool" else np.arange(24).reshape(2, 3, 4)).astype(dtype)
    back = torch.from_numpy(array).numpy()
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    np.testing.assert_array_equal(torch.from_numpy(array[:, ::2].transpose(2, 0, 1)).numpy(), array[:, ::2].transpose(2, 0, 1))


def test_large_round_trip(torch):
    array = np.random.default_rng(0).standard_normal(3_000_001).astype("float32")
    np.testing.assert_array_equal(torch.from_numpy(array).numpy(), array)


INDICES = [
    np.s_[0], np.s_[-1], np.s_[1:3], np.s_[::2], np.s_[..., 0], np.s_[:, None], np.s_[1, ..., 2], np.s_[[0, 2]],
    np.s_[[0, 2], [1, 3]], np.s_[:, [1, 0]], np.s_[np.array([[0, 1], [2, 0]])], np.s_[1:, [0], ::2], np.s_[..., [1, 2], None],
    np.s_[[0, 1], :, [2, 3]], np.s_[np.array([True, False, True])], np.s_[:, np.array([True, False, True, False])],
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_getitem_and_setitem_equal_numpys(torch, index):
    array = np.arange(3 * 4 * 5, dtype="float64").reshape(3, 4, 5)
    as_tensors = tuple(torch.tensor(i) if isinstance(i, np.ndarray) else i for i in (index if isinstance(index, tuple) else (index,)))
    mine = as_tensors if isinstance(index, tuple) else as_tensors[0]
    x = torch.tensor(array)
    np.testing.assert_array_equal(x[mine].numpy(), array[index])
    x[mine] = -1
    expected = array.copy()
    expected[index] = -1
    np.testing.assert_array_equal(x.numpy(), expected)
    values = np.random.default_rng(0).standard_normal(array[index].shape)
    x[mine] = torch.tensor(values)
    expected[index] = values
    np.testing.assert_array_equal(x.numpy(), expected)


def test_boolean_mask_of_all_dimensions(torch):
    array = np.arange(12.0).reshape(3, 4)
    x = torch.tensor(array)
    assert x[x > 5].tolist() == array[array > 5].tolist()
    x[x > 5] = 0
    assert x.sum().item() == array[array <= 5].sum()


def test_index_errors_are_pythons(torch):
    x = torch.zeros(3, 4)
    for bad, kind in ((3, IndexError), ((0, 0, 0), IndexError), ("a", TypeError)):
        with pytest.raises(kind):
            x[bad]
    with pytest.raises(IndexError, match="out of bounds|out of range"):
        x[torch.tensor([5])].tolist()
    with pytest.raises(ValueError, match="step must be greater than zero"):
        x[::-1]


def test_views_alias(torch):
    x = torch.zeros(2, 3)
    y = x.t()[1]
    y += 5
    assert x.tolist() == [[0, 5, 0], [0, 5, 0]]
    x.view(-1)[0] = 7
    assert x[0, 0].item() == 7
    assert x._version == 2


def test_in_place_and_out(torch):
    x = torch.ones(3)
    assert x.add_(1) is x and x.tolist() == [2, 2, 2]
    out = torch.empty(3)
    assert torch.mul(x, 2, out=out) is out and out.tolist() == [4, 4, 4]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(3, dtype=torch.int64).add_(1.5)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(1).add_(torch.ones(3))


def test_promotion(torch):
    i, f, d = torch.ones(2, dtype=torch.int32), torch.ones(2), torch.ones((), dtype=torch.float64)
    assert (i + 1).dtype is torch.int32
    assert (i + 1.5).dtype is torch.float32
    assert (i + f).dtype is torch.float32
    assert (f + d).dtype is torch.float32
    assert (i / i).dtype is torch.float32
    assert (i > 0).dtype is torch.bool
    assert torch.result_type(i, 1.5) is torch.float32


def test_python_protocols(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2 and [r.sum().item() for r in x] == [3, 7]
    assert float(x[0, 0]) == 1 and int(x[1, 1]) == 4 and bool(x[0, 0])
    assert [10, 20, 30][torch.tensor(1)] == 20
    assert 3.0 in x and (1 - x)[0, 0].item() == 0 and (2 ** x)[0, 1].item() == 4
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(x)
    assert (x == None) is False  # noqa: E711 - the comparison is under test
    assert np.asarray(x).tolist() == x.tolist()
    assert copy.deepcopy(x) is not x and copy.deepcopy(x).tolist() == x.tolist()
    x.note = "kept"
    assert x.note == "kept"
    assert {x: 1}[x] == 1


def test_printing(torch):
    assert repr(torch.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(torch.tensor([1, 20])) == "tensor([ 1, 20])"
    assert repr(torch.zeros(0)) == "tensor([])"
    assert repr(torch.ones(2, dtype=torch.float64)) == "tensor([1., 1.], dtype=torch.float64)"
    assert "..." in repr(torch.zeros(2000))
    assert repr(torch.ones(1, requires_grad=True) * 2) == "tensor([2.], grad_fn=<MulBackward0>)"


def test_errors_are_immediate_and_keep_the_engine_usable(torch):
    before = torch.connection().counters()["frames"]
    with pytest.raises(RuntimeError, match=r"\[matmul\].*\(2x3 and 2x3\)"):
        torch.ones(2, 3) @ torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(2) + torch.ones(2, device="meta")
    with pytest.raises(TypeError, match="add.*must be Tensor, not str"):
        torch.add(torch.ones(1), "x")
    with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
        torch.sum(torch.ones(1), nope=1)
    assert torch.connection().counters()["frames"] - before < 20
    assert torch.ones(2).sum().item() == 2


def test_failure_in_the_engine_poisons_dependents(torch):
    bad = torch.zeros(3)[torch.tensor([7])]
    later = (bad * 2).sum() + torch.ones(())
    with pytest.raises(IndexError, match=r"index 7 is out of bounds.*test_tensor.py:\d+"):
        later.item()
    assert torch.ones(1).item() == 1


def test_dtypes_and_devices(torch):
    assert repr(torch.float32) == "torch.float32" and torch.float32.itemsize == 4
    assert torch.device("cuda:1").index == 1 and str(torch.device("cpu")) == "cpu"
    assert torch.device("cpu") == torch.zeros(1).device
    assert copy.copy(torch.float32) is torch.float32
    assert torch.finfo(torch.float32).eps == 2**-23 and torch.iinfo(torch.int8).max == 127
    with pytest.raises(RuntimeError, match="cuda"):
        torch.zeros(1, device="cuda:99").sum().item()


def test_einsum_equals_numpys(torch):
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 5)), rng.standard_normal((3, 3))
    for equation, operands in {
        "bij,jk->bik": (a, b), "bij->bji": (a,), "ii->i": (c,), "ii": (c,), "bij,bij->b": (a, a), "...j,jk": (a, b),
        "bij,jk,il->bkl": (a, b, c), "ij,kl->ijkl": (b, c),
    }.items():  # fmt: skip
        np.testing.assert_allclose(
            torch.einsum(equation, *map(torch.tensor, operands)).numpy(), np.einsum(equation, *operands), rtol=1e-9, atol=1e-9
        )


def test_random_numbers_repeat(torch):
    torch.manual_seed(3)
    first = torch.randn(5).tolist(), torch.rand(3).tolist()
    torch.manual_seed(3)
    assert (torch.randn(5).tolist(), torch.rand(3).tolist()) == first
    state = torch.get_rng_state()
    one = torch.rand(2).tolist()
    torch.set_rng_state(state)
    assert torch.rand(2).tolist() == one


def test_bernoulli_draws_with_the_probabilities_given(torch):
    assert torch.bernoulli(torch.zeros(64)).sum().item() == 0
    assert torch.ones(64).bernoulli().sum().item() == 64
    assert torch.ones(64).bernoulli_(0.0).sum().item() == 0


def test_float32_matmul_precision_is_set_under_both_names(torch):
    try:
        torch.set_float32_matmul_precision("high")
        assert torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = False
        assert torch.get_float32_matmul_precision() == "highest"
        with pytest.raises(RuntimeError, match="low is not one of"):
            torch.set_float32_matmul_precision("low")
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    finally:
        torch.set_float32_matmul_precision("highest")


def test_precision_of_float32(torch):
    backends, before = torch.backends, torch.backends.cudnn.allow_tf32
    parts = {"matmul": backends.cuda.matmul, "cudnn": backends.cudnn, "conv": backends.cudnn.conv, "cpu": backends.mkldnn.conv}

    def check(**expected):
        assert {name: parts[name].fp32_precision for name in expected} == expected

    try:
        check(matmul="none", cudnn="none", conv="tf32", cpu="none")
        backends.fp32_precision = "ieee"
        check(matmul="ieee", cudnn="ieee", conv="ieee", cpu="ieee")
        assert not backends.cudnn.allow_tf32
        backends.fp32_precision = "tf32"
        check(matmul="tf32", conv="tf32", cpu="tf32")
        assert torch.get_float32_matmul_precision() == "high" and backends.cuda.matmul.allow_tf32
        with pytest.raises(NotImplementedError, match="recurrent layers have the precision of matrix products"):
            backends.cudnn.rnn.fp32_precision = "ieee"
        backends.cuda.matmul.fp32_precision = backends.cudnn.conv.fp32_precision = "ieee"
        check(matmul="ieee", cudnn="tf32", conv="ieee", cpu="tf32")
        assert torch.get_float32_matmul_precision() == "highest"
        torch.set_float32_matmul_precision("high")
        check(matmul="tf32")
        backends.fp32_precision = "bf16"
        check(matmul="tf32", cudnn="none", cpu="bf16")
        for part, value, text in ((backends, "half", "Unknown precision: half"), (backends.cudnn, "bf16", "'cuda' does not support")):
            with pytest.raises(RuntimeError, match=text):
                part.fp32_precision = value
        with backends.cudnn.flags(allow_tf32=False):
            assert not backends.cudnn.allow_tf32
            assert torch.nn.functional.conv1d(torch.ones(1, 1, 3), torch.ones(1, 1, 2)).tolist() == [[[2.0, 2.0]]]
    finally:
        for part in (backends, backends.cudnn, backends.cuda.matmul):
            part.fp32_precision = "none"
        backends.cudnn.allow_tf32 = before
        torch.set_float32_matmul_precision("highest")


def test_constructors_by_sizes_and_by_data(torch):
    assert torch.Tensor([[1, 2.5]]).tolist() == [[1, 2.5]] and torch.Tensor([1]).dtype is torch.float32
    assert torch.Tensor(2, 3).shape == torch.Tensor(torch.Size([2, 3])).shape == (2, 3) and torch.Tensor().shape == (0,)
    assert torch.LongTensor(torch.Size([2, 3])).shape == (2, 3) and torch.LongTensor([2, 3]).tolist() == [2, 3]
    with pytest.raises(TypeError, match="sizes as ints"):
        torch.Tensor(1, 2.5)


def test_numpy_arrays_as_indices(torch):
    x = torch.arange(6).reshape(3, 2)
    assert x[np.array([2, 0])].tolist() == [[4, 5], [0, 1]] and x[np.array([2, 0]), :].tolist() == [[4, 5], [0, 1]]
    assert x[np.int64(1)].tolist() == [2, 3] and x[np.array(1)].tolist() == [2, 3]
    assert x[np.array([True, False, True]), np.array([0, 1])].tolist() == [0, 5]


@pytest.mark.parametrize("dtype", ["float32", "int32", "int16", "uint8", "int64", "complex64", "float16"])
def test_view_as_another_dtype_shares_bytes(torch, dtype):
    numbers = np.arange(24, dtype="float32").reshape(3, 8)
    x = torch.tensor(numbers)
    view, expected = x.view(getattr(torch, dtype)), numbers.view(dtype)
    np.testing.assert_array_equal(view.numpy(), expected)
    np.testing.assert_array_equal(x[1:, 2:6].view(getattr(torch, dtype)).numpy(), numbers[1:, 2:6].view(dtype))
    view.zero_()
    assert x.count_nonzero().item() == 0


def test_view_as_dtype_of_incompatible_size(torch):
    with pytest.raises(RuntimeError, match=r"self.size\(-1\) must be divisible by 2 to view Float as Double"):
        torch.ones(2, 3).view(torch.float64)
    with pytest.raises(RuntimeError, match=r"self.stride\(-1\) must be 1"):
        torch.ones(4, 4).T.view(torch.float64)
    with pytest.raises(RuntimeError, match=r"self.storage_offset\(\) must be divisible by 2"):
        torch.ones(4, 6)[:, 1:5].view(torch.float64)
    with pytest.raises(RuntimeError, match=r"self.dim\(\) cannot be 0"):
        torch.tensor(1.0).view(torch.uint8)


def test_text_of_parameters(torch):
    class Weight(torch.nn.Parameter):
        pass

    p, w = torch.nn.Parameter(torch.ones(1)), Weight(torch.ones(1))
    assert repr(p) == "Parameter containing:\ntensor([1.], requires_grad=True)"
    assert torch.Tensor.__repr__(p) == "tensor([1.], requires_grad=True)"
    assert repr(w) == "Parameter containing:\nParameter(Weight([1.], requires_grad=True))"
    assert torch.Tensor.__repr__(w) == "Parameter(Weight([1.], requires_grad=True))"


def test_messages_about_indices(torch):
    x = torch.zeros(2, 3, 4)
    for index, dim in (((0, 5), 1), ((None, 0, slice(1), 5), 2), ((..., 5), 2), ((True, 5), 0), ((torch.tensor([0]), 5), 1)):
        with pytest.raises(IndexError, match=f"index 5 is out of bounds for dimension {dim} with size {x.shape[dim]}"):
            x[index]
    with pytest.warns(UserWarning, match="torch.uint8 is now deprecated"):
        assert x[torch.ones(2, dtype=torch.uint8)].shape == x.shape


def test_sums_of_sizes_and_tuples_are_sizes(torch):
    size = torch.Size([1, 2])
    for result in (size + (), () + size, (4, 5) + size, size + (4, 5), sum([size, size], ())):
        assert type(result) is torch.Size
    assert (4, 5) + size == (4, 5, 1, 2) and size + (4, 5) == (1, 2, 4, 5)
    for wrong in (lambda: size + [1], lambda: [1] + size, lambda: size + (1.5,), lambda: (1.5,) + size):
        with pytest.raises(TypeError):
            wrong()
