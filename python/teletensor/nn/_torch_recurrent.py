"""Recurrent networks with ATen's signatures.

    lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)

The second form takes packed sequences: data has one row per element, batch_sizes counts the sequences of each step.
"""

from __future__ import annotations

from typing import Any, Callable

from .. import _C
from .._C import Tensor

_NAMES = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


def _parse(name: str, args: tuple, kwargs: dict[str, Any]) -> tuple:
    """Returns (input, hx, params, steps per sequence, options) of either form."""
    packed = "data" in kwargs or "batch_sizes" in kwargs or len(args) > 2 and isinstance(args[2], (Tensor, list, tuple)) and (
        len(args) == 9 and isinstance(args[3], (list, tuple))
    )
    names = ("data", "batch_sizes", *_NAMES) if packed else ("input", *_NAMES, "batch_first")
    values = dict(zip(names, args))
    twice = values.keys() & kwargs.keys()
    values |= kwargs
    if twice or len(args) > len(names) or set(values) != set(names):
        raise TypeError(f"{name}() received an invalid combination of arguments: expected {', '.join(names)}")
    steps = values["batch_sizes"].tolist() if packed else []
    options = (
        values["has_biases"], values["num_layers"], values["dropout"], values["train"], values["bidirectional"],
        values.get("batch_first", False),
    )  # fmt: skip
    return values["data" if packed else "input"], values["hx"], list(values["params"]), steps, options


def lstm(*args, **kwargs) -> tuple[Tensor, Tensor, Tensor]:
    """LSTM layers: returns (output, hidden states, cell states). hx is (hidden states, cell states)."""
    data, hx, params, steps, options = _parse("lstm", args, kwargs)
    return tuple(_C.ops.lstm(data, list(hx), params, steps, *options))


_OVERLOADS = (f"input, {', '.join(_NAMES)}, batch_first", f"data, batch_sizes, {', '.join(_NAMES)}")
lstm.__overloads__ = _OVERLOADS


def _one_state(name: str, run: Callable) -> Callable:
    def layers(*args, **kwargs) -> tuple[Tensor, Tensor]:
        return tuple(run(*_parse(name, args, kwargs)))

    layers.__overloads__ = _OVERLOADS
    layers.__name__ = layers.__qualname__ = name
    layers.__doc__ = f"{name.upper()} layers: returns (output, hidden states)."
    return layers


gru = _one_state("gru", lambda data, hx, params, steps, options: _C.ops.gru(data, hx, params, steps, *options))
rnn_tanh = _one_state("rnn_tanh", lambda data, hx, params, steps, options: _C.ops.rnn(data, hx, params, steps, "tanh", *options))
rnn_relu = _one_state("rnn_relu", lambda data, hx, params, steps, options: _C.ops.rnn(data, hx, params, steps, "relu", *options))
