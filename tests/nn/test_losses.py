"""Losses over sequences and margins, compared with their definitions."""

import itertools
import warnings

import numpy as np
import pytest


def by_paths(log_probs: np.ndarray, labels: list[int], blank: int = 0) -> float:
    """-log of the total probability of all paths that collapse to the labels, by enumeration."""
    total = -np.inf
    for path in itertools.product(range(log_probs.shape[1]), repeat=log_probs.shape[0]):
        collapsed = [c for c, _ in itertools.groupby(path) if c != blank]
        if collapsed == labels:
            total = np.logaddexp(total, sum(log_probs[t, c] for t, c in enumerate(path)))
    return -total


@pytest.mark.parametrize("labels", [[], [1], [1, 2], [2, 2], [1, 2, 1]])
def test_ctc_sums_over_all_paths(torch, labels):
    logs = torch.randn(5, 1, 3, dtype=torch.float64).log_softmax(2)
    loss = torch.nn.functional.ctc_loss(
        logs, torch.tensor([labels], dtype=torch.int64).reshape(1, -1), [5], [len(labels)], reduction="none"
    )
    np.testing.assert_allclose(loss.numpy()[0], by_paths(logs.numpy()[:, 0], labels), rtol=1e-9)


def test_ctc_of_impossible_targets(torch):
    logs = torch.randn(2, 1, 3).log_softmax(2).requires_grad_()
    loss = torch.nn.CTCLoss(reduction="sum")(logs, torch.tensor([[1, 1]]), [2], [2])
    assert loss.item() == float("inf")
    finite = torch.nn.CTCLoss(reduction="sum", zero_infinity=True)(logs, torch.tensor([[1, 1]]), [2], [2])
    finite.backward()
    assert finite.item() == 0 and logs.grad.abs().sum().item() == 0


def test_ctc_accepts_concatenated_targets(torch):
    logs = torch.randn(6, 2, 4).log_softmax(2)
    rows = torch.nn.functional.ctc_loss(logs, torch.tensor([[1, 2, 3], [2, 0, 0]]), torch.tensor([6, 5]), torch.tensor([3, 1]))
    one = torch.nn.functional.ctc_loss(logs, torch.tensor([1, 2, 3, 2]), [6, 5], [3, 1])
    np.testing.assert_allclose(rows.item(), one.item(), rtol=1e-6)


def test_ctc_trains(torch):
    logits = torch.zeros(8, 1, 4, requires_grad=True)
    for _ in range(60):
        loss = torch.nn.functional.ctc_loss(logits.log_softmax(2), torch.tensor([[1, 2, 3]]), [8], [3])
        (grad,) = torch.autograd.grad(loss, logits)
        logits = (logits - 5 * grad).detach().requires_grad_()
    path = logits.argmax(2).reshape(-1).tolist()
    assert [c for c, _ in itertools.groupby(path) if c != 0] == [1, 2, 3]


def test_margins(torch):
    x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    # The examples of PyTorch's documentation.
    loss = torch.nn.MultiLabelMarginLoss()(x, torch.tensor([[3, 0, -1, 1]]))
    np.testing.assert_allclose(loss.item(), 0.85, rtol=1e-6)
    np.testing.assert_allclose(torch.nn.MultiMarginLoss()(x, torch.tensor([3])).item(), 0.325, rtol=1e-6)


def test_adaptive_softmax_is_a_distribution(torch):
    layer = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10], div_value=2.0)
    x = torch.randn(4, 16)
    logs = layer.log_prob(x)
    np.testing.assert_allclose(logs.exp().sum(1).detach().numpy(), np.ones(4), rtol=1e-5)
    output, loss = layer(x, torch.tensor([0, 7, 19, 3]))
    np.testing.assert_allclose(output.detach().numpy(), [logs[i, c].item() for i, c in enumerate([0, 7, 19, 3])], rtol=1e-5)
    assert layer.predict(x).tolist() == logs.argmax(1).tolist()
    np.testing.assert_allclose(loss.item(), -output.mean().item(), rtol=1e-6)


@pytest.mark.parametrize("classes", [(3,), (3, 2)], ids=str)
def test_cross_entropy_of_a_linear_layer(torch, classes):
    F = torch.nn.functional  # noqa: N806
    x, weight, bias = torch.randn(5, 4), torch.randn(*classes, 4), torch.randn(*classes)
    target = torch.randint(0, 3, (5, *classes[1:]))
    logits = F.linear(x, weight.reshape(-1, 4), bias.reshape(-1)).reshape(5, *classes)
    loss = F.linear_cross_entropy(x, weight, target, linear_bias=bias, label_smoothing=0.1)
    np.testing.assert_allclose(loss.numpy(), F.cross_entropy(logits, target, label_smoothing=0.1).numpy(), rtol=1e-6)
    ignoring = F.linear_cross_entropy(x, weight, target, ignore_index=1, reduction="sum")
    plain = F.linear(x, weight.reshape(-1, 4)).reshape(5, *classes)
    np.testing.assert_allclose(ignoring.numpy(), F.cross_entropy(plain, target, ignore_index=1, reduction="sum").numpy(), rtol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["classes", "ignored", "probabilities"])
def test_parts_of_a_batch_with_label_smoothing(torch, reduction, weighted, kind):
    F = torch.nn.functional  # noqa: N806
    x, weight, bias = (torch.randn(*n, requires_grad=True) for n in ((7, 4), (3, 4), (3,)))
    target = torch.randn(7, 3).softmax(1) if kind == "probabilities" else torch.tensor([0, 2, 1, 1, 0, 1, 1])
    settings = {"linear_bias": bias, "reduction": reduction, "label_smoothing": 0.2}
    settings |= {"weight": torch.tensor([0.5, 1.0, 2.0])} if weighted else {}
    settings |= {"ignore_index": 1} if kind == "ignored" else {}
    parts = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # ignored options
        want, got = (F.linear_cross_entropy(x, weight, target, options=o, **settings) for o in (None, parts))
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-6)
    for a, b in zip(*(torch.autograd.grad(y.sin().sum(), (x, weight, bias)) for y in (got, want))):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)


def linear_losses(torch, x, linear_weight, target, **settings):
    """The loss of the whole and that in parts: numbers, or the type and text of the error."""
    found = []
    for options in (None, torch.nn.LinearCrossEntropyOptions(batch_chunk_size=4)):
        try:
            loss = torch.nn.functional.linear_cross_entropy(x, linear_weight, target, options=options, **settings)
            found.append((loss.shape, loss.dtype, loss.tolist()))
        except (ValueError, RuntimeError, IndexError) as error:
            found.append((type(error), str(error)))
    return found


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_parts_of_a_batch_refuse_what_the_whole_does(torch, smoothing, reduction):
    x, weight, target, settings = torch.ones(8, 5), torch.eye(7, 5), torch.zeros(12, dtype=torch.int64), {}
    settings |= {"label_smoothing": smoothing, "reduction": reduction}
    for wrong in (target, target[:4], target[0], target[:8, None].expand(8, 2), torch.ones(8, 6), torch.ones(12, 7)):
        whole, parts = linear_losses(torch, x, weight, wrong, **settings)
        assert whole == parts and issubclass(whole[0], (ValueError, RuntimeError)), (whole, parts)
    whole, parts = linear_losses(torch, x[:0], weight, target[:0], **settings)
    assert str(whole) == str(parts) and len(whole) == 3  # nan is not equal to itself
    byte = torch.zeros(8, dtype=torch.uint8)
    whole, parts = linear_losses(torch, x, weight, byte, weight=torch.arange(1.0, 8.0), **settings)
    assert whole[:2] == parts[:2]
    np.testing.assert_allclose(parts[2], whole[2], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_parts_of_a_batch_of_16_bits_are_added_up_in_float32(torch, dtype, reduction):
    dtype = getattr(torch, dtype)
    torch.manual_seed(0)
    x, target = torch.randn(2048, 16), torch.randint(0, 32, (2048,))
    weight, bias = torch.randn(32, 16) * 0.3, torch.randn(32) * 0.1

    def gradients(dtype, rows):
        w, b = weight.to(dtype).requires_grad_(), bias.to(dtype).requires_grad_()
        options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=rows) if rows else None
        settings = {"linear_bias": b, "reduction": reduction, "options": options}
        loss = torch.nn.functional.linear_cross_entropy(x.to(dtype), w, target, **settings)
        assert loss.dtype == dtype
        (loss / (1 if reduction == "mean" else 2048)).backward()
        return [t.detach().double().numpy() for t in (loss, w.grad, b.grad)]

    want, whole = gradients(torch.float64, 0), gradients(dtype, 0)
    for rows in (8, 64):
        for got, of_whole, exact in zip(gradients(dtype, rows), whole, want):
            error, allowed = np.linalg.norm(got - exact), np.linalg.norm(of_whole - exact)
            assert error <= 1.5 * allowed + 2e-3 * np.linalg.norm(exact)


def test_the_mean_of_parts_does_not_overflow(torch):
    x, target = torch.zeros(16384, 2, dtype=torch.float16), torch.zeros(16384, dtype=torch.int64)
    weight, bias = torch.zeros(2, 2, dtype=torch.float16), torch.tensor([0.0, 20.0], dtype=torch.float16)
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=8192)  # whose losses are 163840
    loss = torch.nn.functional.linear_cross_entropy(x, weight, target, linear_bias=bias, options=options)
    assert loss.item() == 20


@pytest.mark.parametrize(
    "target, options, error, message",
    [
        ("probabilities[0]", {}, RuntimeError, "expected target dtype to be Long or Byte, or probabilities of the input's size"),
        ("probabilities[:1]", {}, ValueError, r"batch_size \(3\) to match target batch_size \(1\)"),
        ("probabilities.long()", {}, RuntimeError, "Expected floating point type for target with class probabilities"),
        ("probabilities", {"ignore_index": 1}, RuntimeError, "ignore_index is not supported for floating point target"),
        ("probabilities", {"label_smoothing": 2.0}, RuntimeError, "label_smoothing must be between 0.0 and 1.0"),
        ("probabilities", {"weight": [1.0]}, RuntimeError, "weight tensor should be defined either for all 3 classes"),
    ],
)
def test_cross_entropy_of_probabilities_checks_its_arguments(torch, target, options, error, message):
    input = torch.arange(9.0).reshape(3, 3)
    if "weight" in options:
        options = {"weight": torch.tensor(options["weight"])}
    with pytest.raises(error, match=message):
        torch.nn.functional.cross_entropy(input, eval(target, {"probabilities": input.softmax(1)}), **options)


def test_arguments_without_a_defined_result(torch):
    functional, x = torch.nn.functional, torch.ones(1, 2, 4)
    assert functional.cross_entropy(x[:0, :, 0], x[:0, :, 0]).isnan()
    with pytest.raises(RuntimeError, match="alpha cannot be 0 for CELU"):
        functional.celu(x, 0.0)
    assert functional.pad(x, (4, 4), "circular").shape == (1, 2, 12)
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        functional.pad(x, (5, 0), "circular")


def test_distances_of_complex_vectors(torch):
    a, b = torch.tensor([[1 + 2j, 3 - 1j]], requires_grad=True), torch.tensor([[0.5j, 1 + 1j]])
    distance = torch.nn.functional.pairwise_distance(a, b, eps=0.0)
    assert abs(distance.item() - 11.25**0.5) < 1e-6
    distance.backward(torch.ones(1))
    assert torch.allclose(a.grad, (a - b).detach() / 11.25**0.5)
