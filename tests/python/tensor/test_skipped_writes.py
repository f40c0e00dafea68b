"""A write is skipped if its input is an error; the next read of its target raises that error."""

import pytest

OPTIMIZERS = [
    lambda t, ps: t.optim.SGD(ps, lr=0.1), lambda t, ps: t.optim.SGD(ps, lr=0.1, momentum=0.9), lambda t, ps: t.optim.Adam(ps),
    lambda t, ps: t.optim.AdamW(ps), lambda t, ps: t.optim.RMSprop(ps), lambda t, ps: t.optim.Adagrad(ps),
    lambda t, ps: t.optim.Adadelta(ps), lambda t, ps: t.optim.NAdam(ps), lambda t, ps: t.optim.Rprop(ps),
]  # fmt: skip


def failed_step(torch, optimizer, table, scale):
    """A step with poisoned gradients: an index into the table is out of range. Returns the loss."""
    loss = (torch.nn.functional.embedding(torch.tensor([0, 7]), table) * scale).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_reading_a_parameter_raises(torch, make):
    table, scale = torch.nn.Parameter(torch.ones(3, 2)), torch.nn.Parameter(torch.ones(2))
    failed_step(torch, make(torch, [table, scale]), table, scale)
    with pytest.raises(IndexError, match="index out of range in self"):
        scale.tolist()
    assert table.tolist() == [[1, 1]] * 3 and scale.tolist() == [1, 1]  # unchanged by the failed step


def test_results_of_a_parameter_raise(torch):
    table, scale = torch.nn.Parameter(torch.ones(3, 2)), torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([table, scale], lr=0.1)
    failed_step(torch, optimizer, table, scale)
    total, alias = (scale * 2).sum(), scale.detach()
    unrelated = torch.ones(2) * 3
    assert unrelated.tolist() == [3, 3]
    with pytest.raises(IndexError):
        total.item()
    with pytest.raises(IndexError):
        total.item()
    assert scale.tolist() == [1, 1]
    with pytest.raises(IndexError):
        alias.tolist()  # computed while the parameter's write was skipped


def test_training_continues_after_the_error(torch):
    table, scale = torch.nn.Parameter(torch.ones(3, 2)), torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([table, scale], lr=0.5, momentum=0.9)
    (table.sum() + scale.sum()).backward()
    optimizer.step()
    loss = failed_step(torch, optimizer, table, scale)
    with pytest.raises(IndexError):
        loss.item()
    optimizer.zero_grad()
    (table.sum() + scale.sum()).backward()
    optimizer.step()
    assert scale.tolist() == pytest.approx([0.5 - 0.5 * 1.9] * 2)


def test_other_view_of_the_target(torch):
    x = torch.ones(4)
    bad = torch.ones(4)[torch.tensor([9, 0])]
    x[:2].copy_(bad)
    with pytest.raises(IndexError):
        x.tolist()
    assert x.tolist() == [1, 1, 1, 1]


def test_running_statistics(torch):
    norm = torch.nn.BatchNorm1d(2)
    norm(torch.nn.functional.embedding(torch.tensor([0, 7]), torch.ones(3, 2)))
    with pytest.raises(IndexError):
        norm.running_mean.tolist()
    assert norm.running_mean.tolist() == [0, 0]
