"""torch.vmap over the constituents of nested tensors."""

from __future__ import annotations

import pytest

import teletensor as torch

LAYOUTS = (torch.jagged, torch.strided)


def _nested(layout) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.arange(6.0).reshape(3, 2), torch.arange(4.0).reshape(2, 2)], layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", [
    lambda x: x * 2, lambda x: x.sum(), lambda x: x.sum(-1), lambda x: x.sum(0), lambda x: x.softmax(-1), lambda x: x * x.shape[0],
    lambda x: (x @ torch.ones(2, 3)).relu(), lambda x: torch.nn.functional.layer_norm(x, (2,)),
])  # fmt: skip
def test_each_constituent_is_an_entry(layout, function) -> None:
    x = _nested(layout)
    found = torch.vmap(function)(x)
    assert found.is_nested and found.layout == torch.strided
    for got, constituent in zip(found.unbind(), x.unbind(), strict=True):
        torch.testing.assert_close(got, function(constituent))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_arguments_and_several_results(layout) -> None:
    x, w = _nested(layout), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    scaled, pairs = torch.vmap(lambda a, b, c: (a * b, {"sum": a + c}), in_dims=(0, 1, None))(x, w, torch.ones(2))
    for i, constituent in enumerate(x.unbind()):
        torch.testing.assert_close(scaled.unbind()[i], constituent * w[:, i])
        torch.testing.assert_close(pairs["sum"].unbind()[i], constituent + 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients(layout) -> None:
    x = _nested(layout).requires_grad_()
    y = torch.vmap(lambda a: a.sin() * a.shape[0])(x)
    torch.cat([t.reshape(-1) for t in y.unbind()]).sum().backward()
    for got, constituent in zip(x.grad.unbind(), x.detach().unbind(), strict=True):
        torch.testing.assert_close(got, constituent.cos() * len(constituent))


def test_random_numbers_differ_or_are_refused() -> None:
    x = torch.nested.nested_tensor([torch.ones(50), torch.ones(60)], layout=torch.jagged)
    first, second = torch.vmap(lambda a: torch.nn.functional.dropout(a), randomness="different")(x).unbind()
    assert first.tolist() != second[:50].tolist()
    with pytest.raises(RuntimeError, match="random"):
        torch.vmap(lambda a: torch.nn.functional.dropout(a))(x)
    with pytest.raises(NotImplementedError, match=r"\[vmap\] randomness='same'"):
        torch.vmap(lambda a: a, randomness="same")(x)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_dimensions_are_refused(layout) -> None:
    x = _nested(layout)
    for options in ({"in_dims": 1}, {"out_dims": 1}):
        with pytest.raises(RuntimeError, match="only be vmapped over dim=0"):
            torch.vmap(lambda a: a * 2, **options)(x)
    with pytest.raises(ValueError, match="same size"):
        torch.vmap(lambda a, b: a)(x, torch.ones(3))
    with pytest.raises(RuntimeError, match="Only one level of vmap"):
        torch.vmap(lambda b: torch.vmap(lambda a: a)(x) if b.dim() else b)(torch.ones(2, 1))
    with pytest.raises(RuntimeError, match="at least one constituent"):
        torch.vmap(lambda a: a)(torch.nested.nested_tensor([]))


def test_differences_and_classes() -> None:
    x = _nested(torch.jagged).requires_grad_()
    found = torch.diff(x, dim=-1, prepend=x * 0)
    assert [t.tolist() for t in found.unbind()] == [torch.diff(t, dim=-1, prepend=t * 0).tolist() for t in x.unbind()]
    found.values().sum().backward()
    assert x.grad.unbind()[1].tolist() == [[0, 1], [0, 1]]
    with pytest.raises(RuntimeError, match=r"diff\(\): not supported for NestedTensor on ragged dim"):
        x.diff(dim=1)
    classes = torch.nested.nested_tensor([[0, 1, 2], [1]], layout=torch.jagged)
    assert [t.tolist() for t in torch.nn.functional.one_hot(classes).unbind()] == [[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0]]]
