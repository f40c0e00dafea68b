"""Cross entropy with label smoothing: written out in Programs, and its values and gradients beside their formula."""

from __future__ import annotations

import itertools
import math

import pytest

import teletensor as torch
import teletensor.nn.functional as F

trace = torch.compiler.trace
EPS = 0.1


def gathered(x, t):
    logs = F.log_softmax(x, dim=-1)
    nll = -logs.gather(dim=-1, index=t.unsqueeze(1))
    return (1 - EPS) * nll.squeeze(1) + EPS * -logs.mean(dim=-1)


def mean_of_gathered(x, t):
    return gathered(x, t).mean()


def columns(x, t):
    logs = F.log_softmax(x, -1)
    nll, smooth = -logs.gather(dim=-1, index=t.unsqueeze(-1)), -logs.sum(dim=-1, keepdim=True)
    each = EPS / (x.size(-1) - 1)
    return ((1 - EPS - each) * nll + each * smooth).sum()


def reduced_apart(x, t):
    logs = F.log_softmax(x, 1)
    return (1 - EPS) * -logs.gather(1, t.view(-1, 1)).mean() - EPS * logs.mean()


def divided_sums(x, t):
    logs = x.log_softmax(-1)
    return ((1 - EPS) * -torch.gather(logs, 1, t[:, None])[:, 0] + EPS * (-logs.sum(-1) / x.size(1))).sum()


def one_hot(x, t):
    targets = F.one_hot(t, x.size(1)).float() * (1 - EPS) + EPS / x.size(1)
    return -(targets * F.log_softmax(x, 1)).sum(-1).mean()


def scattered(x, t):
    logs = x.log_softmax(-1)
    with torch.no_grad():
        targets = torch.zeros_like(logs).fill_(EPS / (x.size(1) - 1)).scatter_(1, t.unsqueeze(1), 1 - EPS)
    return torch.mean(torch.sum(-targets * logs, dim=-1))


FORMS = [gathered, mean_of_gathered, columns, reduced_apart, divided_sums, one_hot, scattered]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("infinite", [False, True])
def test_written_out_losses_become_one_operator(form, infinite):
    x, t = torch.randn(7, 6, requires_grad=True), torch.tensor([0, 5, 2, 1, 1, 3, 4])
    if infinite:
        with torch.no_grad():
            x[0, 3], x[2, 0] = -math.inf, math.inf
    program = trace(form, x, t)
    text = program.explain(x, t).split("# after rewrite")[1].split("# after")[0]
    assert "= cross_entropy(" in text and "log_softmax" not in text and "label_smoothing=0.1" in text
    assert text.count(" = ") == 1
    torch.testing.assert_close(program(x, t), form(x, t), rtol=1e-5, atol=1e-6, equal_nan=True)
    (got,), (want,) = (torch.autograd.grad(f(x, t).sin().sum(), x) for f in (program, form))
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6, equal_nan=True)


def ignoring(x, t):
    logs = F.log_softmax(x, -1)
    return (1 - EPS) * F.nll_loss(logs, t) - EPS * logs.mean()


def other_sum(x, t):
    logs = F.log_softmax(x, -1)
    return ((1 - EPS) * -logs.gather(1, t.unsqueeze(1)).squeeze(1) - 2 * EPS * logs.mean(-1)).mean()


def zeros_elsewhere(x, t):
    return -(F.one_hot(t, 6).float() * F.log_softmax(x, -1)).sum(-1).mean()


def read_logs(x, t):
    logs = F.log_softmax(x, -1)
    return ((1 - EPS) * -logs.gather(1, t.unsqueeze(1)).squeeze(1) - EPS * logs.mean(-1)).mean(), logs


def other_dimension(x, t):
    logs = F.log_softmax(x, 0)
    return ((1 - EPS) * -logs.gather(0, t.unsqueeze(0)).squeeze(0) - EPS * logs.mean(0)).mean()


@pytest.mark.parametrize("form", [ignoring, other_sum, zeros_elsewhere, read_logs, other_dimension])
def test_other_losses_stay(form):
    """nll_loss ignores targets that the mean of the classes contains; products with zeros are NaN for infinite logits."""
    x, t = torch.randn(6, 6), torch.tensor([0, 5, 2, 1, 1, 3])
    assert "cross_entropy" not in trace(form, x, t).explain(x, t)
    if form is ignoring:
        t[1] = -100
        torch.testing.assert_close(trace(form, x, t)(x, t), form(x, t))


def test_one_target_for_several_rows_stays():
    x, t = torch.randn(4, 6), torch.tensor([2])
    program = trace(gathered, x, t)
    assert "cross_entropy" not in program.explain(x, t)
    torch.testing.assert_close(program(x, t), gathered(x, t))


def test_targets_that_gather_refuses_are_errors():
    x, t = torch.randn(4, 6), torch.tensor([2, 1, 0, 5])
    program = trace(mean_of_gathered, x, t)
    for wrong in (-100, -1, 6):
        with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
            program(x, torch.tensor([2, 1, wrong, 5])).item()


def test_reductions_of_separate_losses():
    x, t = torch.randn(5, 6), torch.tensor([0, 5, -100, 1, 1])
    summed = trace(lambda x, t: F.cross_entropy(x, t, reduction="none", label_smoothing=EPS).sum(), x, t)
    assert "reduction='sum', label_smoothing=0.1" in summed.explain(x, t)
    meant = trace(lambda x, t: F.cross_entropy(x, t, reduction="none", label_smoothing=EPS).mean(), x, t)
    assert "reduction='mean'" not in meant.explain(x, t)  # which does not count the ignored one
    each = F.cross_entropy(x, t, reduction="none", label_smoothing=EPS)
    torch.testing.assert_close(summed(x, t), each.sum())
    torch.testing.assert_close(meant(x, t), each.mean())


def formula(x, t, weight, ignored, reduction, smoothing):
    logs = F.log_softmax(x, 1)
    kept = (t != ignored).to(x.dtype)
    weight = torch.ones(x.shape[1], dtype=x.dtype) if weight is None else weight
    per_class = weight.reshape(1, -1, *[1] * (x.dim() - 2))
    classes = F.one_hot(torch.where(t == ignored, 0, t), x.shape[1]).to(x.dtype).movedim(-1, 1)
    nll = -torch.where(classes > 0, logs, 0.0).sum(1) * (classes * per_class).sum(1)
    each = torch.where(kept > 0, (1 - smoothing) * nll - smoothing / x.shape[1] * (logs * per_class).sum(1), 0.0)
    total = (kept * (classes * per_class).sum(1)).sum()
    return each if reduction == "none" else each.sum() if reduction == "sum" else each.sum() / total


@pytest.mark.parametrize("sizes", [(5, 4), (2, 3, 5), (3, 70), (2, 5, 130)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_values_and_gradients_of_two_orders(sizes, reduction):
    for weighted, smoothing, all_ignored in itertools.product((False, True), (0.2, 1.0), (False, True)):
        x = torch.randn(*sizes, dtype=torch.float64, requires_grad=True)
        t = torch.randint(0, sizes[1], (sizes[0], *sizes[2:]))
        t = torch.full_like(t, 1) if all_ignored else t
        weight = torch.rand(sizes[1], dtype=torch.float64) + 0.5 if weighted else None
        got = F.cross_entropy(x, t, weight, ignore_index=1, reduction=reduction, label_smoothing=smoothing)
        want = formula(x, t, weight, 1, reduction, smoothing)
        torch.testing.assert_close(got, want, equal_nan=True)
        (first,) = torch.autograd.grad(got.sum(), x, create_graph=True)
        if all_ignored:
            assert first.eq(0).all()
            continue
        (wanted,) = torch.autograd.grad(want.sum(), x, create_graph=True)
        torch.testing.assert_close(first, wanted)
        (second,), (wanted,) = (torch.autograd.grad(g.sin().sum(), x) for g in (first, wanted))
        torch.testing.assert_close(second, wanted)


def test_infinite_logits():
    x = torch.tensor([[0.0, -math.inf, 1.0], [math.inf, 0.0, 0.0], [1.0, 2.0, 3.0]], requires_grad=True)
    t = torch.tensor([0, 1, 2])
    losses = F.cross_entropy(x, t, reduction="none", label_smoothing=EPS)
    (slope,) = torch.autograd.grad(losses.sum(), x)
    assert losses[0] == math.inf and losses[1].isnan() and losses[2].isfinite()
    torch.testing.assert_close(slope[0, 1], torch.tensor(-EPS / 3))
    assert slope[1].isnan().all() and slope[[0, 2]].isfinite().all()
