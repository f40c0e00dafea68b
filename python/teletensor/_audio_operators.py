"""The operators of torchaudio's compiled library: recursive filters, alignments and the loss of transducers.

A recursive filter is computed in blocks of samples: a block depends on the samples before it through two matrices, which
are products of the coefficients, so that the number of operations does not grow with each sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy

from . import _C
from ._C import Tensor
from ._library import registry
from ._library.schema import parse

_BLOCK = 256  # samples


def _operator(schema: str) -> Callable[[Callable], Callable]:
    """Defines an operator whose kernel is the function."""

    def decorate(function: Callable) -> Callable:
        registry.define(parse(schema)).kernels["CompositeExplicitAutograd"] = function
        return function

    return decorate


@_operator("_torchaudio::is_align_available() -> bool")
def is_align_available() -> bool:
    """True: forced_align() is computed."""
    return True


@_operator("_torchaudio::cuda_version() -> int?")
def cuda_version() -> None:
    """None: no operator is compiled for CUDA."""
    return


def _block_length(coefficients: numpy.ndarray, length: int) -> int:
    """How many samples are a block: at most as many as keep the response of an unstable filter finite in float64."""
    growth = math.log10(1 + float(numpy.abs(coefficients).max(initial=1.0)))
    return max(1, min(_BLOCK, length, int(250 / growth))) if math.isfinite(growth) else 1


def _matrices(coefficients: numpy.ndarray, block: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """For each row 1, a1, a2... of coefficients: what a block's output is multiplied by, of its input and of the outputs before."""
    channels, order = coefficients.shape
    rows = numpy.arange(block)
    response = numpy.zeros((channels, block))  # to an input of 1 at the first sample
    response[:, 0] = 1
    before = numpy.zeros((channels, block, order - 1))
    for t in range(1, block):
        lags = numpy.arange(1, min(order - 1, t) + 1)
        response[:, t] = -(response[:, t - lags] * coefficients[:, lags]).sum(-1)
    for lag in range(1, order):
        outside = rows[rows < lag]
        before[:, outside, order - 1 + outside - lag] = coefficients[:, lag, None]
    distance = rows[:, None] - rows
    inverse = numpy.where(distance >= 0, response[:, numpy.maximum(distance, 0)], 0.0)
    return inverse, -inverse @ before


def _samples(signal: numpy.ndarray, coefficients: numpy.ndarray, history: numpy.ndarray) -> numpy.ndarray:
    """What _filter() computes, sample by sample: a NaN or an infinity reaches the outputs at and after its sample only."""
    count, taps = history.shape[-1], -coefficients[:, :0:-1]
    found = numpy.concatenate([history, numpy.full(signal.shape, numpy.nan)], -1)
    with numpy.errstate(all="ignore"):
        for t in range(signal.shape[-1]):
            past = found[:, :, t : t + count]
            if numpy.isnan(past).all():
                break
            found[:, :, t + count] = signal[:, :, t] + (past * taps).sum(-1)
    return found[:, :, count:]


def _filter(signal: Tensor, coefficients: numpy.ndarray, state: Tensor) -> Tensor:
    """y[t] = signal[t] - a1 y[t - 1] - a2 y[t - 2]... of each channel, in float64. `state`: the outputs before the first."""
    signal, state = signal.to(_C.float64), state.to(_C.float64)
    batch, channels, length = signal.shape
    history = coefficients.shape[1] - 1
    if not history or not signal.numel():
        return signal
    block = _block_length(coefficients, length)
    count = -(-length // block)
    inverse, past = (_C.tensor(matrix).to(signal.device) for matrix in _matrices(coefficients, block))
    padded = _C.ops.pad(signal, [0, count * block - length])
    own = (padded.reshape(batch, channels, count, block) @ inverse.mT).unbind(2)
    before, found = state, []
    for part in own:
        found.append(part + (before.unsqueeze(2) @ past.mT).squeeze(2))
        before = _C.torch.cat([before, found[-1]], -1)[:, :, -history:]
    result = _C.torch.cat(found, -1)[:, :, :length]
    finite = result.isfinite().all(0).all(0).cpu().numpy()
    if finite.all():
        return result
    # A product of a block's matrices has the NaNs and infinities of later samples, times 0, in earlier ones.
    first = int(finite.argmin())
    before = _C.torch.cat([state, result[:, :, :first]], -1)[:, :, first : first + history]
    rest = _samples(signal[:, :, first:].cpu().numpy(), coefficients, before.cpu().numpy())
    return _C.torch.cat([result[:, :, :first], _C.tensor(rest).to(signal.device)], -1)


@_operator("torchaudio::_lfilter_core_loop(Tensor input, Tensor a_coeff_flipped, Tensor(a!) padded_output) -> ()")
def lfilter_core_loop(input: Tensor, a_coeff_flipped: Tensor, padded_output: Tensor) -> None:
    """Writes the filtered signals behind the initial outputs; the last coefficient of each channel is 1."""
    history = a_coeff_flipped.shape[1] - 1
    coefficients = a_coeff_flipped.detach().to(_C.float64).cpu().numpy()[:, ::-1]
    result = _filter(input.detach(), coefficients, padded_output[:, :, :history])
    padded_output[:, :, history:].copy_(result.to(padded_output.dtype))


@_operator(
    "torchaudio::_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor last_in, Tensor last_out, Tensor(a!) output_waveform) -> ()"
)
def overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor
) -> None:
    """Writes waveform / 2 + 0.75 times the high-pass filtered `temp`."""
    steps = temp - _C.torch.cat([last_in.unsqueeze(-1), temp[:, :-1]], -1)
    filtered = _filter(steps.unsqueeze(1), numpy.array([[1.0, -0.995]]), last_out.reshape(-1, 1, 1)).squeeze(1)
    output_waveform.copy_((waveform * 0.5 + filtered * 0.75).to(output_waveform.dtype))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def _best_path(scores: numpy.ndarray, labels: numpy.ndarray, blank: int) -> list[int]:
    """The labels, with blanks and repetitions, of the path of the largest score; `labels` may repeat neighbours."""
    states = numpy.full(2 * len(labels) + 1, blank)
    states[1::2] = labels
    skips = numpy.zeros(len(states), bool)
    skips[3::2] = labels[1:] != labels[:-1]
    best = numpy.full(len(states), -numpy.inf)
    best[:2] = scores[0, states[:2]]
    moves = numpy.zeros((len(scores), len(states)), numpy.int8)
    for step in range(1, len(scores)):
        from_one = numpy.concatenate([[-numpy.inf], best[:-1]])
        from_two = numpy.where(
            skips, numpy.concatenate([[-numpy.inf, -numpy.inf], best[:-2]])[: len(states)], -numpy.inf
        )
        # Of equal scores, the one of the farther state is chosen only if it is larger than both others.
        moves[step] = numpy.where((from_two > from_one) & (from_two > best), 2, numpy.where(from_one > best, 1, 0))
        best = numpy.choose(moves[step], [best, from_one, from_two]) + scores[step, states]
    place = len(states) - 1 if len(states) == 1 or best[-1] > best[-2] else len(states) - 2
    path = []
    for step in range(len(scores) - 1, -1, -1):
        path.append(int(states[place]))
        place -= moves[step, place]
    return path[::-1]


@_operator(
    "torchaudio::forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) "
    "-> (Tensor, Tensor)"
)
def forced_align(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    """The labels of the best path of one sequence, and the scores. Reads the scores: the path is computed here.

    Raises:
        RuntimeError: sizes or dtypes differ from those of one sequence, or the sequence is too short for its labels.
    """
    _require(log_probs.dim() == 3 and log_probs.is_floating_point(), "log_probs must be a 3-D tensor of floats")
    _require(
        targets.dim() == 2 and targets.dtype in (_C.int32, _C.int64), "targets must be a 2-D tensor of int32 or int64"
    )
    _require(
        log_probs.shape[0] == 1 and targets.shape[0] == 1, "The batch dimension must be 1, got sequences of several"
    )
    _require(0 <= blank < log_probs.shape[-1], f"blank must be within [0, {log_probs.shape[-1]}), got {blank}")
    length, labels = log_probs.shape[1], targets[0].cpu().numpy()
    _require(int(input_lengths.max()) == length, "input length mismatch")
    _require(int(target_lengths.max()) == len(labels), "target length mismatch")
    _require(
        bool(((labels >= 0) & (labels < log_probs.shape[-1])).all()),
        "targets must be smaller than the number of labels",
    )
    repeats = int((labels[1:] == labels[:-1]).sum())
    _require(length >= len(labels) + repeats,
             f"targets length is too long for CTC. Found log_probs length: {length}, targets length: {len(labels)}, and number of "
             f"repeats: {repeats}")  # fmt: skip
    path = _best_path(log_probs[0].detach().to(_C.float64).cpu().numpy(), labels, blank)
    return _C.tensor([path], dtype=targets.dtype).to(log_probs.device), log_probs.clone()


def _transitions(blanks: numpy.ndarray, labels: numpy.ndarray, lengths: numpy.ndarray, sizes: numpy.ndarray) -> tuple[numpy.ndarray, ...]:
    """The costs of all paths of transducers, and how often blanks and labels occur in them at each step and place.

    `blanks`, `labels`: logarithms of probabilities by sequence, step and place; no label follows the last place.
    """
    count, steps, places = blanks.shape
    before = numpy.full(blanks.shape, -numpy.inf)
    before[:, 0, 0] = 0
    after = numpy.full((count, steps + 1, places + 1), -numpy.inf)
    after[numpy.arange(count), lengths, sizes] = 0
    valid = (numpy.arange(steps)[:, None] < lengths[:, None, None]) & (numpy.arange(places) <= sizes[:, None, None])

    def diagonal(d: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        u = numpy.arange(max(0, d - steps + 1), min(d, places - 1) + 1)
        return d - u, u

    for d in range(1, steps + places - 1):
        t, u = diagonal(d)
        by_blank = numpy.where(t > 0, before[:, t - 1, u] + blanks[:, t - 1, u], -numpy.inf)
        by_label = numpy.where(u > 0, before[:, t, u - 1] + labels[:, t, u - 1], -numpy.inf)
        before[:, t, u] = numpy.logaddexp(by_blank, by_label)
    for d in range(steps + places - 2, -1, -1):
        t, u = diagonal(d)
        value = numpy.logaddexp(after[:, t + 1, u] + blanks[:, t, u], after[:, t, u + 1] + labels[:, t, u])
        after[:, t, u] = numpy.where(valid[:, t, u], value, after[:, t, u])
    whole = after[:, :1, :1]
    occurrences = (before + blanks + after[:, 1:, :-1] - whole, before + labels + after[:, :-1, 1:] - whole)
    return -whole[:, 0, 0], *(numpy.where(valid, numpy.exp(numpy.where(valid, each, 0)), 0) for each in occurrences)


@_operator(
    "torchaudio::rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, float clamp, "
    "bool fused_log_softmax) -> (Tensor, Tensor)"
)
def rnnt_loss_forward(
    logits: Tensor, targets: Tensor, logit_lengths: Tensor, target_lengths: Tensor, blank: int, clamp: float, fused_log_softmax: bool
) -> tuple[Tensor, Tensor]:
    """The costs of the sequences, and their gradients. Reads the probabilities of blanks and of the next labels.

    A label that is `blank` counts as a label: its gradient is the sum of both, where torchaudio keeps one of them. Labels behind a
    sequence's length have no effect. Lengths of 0, for which torchaudio returns memory that was not written, are refused.

    Raises:
        RuntimeError: sizes, dtypes or values differ from those that the loss requires.
    """
    _require(logits.dim() == 4, "logits must be 4-D (batch, time, target, class)")
    _require(targets.dim() == 2 and targets.shape[0] == logits.shape[0], "targets must be 2-D (batch, max target length)")
    for name, given in (("logit_lengths", logit_lengths), ("target_lengths", target_lengths)):
        _require(given.dim() == 1 and given.shape[0] == logits.shape[0], f"{name} must be 1-D, of the size of the batch")
    _require(logits.dtype in (_C.float32, _C.float16), "logits must be float32 or float16 (half) type")
    for name, given in (("targets", targets), ("logit_lengths", logit_lengths), ("target_lengths", target_lengths)):
        _require(given.dtype is _C.int32, f"{name} must be int32 type")
    classes = logits.shape[-1]
    _require(0 <= blank < classes, "blank must be within [0, logits.shape[-1])")
    lengths, sizes, wanted = (each.cpu().numpy().astype("int64") for each in (logit_lengths, target_lengths, targets))
    _require(len(lengths) > 0, "logits must have at least one sequence")
    _require(bool((lengths > 0).all() and (sizes >= 0).all()), "lengths must be positive")
    _require(lengths.max() == logits.shape[1], "input length mismatch")
    _require(sizes.max() + 1 == logits.shape[2], "output length mismatch")
    _require(sizes.max() == targets.shape[1], "target length mismatch")
    wanted = numpy.where(numpy.arange(wanted.shape[1]) < sizes[:, None], wanted, blank)  # padding may have any value
    _require(bool(((wanted >= 0) & (wanted < classes)).all()), "targets must be within [0, logits.shape[-1])")
    wide = logits.detach().to(_C.float32)
    scores = wide.log_softmax(-1) if fused_log_softmax else wide
    # The next label of each place; the last place has none, and blanks stand there.
    following = numpy.pad(wanted, ((0, 0), (0, 1)), constant_values=blank)[:, None, :, None]
    following = _C.tensor(numpy.broadcast_to(following, (*logits.shape[:3], 1)).copy()).to(logits.device)
    blanks = scores[..., blank].to(_C.float64).cpu().numpy()
    labels = scores.gather(-1, following)[..., 0].to(_C.float64).cpu().numpy()
    with numpy.errstate(invalid="ignore"):  # infinite logits
        costs, of_blanks, of_labels = _transitions(blanks, labels, lengths, sizes)
    of_blanks, of_labels = (_C.tensor(each.astype("float32")).to(logits.device).unsqueeze(-1) for each in (of_blanks, of_labels))
    gradients = scores.exp() * (of_blanks + of_labels) if fused_log_softmax else _C.torch.zeros_like(scores)
    gradients = gradients.scatter_add(-1, following, -of_labels)
    gradients[..., blank] -= of_blanks[..., 0]
    gradients = gradients.clamp(-clamp, clamp) if clamp > 0 else gradients
    return _C.tensor(costs.astype("float32")).to(logits.device).to(logits.dtype), gradients.to(logits.dtype)
