"""The operators that torchaudio's compiled library has, compared with loops over samples and with all paths."""

import itertools

import numpy
import pytest


@pytest.fixture(autouse=True)
def operators(torch):
    for name in ("_torchaudio.abi3.so", "libtorchaudio.abi3.so"):
        torch.ops.load_library(name)


def _numbers(*size, seed=0):
    return numpy.random.default_rng(seed).standard_normal(size)


def test_other_libraries_are_refused(torch):
    with pytest.raises(OSError, match="runs no operators compiled for PyTorch"):
        torch.ops.load_library("/somewhere/libother.so")
    with pytest.raises(OSError, match="No such file"):
        torch.ops.load_library("/somewhere/libtorchaudio.so")
    assert torch.ops._torchaudio.is_align_available() is True
    assert torch.ops._torchaudio.cuda_version() is None


@pytest.mark.parametrize(("length", "order"), [(0, 3), (1, 3), (2, 4), (255, 2), (256, 3), (700, 5), (300, 1)])
def test_recursive_filter(torch, length, order):
    signal, coefficients = _numbers(2, 3, length), 0.3 * _numbers(3, order, seed=1)
    coefficients[:, 0] = 1
    expected = numpy.concatenate([_numbers(2, 3, order - 1, seed=2), numpy.zeros((2, 3, length))], -1)
    padded = torch.tensor(expected.astype("float32"))
    for t in range(length):
        past = expected[:, :, t : t + order - 1]
        expected[:, :, t + order - 1] = signal[:, :, t] - (past * coefficients[:, :0:-1]).sum(-1)
    flipped = torch.tensor(coefficients[:, ::-1].copy(), dtype=torch.float32)
    torch.ops.torchaudio._lfilter_core_loop(torch.tensor(signal, dtype=torch.float32), flipped, padded)
    numpy.testing.assert_allclose(padded.numpy(), expected, rtol=1e-3, atol=1e-4)


def test_a_filter_that_grows(torch):
    padded = torch.zeros(1, 1, 303, dtype=torch.float64)
    signal = torch.zeros(1, 1, 300, dtype=torch.float64)
    signal[:, :, 295] = 1
    torch.ops.torchaudio._lfilter_core_loop(signal, torch.tensor([[0.0, 0.0, -1e6, 1.0]], dtype=torch.float64), padded)
    assert padded[0, 0, :298].tolist() == [0.0] * 298
    numpy.testing.assert_allclose(padded[0, 0, 298:].numpy(), [1.0, 1e6, 1e12, 1e18, 1e24], rtol=1e-12)


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf, -numpy.inf])
@pytest.mark.parametrize(("length", "order", "place"), [(6, 2, 4), (6, 2, 0), (700, 3, 300), (700, 3, 699), (10, 1, 3)])
def test_samples_before_one_that_is_not_finite(torch, value, length, order, place):
    signal, coefficients = _numbers(2, 2, length), 0.3 * _numbers(2, order, seed=1)
    coefficients[:, 0] = 1
    signal[1, 0, place] = value
    expected = numpy.concatenate([_numbers(2, 2, order - 1, seed=2), numpy.zeros((2, 2, length))], -1)
    padded = torch.tensor(expected)
    with numpy.errstate(all="ignore"):
        for t in range(length):
            past = expected[:, :, t : t + order - 1]
            expected[:, :, t + order - 1] = signal[:, :, t] - (past * coefficients[:, :0:-1]).sum(-1)
    torch.ops.torchaudio._lfilter_core_loop(torch.tensor(signal), torch.tensor(coefficients[:, ::-1].copy()), padded)
    numpy.testing.assert_allclose(padded.numpy(), expected, rtol=1e-9, atol=1e-12)
    assert numpy.isfinite(padded.numpy()[1, 0, : order - 1 + place]).all()


def test_an_initial_output_that_is_not_finite(torch):
    padded = torch.tensor([[[numpy.nan, 0.0, 0.0]], [[1.0, 0.0, 0.0]]])
    torch.ops.torchaudio._lfilter_core_loop(torch.ones(2, 1, 2), torch.tensor([[-0.5, 1.0]]), padded)
    numpy.testing.assert_equal(padded.numpy(), [[[numpy.nan] * 3], [[1.0, 1.5, 1.75]]])


def test_overdrive_before_a_nan(torch):
    shaped = torch.zeros(1, 6)
    shaped[0, 4] = numpy.nan
    output = torch.ones(1, 6)
    torch.ops.torchaudio._overdrive_core_loop(torch.zeros(1, 6), shaped, torch.zeros(1), torch.zeros(1), output)
    numpy.testing.assert_equal(output.numpy(), [[0.0] * 4 + [numpy.nan] * 2])


def test_overdrive(torch):
    wave, shaped = _numbers(2, 300), _numbers(2, 300, seed=1)
    last_in, last_out, expected = _numbers(2, seed=2), _numbers(2, seed=3), numpy.zeros((2, 300))
    output = torch.zeros(2, 300, dtype=torch.float64)
    torch.ops.torchaudio._overdrive_core_loop(*map(torch.tensor, (wave, shaped, last_in, last_out)), output)
    for t in range(300):
        last_out, last_in = shaped[:, t] - last_in + 0.995 * last_out, shaped[:, t]
        expected[:, t] = wave[:, t] * 0.5 + last_out * 0.75
    numpy.testing.assert_allclose(output.numpy(), expected, rtol=1e-9, atol=1e-9)


def _collapsed(path):
    return [label for label, _ in itertools.groupby(path) if label != 0]


@pytest.mark.parametrize("labels", [[1], [1, 2], [2, 2], [1, 2, 1], [1, 1, 2]])
def test_alignment_is_the_best_of_all_paths(torch, labels):
    scores = _numbers(1, 5, 3, seed=len(labels)).astype("float32")
    paths = [path for path in itertools.product(range(3), repeat=5) if _collapsed(path) == labels]
    best = max(paths, key=lambda path: sum(float(scores[0, t, label]) for t, label in enumerate(path)))
    targets = torch.tensor([labels], dtype=torch.int32)
    found, given = torch.ops.torchaudio.forced_align(
        torch.tensor(scores), targets, torch.tensor([5]), torch.tensor([len(labels)]), 0
    )
    assert found.tolist() == [list(best)] and found.dtype is torch.int32
    assert given.tolist() == scores.tolist()


def test_alignment_without_labels_is_blank(torch):
    path, _ = torch.ops.torchaudio.forced_align(
        torch.zeros(1, 3, 2), torch.zeros(1, 0, dtype=torch.int64), torch.tensor([3]), torch.tensor([0]), 0
    )
    assert path.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(
    ("labels", "length", "blank", "message"),
    [
        ([1, 1], 2, 0, "too long for CTC"),
        ([5], 4, 0, "smaller than the number of labels"),
        ([-1], 4, 0, "smaller than the number of labels"),
        ([1], 4, 3, "blank must be"),
        ([1], 5, 0, "input length mismatch"),
    ],
)
def test_alignment_refuses_other_arguments(torch, labels, length, blank, message):
    scores = torch.zeros(1, 2 if len(labels) > 1 else 4, 3)
    with pytest.raises(RuntimeError, match=message):
        torch.ops.torchaudio.forced_align(
            scores, torch.tensor([labels]), torch.tensor([length]), torch.tensor([len(labels)]), blank
        )


def _transducer_cost(scores, labels, length, blank):
    """The negative logarithm of the sum over all orders of `length` blanks, the last of them at the end, and the labels."""
    total = -numpy.inf
    for places in itertools.combinations(range(length - 1 + len(labels)), len(labels)):
        t = u = 0
        score = 0.0
        for step in range(length - 1 + len(labels)):
            if step in places:
                score, u = score + scores[t, u, labels[u]], u + 1
            else:
                score, t = score + scores[t, u, blank], t + 1
        total = numpy.logaddexp(total, score + scores[t, u, blank])
    return -total


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("blank", [0, 3])
def test_transducer_loss_and_gradients(torch, fused, blank):
    logits = _numbers(2, 4, 3, 4)
    targets, lengths, sizes = [[1, 2], [2, 0]], [4, 3], [2, 1]

    def costs(values):
        scores = values - numpy.log(numpy.exp(values).sum(-1, keepdims=True)) if fused else values
        return [_transducer_cost(scores[b], targets[b][: sizes[b]], lengths[b], blank) for b in range(2)]

    arguments = [torch.tensor(v, dtype=torch.int32) for v in (targets, lengths, sizes)]
    given = torch.tensor(logits, dtype=torch.float32)
    found, gradients = torch.ops.torchaudio.rnnt_loss_forward(given, *arguments, blank, -1.0, fused)
    numpy.testing.assert_allclose(found.tolist(), costs(logits), rtol=1e-5)
    expected = numpy.zeros(logits.shape)
    for place in itertools.product(*map(range, logits.shape)):
        step = numpy.zeros(logits.shape)
        step[place] = 1e-5
        expected[place] = (costs(logits + step)[place[0]] - costs(logits - step)[place[0]]) / 2e-5
    numpy.testing.assert_allclose(gradients.numpy(), expected, atol=1e-5)
    _, clamped = torch.ops.torchaudio.rnnt_loss_forward(given, *arguments, blank, 0.1, fused)
    numpy.testing.assert_allclose(clamped.numpy(), expected.clip(-0.1, 0.1), atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": [[1, 9], [0, 0]]}, "targets must be within"),
        ({"lengths": [2, 2]}, "input length mismatch"),
        ({"lengths": [4, 0]}, "lengths must be positive"),
        ({"sizes": [1, 1]}, "output length mismatch"),
        ({"blank": 4}, "blank must be within"),
    ],
)
def test_transducer_loss_refuses_other_arguments(torch, changes, message):
    given = {"targets": [[1, 2], [2, 0]], "lengths": [4, 3], "sizes": [2, 1], "blank": 0} | changes
    integers = [torch.tensor(given[name], dtype=torch.int32) for name in ("targets", "lengths", "sizes")]
    with pytest.raises(RuntimeError, match=message):
        torch.ops.torchaudio.rnnt_loss_forward(torch.zeros(2, 4, 3, 4), *integers, given["blank"], -1.0, True)


@pytest.mark.parametrize("padding", [-1, 99])
def test_labels_behind_a_sequences_length_have_no_effect(torch, padding):
    logits, integers = torch.tensor(_numbers(2, 4, 3, 4), dtype=torch.float32), [[4, 3], [2, 1]]
    lengths = [torch.tensor(v, dtype=torch.int32) for v in integers]
    results = [
        torch.ops.torchaudio.rnnt_loss_forward(logits, torch.tensor([[1, 2], [2, last]], dtype=torch.int32), *lengths, 0, -1.0, True)
        for last in (padding, 0)
    ]
    for found, expected in zip(*results):
        assert found.tolist() == expected.tolist()


def test_an_empty_batch_of_the_loss_is_refused(torch):
    empty = torch.zeros(0, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="at least one sequence"):
        torch.ops.torchaudio.rnnt_loss_forward(torch.zeros(0, 4, 3, 4), empty.reshape(0, 2), empty, empty, 0, -1.0, True)


@pytest.mark.filterwarnings("error")
def test_infinite_logits_give_no_warnings(torch):
    logits = torch.zeros(1, 2, 2, 3)
    logits[0, 0, 0, 1] = float("inf")
    integers = [torch.tensor(v, dtype=torch.int32) for v in ([[1]], [2], [1])]
    assert torch.ops.torchaudio.rnnt_loss_forward(logits, *integers, 0, -1.0, True)[0].isnan().all()
