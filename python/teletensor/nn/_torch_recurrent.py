"""Recurrent networks, and the step of an LSTM, with ATen's signatures.

    lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)

The second form takes packed sequences: data has one row per element, batch_sizes counts the sequences of each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._overridable import overridable

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


def check_step(input: Tensor, states: Sequence[Tensor], input_size: int, hidden_size: int) -> None:
    """Checks the sizes of the input and of the states of one step. Raises RuntimeError."""
    if input.shape[-1] != input_size:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {input_size}")
    for i, state in enumerate(states):
        if input.dim() == state.dim() == 2 and input.shape[0] != state.shape[0]:
            raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{i} batch size {state.shape[0]}")
        if state.shape[-1] != hidden_size:
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {state.shape[-1]}, expected {hidden_size}")


def _composed_step(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Tensor, Tensor]:
    """lstm_cell() of several operators: under autocast on a CPU, which casts the products only, and for tensors of several
    dtypes. The dtype of the results is at least that of c."""
    size = w_hh.shape[-1]
    check_step(input, hx, w_ih.shape[-1], size)
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.shape[0] != 4 * size:
            raise RuntimeError(f"{name} first dim must be 4 * hidden_size = {4 * size}, but got {weight.shape[0]}")
    h, c = hx
    gates = _C.functional.linear(input, w_ih, b_ih) + _C.functional.linear(h, w_hh, b_hh)
    i, f, g, o = gates.chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: returns the states (h, c), of size (batch, hidden size).

    Args:
        input: of size (batch, input size).
        hx: the states (h, c) before the step.
        w_ih: the weights of the input, of size (4 * hidden size, input size).
        w_hh: the weights of h, of size (4 * hidden size, hidden size).
        b_ih: added to the product with w_ih, of size (4 * hidden size).
        b_hh: added to the product with w_hh, of size (4 * hidden size).

    Raises:
        RuntimeError: sizes do not match, input or a state is no matrix, or the dtypes of the factors of a product differ.
    """
    if isinstance(hx, Tensor):
        raise TypeError("lstm_cell(): argument 'hx' must be tuple of Tensors, not Tensor")
    tensors = (input, *hx, w_ih, w_hh)
    step = _C.torch.lstm_cell
    if all([isinstance(t, Tensor) for t in tensors]):  # otherwise the operator raises TypeError
        if len(hx) != 2:
            raise RuntimeError("lstm_cell expects two hidden states")
        if input.dim() != 2:
            raise RuntimeError(f"Expected 2D input (batch x feature), but got {input.dim()}D input")
        for i, state in enumerate(hx):
            if state.dim() != 2:
                raise RuntimeError(f"Expected 2D hidden{i} (batch x hidden_size), but got {state.dim()}D tensor")
        device = input.device.type
        if device in ("cpu", "cuda") and _C.autocast_dtype(device) is not None:
            is_composed = device == "cpu"  # on GPUs the operator casts
        else:
            is_composed = len({t.dtype for t in (*tensors, b_ih, b_hh) if t is not None}) > 1
        if is_composed:
            step = _composed_step
    return tuple(step(input, hx, w_ih, w_hh, b_ih, b_hh))


lstm_cell = overridable("teletensor", "lstm_cell", lstm_cell)
