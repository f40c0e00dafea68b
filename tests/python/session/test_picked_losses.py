"""Log probabilities of one class per row, written out in Programs: they become cross entropy."""

from __future__ import annotations

import inspect
import math

import pytest

import teletensor as torch
import teletensor.nn.functional as F

trace = torch.compiler.trace
ROWS, CLASSES = 5, 6


def logs_of(x):
    return F.log_softmax(x, dim=-1)


def nn_tutorial(x, t):
    return -logs_of(x)[range(t.shape[0]), t].mean()


def makemore(x, t):
    return -logs_of(x)[torch.arange(x.shape[0]), t].mean()


def negated_first(x, t):
    return (-x.log_softmax(1)[torch.arange(0, x.size(0), device=x.device), t]).sum()


def divided(x, t):
    return -logs_of(x)[torch.arange(x.shape[0]), t].sum() / x.shape[0]


def mean_of_column(x, t):
    return -logs_of(x).gather(1, t[:, None]).mean()


def sum_of_column(x, t):
    return (-torch.gather(logs_of(x), 1, t.view(-1, 1))).sum()


def divided_column(x, t):
    return -(logs_of(x).gather(-1, t.unsqueeze(-1)).squeeze(-1).sum()) / x.shape[0]


def each_loss(x, t):
    return -logs_of(x).gather(1, t.unsqueeze(1)).squeeze(1)


def each_negative_column(x, t):
    return (-logs_of(x).gather(1, t.unsqueeze(1)))[:, 0]


def each_flat(x, t):
    return -logs_of(x).gather(1, t.reshape(-1, 1)).view(-1)


def each_index(x, t):
    return -logs_of(x)[torch.arange(x.shape[0]), t]


def each_log(x, t):
    return logs_of(x).gather(-1, t.unsqueeze(-1)).squeeze(-1)


def each_log_by_index(x, t):
    return logs_of(x)[torch.arange(x.shape[0]), t]


def mean_of_each(x, t):
    return each_loss(x, t).mean()


INDEXED = [nn_tutorial, makemore, negated_first, divided, each_index, each_log_by_index]
GATHERED = [
    mean_of_column, sum_of_column, divided_column, each_loss, each_negative_column, each_flat, each_log, mean_of_each,
]  # fmt: skip


def rewritten(form, *inputs):
    program = trace(form, *inputs)
    return program, program.explain(*inputs).split("# after rewrite")[1].split("# after")[0]


def agree(program, form, x, *others):
    got, want = program(x, *others), form(x, *others)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6, equal_nan=True)
    (got,), (want,) = (torch.autograd.grad(y.sin().sum(), x) for y in (got, want))
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("form", INDEXED + GATHERED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("infinite", [False, True])
def test_forms_become_cross_entropy(form, dtype, infinite):
    x, t = torch.randn(ROWS, CLASSES, dtype=dtype, requires_grad=True), torch.tensor([0, 5, 2, 1, 1])
    if infinite:
        with torch.no_grad():
            x[0, 3], x[2, 0], x[3, 1] = -math.inf, math.inf, -math.inf
    program, text = rewritten(form, x, t)
    assert text.count("= cross_entropy(") == 1 and "log_softmax" not in text, text
    assert "gather(" not in text and ("neg(" in text) == (form in (each_log, each_log_by_index)), text
    agree(program, form, x, t)


@pytest.mark.parametrize("form", INDEXED)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_negative_targets_of_an_index_count_from_the_end(form, dtype):
    x, t = torch.randn(ROWS, CLASSES, requires_grad=True), torch.tensor([0, -1, 2, -6, 1], dtype=dtype)
    program, text = rewritten(form, x, t)
    assert "= cross_entropy(" in text
    agree(program, form, x, t)


@pytest.mark.parametrize("form", INDEXED)
@pytest.mark.parametrize("wrong", [6, -7, 2**62, -(2**63)])
def test_an_index_out_of_bounds_is_the_same_error(form, wrong):
    x, t = torch.randn(ROWS, CLASSES), torch.tensor([0, 5, 2, 1, 1])
    program = trace(form, x, t)
    t[2] = wrong
    for f in (form, program):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for dimension 1 with size 6"):
            f(x, t).sum().item()


@pytest.mark.parametrize("form", GATHERED)
@pytest.mark.parametrize("wrong", [6, -1, -100, -(2**63)])
def test_a_class_out_of_bounds_is_an_error(form, wrong):
    x, t = torch.randn(ROWS, CLASSES), torch.tensor([0, 5, 2, 1, 1])
    program = trace(form, x, t)
    t[2] = wrong
    for f in (form, program):
        with pytest.raises(IndexError, match=f"{wrong} is out of bounds"):
            f(x, t).sum().item()


def mean_on_lines(x, t):
    logs = logs_of(x)
    picked = logs[torch.arange(x.shape[0]), t]  # the line
    negative = -picked
    return negative.mean()


def column_on_lines(x, t):
    column = logs_of(x).gather(-1, t.unsqueeze(-1))  # the line
    negative = -column.squeeze(-1)
    return negative.mean()


@pytest.mark.parametrize("form", [mean_on_lines, column_on_lines])
def test_an_error_names_the_line_of_the_index(form):
    x, t = torch.randn(ROWS, CLASSES), torch.tensor([0, 5, 2, 1, 1])
    program, text = rewritten(form, x, t)
    assert "= cross_entropy(" in text
    t[2] = 9
    lines, first = inspect.getsourcelines(form)
    line = first + next(i for i, text in enumerate(lines) if "# the line" in text)
    for f in (form, program):
        with pytest.raises(IndexError) as error:
            f(x, t).item()
        described = str(error.value) + "".join(getattr(error.value, "__notes__", ()))
        assert f"test_picked_losses.py:{line}" in described, described


def token_logs(x, t):
    return torch.gather(x.log_softmax(-1), dim=2, index=t.unsqueeze(2)).squeeze(2)


def token_losses(x, t):
    return -token_logs(x, t)


def mean_of_tokens(x, t):
    return -F.log_softmax(x, -1).gather(-1, t[..., None]).mean()


def sum_of_masked(x, t):
    return -(token_logs(x[:, :-1], t[:, 1:]) * (t[:, 1:] != 3)).sum()


def flat_nll(x, t):
    return F.nll_loss(F.log_softmax(x, -1).view(-1, x.size(-1)), t.view(-1), ignore_index=1)


def flattened_nll(x, t):
    return F.nll_loss(F.log_softmax(x, -1).flatten(0, 1), t.flatten(), weight=torch.arange(1.0, 7.0), reduction="none")


@pytest.mark.parametrize("form", [token_logs, token_losses, mean_of_tokens, sum_of_masked, flat_nll, flattened_nll])
@pytest.mark.parametrize("sizes", [(2, 7), (1, 1), (3, 2)])
def test_tokens_of_several_sequences(form, sizes):
    x, t = torch.randn(*sizes, CLASSES, requires_grad=True), torch.randint(0, CLASSES, sizes)
    program, text = rewritten(form, x, t)
    assert text.count("= cross_entropy(") == 1 and "log_softmax" not in text, text
    agree(program, form, x, t)


def smoothed_mean(x, t):
    logs = logs_of(x)
    return 0.9 * -logs[torch.arange(x.shape[0]), t].mean() - 0.1 * logs.mean()


def smoothed_losses(x, t):
    logs = logs_of(x)
    return 0.9 * -logs[range(x.shape[0]), t] + 0.1 * -logs.mean(-1)


@pytest.mark.parametrize("form", [smoothed_mean, smoothed_losses])
def test_label_smoothing_with_indices(form):
    x, t = torch.randn(ROWS, CLASSES, requires_grad=True), torch.tensor([0, -1, 2, -6, 1])
    program, text = rewritten(form, x, t)
    assert text.count("= cross_entropy(") == 1 and "label_smoothing=0.1" in text and "log_softmax" not in text, text
    agree(program, form, x, t)
    other = lambda x, t: form(x, t + 1)  # noqa: E731
    program, text = rewritten(other, x, t)
    assert "label_smoothing=0.1" in text
    with pytest.raises(IndexError, match="index 6 is out of bounds for dimension 1 with size 6"):
        program(x, t + 5).sum().item()


def other_rows(x, t):
    return -logs_of(x)[torch.arange(x.shape[0] - 1, -1, -1), t].mean()


def some_rows(x, t):
    return -logs_of(x)[torch.arange(x.shape[0] - 1), t[1:]].mean()


def rows_of_other_numbers(x, t):
    return -logs_of(x)[[0, 1, 2, 4, 3], t].mean()


def read_logs(x, t):
    logs = logs_of(x)
    return -logs[torch.arange(x.shape[0]), t].mean() + 0.1 * (logs.exp() * logs).sum()


def grid(x, t):
    return -logs_of(x)[torch.arange(x.shape[0]), t[:, None]].mean()


def other_dimension(x, t):
    return -F.log_softmax(x, 0)[torch.arange(x.shape[0]), t].mean()


def other_classes(x, t):
    return -logs_of(x).gather(0, t.unsqueeze(0)).mean()


def means_of_rows(x, t):
    return -logs_of(x).gather(1, t.unsqueeze(1)).mean(1)


def other_divisor(x, t):
    return -logs_of(x).gather(1, t.unsqueeze(1)).sum() / 7


def logs_of_softmax(x, t):
    return -x.softmax(-1)[torch.arange(x.shape[0]), t].log().mean()


@pytest.mark.parametrize("form", [
    other_rows, some_rows, rows_of_other_numbers, read_logs, grid, other_dimension, other_classes, logs_of_softmax,
])  # fmt: skip
def test_other_forms_stay(form):
    x, t = torch.randn(ROWS, CLASSES, requires_grad=True), torch.tensor([0, 4, 2, 1, 1])
    program, text = rewritten(form, x, t)
    assert "cross_entropy" not in text
    agree(program, form, x, t)


@pytest.mark.parametrize("form", [means_of_rows, other_divisor])
def test_other_reductions(form):
    x, t = torch.randn(ROWS, CLASSES, requires_grad=True), torch.tensor([0, 4, 2, 1, 1])
    agree(trace(form, x, t), form, x, t)


def test_16_bits_stay():
    x, t = torch.randn(ROWS, CLASSES, dtype=torch.bfloat16), torch.tensor([0, 4, 2, 1, 1])
    assert "cross_entropy" not in rewritten(makemore, x, t)[1]
    x32 = lambda x, t: makemore(x.float(), t)  # noqa: E731
    assert "cross_entropy" in rewritten(x32, x, t)[1]


@pytest.mark.parametrize("form", [makemore, mean_of_column, each_loss, sum_of_column])
def test_no_rows(form):
    x, t = torch.randn(0, CLASSES, requires_grad=True), torch.empty(0, dtype=torch.int64)
    agree(trace(form, x, t), form, x, t)
