"""Functions that the `ref` expressions of declarations call as `ref`: definitions in plain NumPy, not optimised."""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.linalg
import scipy.special


def axes(dim):
    """A `dim` argument as NumPy's axis; omitted or empty means None, all axes."""
    return None if dim is None or np.size(dim) == 0 else tuple(np.atleast_1d(dim))


def freedom(input, dim, correction):
    """The number of reduced elements divided by that number minus a correction."""
    count = input.size // max(1, np.sum(input, axis=axes(dim)).size)
    return count / max(count - correction, 0)


def reduce(losses, reduction: str):
    """Reduces the terms of a loss."""
    return losses if reduction == "none" else getattr(np, reduction)(losses)


def activation(x, use_gelu: bool):
    """relu, or gelu with the tanh approximation."""
    if not use_gelu:
        return np.maximum(x, 0)
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def per_channel(values, ndim: int):
    """[C] reshaped to [C, 1, ...], to broadcast along dimension 1; None is returned unchanged."""
    return None if values is None else np.reshape(values, [-1] + [1] * (ndim - 2))


def affine(x, weight, bias):
    """x * weight + bias; weight and bias may be None."""
    return (x if weight is None else x * weight) + (0 if bias is None else bias)


def fake_quantize(input, scale: float, zero_point: int, quant_min: int, quant_max: int):
    """The nearest number that a quantized integer in [quant_min, quant_max] represents at this scale and zero point."""
    return (np.clip(np.rint(input * (1 / scale)) + zero_point, quant_min, quant_max) - zero_point) * scale


def quantize_affine(input, inv_scale, zero_point, quant_min: int, quant_max: int, is_signed: bool):
    """round(input * inv_scale) + zero_point, between the limits."""
    rounded = np.rint(np.asarray(input, np.float32) * np.asarray(inv_scale, np.float32)) + zero_point
    return np.clip(rounded, quant_min, quant_max).astype(np.int8 if is_signed else np.uint8)


def dequantize_affine(input, scale, zero_point):
    """(input - zero_point) * scale in float32."""
    return (np.asarray(input, np.float32) - np.asarray(zero_point, np.float32)) * np.asarray(scale, np.float32)


def choose_quantization_params(input, quant_min: int, quant_max: int):
    """The scale and zero point with which integers represent the range of the input and 0."""
    low = min(float(np.min(input, initial=0)), 0.0)
    high = max(float(np.max(input, initial=0)), 0.0)
    scale = (high - low) / (quant_max - quant_min)
    if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
        scale = 0.1
    smallest = float(np.float32(6.1e-5))
    if scale < smallest:
        factor = smallest / scale
        low, high, scale = low * factor, high * factor, smallest
    from_low, from_high = quant_min - low / scale, quant_max - high / scale
    nearer_low = abs(quant_min) + abs(low / scale) < abs(quant_max) + abs(high / scale)
    point = from_low if nearer_low else from_high
    return scale, int(np.clip(np.rint(point), quant_min, quant_max))


def fake_quantize_channels(input, scale, zero_point, axis: int, quant_min: int, quant_max: int):
    """fake_quantize with a scale and a zero point per entry of an axis; fractional zero points are added before rounding."""
    sizes = [-1 if a == axis % np.ndim(input) else 1 for a in range(np.ndim(input))]
    scale, point = np.reshape(scale, sizes), np.reshape(zero_point, sizes)
    if not np.issubdtype(point.dtype, np.floating):
        return fake_quantize(input, scale, point, quant_min, quant_max)
    return (np.clip(np.rint(input * (1 / scale) + point), quant_min, quant_max) - point) * scale


def fake_quantize_scale_gradient(grad, input, scale, zero_point, quant_min: int, quant_max: int):
    """The derivative of fake quantization with respect to the scale, times grad."""
    rounded = np.rint(input * (1 / scale))
    inside = (rounded * scale - input) * (1 / scale)
    below, above = rounded + zero_point < quant_min, rounded + zero_point > quant_max
    return grad * np.where(below, quant_min - zero_point, np.where(above, quant_max - zero_point, inside))


def requantize(input, scale, bias, output_scale: float, output_zero_point: int, quant_min: int, quant_max: int, is_signed: bool):
    """round((input + bias / scale) * (scale / output_scale)) + output_zero_point, between the limits."""
    scale, bias = np.asarray(scale, np.float32), np.asarray(bias, np.float32)
    rounded = np.rint((np.asarray(input, np.float32) + bias / scale) * (scale / np.float32(output_scale)))
    return np.clip(rounded + output_zero_point, quant_min, quant_max).astype(np.int8 if is_signed else np.uint8)


def int4_pack(weight):
    """Two 4-bit integers per byte: columns i and 16 + i of each 32."""
    blocks = weight.reshape(weight.shape[0], -1, 2, 16)
    return (blocks[:, :, 0] | blocks[:, :, 1] << 4).astype(np.uint8).reshape(weight.shape[0], -1)


def standardised(x, axis, eps: float):
    """(x - mean) / standard deviation."""
    return (x - np.mean(x, axis=axis, keepdims=True)) / np.sqrt(np.var(x, axis=axis, keepdims=True) + eps)


def axes_but(input, axis: int) -> tuple[int, ...]:
    return tuple(a for a in range(np.ndim(input)) if a != axis)


def last_axes(shape) -> tuple[int, ...]:
    """The axes that layer_norm normalises over."""
    return tuple(range(-len(shape), 0))


def batch_norm(input, running_mean, running_var, weight, bias, training: bool, eps: float):
    """Channels normalised with their own or the running statistics."""
    n = input.ndim
    if training:
        value = standardised(input, (0, *range(2, n)), eps)
    else:
        value = (input - per_channel(running_mean, n)) / np.sqrt(per_channel(running_var, n) + eps)
    return affine(value, per_channel(weight, n), per_channel(bias, n))


def softmax_attention(query, key, value, mask, scale: float, excluded: float | None = None):
    """softmax(query key^T scale + mask) value; `excluded` replaces the scores where a bool mask is true."""
    scores = np.matmul(query, np.swapaxes(key, -2, -1)) * scale
    if mask is not None:
        scores = np.where(mask, -np.inf if excluded is None else excluded, scores) if mask.dtype == bool else scores + mask
    return np.matmul(scipy.special.softmax(scores, -1), value)


ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "silu": lambda x: x * scipy.special.expit(x),
    "gelu": lambda x: x * scipy.special.ndtr(x),
    "gelu_tanh": lambda x: activation(x, True),
    "sigmoid": scipy.special.expit,
    "tanh": np.tanh,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "leaky_relu": lambda x: np.where(x > 0, x, x * 0.01),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
}


def fused_convolution(input, weight, bias, stride, padding, dilation, groups, running_mean, running_var, norm_weight,
                      norm_bias, eps: float, added, name: str):  # fmt: skip
    """activation(batch_norm(convolution) + added); the norm and the sum are optional."""
    value = convolution(input, weight, bias, stride, padding, dilation, groups)
    if running_var is not None:
        value = batch_norm(value, running_mean, running_var, norm_weight, norm_bias, False, eps)
    return ACTIVATIONS[name](value if added is None else value + added)


def fused_linear(input, weight, bias, added, name: str):
    """activation(input @ weight.T + bias + added); the bias and the sum are optional."""
    value = np.matmul(input, weight.T) + (0 if bias is None else bias)
    return ACTIVATIONS[name](value if added is None else value + added)


def vector_norm(x, order: float, axis, keepdims: bool):
    """The vector norm of any order, including 0 and infinities."""
    size = np.abs(x)
    if order == 0:
        return np.sum(x != 0, axis=axis, keepdims=keepdims).astype("float64")
    if abs(order) == np.inf:
        return (np.max if order > 0 else np.min)(size, axis=axis, keepdims=keepdims)
    return np.sum(size**order, axis=axis, keepdims=keepdims) ** (1 / order)


def median(x, axis: int, keepdims: bool):
    """The lower median along an axis, and its index."""
    place = np.take(np.argsort(x, axis=axis, kind="stable"), [(x.shape[axis] - 1) // 2], axis=axis)
    value = np.take_along_axis(x, place, axis)
    return (value, place) if keepdims else (value.squeeze(axis), place.squeeze(axis))


def chebyshev_of_angle(x, n, sign: int):
    """The Chebyshev polynomials of the third (sign -1) and fourth (1) kind: U(n) + sign * U(n - 1)."""
    lower = np.where(np.asarray(n) > 0, scipy.special.eval_chebyu(np.maximum(np.asarray(n) - 1, 0), x), 0)
    return scipy.special.eval_chebyu(n, x) + sign * lower


# -- matrices


def batched(function):
    """Maps a function of one matrix over leading dimensions; returns its results as a tuple of stacks."""

    def apply(x, *args):
        lead = x.shape[:-2]
        rows = [function(m, *args) for m in x.reshape([math.prod(lead), *x.shape[-2:]])]
        if not rows:
            shapes = [np.shape(r) for r in function(np.eye(*x.shape[-2:]), *args)]
            return tuple(np.zeros([*lead, *shape]) for shape in shapes)
        return tuple(np.reshape(part, [*lead, *np.shape(part)[1:]]) for part in map(np.stack, zip(*rows)))

    return apply


@batched
def lu(x):
    """LAPACK's getrf, with pivots counted from 1."""
    if not x.size:
        return x, np.zeros(0), 0
    (getrf,) = scipy.linalg.get_lapack_funcs(("getrf",), (x,))
    packed, pivots, info = getrf(x)
    return packed, pivots + 1, info


def permutation(pivots, rows: int):
    """The row permutation after the exchanges."""
    result = []
    for exchanges in pivots.reshape(-1, pivots.shape[-1]):
        order = list(range(rows))
        for i, p in enumerate(exchanges):
            order[i], order[p - 1] = order[p - 1], order[i]
        result.append(order)
    return np.reshape(result, [*pivots.shape[:-1], rows])


def triangular_solution(a, b, upper: bool, transposed: bool, unit: bool):
    """Solves with a dense solver, reading one triangle."""
    triangle = np.triu(a, 1) if upper else np.tril(a, -1)
    triangle = triangle + (np.eye(a.shape[-1]) if unit else a * np.eye(a.shape[-1]))
    return np.linalg.solve(np.swapaxes(triangle, -2, -1) if transposed else triangle, b)


@batched
def qr(x, mode: str):
    """NumPy's qr."""
    return np.linalg.qr(x, mode)


@batched
def householder(x):
    """LAPACK's geqrf: the packed matrix and its factors."""
    (geqrf,) = scipy.linalg.get_lapack_funcs(("geqrf",), (x,))
    packed, tau, _, _ = geqrf(x)
    return packed, tau


# -- windows


def windows(x, kernel, stride=1, padding=0, dilation=1, fill=0.0, ceil_mode: bool = False):
    """Windows over the last dimensions, one per entry of kernel: (..., *positions, *kernel)."""
    n = len(kernel)
    stride, padding, dilation = (np.broadcast_to(v, n) for v in (stride, padding, dilation))
    lead = np.ndim(x) - n
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    beyond = [
        s - 1 if ceil_mode and (size + 2 * p - e) % s and ((size + 2 * p - e) // s + 1) * s < size + p else 0
        for size, s, p, e in zip(np.shape(x)[lead:], stride, padding, extent)
    ]
    padded = np.pad(x, [(0, 0)] * lead + [(p, p + b) for p, b in zip(padding, beyond)], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(padded, extent, tuple(range(lead, lead + n)))
    places = tuple(slice(None, None, s) for s in stride)
    return view[(slice(None),) * lead + places + tuple(slice(None, None, d) for d in dilation)]


def convolution(input, weight, bias, stride, padding, dilation, groups: int):
    """Convolves (N, C, *space) with (out, C / groups, *kernel)."""
    n = weight.ndim - 2
    spread = windows(input, weight.shape[2:], stride, padding, dilation)
    last = tuple(range(-n, 0))
    parts = [
        np.tensordot(x, w, ((1, *last), tuple(range(1, n + 2))))
        for x, w in zip(np.split(spread, groups, 1), np.split(weight, groups, 0))
    ]
    return affine(np.moveaxis(np.concatenate(parts, -1), -1, 1), None, per_channel(bias, n + 2))


def transposed_convolution(input, weight, bias, stride, padding, output_padding, groups: int, dilation):
    """Transposed convolution: adds the kernels (C, out / groups, *kernel), multiplied by each element of (N, C, *space),
    to the result."""
    n = weight.ndim - 2
    kernel, space = weight.shape[2:], input.shape[2:]
    stride, padding, extra, dilation = (np.broadcast_to(v, n) for v in (stride, padding, output_padding, dilation))
    full = [(i - 1) * s + d * (k - 1) + 1 + e for i, s, d, k, e in zip(space, stride, dilation, kernel, extra)]
    result = np.zeros([input.shape[0], weight.shape[1] * groups, *full], np.result_type(input, weight))
    for g, (x, w) in enumerate(zip(np.split(input, groups, 1), np.split(weight, groups, 0))):
        channels = slice(g * w.shape[1], (g + 1) * w.shape[1])
        for place in itertools.product(*map(range, space)):
            to = tuple(slice(i * s, i * s + d * (k - 1) + 1, d) for i, s, d, k in zip(place, stride, dilation, kernel))
            result[(slice(None), channels, *to)] += np.tensordot(x[(slice(None), slice(None), *place)], w, (1, 0))
    inner = tuple(slice(p, size - p) for p, size in zip(padding, full))
    return affine(result[(slice(None), slice(None), *inner)], None, per_channel(bias, n + 2))


def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode: bool, n: int):
    """The largest element of each window of the last n dimensions."""
    kernel = np.broadcast_to(kernel_size, n)
    spread = windows(input, kernel, kernel if stride is None else stride, padding, dilation, -np.inf, ceil_mode)
    return spread.max(tuple(range(-n, 0)))


def avg_pool(input, kernel_size, stride, padding, count_include_pad: bool, divisor_override, n: int):
    """The mean of each window of the last n dimensions, without ceil_mode."""
    kernel = np.broadcast_to(kernel_size, n)
    stride = kernel if stride is None else stride
    last = tuple(range(-n, 0))
    count = windows(np.ones(np.shape(input)), kernel, stride, padding).sum(last)
    return windows(input, kernel, stride, padding).sum(last) / (
        divisor_override or (math.prod(kernel) if count_include_pad else count)
    )


def adaptive_pool(input, output_size, n: int, function):
    """`function` of adaptive windows that give output_size in the last n dimensions."""
    for axis, size in zip(range(-n, 0), np.broadcast_to(output_size, n)):
        length = np.shape(input)[axis]
        parts = [range(i * length // size, -(-(i + 1) * length // size)) for i in range(size)]
        input = np.stack([function(np.take(input, part, axis), axis=axis) for part in parts], axis)
    return input


def columns(input, kernel_size, dilation, padding, stride):
    """functional.unfold."""
    spread = windows(input, np.broadcast_to(kernel_size, 2), stride, padding, dilation)
    n, channels, height, width = spread.shape[:4]
    return spread.transpose(0, 1, 4, 5, 2, 3).reshape(n, -1, height * width)


def planes_filled(values, indices, size):
    """Planes of zeros with the values added at the indices."""
    planes = np.zeros([math.prod(size[:-2]), size[-2] * size[-1]])
    rows = np.arange(len(planes))[:, None]
    np.add.at(planes, (rows, np.reshape(indices, [len(planes), -1])), np.reshape(values, [len(planes), -1]))
    return planes.reshape(size)


def resampled(input, size, mode: str, align_corners: bool):
    """interpolate to a size: 'nearest', or linear in every dimension."""
    result = np.asarray(input)
    for axis, to in zip(range(2, result.ndim), size):
        n = result.shape[axis]
        if mode == "nearest":
            result = np.take(result, np.arange(to) * n // to, axis)
            continue
        at = np.arange(to) * (n - 1) / max(to - 1, 1) if align_corners else (np.arange(to) + 0.5) * n / to - 0.5
        low = np.clip(np.floor(np.maximum(at, 0)).astype(int), 0, n - 1)
        part = np.reshape(np.maximum(at, 0) - low, [-1] + [1] * (result.ndim - 1 - axis))
        result = np.take(result, low, axis) * (1 - part) + np.take(result, np.minimum(low + 1, n - 1), axis) * part
    return result


# -- rows and classes


def rows_collected(grad, indices, rows: int, padding_idx: int):
    """The gradient of embedding."""
    result = np.zeros([rows, np.shape(grad)[-1]])
    kept = np.where((indices == padding_idx)[..., None], 0, grad)
    np.add.at(result, np.ravel(indices), kept.reshape(-1, result.shape[1]))
    return result


def cross_entropy(logs, target, weight, ignore_index: int, reduction: str, smoothing: float = 0.0):
    """The loss of log probabilities (N, C, ...): (1 - smoothing) for the target class, and smoothing shared by all classes."""
    classes = logs.shape[1]
    weight = np.ones(classes) if weight is None else weight
    kept = target != ignore_index
    index = np.where(kept, target, 0)
    scale = np.where(kept, weight[index], 0)
    nll = -np.take_along_axis(logs, index[:, None], 1)[:, 0] * scale
    even = -np.where(kept, np.tensordot(weight, logs, (0, 1)), 0)
    losses = (1 - smoothing) * nll + smoothing / classes * even
    return losses.sum() / scale.sum() if reduction == "mean" else reduce(losses, reduction)


# -- sequences


def _gates(rows: np.ndarray, n: int) -> list[np.ndarray]:
    return np.split(rows, n, -1)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent_step(kind: str, input, states, weights) -> list:
    """One step of an lstm, gru, tanh or relu cell; weights are w_ih, w_hh, b_ih, b_hh; the biases may be None."""
    w_ih, w_hh, b_ih, b_hh = weights
    entered = input @ w_ih.T + (0 if b_ih is None else b_ih)
    kept = states[0] @ w_hh.T + (0 if b_hh is None else b_hh)
    if kind == "lstm":
        i, f, g, o = _gates(entered + kept, 4)
        state = _sigmoid(f) * states[1] + _sigmoid(i) * np.tanh(g)
        return [_sigmoid(o) * np.tanh(state), state]
    if kind == "gru":
        (ir, iz, inew), (hr, hz, hnew) = _gates(entered, 3), _gates(kept, 3)
        update = _sigmoid(iz + hz)
        return [(1 - update) * np.tanh(inew + _sigmoid(ir + hr) * hnew) + update * states[0]]
    total = entered + kept
    return [np.tanh(total) if kind == "tanh" else np.maximum(total, 0)]


def recurrent(kind: str, input, hx, params, has_biases: bool, num_layers: int, bidirectional: bool, batch_first: bool):
    """A network of several recurrent layers over (time, batch, features), optionally bidirectional."""
    each, directions = 4 if has_biases else 2, 2 if bidirectional else 1
    x = np.swapaxes(input, 0, 1) if batch_first else input
    last: list = [[] for _ in hx]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            which = layer * directions + direction
            weights = list(params[which * each : (which + 1) * each]) + [None] * (4 - each)
            states = [h[which] for h in hx]
            steps = []
            for row in x[::-1] if direction else x:
                states = recurrent_step(kind, row, states, weights)
                steps.append(states[0])
            outputs.append(np.stack(steps[::-1] if direction else steps))
            for store, state in zip(last, states):
                store.append(state)
        x = np.concatenate(outputs, -1)
    return [np.swapaxes(x, 0, 1) if batch_first else x, *(np.stack(states) for states in last)]


def attention(query, key, value, mask, is_causal: bool, scale):
    """softmax(query key^T scale + mask) value, with all scores at once."""
    scores = query @ np.swapaxes(key, -1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    most = np.max(scores, -1, keepdims=True)
    shares = np.exp(scores - np.where(np.isfinite(most), most, 0))
    total = shares.sum(-1, keepdims=True)
    return np.where(total > 0, shares / np.where(total > 0, total, 1), 0) @ value


def attention_forward(query, key, value, mask, is_causal: bool, scale: float, _excluded: float | None = None):
    """Attention, and the logarithm of each row's sum."""
    scores = query @ np.swapaxes(key, -1, -2) * scale + (0 if mask is None else mask)
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return attention(query, key, value, mask, is_causal, scale), np.logaddexp.reduce(scores, -1)


# -- sampling


def _inside(place: float, size: int, padding: str, aligned: bool) -> float:
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
        while high > low and not low <= place <= high:
            place = 2 * low - place if place < low else 2 * high - place
        place = place if high > low else 0.0
    return place if padding == "zeros" else min(max(place, 0.0), size - 1.0)


def _cubic(x: float, a: float = -0.75) -> float:
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def _taps(place: float, size: int, mode: str, padding: str, aligned: bool) -> list[tuple[int, float]]:
    """The (element, weight) pairs along one dimension."""
    if mode == "bicubic":
        low = math.floor(place)
        return [(round(_inside(low + t, size, padding, aligned)), _cubic(place - low - t)) for t in (-1, 0, 1, 2)]
    place = _inside(place, size, padding, aligned)
    if mode == "nearest":
        return [(int(np.rint(place)), 1.0)]
    low = math.floor(place)
    return [(low, 1 - (place - low)), (low + 1, place - low)]


def grid_sample(input, grid, mode: str, padding: str, aligned: bool):
    """grid_sample, position by position."""
    space = input.shape[2:]
    out = np.zeros((*input.shape[:2], *grid.shape[1:-1]))
    for where in np.ndindex(*grid.shape[:-1]):
        axes = []
        for size, c in zip(space, grid[where][::-1]):
            place = (c + 1) / 2 * (size - 1) if aligned else ((c + 1) * size - 1) / 2
            axes.append(_taps(place, size, mode, padding, aligned))
        for taps in itertools.product(*axes):
            if all(0 <= at < size for (at, _), size in zip(taps, space)):
                weight = math.prod(w for _, w in taps)
                out[(where[0], slice(None), *where[1:])] += weight * input[(where[0], slice(None), *(at for at, _ in taps))]
    return out


def _grid_taps(grid, size, mode: str, padding: str, aligned: bool):
    """Yields the position of each sample, and the (element, weight) pairs along each dimension."""
    for where in np.ndindex(*grid.shape[:-1]):
        places = [(c + 1) / 2 * (n - 1) if aligned else ((c + 1) * n - 1) / 2 for n, c in zip(size, grid[where][::-1])]
        yield where, [_taps(place, n, mode, padding, aligned) for n, place in zip(size, places)]


def _per_tap(grid, size, mode: str, padding: str, aligned: bool, value):
    """What value(element and weight of each dimension) returns for each combination of taps: (N, K, samples)."""
    columns = [[value(taps) for taps in itertools.product(*axes)] for _, axes in _grid_taps(grid, size, mode, padding, aligned)]
    return np.moveaxis(np.array(columns).reshape(grid.shape[0], -1, len(columns[0])), 1, 2)


def grid_tap_index(grid, size, mode: str, padding: str, aligned: bool):
    """The offsets of the elements that grid_sample reads; of those after the last one, that of the last one."""
    return _per_tap(grid, size, mode, padding, aligned, lambda taps: np.ravel_multi_index([at for at, _ in taps], size, mode="clip"))


def grid_tap_weight(grid, size, mode: str, padding: str, aligned: bool, order):
    """The weights of these elements, or a first derivative, by differences: linear weights are linear."""
    if not any(order):
        return _per_tap(grid, size, mode, padding, aligned, lambda taps: math.prod(w for _, w in taps))
    step = np.zeros(len(size))
    step[len(size) - 1 - list(order).index(1)] = 1e-6  # grids store x first
    none = [0] * len(size)
    after, before = (grid_tap_weight(grid + s, size, mode, padding, aligned, none) for s in (step, -step))
    return (after - before) / 2e-6


def _padded_places(size, pad, mode: str):
    """The index of the input's element for each padded element, per dimension."""
    places = [np.arange(n) for n in size]
    for i in range(len(pad) // 2):
        n, (before, after) = size[-1 - i], pad[2 * i : 2 * i + 2]
        kept = np.arange(n)[max(-before, 0) : n + min(after, 0)]
        at = np.arange(-before, n + after)
        if mode == "circular":
            places[-1 - i] = np.pad(kept, (max(before, 0), max(after, 0)), "wrap")
        else:
            places[-1 - i] = np.clip(at, 0, n - 1) if mode == "replicate" else (n - 1) - np.abs((n - 1) - np.abs(at))
    return np.ix_(*places)


def pad_edges(input, pad, mode: str):
    return np.asarray(input)[_padded_places(input.shape, pad, mode)] if len(pad) else input


def pad_edges_backward(grad, size, pad, mode: str):
    out = np.zeros(size, grad.dtype)
    np.add.at(out, _padded_places(size, pad, mode), grad)
    return out


def _positions(index, length: int):
    """(entry, tap, position, element) of each index that is inside."""
    return [(*where, index[where]) for where in np.ndindex(*index.shape) if 0 <= index[where] < length]


def weighted_gather(input, index, weight):
    """weighted_gather, index by index."""
    out = np.zeros((*input.shape[:2], index.shape[2], *input.shape[3:]))
    for n, k, p, at in _positions(index, input.shape[2]):
        out[n, :, p] += weight[n, k, p] * input[n, :, at]
    return out


def weighted_gather_input_grad(values, index, weight, length: int):
    """The gradient of weighted_gather's input, index by index."""
    out = np.zeros((*values.shape[:2], length, *values.shape[3:]))
    for n, k, p, at in _positions(index, length):
        out[n, :, at] += weight[n, k, p] * values[n, :, p]
    return out


def weighted_gather_weight_grad(values, input, index):
    """The gradient of weighted_gather's weight, index by index."""
    out = np.zeros(index.shape)
    for n, k, p, at in _positions(index, input.shape[2]):
        out[n, k, p] = np.sum(values[n, :, p] * input[n, :, at])
    return out


def affine_grid(theta, size, aligned: bool):
    """theta times (x, y, ..., 1) at every position."""
    lines = [np.linspace(-1, 1, n) * (1 if aligned else 1 - 1 / n) if n > 1 else np.zeros(1) for n in size[2:]]
    places = np.meshgrid(*lines, indexing="ij")[::-1]
    base = np.stack([*places, np.ones_like(places[0])], -1)
    return np.einsum("...k,njk->n...j", base, theta)


# -- scattering and sets


def scatter_reduce(input, dim: int, index, src, reduce: str, include_self: bool):
    """scatter_reduce, element by element."""
    combine = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce]
    out, counts = input.copy(), np.full(input.shape, 1.0 if include_self else 0.0)
    for where in np.ndindex(*index.shape):
        to = list(where)
        to[dim] = index[where]
        to = tuple(to)
        out[to] = combine(out[to], src[where]) if counts[to] else src[where]
        counts[to] += 1
    return out / np.maximum(counts, 1) if reduce == "mean" else out


def mode(input, dim: int, keepdim: bool):
    """The most frequent value of each row (the smallest of equally frequent ones), and the index of its last
    occurrence."""
    x = np.moveaxis(np.atleast_1d(input), dim, -1)
    values = np.empty(x.shape[:-1])
    places = np.empty(x.shape[:-1], int)
    for where in np.ndindex(*x.shape[:-1]):
        found, often = np.unique(x[where], return_counts=True)
        values[where] = found[np.argmax(often)]
        places[where] = np.flatnonzero(x[where] == values[where])[-1]
    if input.ndim == 0:
        return values.reshape(()), places.reshape(())
    return (np.expand_dims(values, dim), np.expand_dims(places, dim)) if keepdim else (values, places)


def unique_rows(input, consecutive: bool):
    """NumPy's unique over rows, or of consecutive rows."""
    if not consecutive:
        rows, inverse, counts = np.unique(input, axis=0, return_inverse=True, return_counts=True)
        return rows, inverse.reshape(-1), counts
    new = np.append(True, np.any(input[1:] != input[:-1], 1)) if len(input) else np.zeros(0, bool)
    inverse = np.cumsum(new) - 1
    return input[new], inverse, np.bincount(inverse, minlength=new.sum())


def fft_c2c(input, dim, scale, forward):
    """The transform along dimensions, as scipy.fft; the inverse without its factor."""
    transformed = np.fft.fftn(input, axes=dim) if forward else np.fft.ifftn(input, axes=dim, norm="forward")
    return transformed * scale


def fft_r2c(input, dim, scale):
    """The first half of a real signal's spectrum."""
    return np.fft.rfftn(input, axes=dim) * scale


def fft_c2r(input, dim, scale, last_size):
    """The inverse transform of the first half of a spectrum."""
    sizes = [input.shape[d] for d in dim[:-1]] + [last_size]
    return np.fft.irfftn(input, s=sizes, axes=dim, norm="forward") * scale


# -- jagged nested tensors


def _sequences(offsets, lengths) -> list[slice]:
    ends = offsets[1:] if lengths is None else offsets[:-1] + lengths
    return [slice(int(begin), int(end)) for begin, end in zip(offsets, ends)]


def jagged_to_padded(values, offsets, lengths, length: int, padding=0):
    """The sequences, each followed by padding."""
    result = np.full((len(offsets) - 1, length, *values.shape[1:]), padding, values.dtype)
    for b, rows in enumerate(_sequences(offsets, lengths)):
        found = values[rows][:length]
        result[b, : len(found)] = found
    return result


def padded_to_jagged(padded, offsets, lengths, total: int):
    """The first entries of each sequence, one sequence after another."""
    result = np.zeros((total, *padded.shape[2:]), padded.dtype)
    for b, rows in enumerate(_sequences(offsets, lengths)):
        found = padded[b, : rows.stop - rows.start]
        result[rows.start : rows.start + len(found)] = found
    return result


def jagged_expand(input, offsets, lengths, total: int):
    """Each row once per entry of its sequence."""
    result = np.zeros((total, *input.shape[1:]), input.dtype)
    for b, rows in enumerate(_sequences(offsets, lengths)):
        result[rows] = input[b]
    return result


def jagged_reduce(values, offsets, lengths, reduce: str):
    """The reduction of each sequence; none of amax and amin is empty."""
    function = {"sum": np.sum, "amax": np.max, "amin": np.min}[reduce]
    return np.stack([function(values[rows], axis=0) for rows in _sequences(offsets, lengths)]).astype(values.dtype)


def jagged_softmax(values, offsets, log: bool):
    """The softmax of each sequence."""
    parts = [np.exp(values[rows] - np.max(values[rows], axis=0, initial=-np.inf)) for rows in _sequences(offsets, None)]
    shares = np.concatenate([p / p.sum(0) for p in parts])
    return np.log(shares) if log else shares


def jagged_attention(query, key, value, query_offsets, key_offsets, is_causal: bool, scale: float):
    """Attention of each sequence, and the logarithm of each row's sum."""
    pairs = list(zip(_sequences(query_offsets, None), _sequences(key_offsets, None)))
    parts = [
        attention_forward(query[:, q], key[:, k], value[:, k], None, is_causal, scale) if q.stop > q.start else
        (np.zeros((len(query), 0, value.shape[2])), np.zeros((len(query), 0)))
        for q, k in pairs
    ]  # fmt: skip
    return tuple(np.concatenate([p[i] for p in parts], axis=1) for i in (0, 1))


def covariance(x, correction: int, fweights, aweights):
    """The covariance matrix of the rows, by sums over the observations."""
    x = np.atleast_2d(x)
    if fweights is None and aweights is None:
        return np.squeeze(np.cov(x, ddof=correction))
    return np.squeeze(np.cov(x, ddof=correction, fweights=fweights, aweights=aweights))


def correlation(x):
    """The correlation matrix of the rows."""
    return np.squeeze(np.corrcoef(np.atleast_2d(x)))


def frexp(x):
    """The mantissas, and the exponents as int32."""
    mantissa, exponent = np.frexp(x)
    return mantissa, np.where(np.isfinite(x), exponent, 0).astype(np.int32)


def hash_of(x, axis, keepdims: bool):
    """The exclusive or of the bits of float64 or int64 numbers, as uint64."""
    x = np.asarray(x, np.float64 if np.issubdtype(np.asarray(x).dtype, np.floating) else np.int64)
    bits = x.view(np.uint64)
    return np.bitwise_xor.reduce(bits, axis=axis if axis is None else tuple(axis), keepdims=keepdims)


def renorm(x, p: float, dim: int, maxnorm: float):
    """The slices along dim, divided by what their norm exceeds maxnorm."""
    norms = vector_norm(x, p, axes_but(x, dim % np.ndim(x)), True)
    return x * np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)


def multi_margin(x, target, p: int, margin: float, weight):
    """The losses of the rows, or of one vector."""
    rows, classes = np.atleast_2d(x), np.reshape(target, -1)
    chosen = rows[np.arange(len(rows)), classes]
    gaps = np.maximum(margin - chosen[:, None] + rows, 0) ** p * (1 if weight is None else weight[classes][:, None])
    gaps[np.arange(len(rows)), classes] = 0
    losses = gaps.sum(1) / rows.shape[1]
    return losses.reshape(np.shape(target))


def multilabel_margin(x, target):
    """The losses of the rows, or of one vector."""
    losses = []
    for row, labels in zip(np.atleast_2d(x), np.atleast_2d(target)):
        count = next((i for i, label in enumerate(labels) if label < 0), len(labels))
        targets = set(labels[:count].tolist())
        others = [row[c] for c in range(len(row)) if c not in targets]
        losses.append(sum(max(0.0, 1 - row[t] + other) for t in labels[:count] for other in others) / len(row))
    return np.asarray(losses) if np.ndim(x) == 2 else np.asarray(losses[0])
