"""Operators of a shared object: values, arguments, layouts, gradients, errors."""

from __future__ import annotations

import os

import numpy as np
import pytest


@pytest.fixture
def ops(torch):
    return torch.ops.check


def tensor_pair(torch, dtype):
    a = torch.arange(12, dtype=dtype).reshape(3, 4)
    return a, torch.arange(4, dtype=dtype) + 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_value(torch, ops, dtype, scale):
    a, b = tensor_pair(torch, getattr(torch, dtype))
    result = ops.scaled_add(a, b, scale=scale)
    assert result.dtype == getattr(torch, dtype) and result.shape == (3, 4)
    np.testing.assert_array_equal(result.numpy(), (a.numpy() + scale * b.numpy()).astype(dtype))


@pytest.mark.parametrize(
    "make",
    [
        lambda t: (t.randn(3, 4).t(), t.randn(4, 3)),
        lambda t: (t.randn(5, 6)[1::2, ::3], t.randn(2)),
        lambda t: (t.randn(3, 1).expand(3, 4), t.randn(4)),
        lambda t: (t.randn(()), t.randn(2, 3)),
        lambda t: (t.randn(()), t.randn(())),
        lambda t: (t.randn(0, 4), t.randn(4)),
        lambda t: (t.randn(2, 0, 3), t.randn(3)),
    ],
)
def test_layouts(torch, ops, make):
    a, b = make(torch)
    result = ops.scaled_add(a, b, scale=0.5)
    expected = a.numpy() + np.float32(0.5) * b.numpy()
    assert result.shape == expected.shape and result.is_contiguous()
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_strides(torch, ops):
    x = torch.zeros(3, 4).t()
    assert ops.strides(x).tolist() == [3, 1]  # a contiguous copy
    assert ops.any_strides(x).tolist() == [1, 4]


@pytest.mark.parametrize(
    ("keywords", "changed"),
    [
        ({}, {}),
        ({"b": 3}, {1: 3}),
        ({"c": 2}, {2: 4}),
        ({"d": -7, "e": 1.25, "f": False}, {3: -7, 4: 1.25, 5: 0}),
        ({"g": 9}, {6: 9}),
        ({"h": [1, 2, 3], "i": [0.25, 1.0], "j": "a"}, {7: 3, 8: 0.25, 9: ord("a")}),
        ({"h": [], "i": [], "j": ""}, {7: 0, 8: -1, 9: -1}),
        ({"k": "int8", "l": 2.5}, {10: 2, 11: 2.5}),
    ],
)
def test_arguments(torch, ops, keywords, changed):
    given = dict(keywords)
    if "b" in given:
        given["b"] = torch.zeros(given["b"])
    if "c" in given:
        given["c"] = [torch.zeros(given["c"])] * 2
    if "k" in given:
        given["k"] = getattr(torch, given["k"])
    expected = [5, -1, 0, 4, 0.5, 1, -1, 2, 2.5, ord("w"), 9, 3]
    for place, value in changed.items():
        expected[place] = value
    assert ops.describe(torch.zeros(5), **given).tolist() == expected


def test_rules_of_several_results(torch, ops):
    a, b = torch.zeros(3, 5, dtype=torch.int32), torch.zeros(2, 4)
    first, second = ops.matrix(a, b, 7)
    assert (first.shape, first.dtype) == ((3, 8, 7), torch.float32)
    assert (second.shape, second.dtype) == ((3, 5, 7), torch.float32)


def test_rule_in_the_library(torch, ops):
    x = torch.tensor([1.0, 2.0])
    for times in ([1, 2], [2], [1, 2], []):
        result = ops.repeat(x, times)
        assert result.shape == (sum(times), 2)
        assert result.tolist() == [[1.0, 2.0]] * sum(times)
    with pytest.raises(RuntimeError, match="expected a vector"):
        ops.repeat(torch.zeros(2, 2), [1])


def test_body(torch, ops):
    x = torch.randn(300, 40)
    want = x.numpy() * 2.0 / (1 + np.abs(x.numpy()))
    np.testing.assert_allclose(ops.softsign(x, 2.0).numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(ops.softsign(x.t(), 2.0).numpy(), want.T, rtol=1e-6)
    assert ops.softsign(x.t()).stride() == (x.t() / x.t()).stride()
    a, b = torch.randn(4, 1, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    want = np.maximum(a.numpy(), b.numpy()) * 3 + np.exp(-(a.numpy() ** 2))
    np.testing.assert_allclose(ops.blend(a, b, weight=3).numpy(), want, rtol=1e-12)
    assert ops.softsign(torch.zeros(0, 3)).shape == (0, 3)
    assert ops.softsign(torch.tensor(-1.0)).item() == -0.5
    assert ops.softsign(torch.tensor([1, -3])).tolist() == [0.5, -0.75]


def test_gradients(torch, ops):
    double = {"dtype": torch.float64, "requires_grad": True}
    a, b = torch.randn(3, 4, **double), torch.randn(4, **double)
    assert torch.autograd.gradcheck(lambda a, b: ops.scaled_add(a, b, scale=2.5), (a, b))
    assert torch.autograd.gradcheck(lambda a, b: ops.blend(a, b, weight=0.5), (a, b))
    x = torch.randn(5, **double)
    for function in (ops.cube, ops.softsign):
        assert torch.autograd.gradcheck(function, (x,))
        assert torch.autograd.gradgradcheck(function, (x,))
    ops.cube(x.reshape(5, 1)[:, 0]).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * x.detach().numpy() ** 2)
    y = torch.randn(3, requires_grad=True)
    ops.repeat(y, [2, 1]).sum().backward()
    assert y.grad.tolist() == [3.0] * 3


def test_without_gradient(torch, ops):
    x = torch.ones(3, requires_grad=True)
    assert not ops.strides(x).requires_grad
    with pytest.raises(NotImplementedError, match="check::no_gradient.*declares no gradient"):
        ops.no_gradient(x)
    with torch.no_grad():
        assert ops.no_gradient(x).shape == (3,)
    with pytest.raises(RuntimeError, match=r"gradient for 'x' has the sizes \[3\], expected \[2\]"):
        z = torch.ones(2, requires_grad=True)
        ops.wrong_gradient(z).sum().backward()
        z.grad.tolist()


def test_modified_argument(torch, ops):
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = x * 2
    result = ops.cube(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()
        x.grad.tolist()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("throwing", "thrown a C\\+\\+ exception: thrown on purpose"),
        ("throwing_int", "an exception of an unknown type"),
        ("throwing_rule", "thrown by a rule"),
        ("failing", "returned the error 3 without a message"),
        ("silent_rule", "has not set the result 0"),
        ("negative_rule", "negative size"),
        ("overflowing_rule", "too large"),
        ("dtype_rule", "unknown dtype 99"),
        ("huge_rule", "out of memory|memory"),
    ],
)
def test_failing_library(torch, ops, name, message):
    x = torch.ones(2)
    with pytest.raises((RuntimeError, MemoryError), match=message):
        getattr(ops, name)(x).sum().item()
    assert ops.parallel(x).tolist() == [2.0, 2.0]  # the session and the engine go on


def test_memory_of_a_kernel_is_limited(torch, ops):
    x = torch.ones(2)
    assert ops.greedy(x, 1 << 20).shape == (2,)
    with pytest.raises((RuntimeError, MemoryError), match="out of memory|memory"):
        ops.greedy(x, 1 << 60).sum().item()
    assert (x + 1).tolist() == [2.0, 2.0]


def test_parallel_loop(torch, ops):
    x = torch.randn(10_000)
    np.testing.assert_array_equal(ops.parallel(x).numpy(), x.numpy() + np.float32(1))


def test_wrong_calls(torch, ops):
    x = torch.ones(2)
    for call in (
        lambda: ops.scaled_add(x),
        lambda: ops.scaled_add(x, 1.0),
        lambda: ops.scaled_add(x, x, 2.0),
        lambda: ops.scaled_add(x, x, factor=2),
        lambda: ops.blend(x, x),
        lambda: ops.softsign(x, out=torch.zeros(2)),
        lambda: ops.softsign(x, requires_grad=True),
        lambda: ops.repeat(x, 1, 2),
    ):
        with pytest.raises(RuntimeError, match="check::"):
            call()
    with pytest.raises(RuntimeError, match="type 'float' for argument 'scale'"):
        ops.scaled_add(x, x, scale="two")
    with pytest.raises(RuntimeError, match="check::scaled_add.*size of tensor|broadcast"):
        ops.scaled_add(torch.ones(3), torch.ones(2))
    with pytest.raises(RuntimeError, match="expected float32, float64 or int64"):
        ops.scaled_add(x.half(), x.half()).tolist()
    with pytest.raises(AttributeError, match="missing"):
        _ = ops.missing


def test_cancelled_kernel(torch, ops):
    import teletensor

    result = ops.endless(torch.ones(2))
    teletensor._connection._current.cancel()
    with pytest.raises(RuntimeError, match="cancel"):
        result.tolist()
    assert ops.parallel(torch.ones(1)).tolist() == [2.0]


def test_others_compute_while_kernels_run_that_ask_whether_they_are_cancelled(torch, ops, operators_engine):
    """More such kernels than the engine has processors; the wait ends early if it does not hang."""
    from teletensor import _C, _connection

    own, others, running = _connection._current, [], []
    try:
        for _ in range(len(os.sched_getaffinity(0)) + 1):
            others.append(_connection._open(operators_engine.address, "", 0, "auto", False, {}))
            _connection._current = others[-1]
            _C.set_session(others[-1])
            running.append(ops.endless(torch.ones(2)))
            _C.Connection.flush(others[-1])
    finally:
        _connection._current = own
        _C.set_session(own)
    for _ in range(5):
        assert torch.ones(3).sum().item() == 3
    for session in others:
        session.cancel()
    for result in running:
        with pytest.raises(RuntimeError, match="cancel"):
            result.tolist()
    for session in others:
        session.close()


def test_meta_tensors(torch, ops):
    a, b = torch.empty(3, 1, device="meta"), torch.empty(4, device="meta")
    assert ops.scaled_add(a, b).shape == (3, 4)
    assert ops.softsign(a).device.type == "meta"
    assert ops.repeat(b, [2, 3]).shape == (5, 4)


def test_schema_and_names(torch, ops):
    assert {"scaled_add", "cube", "softsign"} <= set(dir(ops))
    assert str(ops.cube.default) == "check.cube.default"
    assert "Tensor? b=None" in str(ops.describe.default._schema)
    assert ops.scaled_add is torch.ops.check.scaled_add
