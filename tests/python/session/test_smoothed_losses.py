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


def log_and_nll(x, t):
    logs = F.log_softmax(x, -1)
    return logs, -logs.gather(-1, t.unsqueeze(1))


def repeated_columns(x, t):
    logs, nll = log_and_nll(x, t)
    return (nll * 0.9 + -logs.mean(-1, keepdim=True) * (torch.full((3, 1, 1), EPS) / torch.full((3, 1, 1), 1.0))).sum()


def repeated_rows(x, t):
    logs, nll = log_and_nll(x, t)
    return (nll * 0.9 + -logs.mean(-1, keepdim=True) * (torch.full((1, 4), EPS) / torch.full((1, 4), 1.0))).sum()


def doubles(sizes, number):
    return torch.full(sizes, number, dtype=torch.float64)


def repeated_doubles(x, t):
    logs, nll = log_and_nll(x, t)
    return (nll * 0.9 + -logs.mean(-1, keepdim=True) * (doubles((3, 1, 1), EPS) / doubles((3, 1, 1), 1.0))).sum()


def repeated_soft_targets(x, t):
    c = torch.full((3, 1, 1), EPS) / torch.full((3, 1, 1), 6.0)
    return -((F.one_hot(t, 6) * 0.9 + c) * F.log_softmax(x, -1)).sum()


def sums_of_samples(x, t):
    c = torch.full((1, 1, 1), EPS) / torch.full((1, 1, 1), 6.0)
    return -((F.one_hot(t, 6) * 0.9 + c) * F.log_softmax(x, -1)).sum(1).mean()


def different_numbers(x, t):
    logs, nll = log_and_nll(x, t)
    e = torch.full((), EPS) / torch.full((), 2.0)
    return nll.squeeze(1) * (torch.full((), 1.0) - e) + -logs.mean(-1) * EPS


def different_doubles(x, t):
    logs, nll = log_and_nll(x, t)
    e = doubles((), EPS) / doubles((), 2.0)
    return nll.squeeze(1) * (doubles((), 1.0) - e) + -logs.mean(-1) * EPS


def quotient(x, t, e):
    logs, nll = log_and_nll(x, t)
    return nll.squeeze(1) * (1 - 0.01) + -logs.mean(-1) * e


def bool_divisor(x, t):
    return quotient(x, t, torch.full((), EPS) / torch.full((), 10, dtype=torch.bool))


def integer_dividend(x, t):
    logs, nll = log_and_nll(x, t)
    e = torch.full((), 1.5, dtype=torch.int64) / torch.full((), 10.0)
    return nll.squeeze(1) * 0.85 + -logs.mean(-1) * e


def half_dividend(x, t):
    return quotient(x, t, torch.full((), EPS, dtype=torch.float16) / torch.full((), 10.0))


SHAPED = [repeated_columns, repeated_rows, repeated_doubles, repeated_soft_targets, sums_of_samples]
OTHER_NUMBERS = [different_numbers, different_doubles, bool_divisor, integer_dividend, half_dividend]


@pytest.mark.parametrize("form", SHAPED + OTHER_NUMBERS)
def test_factors_with_sizes_or_other_dtypes_keep_their_values(form):
    x, t = torch.randn(4, 6), torch.tensor([0, 5, 2, 1])
    program = trace(form, x, t)
    assert "cross_entropy" not in program.explain(x, t)
    torch.testing.assert_close(program(x, t), form(x, t), rtol=1e-6, atol=1e-6)


def test_factors_that_do_not_add_up_to_1_stay():
    def almost(x, t):
        logs, nll = log_and_nll(x, t)
        return nll.squeeze(1) * 1.0 + 9e-7 * -logs.mean(-1)

    x, t = torch.randn(4, 6, dtype=torch.float64), torch.tensor([0, 5, 2, 1])
    program = trace(almost, x, t)
    assert "cross_entropy" not in program.explain(x, t)
    torch.testing.assert_close(program(x, t), almost(x, t), rtol=1e-14, atol=0)


@pytest.mark.parametrize("form", [mean_of_gathered, one_hot, scattered])
def test_the_least_integer_is_no_target(form):
    x, t = torch.randn(4, 6), torch.tensor([2, 1, 0, 5])
    program = trace(form, x, t)
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        program(x, torch.tensor([2, 1, -(2**63), 5])).item()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, EPS])
def test_the_least_integer_is_no_ignored_index(reduction, smoothing):
    x, t = torch.randn(3, 4), torch.tensor([2, 1, -(2**63)])
    settings = {"ignore_index": -(2**63), "reduction": reduction}
    with pytest.raises(IndexError, match="Target -9223372036854775808 is out of bounds"):
        F.cross_entropy(x, t, label_smoothing=smoothing, **settings).sum().item()
    with pytest.raises(IndexError, match="Target -9223372036854775808 is out of bounds"):
        F.nll_loss(x, t, **settings).sum().item()
    t[2] = 3
    want = F.cross_entropy(x, t, label_smoothing=smoothing, reduction=reduction)
    assert F.cross_entropy(x, t, label_smoothing=smoothing, **settings).equal(want)


def test_large_finite_losses_stay_finite():
    x, t = torch.randn(4, 6), torch.tensor([0, 5, 2, 1])
    lowest = torch.finfo(torch.float32).min
    x[:, 3:5] = lowest
    program = trace(gathered, x, t)
    assert "cross_entropy" in program.explain(x, t)
    got = program(x, t)
    want = (gathered(x.double(), t)).float()
    assert got.isfinite().all()
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(F.cross_entropy(x.t().contiguous().t(), t, label_smoothing=EPS, reduction="none"), want)


def uniform_scattered(x, t):
    logs = F.log_softmax(x, -1)
    targets = torch.full_like(x, 1 / 6).scatter_(1, t.unsqueeze(1), 1 / 6)
    return -(targets * logs).sum(-1)


def uniform_one_hot(x, t):
    return -((F.one_hot(t, 6).float() * 0.0 + 1 / 6) * F.log_softmax(x, -1)).sum(-1)


@pytest.mark.parametrize("form", [uniform_scattered, uniform_one_hot])
def test_equal_targets_with_an_infinite_loss(form):
    x, t = torch.randn(4, 6), torch.tensor([0, 5, 2, 1])
    x[1, 5] = -math.inf
    program = trace(form, x, t)
    assert form(x, t)[1] == math.inf
    torch.testing.assert_close(program(x, t), form(x, t))


def test_a_weight_that_requires_a_gradient_is_refused():
    x, t = torch.randn(4, 6, requires_grad=True), torch.tensor([0, 5, 2, 1])
    weight = torch.rand(6, requires_grad=True)
    text = "The function '{}' is not differentiable with respect to argument 'weight'. This input cannot have requires_grad True."
    for smoothing in (0.0, EPS):
        with pytest.raises(RuntimeError, match=text.format("nll_loss_forward")):
            F.cross_entropy(x, t, weight, label_smoothing=smoothing)
    with pytest.raises(RuntimeError, match=text.format("nll_loss_forward")):
        F.nll_loss(x, t, weight)
    with pytest.raises(RuntimeError, match=text.format("nll_loss2d_forward")):
        F.cross_entropy(torch.randn(2, 6, 3, 3), torch.zeros(2, 3, 3, dtype=torch.int64), weight)
    with torch.no_grad():
        assert F.cross_entropy(x, t, weight).isfinite()
    F.cross_entropy(x, torch.rand(4, 6), weight, label_smoothing=EPS).backward()  # probabilities have a gradient by it
    assert weight.grad is not None


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_many_classes_are_accurate(weighted):
    classes = 256000
    x = (7 + torch.rand(1, 4, classes) * 1e-3).transpose(1, 2)
    weight = torch.rand(classes) * 1e-3 + 0.1 if weighted else None
    t = torch.tensor([[3, 100, 7, 200000]])
    got = F.cross_entropy(x, t, weight, label_smoothing=EPS, reduction="none")
    want = F.cross_entropy(x.double(), t, weight.double() if weighted else None, label_smoothing=EPS, reduction="none")
    torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=0)


def test_the_gradient_with_many_weights_is_accurate():
    classes = 256000
    x, t = torch.zeros(1, classes, requires_grad=True), torch.tensor([5])
    weight = torch.full((classes,), 0.1)
    (got,) = torch.autograd.grad(F.cross_entropy(x, t, weight, label_smoothing=0.9, reduction="sum"), x)
    wide = x.detach().double().requires_grad_()
    (want,) = torch.autograd.grad(F.cross_entropy(wide, t, weight.double(), label_smoothing=0.9, reduction="sum"), wide)
    # Of the other classes: the small difference of the softmax and of the part of the smoothed target.
    torch.testing.assert_close(got.double()[0, 6:], want[0, 6:], rtol=1e-4, atol=0)


def test_losses_without_classes():
    x, ignored = torch.empty(2, 0), torch.full((2,), -100)
    for smoothing in (0.0, EPS):
        for reduction in ("none", "mean", "sum"):
            settings = {"reduction": reduction, "label_smoothing": smoothing}
            hard, soft = F.cross_entropy(x, ignored, **settings), F.cross_entropy(x, x, **settings)
            assert hard.isnan().all() if smoothing or reduction == "mean" else hard.eq(0).all()
            assert soft.isnan().all() if reduction == "mean" else soft.eq(0).all()
