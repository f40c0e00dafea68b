"""x.data = y: x is the same leaf, with y's storage."""

import pytest


def test_storage_is_shared(torch):
    p, t = torch.nn.Parameter(torch.ones(2, 3)), torch.zeros(2, 3)
    p.data = t
    assert p.untyped_storage() == t.untyped_storage() and p.is_set_to(t)
    t.add_(5)
    assert p.tolist() == [[5.0] * 3] * 2 and p.requires_grad and p.is_leaf and isinstance(p, torch.nn.Parameter)
    p.data.mul_(2)
    assert t.tolist() == [[10.0] * 3] * 2


def test_aliases_keep_the_old_storage(torch):
    p = torch.nn.Parameter(torch.ones(2))
    alias, view = p.detach(), p.view(2)
    p.data = torch.full((2,), 9.0)
    assert alias.tolist() == view.tolist() == [1, 1] and p.tolist() == [9, 9]
    base = torch.zeros(4)
    part = base[:2]
    part.data = torch.ones(2)
    part.add_(1)
    assert base.tolist() == [0] * 4 and part.tolist() == [2, 2]


def test_tied_parameters_step_together(torch):
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(2))
    b.data = a.data
    a.grad = torch.ones(2)
    torch.optim.SGD([a], lr=1.0).step()
    assert a.tolist() == b.tolist() == [0, 0]


def test_gradients_hooks_and_graphs_use_new_data(torch):
    p = torch.nn.Parameter(torch.ones(2))
    hits = []
    p.register_hook(lambda g: hits.append(g.tolist()))
    p.sum().backward()
    before = (p * 3).sum()
    optimizer = torch.optim.SGD([p], lr=1.0)
    p.data = torch.full((2,), 7.0)
    assert p.grad.tolist() == [1, 1]
    before.backward()
    assert p.grad.tolist() == [4, 4]
    (p * p).sum().backward()
    assert p.grad.tolist() == [18, 18] and hits == [[1, 1], [3, 3], [14, 14]]
    optimizer.step()
    assert p.tolist() == [-11, -11]


def test_graphs_keep_recorded_values(torch):
    p = torch.nn.Parameter(torch.ones(2))
    loss = (p * p).sum()
    p.data = torch.full((2,), 5.0)
    loss.backward()
    assert p.grad.tolist() == [2, 2]


def test_nonleaf_source_is_detached(torch):
    x, p = torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.zeros(2))
    p.data = x * 2
    p.sum().backward()
    assert p.is_leaf and p.tolist() == [2, 2] and p.grad.tolist() == [1, 1] and x.grad is None


def test_other_sizes_and_dtypes(torch):
    p = torch.nn.Parameter(torch.ones(2))
    p.sum().backward()
    t = torch.zeros(3, 4, dtype=torch.float64)
    p.data = t
    t.add_(1)
    assert p.shape == (3, 4) and p.dtype is torch.float64 and p.requires_grad and p.sum().item() == 12
    assert p.grad is None  # docs/differences.md
    p.sum().backward()
    assert p.grad.shape == (3, 4)
    plain = torch.ones(2)
    plain.data = torch.ones(2, dtype=torch.int64)
    assert plain.dtype is torch.int64
    plain.data = plain.data
    assert plain.tolist() == [1, 1]


def test_invalid_arguments_are_rejected(torch):
    p = torch.nn.Parameter(torch.ones(2))
    for value in ([1.0, 2.0], 3, None):
        with pytest.raises(TypeError, match=f"Variable data has to be a tensor, but got {type(value).__name__}"):
            p.data = value
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        p.data = torch.ones(2, dtype=torch.int64)
    with pytest.raises(NotImplementedError, match="of the tensor, which has a history"):
        (p * 2).data = torch.ones(3)
    assert p.tolist() == [1, 1] and p.requires_grad
