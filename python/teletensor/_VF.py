"""torch._VF: recurrent layers as functions of their weights.

The arguments are (input, states, weights, ...) for a padded batch, and (data, batch_sizes, states, weights, ...) for a
packed batch.
"""

from __future__ import annotations

from . import _C
from ._C import Tensor
from .nn._torch_recurrent import lstm_cell

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]

gru_cell, rnn_relu_cell, rnn_tanh_cell = _C.torch.gru_cell, _C.torch.rnn_relu_cell, _C.torch.rnn_tanh_cell


def _split_args(args: tuple) -> tuple:
    """Returns (input, batch_sizes, states, weights, other arguments); batch_sizes is empty for a padded batch."""
    packed = isinstance(args[1], Tensor) and args[1].dim() == 1
    if packed:
        return args[0], args[1].tolist(), args[2], args[3], (*args[4:], False)
    return args[0], [], args[1], args[2], args[3:]


def lstm(*args) -> tuple[Tensor, Tensor, Tensor]:
    """Runs an LSTM; returns (output, h_n, c_n)."""
    data, steps, states, weights, rest = _split_args(args)
    return tuple(_C.ops.lstm(data, list(states), list(weights), steps, *rest))


def gru(*args) -> tuple[Tensor, Tensor]:
    """Runs a GRU; returns (output, h_n)."""
    data, steps, states, weights, rest = _split_args(args)
    return tuple(_C.ops.gru(data, states, list(weights), steps, *rest))


def _rnn(nonlinearity: str):
    def run(*args) -> tuple[Tensor, Tensor]:
        data, steps, states, weights, rest = _split_args(args)
        return tuple(_C.ops.rnn(data, states, list(weights), steps, nonlinearity, *rest))

    run.__name__, run.__doc__ = f"rnn_{nonlinearity}", "Runs an RNN; returns (output, h_n)."
    return run


rnn_tanh, rnn_relu = _rnn("tanh"), _rnn("relu")
