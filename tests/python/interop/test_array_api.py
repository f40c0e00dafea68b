"""Array API features that Tensors lack; the standard's own suite runs in `make conformance`."""

import math
import subprocess
import sys

import pytest


@pytest.fixture
def xp(torch):
    import teletensor.array_api

    return teletensor.array_api


def test_arrays_are_tensors(torch, xp):
    x = xp.asarray([1.0, 2.0])
    assert isinstance(x, torch.Tensor) and x.size == 2 and torch.ones(3).size() == (3,)
    assert torch.ones(2).__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="2099.12"):
        x.__array_namespace__(api_version="2099.12")
    assert type(torch.ones(2) + x) is xp.Array and type(xp.sum(torch.ones(2))) is xp.Array
    assert type(torch.nn.functional.relu(x)) is torch.Tensor


def test_gradients_pass_through(torch, xp):
    w = torch.ones(2, requires_grad=True)
    xp.sum(xp.asarray(w) * 3).backward()
    assert w.grad.tolist() == [3, 3]


def test_zero_dim_arrays_promote_in_full(torch, xp):
    x, zero_dim = xp.ones(2, dtype=xp.float32), xp.asarray(1.0, dtype=xp.float64)
    assert (x + zero_dim).dtype is xp.float64
    assert (torch.ones(2) + torch.ones((), dtype=torch.float64)).dtype is torch.float32
    assert (xp.ones(2, dtype=xp.int8) + xp.asarray(1, dtype=xp.uint8)).dtype is xp.int16
    assert (x + 1.5).dtype is xp.float32 and (1 - x).tolist() == [0, 0]


def test_indices(xp):
    x = xp.reshape(xp.arange(6), (2, 3))
    assert x[::-1, ::-2].tolist() == [[5, 3], [2, 0]] and x[..., ::-1].tolist() == [[2, 1, 0], [5, 4, 3]]
    assert x[:, xp.asarray([2, 0], dtype=xp.uint8)].tolist() == [[2, 0], [5, 3]]
    assert x[xp.zeros((0, 3), dtype=xp.bool)].tolist() == []
    x[::-1, 0] = xp.asarray([7, 8])
    assert x.tolist() == [[8, 1, 2], [7, 4, 5]]
    with pytest.raises(IndexError):
        x[xp.zeros((0, 2), dtype=xp.bool)]


def test_in_place_keeps_the_dtype(xp):
    x = xp.asarray([1, 2])
    alias = x
    x += 2
    assert alias is x and x.tolist() == [3, 4]
    with pytest.raises(TypeError, match="float32"):
        x += 0.5
    with pytest.raises(ValueError, match="expected a result of shape"):
        x += xp.ones((2, 2), dtype=xp.int64)


def test_special_cases(xp):
    inf = math.inf
    x, y = xp.asarray([inf, -1.0, 0.0, 7.0]), xp.asarray([2.0, inf, -1.0, -2.0])
    assert (x // y).tolist() == [inf, -0.0, -0.0, -4.0]
    assert [math.copysign(1, v) for v in (x % y).tolist()[2:]] == [-1, -1]
    assert math.isnan(xp.sign(xp.asarray(math.nan)))
    assert xp.unique_counts(xp.asarray([math.nan, math.nan, 1.0])).counts.tolist() == [1, 1, 1]


def test_dtypes(xp):
    assert xp.isdtype(xp.int8, ("bool", "integral")) and not xp.isdtype(xp.int8, xp.int16)
    assert xp.can_cast(xp.uint8, xp.int16) and not xp.can_cast(xp.int16, xp.int8)
    with pytest.raises(ValueError, match="not a kind"):
        xp.isdtype(xp.int8, "whole")
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices() and info.dtypes(kind="bool") == {"bool": xp.bool}


def test_steps_of_functions(xp):
    x = xp.asarray([[3, 1], [2, 3]])
    assert xp.cumulative_sum(xp.asarray([1, 2]), include_initial=True).tolist() == [0, 1, 3]
    assert xp.repeat(xp.asarray([5, 6]), xp.asarray([2, 1])).tolist() == [5, 5, 6]
    assert xp.sum(x, axis=()).tolist() == x.tolist() and xp.sum(x, keepdims=True).shape == (1, 1)
    assert abs(float(xp.var(xp.asarray([1.0, 3.0]), correction=0.5)) - 2 / 1.5) < 1e-6
    values, indices, inverse, counts = xp.unique_all(x)
    assert (values.tolist(), indices.tolist(), counts.tolist()) == ([1, 2, 3], [1, 2, 0], [1, 1, 2])
    assert inverse.tolist() == [[2, 0], [1, 2]]
    assert xp.searchsorted(xp.asarray([3, 1]), xp.asarray([2]), sorter=xp.asarray([1, 0])).tolist() == [1]


def test_meshgrid_with_xy_indexing(torch):
    x, y = torch.meshgrid(torch.arange(3), torch.arange(2), indexing="xy")
    assert x.tolist() == [[0, 1, 2], [0, 1, 2]] and y.tolist() == [[0, 0, 0], [1, 1, 1]]


SCIPY = """
import numpy as np, scipy.special, scipy.stats, teletensor.array_api as xp
values = np.random.default_rng(0).normal(size=(50, 3))
for function in (scipy.stats.skew, scipy.stats.zscore, lambda x: scipy.special.logsumexp(x, axis=0)):
    got = function(xp.asarray(values))
    assert type(got) is xp.Array, type(got)
    np.testing.assert_allclose(got.numpy(), function(values), rtol=1e-9)
"""


def test_scipy_computes_with_arrays(daemon):
    environment = {"PYTHONPATH": ":".join(sys.path), "SCIPY_ARRAY_API": "1", "TELETENSOR_ADDRESS": daemon.address}
    done = subprocess.run([sys.executable, "-c", SCIPY], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
