"""`y.data = z` of a tensor with a history: y has z's storage, and its history."""

from __future__ import annotations

import pytest

import teletensor as torch


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0], requires_grad=True)


def test_gradients_reach_what_the_tensor_was_computed_from(x):
    y = x * 3
    y.data = torch.tensor([10.0, 20.0])
    (y * y).sum().backward()
    assert y.tolist() == [10, 20] and x.grad.tolist() == [60, 120]
    assert y.requires_grad and not y.is_leaf


def test_storage_is_that_of_the_data(x):
    y, z = x * 3, torch.tensor([10.0, 20.0])
    y.data = z
    z[0] = 7
    y.data.add_(1)
    assert y.tolist() == z.tolist() == [8, 21]
    y.add_(1)
    (y * y).sum().backward()
    assert z.tolist() == [9, 22] and x.grad.tolist() == [54, 132]


def test_earlier_graphs_and_views_keep_their_values(x):
    y = x.exp()
    twice, view, expected = y * 2, y[:1], y.tolist()
    y.data = torch.zeros(2)
    (twice.sum() + y.sum()).backward()
    assert view.tolist() == expected[:1] and x.grad.tolist() == pytest.approx([3 * e for e in expected])


def test_hooks_and_retained_gradients(x):
    y, seen = x * 3, []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    y.data = torch.tensor([5.0, 6.0])
    (y * y).sum().backward()
    assert y.grad.tolist() == [10, 12] and seen == [[10, 12]] and x.grad.tolist() == [30, 36]


def test_without_recording(x):
    y = x * 2
    with torch.no_grad():
        y.data = torch.ones(2)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_input_of_a_module():
    """As Captum's layer-wise relevance propagation writes it."""
    linear = torch.nn.Linear(2, 1, bias=False)
    linear.register_forward_pre_hook(lambda module, inputs: setattr(inputs[0], "data", torch.full((1, 2), 4.0)))
    x = torch.ones(1, 2, requires_grad=True)
    result = linear(x * 2)
    result.backward()
    assert result.item() == pytest.approx(4 * linear.weight.sum().item())
    assert linear.weight.grad.tolist() == [[4, 4]] and x.grad.tolist() == (2 * linear.weight).tolist()


@pytest.mark.parametrize("data", [torch.ones(3), torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.int64)])
def test_other_metadata_is_refused(x, data):
    y = x * 3
    with pytest.raises(NotImplementedError, match="expected the sizes, dtype and device of the tensor"):
        y.data = data
    assert y.tolist() == [3, 6]
