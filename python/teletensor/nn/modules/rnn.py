"""Recurrent layers and cells."""

from __future__ import annotations

import math

from ... import _C
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """The common base of recurrent layers; `mode` is LSTM, GRU, RNN_TANH or RNN_RELU."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device=None,
        dtype=None,
    ):  # fmt: skip
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if hidden_size <= 0 or num_layers <= 0:
            raise ValueError(f"hidden_size and num_layers must be greater than zero, got {hidden_size} and {num_layers}")
        if proj_size < 0 or proj_size >= hidden_size or (proj_size and mode != "LSTM"):
            raise ValueError(f"expected 0 <= proj_size < hidden_size, and 0 except in LSTM, got {proj_size}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        rows, width = _GATES[mode] * hidden_size, proj_size or hidden_size
        self._names: list[str] = []
        for layer in range(num_layers):
            entering = input_size if layer == 0 else width * (2 if bidirectional else 1)
            for suffix in ("", "_reverse") if bidirectional else ("",):
                shapes = {"weight_ih": (rows, entering), "weight_hh": (rows, width)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for kind, shape in shapes.items():
                    name = f"{kind}_l{layer}{suffix}"
                    setattr(self, name, Parameter(_C.torch.empty(*shape, device=device, dtype=dtype)))
                    self._names.append(name)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform in +-1/sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def flatten_parameters(self) -> None:
        """Has no effect: the weights need not be contiguous in memory."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights, one list per layer and direction."""
        each = len(self._names) // (self.num_layers * (2 if self.bidirectional else 1))
        weights = self._flat_weights
        return [weights[i : i + each] for i in range(0, len(weights), each)]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [getattr(self, name) for name in self._names]

    def _states(self, batch: int, like) -> list:
        directions = self.num_layers * (2 if self.bidirectional else 1)
        widths = [self.proj_size or self.hidden_size, self.hidden_size][: 2 if self.mode == "LSTM" else 1]
        return [_C.torch.zeros(directions, batch, w, dtype=like.dtype, device=like.device) for w in widths]

    def _run(self, input, states: list, steps: list[int]):
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
        if self.mode == "LSTM":
            return _C.ops.lstm(input, states, self._flat_weights, steps, *options)
        if self.mode == "GRU":
            return _C.ops.gru(input, states[0], self._flat_weights, steps, *options)
        return _C.ops.rnn(input, states[0], self._flat_weights, steps, self.mode[4:].lower(), *options)

    def forward(self, input, hx=None):
        packed = isinstance(input, PackedSequence)
        data = input.data if packed else input
        if not packed and data.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {data.dim()}D instead")
        single = not packed and data.dim() == 2
        if single:
            data = data.unsqueeze(0 if self.batch_first else 1)
        steps = input.steps if packed else []
        batch = steps[0] if packed else data.shape[0 if self.batch_first else 1]
        if hx is None:
            states = self._states(batch, data)
        else:
            states = list(hx) if self.mode == "LSTM" else [hx]
            if single:
                states = [s.unsqueeze(1) for s in states]
            if packed and input.sorted_indices is not None:
                states = [s.index_select(1, input.sorted_indices) for s in states]
        output, *last = self._run(data, states, steps)
        if packed:
            output = input._with_data(output)
            if input.unsorted_indices is not None:
                last = [s.index_select(1, input.unsorted_indices) for s in last]
        if single:
            output, last = output.squeeze(0 if self.batch_first else 1), [s.squeeze(1) for s in last]
        return output, tuple(last) if self.mode == "LSTM" else last[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0),
            ("bidirectional", False),
        ):  # fmt: skip
            value = getattr(self, name)
            text += f", {name}={value}" if value != usual else ""
        return text


class LSTM(RNNBase):
    """LSTM (Hochreiter and Schmidhuber, "Long short-term memory", 1997), in PyTorch's variant."""

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """GRU (Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014), in cuDNN's variant."""

    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)


class RNN(RNNBase):
    """h = tanh(W x + b + U h + c), or with relu."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", *args, **kwargs):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self_mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(self_mode, input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity


class RNNCellBase(Module):
    """The common base of recurrent cells."""

    gates = 1

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        make, rows = {"device": device, "dtype": dtype}, self.gates * hidden_size
        self.weight_ih = Parameter(_C.torch.empty(rows, input_size, **make))
        self.weight_hh = Parameter(_C.torch.empty(rows, hidden_size, **make))
        self.register_parameter("bias_ih", Parameter(_C.torch.empty(rows, **make)) if bias else None)
        self.register_parameter("bias_hh", Parameter(_C.torch.empty(rows, **make)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform in +-1/sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _zeros(self, input):
        return _C.torch.zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype, device=input.device)

    def _step(self, operator, input, hx):
        return operator(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(RNNCellBase):
    """One step of RNN."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        operator = _C.torch.rnn_tanh_cell if self.nonlinearity == "tanh" else _C.torch.rnn_relu_cell
        return self._step(operator, input, self._zeros(input) if hx is None else hx)


class LSTMCell(RNNCellBase):
    """One step of LSTM. Returns (h, c)."""

    gates = 4

    def forward(self, input, hx=None):
        states = [self._zeros(input), self._zeros(input)] if hx is None else list(hx)
        return tuple(self._step(_C.torch.lstm_cell, input, states))


class GRUCell(RNNCellBase):
    """One step of GRU."""

    gates = 3

    def forward(self, input, hx=None):
        return self._step(_C.torch.gru_cell, input, self._zeros(input) if hx is None else hx)
