"""`p.grad.data = y`, `p.grad.detach_()` and operators in place that give `p.grad` another storage change the gradient of p."""

from __future__ import annotations

import pytest


def _leaf(torch):
    p = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (p * p).sum().backward()
    return p


def test_data_of_a_gradient(torch):
    p, y = _leaf(torch), torch.tensor([10.0, 20.0, 30.0])
    kept = p.grad
    p.grad.data = y
    assert p.grad is kept and p.grad.tolist() == [10.0, 20.0, 30.0]
    y[0] = 5.0  # the storage is shared, as in PyTorch
    assert p.grad.tolist() == [5.0, 20.0, 30.0]
    (2 * p).sum().backward()
    assert p.grad.tolist() == [7.0, 22.0, 32.0]
    optimizer = torch.optim.SGD([p], lr=1.0)
    p.grad.data = p.grad.data.clamp(max=10.0)
    optimizer.step()
    assert p.tolist() == [-6.0, -8.0, -7.0]


def test_data_of_an_assigned_gradient(torch):
    p, g = torch.zeros(2, requires_grad=True), torch.ones(2)
    p.grad = g
    g.data = torch.tensor([3.0, 4.0])
    assert p.grad is g
    (5 * p).sum().backward()
    assert p.grad.tolist() == [8.0, 9.0]
    p.grad = None
    g.data = torch.ones(2)  # is no gradient any more
    assert p.grad is None


def test_gradient_of_before_a_pass(torch):
    """An object that p.grad returned once, and that is not the gradient now, does not write to it."""
    p = _leaf(torch)
    old = p.grad
    p.grad = torch.ones(3)
    old.data = torch.full((3,), 7.0)
    assert p.grad.tolist() == [1.0, 1.0, 1.0] and old.tolist() == [7.0] * 3
    del p
    old.data = torch.zeros(3)
    assert old.tolist() == [0.0] * 3


def test_detached_gradient(torch):
    p, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    (p * p * w).backward(create_graph=True)
    assert p.grad.requires_grad
    p.grad.detach_()
    assert not p.grad.requires_grad and p.grad.item() == 12.0
    w.grad = None
    (p * w).backward(create_graph=True)  # adds to a gradient without a history
    second = torch.autograd.grad(p.grad, w)[0]
    assert second.item() == 1.0 and p.grad.item() == 15.0


def test_gradient_of_a_result(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    y.grad.data = torch.tensor([4.0, 5.0])
    assert y.grad.tolist() == [4.0, 5.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda torch, g: setattr(g, "data", torch.ones(3, dtype=torch.float64)),
        lambda torch, g: setattr(g, "data", torch.ones(4)),
        lambda torch, g: g.unsqueeze_(0),
        lambda torch, g: g.resize_(2),
    ],
    ids=["dtype", "sizes", "unsqueeze_", "resize_"],
)
def test_what_would_not_fit_is_refused(torch, change):
    """Instead of changing only the object that p.grad returned."""
    p = _leaf(torch)
    with pytest.raises(NotImplementedError, match=r"\[grad\] expected a gradient of the same sizes, dtype and device"):
        change(torch, p.grad)
    assert p.grad.tolist() == [2.0, 4.0, 6.0]


def test_a_gradient_of_two_tensors(torch):
    p, q, g = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True), torch.ones(2)
    p.grad = q.grad = g
    with pytest.raises(NotImplementedError, match=r"of one tensor"):
        g.data = torch.zeros(2)
    assert p.grad.tolist() == q.grad.tolist() == [1.0, 1.0]
