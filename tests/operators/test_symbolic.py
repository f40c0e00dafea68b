"""Samples of operators under make_fx with symbols for their sizes: the graph's results are those of the call, also at other sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.operators.samples import arguments, call, tensor, values
from tests.operators.test_mapped import MAPPED, leaves_of, replaced
from tests.python.export.test_random_sizes import guards_hold


def symbolic_call(torch, sample):
    kwargs = arguments(torch, sample, lambda _, array: tensor(torch, array))
    places = leaves_of(kwargs)
    inputs = [kwargs[n] if i is None else kwargs[n][i] for n, i in places]
    return (lambda *tensors: call(torch, sample, replaced(kwargs, places, tensors))), inputs


def grown(torch, inputs, by):
    """The inputs with sizes of at least 2 changed, equal ones in the same way; the elements are repeated."""
    found = []
    for t in inputs:
        for dim, size in enumerate(tuple(t.shape)):
            if size >= 2:
                t = t.index_select(dim, torch.arange(by(size)) % size)
        found.append(t)
    return found


def check(graph, inputs, expected):
    for a, b in zip(graph(*inputs), expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(values(a), values(b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sample", MAPPED, ids=str)
def test_graph_serves_other_sizes(torch, sample):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    f, inputs = symbolic_call(torch, sample)
    try:
        graph = make_fx(f, tracing_mode="symbolic")(*inputs)
    except NotImplementedError as e:
        assert "sizes of its results depend on values" in str(e)
        return
    check(graph, inputs, f(*inputs))
    for by in (lambda n: n + 1, lambda n: 2 * n, lambda n: max(n - 1, 2)):
        others = grown(torch, inputs, by)
        try:
            expected = f(*others)
            [values(t) for t in expected]
        except (RuntimeError, IndexError, ValueError, TypeError):  # the elements do not fit these sizes
            continue
        if guards_hold(torch, graph, others):
            check(graph, others, expected)
