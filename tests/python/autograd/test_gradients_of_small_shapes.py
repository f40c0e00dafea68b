"""Gradients of operators with indices for all combinations of zero-dim, empty and one-element tensors: an error or a gradient of the
input's sizes, and never the end of the engine.
"""

import itertools

import pytest

SHAPES = [(), (1,), (2,), (0,), (1, 1), (0, 2)]
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
CALLS = {
    "scatter": lambda a, i, b: a.scatter(0, i, b),
    "scatter, last": lambda a, i, b: a.scatter(-1, i, b),
    "scatter_add": lambda a, i, b: a.scatter_add(0, i, b),
    **{f"scatter_reduce, {r}": lambda a, i, b, r=r: a.scatter_reduce(0, i, b, r) for r in REDUCTIONS},
    **{f"scatter_reduce, {r}, without self": lambda a, i, b, r=r: a.scatter_reduce(0, i, b, r, include_self=False) for r in REDUCTIONS},
    **{f"index_reduce, {r}": lambda a, i, b, r=r: a.index_reduce(0, i, b, r) for r in REDUCTIONS[1:]},
    "index_add": lambda a, i, b: a.index_add(0, i, b),
    "index_copy": lambda a, i, b: a.index_copy(0, i, b),
    "index_put": lambda a, i, b: (a * 1).index_put((i,), b),
    "index_put, accumulate": lambda a, i, b: (a * 1).index_put((i,), b, accumulate=True),
    "put": lambda a, i, b: (a * 1).put(i, b),
    "put, accumulate": lambda a, i, b: (a * 1).put(i, b, accumulate=True),
    "masked_scatter": lambda a, i, b: (a * 1).masked_scatter(i == 0, b),
    "where": lambda a, i, b: a.where(i == 0, b),
    "gather": lambda a, i, b: a.gather(0, i) + b,
    "index_select": lambda a, i, b: a.index_select(0, i) + b,
    "take": lambda a, i, b: a.take(i) + b,
    "take_along_dim": lambda a, i, b: a.take_along_dim(i, 0) + b,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_gradients_have_the_sizes_of_the_inputs(torch, name):
    computed = 0
    for of_input, of_index, of_source in itertools.product(SHAPES, repeat=3):
        a, b = (torch.ones(s, requires_grad=True) for s in (of_input, of_source))
        try:
            CALLS[name](a, torch.zeros(of_index, dtype=torch.int64), b).sum().backward()
            gradients = [(t.grad.tolist(), t.grad.shape, t.shape) for t in (a, b) if t.grad is not None]
        except ConnectionError:
            raise
        except (RuntimeError, IndexError, ValueError):
            continue
        computed += 1
        assert all(shape == expected for _, shape, expected in gradients), (of_input, of_index, of_source)
    assert computed > 0


def test_equal_elements_share_the_gradient_of_nanmedian(torch):
    nan, inf = float("nan"), float("inf")
    for values, expected in (
        ([1, 2, 2, 3], [0, 0.5, 0.5, 0]),
        ([nan, 1, 1, nan, 5], [0, 0.5, 0.5, 0, 0]),
        ([nan, nan], [0.5, 0.5]),
        ([-inf, -inf, 1], [0.5, 0.5, 0]),
        ([inf, inf, inf, 1], [1 / 3, 1 / 3, 1 / 3, 0]),
    ):
        x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        median = x.nanmedian()
        assert median.isnan().item() or median.item() == x.detach().nanmedian().item()
        median.backward()
        assert x.grad.tolist() == pytest.approx(expected)
