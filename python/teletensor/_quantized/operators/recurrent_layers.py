"""Recurrent layers with dynamically quantized weights: torch.quantized_lstm and quantized_gru."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._quantized_names import qint8
from ..packed import HalfLinearPackedParams
from .linear import dynamic


class CellParams:
    """The packed weights of a layer's inputs and states."""

    def __init__(self, w_ih: Any, w_hh: Any, reduce_range: bool = False) -> None:
        self.w_ih, self.w_hh, self.reduce_range = w_ih, w_hh, reduce_range

    def _product(self, x: Tensor, packed: Any) -> Tensor:
        if isinstance(packed, HalfLinearPackedParams):
            return _C.ops.linear(x, *packed.unpack())
        return dynamic("linear_dynamic", x, packed, self.reduce_range)

    def input_product(self, x: Tensor) -> Tensor:
        """The linear layer of inputs."""
        return self._product(x, self.w_ih)

    def hidden_product(self, h: Tensor) -> Tensor:
        """The linear layer of states."""
        return self._product(h, self.w_hh)

    def __getstate__(self) -> tuple:
        return self.w_ih, self.w_hh, self.reduce_range

    def __setstate__(self, state: tuple) -> None:
        self.__init__(*state)  # type: ignore[misc]


def lstm_step(gates: Tensor, h: Tensor, c: Tensor, params: CellParams) -> tuple[Tensor, Tensor]:
    """The states after a step; ``gates`` is the product of the inputs."""
    gates = gates + params.hidden_product(h)
    input_gate, forget_gate, cell, output_gate = gates.chunk(4, -1)
    c = _C.torch.sigmoid(forget_gate) * c + _C.torch.sigmoid(input_gate) * _C.torch.tanh(cell)
    return _C.torch.sigmoid(output_gate) * _C.torch.tanh(c), c


def gru_step(gates: Tensor, h: Tensor, params: CellParams) -> Tensor:
    """The state after a step; ``gates`` is the product of the inputs."""
    reset, update, new = gates.chunk(3, -1)
    reset_h, update_h, new_h = params.hidden_product(h).chunk(3, -1)
    reset = _C.torch.sigmoid(reset + reset_h)
    update = _C.torch.sigmoid(update + update_h)
    new = _C.torch.tanh(new + reset * new_h)
    return (h - new) * update + new


def _sequence(
    x: Tensor, states: tuple[Tensor, ...], params: CellParams, reverse: bool, step: Callable
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The outputs (steps, batch, features) and last states of one direction."""
    gates = list(params.input_product(x).unbind(0))
    outputs = []
    for g in reversed(gates) if reverse else gates:
        states = step(g, *states, params)
        states = states if isinstance(states, tuple) else (states,)
        outputs.append(states[0])
    return _C.torch.stack(outputs[::-1] if reverse else outputs), states


def _layers(
    name: str, x: Tensor, states: Sequence[Tensor], params: Sequence[CellParams], num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool, step: Callable,
) -> tuple[Tensor, list[Tensor]]:  # fmt: skip
    directions = 2 if bidirectional else 1
    if len(params) != num_layers * directions:
        raise RuntimeError(f"[{name}] expected {num_layers * directions} weights, got {len(params)}")
    if any(not isinstance(p, CellParams) for p in params):
        raise RuntimeError(f"[{name}] expected weights of make_quantized_cell_params_dynamic")
    if dropout and train:
        raise NotImplementedError(f"[{name}] dropout in training is not implemented for quantized layers")
    if x.dim() != 3:
        raise RuntimeError(f"[{name}] expected an input of 3 dimensions, got {x.dim()}")
    x = x.transpose(0, 1) if batch_first else x
    last: list[tuple[Tensor, ...]] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            output, state = _sequence(x, tuple(s[i] for s in states), params[i], direction == 1, step)
            outputs.append(output)
            last.append(state)
        x = outputs[0] if directions == 1 else _C.torch.cat(outputs, -1)
    finals = [_C.torch.stack([state[k] for state in last]) for k in range(len(states))]
    return x.transpose(0, 1) if batch_first else x, finals


def _packed(name: str, batch_sizes: Any) -> None:
    if isinstance(batch_sizes, Tensor):
        raise NotImplementedError(f"[{name}] packed sequences are not implemented for quantized layers")


def quantized_lstm(
    input: Tensor, hx: Any, params: Sequence[CellParams], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool, dtype: Any = None, use_dynamic: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """An LSTM whose products quantize their inputs dynamically; returns the outputs and the last states h and c.

    ``has_biases``, ``dtype`` and ``use_dynamic`` describe the packed weights, which contain the biases.
    """
    _packed("quantized_lstm", hx)
    _describe(has_biases, dtype, use_dynamic)
    output, (h, c) = _layers(
        "quantized_lstm", input, hx, params, num_layers, dropout, train, bidirectional, batch_first, lstm_step
    )
    return output, h, c


def quantized_gru(
    input: Tensor, hx: Tensor, params: Sequence[CellParams], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """A GRU whose products quantize their inputs dynamically; returns the outputs and the last state."""
    if isinstance(params, Tensor):
        _packed("quantized_gru", params)
    _describe(has_biases, None, True)
    output, (h,) = _layers("quantized_gru", input, [hx], params, num_layers, dropout, train, bidirectional, batch_first, gru_step)
    return output, h


def _describe(has_biases: bool, dtype: Any, use_dynamic: bool) -> None:
    """Raises RuntimeError for descriptions that no packed weights have."""
    if dtype not in (None, _C.int8, qint8, _C.float16) or not isinstance(has_biases, bool) or not isinstance(use_dynamic, bool):
        raise RuntimeError(f"[quantized_lstm] expected a dtype of torch.qint8 or torch.float16, got {dtype}")
