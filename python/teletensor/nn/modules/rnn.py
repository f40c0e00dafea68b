"""Recurrent layers and cells."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from ... import _C
from ..._C import Tensor
from .. import init
from .._torch_recurrent import check_step, lstm_cell
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _check_sizes(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size) -> None:
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than "
            f"1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    kinds = (("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int), ("hidden_size", hidden_size, int))
    for name, value, kind in kinds:
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if proj_size and mode != "LSTM":
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    if mode not in _GATES:
        raise ValueError("Unrecognized RNN mode: " + mode)


def _is_autocast(tensor) -> bool:
    from ... import is_autocast_enabled

    return is_autocast_enabled(tensor.device.type)


class RNNBase(Module):
    """The common base of recurrent layers; `mode` is LSTM, GRU, RNN_TANH or RNN_RELU."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device=None,
        dtype=None,
    ):  # fmt: skip
        super().__init__()
        _check_sizes(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        rows, width = _GATES[mode] * hidden_size, proj_size or hidden_size
        self._flat_weights_names: list[str] = []
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
                    self._flat_weights_names.append(name)
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
        each = len(self._flat_weights_names) // (self.num_layers * (2 if self.bidirectional else 1))
        weights = self._flat_weights
        return [weights[i : i + each] for i in range(0, len(weights), each)]

    @property
    def _flat_weights(self) -> list[Tensor]:
        """The weights that forward() uses: the parameters, or tensors in their places that a program has assigned."""
        assigned = self.__dict__.get("_assigned_weights", {})
        return [assigned[name] if name in assigned else getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: Sequence[Tensor]) -> None:
        self.__dict__["_assigned_weights"] = {
            name: weight for name, weight in zip(self._flat_weights_names, weights, strict=True) if weight is not getattr(self, name)
        }

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__.get("_assigned_weights", {}).pop(name, None)
        super().__setattr__(name, value)

    def _states(self, batch: int, like) -> list:
        return [_C.torch.zeros(*sizes, dtype=like.dtype, device=like.device) for sizes in self._expected_sizes(batch)]

    def check_input(self, input, batch_sizes) -> None:
        """Raises an error unless the input, batched or packed, has the module's dtype and input_size."""
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )
        dtype = self._flat_weights[0].dtype
        if input.dtype is not dtype and not _is_autocast(input):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert input: input.to({dtype}), or "
                f"convert model: model.to({input.dtype})"
            )

    def _expected_sizes(self, batch: int) -> list[tuple[int, int, int]]:
        directions = self.num_layers * (2 if self.bidirectional else 1)
        widths = [self.proj_size or self.hidden_size, self.hidden_size][: 2 if self.mode == "LSTM" else 1]
        return [(directions, batch, width) for width in widths]

    def get_expected_hidden_size(self, input, batch_sizes) -> tuple[int, int, int]:
        """The sizes of the hidden state for an input."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.shape[0 if self.batch_first else 1]
        return self._expected_sizes(batch)[0]

    def get_expected_cell_size(self, input, batch_sizes) -> tuple[int, int, int]:
        """The sizes of an LSTM's cell state for an input."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.shape[0 if self.batch_first else 1]
        return self._expected_sizes(batch)[-1]

    def check_hidden_size(self, hx, expected_hidden_size, msg: str = "Expected hidden size {}, got {}") -> None:
        """Raises RuntimeError unless a state has the expected sizes."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input, hidden, batch_sizes) -> None:
        """Raises an error unless the input and the states have the expected sizes."""
        self.check_input(input, batch_sizes)
        if self.mode != "LSTM":
            return self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        """The states with their sequences in another order."""
        if permutation is None:
            return hx
        if self.mode == "LSTM":
            return tuple(state.index_select(1, permutation) for state in hx)
        return hx.index_select(1, permutation)

    def _permuted(self, states: list, permutation) -> list:
        permuted = self.permute_hidden(tuple(states) if self.mode == "LSTM" else states[0], permutation)
        return list(permuted) if self.mode == "LSTM" else [permuted]

    def _run(self, input, states: list, steps: list[int]):
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
        if self.mode == "LSTM":
            return _C.ops.lstm(input, states, self._flat_weights, steps, *options)
        if self.mode == "GRU":
            return _C.ops.gru(input, states[0], self._flat_weights, steps, *options)
        return _C.ops.rnn(input, states[0], self._flat_weights, steps, self.mode[4:].lower(), *options)

    @staticmethod
    def _refuse_states(states: list, single: bool) -> None:
        dims, expected = [f"{state.dim()}-D" for state in states], "2-D" if single else "3-D"
        what, got = ("hx", f"{dims[0]} tensor") if len(dims) == 1 else ("hx and cx", f"({', '.join(dims)}) tensors")
        raise RuntimeError(
            f"For {'unbatched' if single else 'batched'} {expected} input, {what} should also be {expected} but got {got}"
        )

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
            if not packed and any(state.dim() != data.dim() - single for state in states):
                self._refuse_states(states, single)
            if single:
                states = [s.unsqueeze(1) for s in states]
            states = self._permuted(states, input.sorted_indices if packed else None)
        self.check_forward_args(data, states if self.mode == "LSTM" else states[0], steps or None)
        output, *last = self._run(data, states, steps)
        if packed:
            output = input._with_data(output)
        last = self._permuted(last, input.unsorted_indices if packed else None)
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
    """LSTM (Hochreiter and Schmidhuber, "Long short-term memory", 1997), in PyTorch's variant.

    Args:
        input_size, hidden_size: sizes of the last dimension of the input and of the states.
        num_layers: layers, each of which reads the outputs of the one before.
        bias: whether there are biases.
        batch_first: whether the batch is the first dimension of input and output; the states keep theirs.
        dropout: the probability of dropout between layers.
        bidirectional: whether a second direction reads the sequence backwards; outputs are twice as wide.
        proj_size: the size to which the state h is projected; 0: none.
        device, dtype: of the parameters.

    The input has shape (L, N, input_size) or (L, input_size), or is a PackedSequence. Returns the outputs (L, N, D
    hidden_size) and the last states (h, c) of shape (D num_layers, N, hidden_size); the first states are zeros, or the second
    argument of the call. D is 2 with bidirectional, else 1. With proj_size, the outputs are (L, N, D proj_size) and h has proj_size.

    Raises:
        RuntimeError: a size differs from these.
        ValueError: proj_size is negative or not smaller than hidden_size, or dropout is not in [0, 1].

    >>> output, (h, c) = torch.nn.LSTM(3, 5, num_layers=2)(torch.ones(7, 2, 3))
    >>> output.shape, h.shape, c.shape
    (torch.Size([7, 2, 5]), torch.Size([2, 2, 5]), torch.Size([2, 2, 5]))
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """GRU (Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014), in cuDNN's variant.

    Args:
        input_size, hidden_size: sizes of the last dimension of the input and of the state.
        num_layers: layers, each of which reads the outputs of the one before.
        bias: whether there are biases.
        batch_first: whether the batch is the first dimension of input and output; the state keeps theirs.
        dropout: the probability of dropout between layers.
        bidirectional: whether a second direction reads the sequence backwards; outputs are twice as wide.
        device, dtype: of the parameters.

    The input has shape (L, N, input_size) or (L, input_size), or is a PackedSequence. Returns the outputs (L, N, D
    hidden_size) and the last state (D num_layers, N, hidden_size); the first state is zeros, or the second argument of the
    call. D is 2 with bidirectional, else 1.

    Raises:
        RuntimeError: a size differs from these.

    >>> output, h = torch.nn.GRU(3, 5, bidirectional=True)(torch.ones(7, 2, 3))
    >>> output.shape, h.shape
    (torch.Size([7, 2, 10]), torch.Size([2, 2, 5]))
    """

    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)


class RNN(RNNBase):
    """h = tanh(W x + b + U h + c), or with relu."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", *args, **kwargs):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self_mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(self_mode, input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity


class RNNCellBase(Module):
    """The common base of recurrent cells."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        make, rows = {"device": device, "dtype": dtype}, num_chunks * hidden_size
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
        if input.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        states = hx if isinstance(hx, list) else [hx]
        for i, state in enumerate(states):
            if state.dim() not in (1, 2):
                place = f"hx[{i}]" if isinstance(hx, list) else "hidden"
                raise ValueError(f"{type(self).__name__}: Expected {place} to be 1D or 2D, got {state.dim()}D instead")
        check_step(input, states, self.input_size, self.hidden_size)
        return operator(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def extra_repr(self) -> str:
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        shown = "" if nonlinearity == "tanh" else f", nonlinearity={nonlinearity}"
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias is True else f", bias={self.bias}") + shown


class RNNCell(RNNCellBase):
    """One step of RNN."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device=None, dtype=None
    ):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        operator = _C.torch.rnn_tanh_cell if self.nonlinearity == "tanh" else _C.torch.rnn_relu_cell
        return self._step(operator, input, self._zeros(input) if hx is None else hx)


def _unbatched_lstm_cell(input, hx, *weights):
    h, c = lstm_cell(input.unsqueeze(0), [state.unsqueeze(0) for state in hx], *weights)
    return h.squeeze(0), c.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of LSTM. Returns (h, c)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        states = [self._zeros(input), self._zeros(input)] if hx is None else list(hx)
        return self._step(_unbatched_lstm_cell if input.dim() == 1 else lstm_cell, input, states)


class GRUCell(RNNCellBase):
    """One step of GRU."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step(_C.torch.gru_cell, input, self._zeros(input) if hx is None else hx)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The deprecated name of index_select()."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead", FutureWarning, stacklevel=2
    )
    return tensor.index_select(dim, permutation)
