"""GradScaler: equal to PyTorch's over a run with infinite gradients, without waiting for the engine."""

import contextlib
import copy
import io
import json
import math
import re

import numpy as np
import pytest

from .record import HISTORIES
from .scaler_cases import FACTORS, NEVER_WAITING, OPTIMIZERS, history, run

RECORDED = json.loads(HISTORIES.read_text())


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_runs_equal_pytorchs(torch, optimizer, clip):
    expected = RECORDED[f"{optimizer}, clip={clip}"]
    for got, wanted in zip(history(torch, optimizer, clip), expected):
        assert got[1] == wanted[1]
        for a, b in zip(got[0], wanted[0]):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=5e-5)
        # A parameter whose first step was skipped may have a state here, with step 0, and has none in PyTorch.
        assert [n for n in got[2] if n] == [n for n in wanted[2] if n]


def round_trips(torch) -> int:
    found = re.match(r"waited for (\d+) round trips", torch.sync_report())
    return int(found[1]) if found else 0


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_waits(torch, optimizer):
    before = round_trips(torch)
    with torch.no_sync() if optimizer in NEVER_WAITING else contextlib.nullcontext():
        for _ in run(torch, optimizer, False):
            pass
    # Other optimizers wait for the check in each step, as in PyTorch; momentum with dampening waits until its first step.
    expected = 0 if optimizer in NEVER_WAITING else 2 if "dampening" in optimizer else len(FACTORS)
    assert round_trips(torch) - before == expected


def test_step_without_scaler_continues_a_scaled_run(torch):
    """Step numbers that the engine counts remain correct in later steps, copies and state dicts."""
    (*_, (_, optimizer, (p, _))) = run(torch, "Adam", False)
    numbers = [s["step"] for s in optimizer.state_dict()["state"].values()]
    assert [n.item() for n in numbers] == [6.0, 4.0]
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    q = p.detach().clone().requires_grad_()
    other = copy.deepcopy(optimizer)
    loaded = torch.optim.Adam([q, torch.zeros(1, 2, requires_grad=True)], lr=0.1)
    loaded.load_state_dict(torch.load(file))
    results = []
    for o, x in ((optimizer, p), (loaded, q), (other, other.param_groups[0]["params"][0])):
        x.grad = torch.ones(3)
        o.step()
        results.append([x.tolist(), o.state_dict()["state"][0]["step"].item()])
    assert results[0] == results[1] == results[2] and results[0][1] == 7.0


def test_several_optimizers_and_losses(torch):
    p, q = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    first, second = torch.optim.SGD([p], lr=1.0), torch.optim.SGD([q], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    losses = scaler.scale([p.sum(), (q * math.inf).sum()])
    assert [loss.tolist() for loss in losses] == [8.0, math.inf]
    torch.autograd.backward(losses)
    for optimizer in (first, second):
        scaler.step(optimizer)
    scaler.update()
    assert (p.tolist(), q.tolist(), scaler.get_scale()) == ([0.0, 0.0], [1.0, 1.0], 2.0)
    scaler.update(16.0)
    assert scaler.get_scale() == 16.0
    scaler.update(torch.tensor(2.0))
    assert scaler.get_scale() == 2.0


def test_half_gradients_and_states(torch):
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    assert scaler.get_scale() == 4.0 and scaler.state_dict()["_growth_tracker"] == 0
    p = torch.ones(2, dtype=torch.float16, requires_grad=True)
    scaler.scale(p.sum()).backward()
    optimizer = torch.optim.SGD([p], lr=1.0)
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients."):
        scaler.unscale_(optimizer)
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4.0
    copied = copy.deepcopy(torch.amp.GradScaler("cpu", init_scale=8.0))
    assert copied.get_scale() == 8.0 and torch.amp.GradScaler("cpu", enabled=False).state_dict() == {}
    with pytest.raises(RuntimeError, match="state dict is empty"):
        other.load_state_dict({})


class Protocol:
    """An optimizer that skips steps itself, by PyTorch's protocol."""

    _step_supports_amp_scaling = True

    def __init__(self, p):
        self.param_groups, self.seen = [{"params": [p]}], []

    def step(self):
        self.seen.append(
            (self.grad_scale if self.grad_scale is None else self.grad_scale.item(), self.found_inf.item())
        )


def test_optimizers_that_skip_steps_themselves(torch):
    p = torch.ones(2, requires_grad=True)
    optimizer, scaler = Protocol(p), torch.amp.GradScaler("cpu", init_scale=4.0)
    for unscale in (False, True):
        p.grad = None
        scaler.scale((p * (math.inf if unscale else 1.0)).sum()).backward()
        if unscale:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    assert optimizer.seen == [(4.0, 0.0), (None, 1.0)] and scaler.get_scale() == 2.0


def test_stages(torch):
    p = torch.ones(2, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), torch.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="Attempted unscale_ but _scale is None"):
        scaler.unscale_(optimizer)
    scaler.scale(p.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    scaler.step(optimizer)
    for call, text in ((scaler.step, "already been called since"), (scaler.unscale_, "is being called after step")):
        with pytest.raises(RuntimeError, match=text):
            call(optimizer)
    scaler.update()


def test_scaler_of_gpus(torch):
    if torch.cuda.is_available():
        p = torch.ones(3, device="cuda", requires_grad=True)
        optimizer, scaler = torch.optim.AdamW([p], lr=0.1), torch.amp.GradScaler(init_scale=4.0)
        for factor in (math.inf, 1.0):
            optimizer.zero_grad()
            scaler.scale((p * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
        np.testing.assert_allclose(p.tolist(), [0.899] * 3, rtol=1e-5)
        assert scaler.get_scale() == 2.0 and scaler._scale.is_cuda
    else:
        with pytest.warns(UserWarning, match="CUDA is not available"):
            assert not torch.amp.GradScaler().is_enabled()
