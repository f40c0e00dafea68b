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
    q.grad.data = torch.tensor([3.0, 4.0])
    assert p.grad is q.grad and p.grad.tolist() == [3.0, 4.0]
    (5 * p + 2 * q).sum().backward()
    assert p.grad.tolist() == q.grad.tolist() == [10.0, 11.0]  # both passes add to the same tensor
    p.grad = None
    q.grad.detach_()
    q.grad.data = torch.ones(2)
    q.grad = None
    g.data = torch.zeros(3)  # nobody's gradient now
    g.unsqueeze_(0)
    assert p.grad is None and q.grad is None and g.shape == (1, 3)


@pytest.mark.parametrize("change", ["zero_", "div_", "add_", "copy_", "zero_grad", "module"])
def test_sparse_gradients_in_place(torch, change):
    layer = torch.nn.Embedding(4, 2, sparse=True)
    layer(torch.tensor([1, 1, 3])).sum().backward()
    optimizer, grad = torch.optim.SparseAdam(layer.parameters()), layer.weight.grad
    {
        "zero_": grad.zero_, "div_": lambda: grad.div_(2), "add_": lambda: grad.add_(grad), "copy_": lambda: grad.copy_(grad * 3),
        "zero_grad": lambda: optimizer.zero_grad(set_to_none=False), "module": lambda: layer.zero_grad(set_to_none=False),
    }[change]()  # fmt: skip
    factor = {"div_": 0.5, "add_": 2.0, "copy_": 3.0}.get(change, 0.0)
    assert layer.weight.grad is grad and grad.layout == torch.sparse_coo
    assert layer.weight.grad.to_dense()[1].tolist() == [2.0 * factor] * 2
    layer(torch.tensor([1])).sum().backward()
    assert layer.weight.grad.to_dense()[1].tolist() == [2.0 * factor + 1.0] * 2


def test_compiled_steps(torch):
    """In a compiled function, too, in which the objects of parameters exist for a moment only."""

    def train(call) -> list:
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 1, bias=False)
        optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)

        def step(x):
            optimizer.zero_grad()
            loss = layer(x).sum()
            loss.backward()
            layer.weight.grad.data = layer.weight.grad.data.clamp(-0.5, 0.5)
            optimizer.step()
            return loss

        step = call(step)
        for _ in range(3):
            step(torch.ones(1, 3))
        return layer.weight.tolist(), layer.weight.grad.tolist()

    assert train(torch.compile) == train(lambda f: f)


def test_grad_by_its_private_name(torch):
    p = torch.ones(2, requires_grad=True)
    p._grad = torch.full((2,), 3.0)
    assert p.grad.tolist() == [3, 3] and p._grad is p.grad
    with pytest.raises(RuntimeError):
        p._grad = torch.ones(3)
    p._grad = None
    assert p.grad is None


@pytest.mark.parametrize(("result", "seed"), [("float32", "complex64"), ("complex64", "float32"), ("float64", "complex128")])
def test_seeds_of_the_other_kind_of_number_are_refused(torch, result, seed):
    x = torch.ones(2, dtype=getattr(torch, result), requires_grad=True)
    v = torch.ones(2, dtype=getattr(torch, seed))
    match = rf"required to have the same dtype. Mismatch in dtype: grad_output\[0\] has a dtype of torch.{seed} and output\[0\]"
    for call in (lambda y: torch.autograd.grad(y, x, v), lambda y: y.backward(v)):
        with pytest.raises(RuntimeError, match=match):
            call(x * 2)
    with pytest.raises(RuntimeError):
        torch.func.vjp(lambda x: x * 2, x.detach())[1](v)
