"""LSTM made of linear layers and operators that can be observed and quantized."""

from __future__ import annotations

import warnings
from typing import Any

from .... import _C, nn
from .... import _quantized_names as q
from ...._C import Tensor
from ...._lazy import set_module
from ...._quantized import create
from .. import _steps
from ..quantized.functional_modules import FloatFunctional

_GATES = ("input", "forget", "cell", "output")
State = tuple[Tensor, Tensor]


class LSTMCell(nn.Module):
    """An LSTM cell. ``split_gates`` gives each gate its own linear layers, and thus its own scales."""

    _FLOAT_MODULE = nn.LSTMCell

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None, dtype: Any = None, *, split_gates: bool = False
    ):
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        self.input_size, self.hidden_size, self.bias, self.split_gates = input_dim, hidden_dim, bias, split_gates
        if split_gates:
            self.igates = nn.ModuleDict({g: nn.Linear(input_dim, hidden_dim, **made) for g in _GATES})
            self.hgates = nn.ModuleDict({g: nn.Linear(hidden_dim, hidden_dim, **made) for g in _GATES})
            self.gates = nn.ModuleDict({g: FloatFunctional() for g in _GATES})
        else:
            self.igates = nn.Linear(input_dim, 4 * hidden_dim, **made)
            self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, **made)
            self.gates = FloatFunctional()
        self.input_gate, self.forget_gate, self.cell_gate, self.output_gate = nn.Sigmoid(), nn.Sigmoid(), nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = FloatFunctional(), FloatFunctional()
        self.fgate_cx_igate_cgate, self.ogate_cy = FloatFunctional(), FloatFunctional()
        self.initial_hidden_state_qparams, self.initial_cell_state_qparams = (1.0, 0), (1.0, 0)
        self.hidden_state_dtype, self.cell_state_dtype = q.quint8, q.quint8

    def forward(self, x: Tensor, hidden: State | None = None) -> State:
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        if self.split_gates:
            parts = [self.gates[g].add(self.igates[g](x), self.hgates[g](hx)) for g in _GATES]
        else:
            parts = self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        modules = (self.input_gate, self.forget_gate, self.cell_gate, self.output_gate)
        input_gate, forget_gate, cell_gate, output_gate = (module(part) for module, part in zip(modules, parts))
        kept = self.fgate_cx.mul(forget_gate, cx)
        cy = self.fgate_cx_igate_cgate.add(kept, self.igate_cgate.mul(input_gate, cell_gate))
        return self.ogate_cy.mul(output_gate, _C.torch.tanh(cy)), cy

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> State:
        """Hidden and cell states of zeros."""
        zeros = [_C.torch.zeros(batch_size, self.hidden_size) for _ in range(2)]
        if not is_quantized:
            return zeros[0], zeros[1]
        quantize = create.quantize_per_tensor
        return (
            quantize(zeros[0], *self.initial_hidden_state_qparams, self.hidden_state_dtype),
            quantize(zeros[1], *self.initial_cell_state_qparams, self.cell_state_dtype),
        )

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(
        cls, wi: Tensor, wh: Tensor, bi: Tensor | None = None, bh: Tensor | None = None, split_gates: bool = False
    ) -> LSTMCell:
        """A cell with the weights and biases of an LSTM's layer."""
        if (bi is None) != (bh is None):
            raise AssertionError("bi and bh must both be None or both have values")
        cell = cls(wi.shape[1], wh.shape[1], bi is not None, split_gates=split_gates)
        for weight, bias, gates in ((wi, bi, cell.igates), (wh, bh, cell.hgates)):
            layers = list(gates.values()) if split_gates else [gates]
            for layer, part in zip(layers, weight.chunk(len(layers), 0)):
                layer.weight = nn.Parameter(part)
            for layer, part in zip(layers, () if bias is None else bias.chunk(len(layers), 0)):
                layer.bias = nn.Parameter(part)
        return cell

    @classmethod
    def from_float(cls, other: nn.Module, use_precomputed_fake_quant: bool = False, split_gates: bool = False) -> LSTMCell:
        """The module that can be observed, of an LSTMCell with a QConfig."""
        del use_precomputed_fake_quant  # nothing is rounded yet
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls.from_params(other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh, split_gates)
        layers = [*made.igates.values(), *made.hgates.values()] if split_gates else []
        for module in (made, made.igates, made.hgates, *layers):
            module.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """One direction of a layer: (length, batch, input) to (length, batch, hidden)."""

    def __init__(self, cell: LSTMCell):
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, hidden: State | None = None) -> tuple[Tensor, State]:
        results = []
        for step in range(x.shape[0]):
            hidden = self.cell(x[step], hidden)
            results.append(hidden[0])
        return _C.torch.stack(results, 0), hidden


class _LSTMLayer(nn.Module):
    """A layer of one or two directions."""

    def __init__(self, batch_first: bool, bidirectional: bool, cells: list[LSTMCell]):
        super().__init__()
        self.batch_first, self.bidirectional = batch_first, bidirectional
        self.layer_fw = _LSTMSingleLayer(cells[0])
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(cells[1])

    def forward(self, x: Tensor, hidden: tuple | None = None) -> tuple[Tensor, State]:
        if self.batch_first:
            x = x.transpose(0, 1)
        states: list = [None, None] if hidden is None else [hidden]
        if self.bidirectional and hidden is not None:
            states = [(hidden[0][i], hidden[1][i]) for i in range(2)]
        result, (h, c) = self.layer_fw(x, states[0])
        if self.bidirectional:
            back, (h_back, c_back) = self.layer_bw(x.flip(0), states[1])
            result = _C.torch.cat([result, back.flip(0)], result.dim() - 1)
            h, c = _C.torch.stack([h, h_back], 0), _C.torch.stack([c, c_back], 0)
        return (result.transpose(0, 1) if self.batch_first else result), (h, c)

    @classmethod
    def from_float(cls, other: nn.LSTM, layer_idx: int, qconfig: Any, split_gates: bool) -> _LSTMLayer:
        """A layer of an LSTM."""
        cells = []
        for suffix in ("", "_reverse") if other.bidirectional else ("",):
            names = [f"{kind}_l{layer_idx}{suffix}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            cells.append(LSTMCell.from_params(*(getattr(other, name, None) for name in names), split_gates=split_gates))
        made = cls(False, other.bidirectional, cells)
        made.qconfig = getattr(other, "qconfig", qconfig)
        return made


class LSTM(nn.Module):
    """An LSTM made of cells. Arguments and results as of torch.nn.LSTM; dropout has no effect, and a warning."""

    _FLOAT_MODULE: type[nn.Module] = nn.LSTM

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, device: Any = None, dtype: Any = None, *, split_gates: bool = False,
    ):  # fmt: skip
        super().__init__()
        if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if dropout > 0:
            warnings.warn(
                "dropout option for quantizable LSTM is ignored. If you are training, please, use nn.LSTM version followed by `prepare` "
                "step.",
                stacklevel=2,
            )
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.training = batch_first, float(dropout), bidirectional, False
        self.layers = nn.ModuleList()
        for layer in range(num_layers):
            size = input_size if layer == 0 else hidden_size  # as in PyTorch, also of two directions
            cells = [LSTMCell(size, hidden_size, bias, device, dtype, split_gates=split_gates) for _ in range(1 + bidirectional)]
            self.layers.append(_LSTMLayer(False, bidirectional, cells))

    def _states(self, x: Tensor, hidden: Any) -> list:
        """The states of each layer."""
        directions, batch = 1 + self.bidirectional, x.shape[1]
        if hidden is None:
            sizes = (directions, batch, self.hidden_size) if self.bidirectional else (batch, self.hidden_size)
            zeros = _C.torch.zeros(sizes, device=x.device)
            if x.is_quantized:
                zeros = create.quantize_per_tensor(zeros, 1.0, 0, x.dtype)
            return [(zeros, zeros)] * self.num_layers
        if not isinstance(hidden[0], Tensor):
            return hidden
        hx, cx = (t.reshape(self.num_layers, directions, batch, self.hidden_size) for t in hidden)
        return [tuple(t[i] if self.bidirectional else t[i].squeeze(0) for t in (hx, cx)) for i in range(self.num_layers)]

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, State]:
        if self.batch_first:
            x = x.transpose(0, 1)
        found = []
        for layer, state in zip(self.layers, self._states(x, hidden)):
            x, state = layer(x, state)
            found.append(state)
        h, c = (_C.torch.stack([state[i] for state in found]) for i in range(2))
        h, c = (t.reshape(-1, t.shape[-2], t.shape[-1]) for t in (h, c))
        return (x.transpose(0, 1) if self.batch_first else x), (h, c)

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other: nn.Module, qconfig: Any = None, split_gates: bool = False) -> LSTM:
        """The prepared module of an LSTM with a QConfig."""
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("other must have qconfig or qconfig must be provided")
        made = cls(
            other.input_size, other.hidden_size, other.num_layers, other.bias, other.batch_first, other.dropout, other.bidirectional,
            split_gates=split_gates,
        )  # fmt: skip
        made.qconfig = getattr(other, "qconfig", qconfig)
        for i in range(other.num_layers):
            made.layers[i] = _LSTMLayer.from_float(other, i, qconfig, split_gates)
        if other.training:
            return _steps.prepare_qat(made.train(), inplace=True)
        return _steps.prepare(made.eval(), inplace=True)

    @classmethod
    def from_observed(cls, other: nn.Module) -> LSTM:
        """Raises NotImplementedError: an observed module becomes a torch.ao.nn.quantized.LSTM."""
        raise NotImplementedError(
            f"It looks like you are trying to convert a non-quantizable LSTM module ({type(other).__name__}). Please, see the examples on "
            "quantizable LSTMs."
        )

    @staticmethod
    def _converted(other: LSTM) -> LSTM:
        """A copy whose modules are quantized."""
        return _steps.convert(other, inplace=False, remove_qconfig=True)


set_module("teletensor.ao.nn.quantizable.modules.rnn", LSTM, LSTMCell)
