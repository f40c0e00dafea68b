"""The operators that torchaudio's compiled library has, compared with loops over samples and with all paths."""

import itertools

import numpy
import pytest


@pytest.fixture(autouse=True)
def operators(torch):
    for name in ("_torchaudio.abi3.so", "libtorchaudio.abi3.so"):
        torch.ops.load_library(f"/somewhere/torchaudio/lib/{name}")


def _numbers(*size, seed=0):
    return numpy.random.default_rng(seed).standard_normal(size)


def test_other_libraries_are_refused(torch):
    with pytest.raises(OSError, match="runs no operators compiled for PyTorch"):
        torch.ops.load_library("/somewhere/libother.so")
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
