"""Updates in place and `out=` that fail leave their targets as they were; the error is raised once, with its line."""

from __future__ import annotations

import pytest


def bad(torch, *sizes):
    """A tensor whose value is an error that depends on values."""
    return torch.ones(3).index_select(0, torch.tensor([5])).expand(*sizes)


OPERANDS = {
    "add_": lambda t, x: x.add_(bad(t, 2, 2)),
    "mul_": lambda t, x: x.mul_(bad(t, 2, 2)),
    "copy_": lambda t, x: x.copy_(bad(t, 2, 2)),
    "item": lambda t, x: x.__setitem__(0, bad(t, 2)),
    "view": lambda t, x: x[0].add_(bad(t, 2)),
    "addmm_": lambda t, x: x.addmm_(bad(t, 2, 2), t.ones(2, 2)),
    "lerp_": lambda t, x: x.lerp_(bad(t, 2, 2), 0.5),
    "add(out=)": lambda t, x: t.add(bad(t, 2, 2), 1, out=x),
    "mm(out=)": lambda t, x: t.mm(bad(t, 2, 2), t.ones(2, 2), out=x),
    "_foreach_add_": lambda t, x: t._foreach_add_([x], [bad(t, 2, 2)]),
    "chain": lambda t, x: x.add_(1).sub_(1).mul_(bad(t, 2, 2)),
}
KERNELS = {
    "index_add_": lambda t, x: x.index_add_(0, t.tensor([0, 7]), t.ones(2, 2)),
    "index_add(out=)": lambda t, x: t.index_add(t.zeros(2, 2), 0, t.tensor([0, 7]), t.ones(2, 2), out=x),
    "index_copy_": lambda t, x: x.index_copy_(0, t.tensor([0, 7]), t.zeros(2, 2)),
    "index_fill_": lambda t, x: x.index_fill_(0, t.tensor([0, 7]), 9.0),
    "index_put_": lambda t, x: x.index_put_((t.tensor([0, 7]),), t.zeros(2, 2)),
    "scatter_": lambda t, x: x.scatter_(0, t.tensor([[0, 0], [7, 0]]), t.zeros(2, 2)),
    "scatter_ of a number": lambda t, x: x.scatter_(0, t.tensor([[0, 0], [-1, 0]]), 8.0),
    "scatter_ by a transposed index": lambda t, x: x.scatter_(0, t.tensor([[0, 7], [0, 0]]).t(), t.zeros(2, 2)),
    "scatter_add_": lambda t, x: x.scatter_add_(0, t.tensor([[0, 0], [7, 0]]), t.ones(2, 2)),
    "scatter_reduce_": lambda t, x: x.scatter_reduce_(0, t.tensor([[0, 0], [7, 0]]), t.ones(2, 2), "amax"),
    "put_": lambda t, x: x.put_(t.tensor([0, 70]), t.zeros(2)),
    "masked_scatter_": lambda t, x: x.masked_scatter_(t.ones(2, 2, dtype=t.bool), t.zeros(2)),
    "gather(out=)": lambda t, x: t.gather(t.zeros(2, 2), 0, t.tensor([[0, 0], [7, 0]]), out=x),
    "take(out=)": lambda t, x: t.take(t.zeros(2, 2), t.tensor([[0, 0], [7, 0]]), out=x),
    "index_select(out=)": lambda t, x: t.index_select(t.zeros(2, 2), 0, t.tensor([0, 7]), out=x),
}
INTEGERS = {
    "floor_divide_": lambda t, x: x.floor_divide_(t.tensor([[2, 2], [0, 2]])),
    "div_": lambda t, x: x.div_(t.tensor([[2, 2], [0, 2]]), rounding_mode="trunc"),
    "remainder_": lambda t, x: x.remainder_(t.tensor([[2, 2], [0, 2]])),
    "fmod(out=)": lambda t, x: t.fmod(x, t.tensor([[2, 2], [0, 2]]), out=x),
}
CASES = {**OPERANDS, **KERNELS, **INTEGERS}


@pytest.mark.parametrize("name", CASES)
def test_the_target_is_kept(torch, name):
    x = torch.tensor([[1, 2], [3, 4]], dtype=torch.int64 if name in INTEGERS else torch.float32)
    x, view = x, x.view(4)
    CASES[name](torch, x)
    later = x + 1
    with pytest.raises((IndexError, RuntimeError), match="test_failed_updates.py"):
        x.tolist()
    assert x.tolist() == [[1, 2], [3, 4]] and view.tolist() == [1, 2, 3, 4]  # the error was raised
    with pytest.raises((IndexError, RuntimeError)):
        later.tolist()  # computed from the value that was not written
    assert x.add_(1).tolist() == [[2, 3], [4, 5]]


def test_running_statistics_and_moving_averages(torch):
    norm = torch.nn.BatchNorm1d(2)
    norm(torch.arange(8.0).view(4, 2))
    before = norm.running_mean.tolist(), norm.running_var.tolist(), norm.num_batches_tracked.item()
    norm(bad(torch, 4, 2))
    with pytest.raises(IndexError):
        norm.running_mean.tolist()
    assert before[:2] == (norm.running_mean.tolist(), norm.running_var.tolist())
    average = torch.zeros(2)
    average.lerp_(bad(torch, 2), 0.1)
    with pytest.raises(IndexError):
        average.tolist()
    assert average.tolist() == [0, 0]


@pytest.mark.parametrize("scaled", [False, True])
def test_steps(torch, scaled):
    p = torch.nn.Parameter(torch.ones(2))
    optimizer, scaler = torch.optim.Adam([p], lr=0.1), torch.amp.GradScaler("cpu", init_scale=4.0, enabled=scaled)

    def step(factor):
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    step(2)
    before, moment = p.tolist(), optimizer.state[p]["exp_avg"].tolist()
    with pytest.raises(IndexError):
        step(bad(torch, 2))
        p.tolist()
    assert p.tolist() == before and optimizer.state[p]["exp_avg"].tolist() == moment
    step(2)
    assert p.isfinite().all()


def test_compiled_functions_write_what_precedes_the_error(torch):
    @torch.compile
    def function(x, index):
        x.add_(1)
        x.index_add_(0, index, torch.ones(2))
        return x * 2

    x = torch.zeros(3)
    for index, expected in (([0, 1], [2, 2, 1]), ([0, 9], [3, 3, 2])):
        result = function(x, torch.tensor(index))
        if index == [0, 9]:
            with pytest.raises(IndexError):
                x.tolist()
            with pytest.raises(IndexError):
                result.tolist()
        assert x.tolist() == expected


def test_synchronize_raises_each_error_once(torch):
    x, y = torch.zeros(2), torch.zeros(2)
    x.add_(bad(torch, 2))
    y.index_add_(0, torch.tensor([0, 7]), torch.ones(2))
    for _ in range(2):
        with pytest.raises((IndexError, RuntimeError), match="test_failed_updates.py"):
            torch.synchronize()
    torch.synchronize()
    assert x.tolist() == y.tolist() == [0, 0]
    poisoned = bad(torch, 2)  # not an update: its reader gets the error
    torch.synchronize()
    with pytest.raises(IndexError):
        poisoned.tolist()
