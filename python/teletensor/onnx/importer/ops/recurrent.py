"""RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import teletensor as torch
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name

from .. import _values
from .._call import Call, keeps

Tensor = torch.Tensor


def _activation(name: str, alpha: float | None, beta: float | None) -> Callable:
    def given(value: float | None, default: float) -> float:
        return default if value is None else value

    found = {
        "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "softsign": F.softsign, "softplus": F.softplus,
        "affine": lambda x: x * given(alpha, 1.0) + given(beta, 0.0),
        "leakyrelu": lambda x: F.leaky_relu(x, given(alpha, 0.01)),
        "thresholdedrelu": lambda x: torch.where(x > given(alpha, 1.0), x, torch.zeros_like(x)),
        "scaledtanh": lambda x: given(alpha, 1.0) * torch.tanh(given(beta, 1.0) * x),
        "hardsigmoid": lambda x: torch.clamp(x * given(alpha, 0.2) + given(beta, 0.5), 0.0, 1.0),
        "elu": lambda x: F.elu(x, given(alpha, 1.0)),
    }.get(name.lower())  # fmt: skip
    if found is None:
        raise ValueError(f"[RNN] expected a known activation, got {name!r}")
    return found


_WITH_ALPHA = frozenset({"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"})
_WITH_BETA = frozenset({"affine", "scaledtanh", "hardsigmoid"})


def _activations(names: list[str], alphas: list[float], betas: list[float]) -> list[Callable]:
    """The functions of the names. Each takes the next of the numbers, if it is one that has such a number."""
    alpha, beta = iter(alphas), iter(betas)
    return [
        _activation(
            n,
            next(alpha, None) if n.lower() in _WITH_ALPHA else None,
            next(beta, None) if n.lower() in _WITH_BETA else None,
        )
        for n in names
    ]


class _Layer:
    """The inputs and attributes of a recurrent node, for one direction at a time."""

    def __init__(self, call: Call, x: Tensor, defaults: list[str]) -> None:
        self.call, self.direction = call, call.get("direction", "forward")
        if self.direction not in ("forward", "reverse", "bidirectional"):
            raise ValueError(
                f"[{call.name}] expected a direction of forward, reverse or bidirectional, got {self.direction!r}"
            )
        self.directions = 2 if self.direction == "bidirectional" else 1
        self.hidden = call.need("hidden_size")
        self.layout = call.get("layout", 0)
        self.x = x.transpose(0, 1) if self.layout else x
        names = call.get("activations") or defaults * self.directions
        alphas, betas = call.get("activation_alpha") or [], call.get("activation_beta") or []
        count = len(defaults)
        if len(names) != count * self.directions:
            raise ValueError(f"[{call.name}] expected {count * self.directions} activations, got {len(names)}")
        functions = _activations(names, alphas, betas)
        self.functions = [functions[d * count : (d + 1) * count] for d in range(self.directions)]
        self.is_default = (
            [n.lower() for n in names] == [n.lower() for n in defaults * self.directions] and not alphas and not betas
        )
        self.clip = call.get("clip")

    def clipped(self, x: Tensor) -> Tensor:
        return x if self.clip is None else torch.clamp(x, -self.clip, self.clip)

    def initial(self, state: Tensor | None, direction: int) -> Tensor:
        if state is None:
            return torch.zeros([self.x.shape[1], self.hidden], dtype=self.x.dtype, device=self.x.device)
        return state[:, direction] if self.layout else state[direction]

    def is_backward(self, direction: int) -> bool:
        return self.direction == "reverse" or direction == 1

    def run(self, step: Callable, states: list[list[Tensor]], lengths: Tensor | None) -> tuple:
        """Runs `step(direction, x_t, states)` over time, and returns Y and the last states."""
        size = int(self.x.shape[0])
        self.call.run.allowance.use(size * self.directions)
        outputs, last = [], []
        for d in range(self.directions):
            rows: list[Any] = [None] * size
            now = states[d]
            order = reversed(range(size)) if self.is_backward(d) else range(size)
            for t in order:
                new = step(d, self.x[t], now)
                if lengths is not None:
                    alive = (lengths > t).unsqueeze(1)
                    new = [torch.where(alive, n, o) for n, o in zip(new, now)]
                    rows[t] = torch.where(alive, new[0], torch.zeros_like(new[0]))
                else:
                    rows[t] = new[0]
                now = new
            outputs.append(torch.stack(rows))
            last.append(now)
        y = torch.stack(outputs, 1)  # time, directions, batch, hidden
        return self.finish(y, [torch.stack([s[i] for s in last]) for i in range(len(last[0]))])

    def finish(self, y: Tensor, states: list[Tensor]) -> tuple:
        if self.layout:
            return (y.permute(2, 0, 1, 3), *(s.transpose(0, 1) for s in states))
        return (y, *states)


def _lengths(layer: _Layer, lengths: Any) -> Tensor | None:
    """The lengths of the sequences, or None if all are whole."""
    if lengths is None:
        return None
    if _values.is_host(lengths) and all(n == layer.x.shape[0] for n in _values.ints(lengths)):
        return None
    return layer.call.tensor(lengths).to(torch.int64)


def _rnn_core(
    layer: _Layer, mode: Any, gates: list[int], w: Tensor, r: Tensor, b: Tensor | None, states: list
) -> tuple:
    """The engine's own layer, whose gates have another order."""
    hidden, parameters = layer.hidden, []
    for d in range(layer.directions):
        for source in (w[d], r[d]):
            parameters.append(torch.cat([source[g * hidden : (g + 1) * hidden] for g in gates]))
        if b is not None:
            for half in (b[d][: len(gates) * hidden], b[d][len(gates) * hidden :]):
                parameters.append(torch.cat([half[g * hidden : (g + 1) * hidden] for g in gates]))
    x = layer.x
    if layer.direction == "reverse":
        x = torch.flip(x, [0])
    initial = [torch.stack([layer.initial(s, d) for d in range(layer.directions)]) for s in states]
    hx = tuple(initial) if len(initial) > 1 else initial[0]
    y, *last = mode(x, hx, parameters, b is not None, 1, 0.0, False, layer.directions == 2, False)
    if layer.direction == "reverse":
        y = torch.flip(y, [0])
    y = y.reshape([*y.shape[:2], layer.directions, hidden]).permute(0, 2, 1, 3)
    return layer.finish(y, list(last))


@keeps(4)
def _rnn(
    call: Call, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Any = None, h: Tensor | None = None
) -> tuple:
    layer = _Layer(call, x, ["Tanh"])
    lengths = _lengths(layer, lengths)
    if layer.is_default and layer.clip is None and lengths is None:
        return _rnn_core(layer, torch.rnn_tanh, [0], w, r, b, [h])
    bias = None if b is None else b[:, : layer.hidden] + b[:, layer.hidden :]

    def step(d: int, row: Tensor, states: list[Tensor]) -> list[Tensor]:
        total = F.linear(row, w[d]) + F.linear(states[0], r[d])
        total = total if bias is None else total + bias[d]
        return [layer.functions[d][0](layer.clipped(total))]

    return layer.run(step, [[layer.initial(h, d)] for d in range(layer.directions)], lengths)


@keeps(4)
def _gru(
    call: Call, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Any = None, h: Tensor | None = None
) -> tuple:
    layer = _Layer(call, x, ["Sigmoid", "Tanh"])
    lengths, n = _lengths(layer, lengths), layer.hidden
    after = call.get("linear_before_reset", 0)
    if layer.is_default and layer.clip is None and lengths is None and after:
        return _rnn_core(layer, torch.gru, [1, 0, 2], w, r, b, [h])
    if b is None:
        b = torch.zeros([layer.directions, 6 * n], dtype=x.dtype, device=x.device)

    def step(d: int, row: Tensor, states: list[Tensor]) -> list[Tensor]:
        f, g = layer.functions[d]
        state = states[0]
        own = F.linear(row, w[d], b[d, : 3 * n])
        past = F.linear(state, r[d, : 2 * n], b[d, 3 * n : 5 * n])
        z = f(layer.clipped(own[:, :n] + past[:, :n]))
        reset = f(layer.clipped(own[:, n : 2 * n] + past[:, n:]))
        if after:
            inner = reset * F.linear(state, r[d, 2 * n :], b[d, 5 * n :])
        else:
            inner = F.linear(reset * state, r[d, 2 * n :], b[d, 5 * n :])
        candidate = g(layer.clipped(own[:, 2 * n :] + inner))
        return [(1 - z) * candidate + z * state]

    return layer.run(step, [[layer.initial(h, d)] for d in range(layer.directions)], lengths)


@keeps(4)
def _lstm(call: Call, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Any = None, h: Tensor | None = None,
          c: Tensor | None = None, p: Tensor | None = None) -> tuple:  # fmt: skip
    layer = _Layer(call, x, ["Sigmoid", "Tanh", "Tanh"])
    lengths, n = _lengths(layer, lengths), layer.hidden
    coupled = call.get("input_forget", 0)
    if layer.is_default and layer.clip is None and lengths is None and p is None and not coupled:
        return _rnn_core(layer, torch.lstm, [0, 2, 3, 1], w, r, b, [h, c])
    bias = None if b is None else b[:, : 4 * n] + b[:, 4 * n :]

    def step(d: int, row: Tensor, states: list[Tensor]) -> list[Tensor]:
        f, g, last = layer.functions[d]
        state, cell = states
        total = F.linear(row, w[d]) + F.linear(state, r[d])
        total = total if bias is None else total + bias[d]
        i, o, forget, new = (total[:, k * n : (k + 1) * n] for k in range(4))
        if p is not None:
            i, forget = i + p[d, :n] * cell, forget + p[d, 2 * n :] * cell
        i = f(layer.clipped(i))
        forget = 1 - i if coupled else f(layer.clipped(forget))
        cell = forget * cell + i * g(layer.clipped(new))
        o = f(layer.clipped(o if p is None else o + p[d, n : 2 * n] * cell))
        return [o * last(cell), cell]

    return layer.run(step, [[layer.initial(h, d), layer.initial(c, d)] for d in range(layer.directions)], lengths)


TABLE: dict[str, tuple] = {"RNN": ((1, _rnn),), "GRU": ((1, _gru),), "LSTM": ((1, _lstm),)}
