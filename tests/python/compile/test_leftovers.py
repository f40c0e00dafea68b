"""Compiled functions of tensors that have gradients already, or are written and differentiated: as plain Python."""

from __future__ import annotations

import pytest

import teletensor as torch
import teletensor.nn as nn


@pytest.fixture(autouse=True)
def _reset():
    torch._dynamo.reset()


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def by_hand(model, optimizer, x):
    """Reads each gradient and removes it: a gradient from before the call is included."""
    model(x).square().mean().backward()
    with torch.no_grad():
        for p in model.parameters():
            if p.grad is not None:
                p -= 0.1 * p.grad
                p.grad = None


def scaled(model, optimizer, x):
    """Replaces each gradient."""
    model(x).square().mean().backward()
    for p in model.parameters():
        p.grad = None if p.grad is None else p.grad * 0.5
    optimizer.step()


def returned(model, optimizer, x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    gradients = [p.grad for p in model.parameters()]
    optimizer.step()
    return gradients


def keep(model):
    pass


def ones(model):
    for p in model.parameters():
        p.grad = torch.ones_like(p)


def freeze(model):
    model[0].weight.requires_grad_(False)


def unfreeze(model):
    model[0].weight.requires_grad_(True)


def of_another_pass(model):
    model(torch.ones(2, 4)).sum().backward()


CHANGES = [(keep, keep, ones, keep), (keep, freeze, keep, unfreeze, keep), (of_another_pass, keep, of_another_pass)]


@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("step", [by_hand, scaled, returned])
def test_gradients_from_before_the_call(step, changes):
    seen = []
    for function in (step, torch.compile(step)):
        model, optimizer = make()
        for i, change in enumerate(changes):
            change(model)
            gradients = function(model, optimizer, torch.linspace(0, 1, 4 * (i + 3)).reshape(-1, 4))
            seen.append([gradients, *([p.detach().clone(), p.grad] for p in model.parameters())])
    for i, want in enumerate(seen[: len(changes)]):
        torch.testing.assert_close(seen[len(changes) + i], want)


def written_as_another(x):
    y = x.detach()
    y[0] = 3
    return (x * x).sum()


def written_without_gradients(x):
    with torch.no_grad():
        x.mul_(2)
    return (x * x).sum()


@pytest.mark.parametrize("function", [written_as_another, written_without_gradients])
def test_gradients_of_written_tensors(function):
    found = []
    for f in (function, torch.compile(function)):
        x = torch.arange(6.0).reshape(3, 2).requires_grad_()
        f(x).backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def test_gradients_of_results_after_a_step():
    found = []
    for is_compiled in (False, True):
        model, optimizer = make()

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            return model(x).sum() + model[0].weight.sum()

        penalty = (torch.compile(step) if is_compiled else step)(torch.ones(3, 4))
        model.zero_grad()
        penalty.backward()
        found.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(found[1], found[0])


def test_programs_refuse_gradients_of_what_they_write():
    def f(x):
        with torch.no_grad():
            x.mul_(2)
        return x.sum()

    with pytest.raises(NotImplementedError, match="gradient leads to an input that the function writes"):
        torch.compiler.trace(f, torch.ones(3, requires_grad=True))
    program = torch.compiler.trace(f, torch.ones(3))
    assert program(torch.ones(3)).item() == 6
    with pytest.raises(NotImplementedError, match="no gradient to an input that it writes"):
        program(torch.ones(3, requires_grad=True))
    with torch.no_grad():
        assert program(torch.ones(3, requires_grad=True)).item() == 6


def decayed(optimizer, x, weight):
    optimizer.zero_grad()
    (weight * x).sum().backward()
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    optimizer.step()


def decayed_when_it_has_waited(optimizer, x, weight, counts=[0]):  # noqa: B006 - one for all calls
    optimizer.zero_grad()
    (weight * x).sum().backward()
    counts[0] += 1
    if counts[0] % 2 == 0:
        optimizer.param_groups[0]["lr"] = 0.25 * counts[0]
    optimizer.step()


def state_cleared(optimizer, x, weight):
    optimizer.zero_grad()
    (weight * x).sum().backward()
    optimizer.state.clear()
    optimizer.step()


@pytest.mark.parametrize("function", [decayed, decayed_when_it_has_waited, state_cleared])
def test_steps_after_changes_of_the_optimizer(function):
    found = []
    for f in (function, torch.compile(function)):
        weight = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=1.0, momentum=0.9)
        if function is decayed_when_it_has_waited:
            function.__defaults__[0][0] = 0
        found.append([])
        for _ in range(4):
            f(optimizer, torch.arange(3.0), weight)
            found[-1].append(weight.tolist())
    assert found[0] == found[1]


def test_whether_a_gradient_is_the_same_tensor():
    weight = torch.ones(3, requires_grad=True)

    def f(x):
        before = weight.grad
        (weight * x).sum().backward()
        return before is None, before is weight.grad

    compiled = torch.compile(f)
    assert [compiled(torch.ones(3)) for _ in range(3)] == [(True, False), (False, True), (False, True)]
