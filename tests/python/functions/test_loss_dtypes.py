"""Dtypes of losses whose arguments have different dtypes: PyTorch's result, or its error."""

from __future__ import annotations

import pytest


def test_losses_in_the_dtype_of_the_input(torch):
    """huber_loss and soft_margin_loss store the losses in a tensor of the input's dtype."""
    functional = torch.nn.functional
    for loss in (functional.huber_loss, functional.soft_margin_loss):
        for reduction in ("none", "mean", "sum"):
            narrow = loss(torch.tensor([0.5, 2.0]), torch.tensor([1.0, -1.0], dtype=torch.float64), reduction=reduction)
            assert narrow.dtype == torch.float32
            wide = loss(torch.tensor([0.5, 2.0]).double(), torch.tensor([1.0, -1.0]), reduction=reduction)
            assert wide.dtype == torch.float64
            torch.testing.assert_close(narrow.double(), wide)
        assert loss(torch.ones(2, dtype=torch.bfloat16), torch.ones(2)).dtype == torch.bfloat16
        assert loss(torch.ones(2), torch.tensor([1, -1])).dtype == torch.float32
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
            loss(torch.tensor([1, -1]), torch.ones(2))


def test_losses_in_the_dtype_of_the_target(torch):
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    x, y = torch.tensor([0.5, -2.0]), torch.tensor([1.0, 0.25])
    for reduction in ("none", "mean", "sum"):
        wide = loss(x, y.double(), reduction=reduction)
        assert wide.dtype == torch.float64
        narrow = loss(x.double(), y, reduction=reduction)
        assert narrow.dtype == torch.float32
        torch.testing.assert_close(narrow.double(), wide, atol=1e-6, rtol=1e-6)
    assert loss(x, y.bfloat16()).dtype == torch.bfloat16
    assert loss(x, y, x.double().abs(), pos_weight=x.double().abs()).dtype == torch.float32
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        loss(x, torch.tensor([1, 0]))
    for a, b in ((x, x > 0), (torch.tensor([1, 0]), y), (x, torch.complex(y, y))):
        with pytest.raises(NotImplementedError):
            loss(a, b)


def test_rejected_dtypes(torch):
    functional = torch.nn.functional
    p, i = torch.tensor([0.5, 0.25]), torch.tensor([1, 0])
    for other in (p.double(), i, p > 0):
        with pytest.raises(RuntimeError, match="Found dtype \\w+ but expected Float"):
            functional.binary_cross_entropy(p, other)
    assert functional.binary_cross_entropy(p, p, p.double()).dtype == torch.float32
    for a, b in ((p, i), (i, p), (p, p > 0)):
        for log_target in (False, True):
            with pytest.raises(RuntimeError, match="Integral inputs not supported"):
                functional.kl_div(a, b, reduction="sum", log_target=log_target)
    for a, b in ((p, p > 0), (p > 0, p)):
        with pytest.raises(NotImplementedError):
            functional.l1_loss(a, b)
    with pytest.raises(NotImplementedError):  # PyTorch rounds the margin to an integer
        functional.hinge_embedding_loss(i, torch.tensor([1, -1]))


def test_tensors_without_dimensions_promote_losses(torch):
    """As in PyTorch, which broadcasts the arguments first."""
    functional = torch.nn.functional
    x, target = torch.tensor([0.5, 2.0]), torch.tensor(0.1, dtype=torch.float64)
    for loss in (functional.l1_loss, functional.mse_loss, functional.smooth_l1_loss):
        with pytest.warns(UserWarning, match="different to the input size"):
            losses = loss(x, target, reduction="none")
        assert losses.dtype == torch.float64
        assert torch.equal(losses, loss(x.double(), target.expand(2), reduction="none"))


@pytest.mark.parametrize(("values", "targets", "name"), [
    ([0.5, 1.5], [1.0, 1.0], "input"), ([-0.1], [1.0], "input"), ([0.5], [-1.0], "target"), ([float("nan")], [1.0], "input"),
])  # fmt: skip
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_numbers_that_are_no_probabilities_are_refused(torch, values, targets, name, reduction):
    loss = torch.nn.functional.binary_cross_entropy
    x, y = torch.tensor(values), torch.tensor(targets)
    match = f"all elements of {name} should be between 0 and 1"
    for call in (loss, torch.compile(loss)):
        with pytest.raises(RuntimeError, match=match):
            call(x, y, reduction=reduction).tolist()
    with pytest.raises(RuntimeError, match=match):
        torch.vmap(loss)(x.expand(2, -1), y.expand(2, -1)).tolist()
    valid = loss(torch.tensor([0.25], dtype=torch.float16), torch.tensor([1.0], dtype=torch.float16), reduction=reduction)
    assert valid.dtype is torch.float16
