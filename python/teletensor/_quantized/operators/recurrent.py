"""Recurrent cells of torch.ops.quantized, with dynamically quantized products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._C import Tensor
from ..define import kernel
from .recurrent_layers import CellParams, gru_step, lstm_step


@kernel("make_quantized_cell_params_dynamic")
def make_quantized_cell_params_dynamic(w_ih: Any, w_hh: Any, _b_ih: Tensor, _b_hh: Tensor, reduce_range: bool) -> CellParams:
    """The weights of a recurrent layer. The biases are those of the packed weights, as in PyTorch."""
    return CellParams(w_ih, w_hh, reduce_range)


@kernel("make_quantized_cell_params_fp16")
def make_quantized_cell_params_fp16(w_ih: Any, w_hh: Any) -> CellParams:
    """The weights of a recurrent layer, rounded to float16."""
    return CellParams(w_ih, w_hh, False)


def _checked(name: str, x: Tensor, w_ih: Any, w_hh: Any) -> CellParams:
    if x.dim() != 2:
        raise RuntimeError(f"[quantized::{name}] expected an input of 2 dimensions, got {x.dim()}")
    return CellParams(w_ih, w_hh, True)


@kernel("quantized_lstm_cell_dynamic")
def quantized_lstm_cell_dynamic(
    x: Tensor, hx: Sequence[Tensor], w_ih: Any, w_hh: Any, _b_ih: Tensor, _b_hh: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM; returns the states h and c. The biases are those of the packed weights."""
    params = _checked("quantized_lstm_cell_dynamic", x, w_ih, w_hh)
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return lstm_step(params.input_product(x), hx[0], hx[1], params)


@kernel("quantized_gru_cell_dynamic")
def quantized_gru_cell_dynamic(x: Tensor, hx: Tensor, w_ih: Any, w_hh: Any, _b_ih: Tensor, _b_hh: Tensor) -> Tensor:
    """One step of a GRU. The biases are those of the packed weights."""
    params = _checked("quantized_gru_cell_dynamic", x, w_ih, w_hh)
    return gru_step(params.input_product(x), hx, params)


def _simple(name: str, activation: Callable[[Tensor], Tensor]) -> None:
    @kernel(name)
    def cell(x: Tensor, hx: Tensor, w_ih: Any, w_hh: Any, _b_ih: Tensor, _b_hh: Tensor) -> Tensor:
        params = _checked(name, x, w_ih, w_hh)
        return activation(params.input_product(x) + params.hidden_product(hx))


_simple("quantized_rnn_relu_cell_dynamic", _C.torch.relu)
_simple("quantized_rnn_tanh_cell_dynamic", _C.torch.tanh)
