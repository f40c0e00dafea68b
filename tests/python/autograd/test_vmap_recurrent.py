"""vmap computes recurrent layers and ctc_loss for all entries as one batch of sequences, with the values of single calls."""

from __future__ import annotations

import warnings

import pytest

import teletensor as torch
import teletensor.nn.functional as F
from teletensor.func import grad, vmap

KINDS = [{}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True}, {"bias": False, "num_layers": 2}]


def called(layer, x, *states):
    if not states:
        return layer(x)[0]
    output, last = layer(x, states if isinstance(layer, torch.nn.LSTM) else states[0])
    return output, *(last if isinstance(last, tuple) else (last,))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("has_states", [False, True])
def test_sequences_of_all_entries_are_one_batch(name, kind, has_states):
    layer = getattr(torch.nn, name)(4, 5, **kind)
    count = kind.get("num_layers", 1) * (2 if kind.get("bidirectional") else 1)
    x, sequences = torch.randn(6, 3, 2, 4), 6 if kind.get("batch_first") else 2  # mapped over the second dimension
    states = [torch.randn(3, count, sequences, 5) for _ in range(2 if name == "LSTM" else 1)] if has_states else []
    x = x.movedim(1, 0).contiguous() if kind.get("batch_first") else x
    dim = 0 if kind.get("batch_first") else 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = vmap(lambda x, *h: called(layer, x, *h), (dim, *[0] * len(states)))(x, *states)
        gradients = vmap(grad(lambda x: called(layer, x).sin().sum()), dim)(x)
    wanted = [called(layer, x.select(dim, i), *(h[i] for h in states)) for i in range(3)]
    got, wanted = ([got], [[w] for w in wanted]) if not has_states else (got, wanted)
    for k, result in enumerate(got):
        torch.testing.assert_close(result, torch.stack([w[k] for w in wanted]))
    for i in range(3):
        torch.testing.assert_close(gradients[i], grad(lambda x: called(layer, x).sin().sum())(x.select(dim, i)))


def test_states_that_are_mapped_alone():
    layer, x = torch.nn.GRU(4, 5), torch.randn(6, 2, 4)
    states = torch.randn(3, 1, 2, 5)
    got = vmap(lambda h: layer(x, h)[0])(states)
    torch.testing.assert_close(got, torch.stack([layer(x, h)[0] for h in states]))


def test_sequences_without_a_batch_and_weights_that_are_mapped():
    layer, x = torch.nn.LSTM(4, 5), torch.randn(3, 6, 4)
    torch.testing.assert_close(vmap(lambda x: layer(x)[0])(x), torch.stack([layer(v)[0] for v in x]))
    weights = {n: torch.stack([p.detach() * k for k in (1.0, 0.5, 2.0)]) for n, p in layer.named_parameters()}
    call = lambda p, x: torch.func.functional_call(layer, p, (x,))[0]  # noqa: E731
    got = vmap(call, (0, None))(weights, x[0])
    torch.testing.assert_close(got, torch.stack([call({n: w[i] for n, w in weights.items()}, x[0]) for i in range(3)]))


def test_connectionist_temporal_classification():
    x, targets = torch.randn(3, 6, 2, 4), torch.randint(1, 4, (3, 2, 2))
    for reduction in ("none", "sum", "mean"):
        call = lambda x, t: F.ctc_loss(x.log_softmax(-1), t, (6, 5), (2, 1), reduction=reduction)  # noqa: E731, B023
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = vmap(call)(x, targets)
        torch.testing.assert_close(got, torch.stack([call(a, t) for a, t in zip(x, targets)]))
        assert vmap(call, (0, None))(x, targets[0]).shape == got.shape
        slope = lambda x, t: grad(lambda x: call(x, t).sum())(x)  # noqa: E731, B023
        torch.testing.assert_close(vmap(slope)(x, targets), torch.stack([slope(a, t) for a, t in zip(x, targets)]))


OF_ENTRIES = [*((n, k) for n in ("RNN", "GRU", "LSTM") for k in KINDS), ("RNN", {"nonlinearity": "relu"}),
              ("LSTM", {"proj_size": 2, "num_layers": 2})]  # fmt: skip


@pytest.mark.filterwarnings("error:vmap")
@pytest.mark.parametrize("name, kind", OF_ENTRIES)
@pytest.mark.parametrize("dim", [0, None])
def test_weights_of_entries(name, kind, dim):
    """Each step is a batched product: values, gradients and tangents are those of single calls."""
    layer, x = getattr(torch.nn, name)(3, 4, **kind), torch.randn(3, 5, 2, 3)
    x = x if dim == 0 else x[0]
    weights = {n: torch.randn(3, *p.shape) / 2 for n, p in layer.named_parameters()}
    tangents = {n: torch.randn_like(w) for n, w in weights.items()}
    each = [({n: w[i] for n, w in weights.items()}, x if dim is None else x[i], {n: t[i] for n, t in tangents.items()}) for i in range(3)]

    def call(p, x):
        output, last = torch.func.functional_call(layer, p, (x,))
        return output, *(last if isinstance(last, tuple) else (last,))

    def total(p, x):
        return sum(r.sin().sum() for r in call(p, x))

    got = vmap(call, (0, dim))(weights, x)
    for result, wanted in zip(got, zip(*(call(p, x) for p, x, _ in each)), strict=True):
        torch.testing.assert_close(result, torch.stack(wanted))
    slopes = vmap(grad(total), (0, dim))(weights, x)
    wanted = [grad(total)(p, x) for p, x, _ in each]
    for n in weights:
        torch.testing.assert_close(slopes[n], torch.stack([w[n] for w in wanted]))
    _, moved = torch.func.jvp(lambda p: vmap(total, (0, dim))(p, x), (weights,), (tangents,))
    along = torch.stack([sum((w[n] * t[n]).sum() for n in t) for w, (_, _, t) in zip(wanted, each)])
    torch.testing.assert_close(moved, along, rtol=1e-4, atol=1e-4)
    inside = vmap(lambda p, t, x: torch.func.jvp(lambda p: total(p, x), (p,), (t,))[1], (0, 0, dim))(weights, tangents, x)
    torch.testing.assert_close(inside, along, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("error:vmap")
def test_large_states_of_entries():
    layer, x = torch.nn.LSTM(3, 300), torch.randn(2, 3, 4, 3)
    weights = {n: torch.randn(2, *p.shape) / 20 for n, p in layer.named_parameters()}
    total = lambda p, x: torch.func.functional_call(layer, p, (x,))[0].sin().sum()  # noqa: E731
    slopes = vmap(grad(total))(weights, x)
    for i in range(2):
        for n, slope in grad(total)({n: w[i] for n, w in weights.items()}, x[i]).items():
            torch.testing.assert_close(slopes[n][i], slope, rtol=1e-4, atol=1e-5)


def test_packed_sequences_and_dropout_with_weights_of_entries():
    layer, x = torch.nn.GRU(3, 4, 2, dropout=0.5), torch.randn(5, 2, 3)
    weights = {n: torch.randn(3, *p.shape) / 2 for n, p in layer.named_parameters()}
    call = lambda p, x: torch.func.functional_call(layer, p, (x,))[0]  # noqa: E731
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(call, (0, None))(weights, x)
    torch.manual_seed(3)
    same = vmap(call, (0, None), randomness="same")(weights, x)
    for i in range(3):
        torch.manual_seed(3)
        torch.testing.assert_close(same[i], call({n: w[i] for n, w in weights.items()}, x))
    layer.eval()
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    entry = lambda p: torch.func.functional_call(layer, p, (packed,))[0].data  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # packed sequences are called once per entry
        got = vmap(entry)(weights)
    torch.testing.assert_close(got, torch.stack([entry({n: w[i] for n, w in weights.items()}) for i in range(3)]))


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("is_mapped", [True, False])
def test_dropout_between_layers_follows_randomness(name, is_mapped):
    layer, x = getattr(torch.nn, name)(4, 5, 2, dropout=0.5), torch.randn(6, 2, 4)
    entries = x.expand(3, 6, 2, 4)
    function = (lambda e: layer(e)[0]) if is_mapped else (lambda e: layer(x)[0] + 0 * e.sum())
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(function)(entries)
    torch.manual_seed(5)
    same, after = vmap(function, randomness="same")(entries), torch.rand(3)
    torch.manual_seed(5)
    wanted, rest = layer(x)[0], torch.rand(3)
    assert all(torch.equal(row, wanted) for row in same) and torch.equal(after, rest)
    different = vmap(function, randomness="different")(entries)
    assert not torch.allclose(different[0], different[1]) and not torch.allclose(different[1], different[2])
    layer.eval()
    torch.testing.assert_close(vmap(function)(entries), layer(x)[0].expand(3, 6, 2, 5))
