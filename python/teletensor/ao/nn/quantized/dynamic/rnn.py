"""Recurrent layers with quantized weights, of and to float tensors."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from ..... import _C, nn
from ..... import _quantized_names as q
from ....._C import Tensor
from ....._lazy import defined_by, set_module
from ....._quantized import create
from .....nn import functional as F
from .....nn.utils.rnn import PackedSequence
from .cells import gru_step, lstm_step, pack_weight_bias, packed_weight, product, unpack_weight_bias, weight_observer


class CellParams(NamedTuple):
    """The packed weights of one direction of a layer."""

    ih: Any
    hh: Any


class PackedParameter(nn.Module):
    """Packed weights as a module, for the state of a layer."""

    def __init__(self, param: CellParams):
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list, unexpected_keys: list, error_msgs: list
    ) -> None:
        del strict  # the weights are one entry
        param = state_dict[prefix + "param"]
        if not isinstance(param, tuple) or len(param) != 2:
            raise NotImplementedError(
                "[RNNBase.load_state_dict] expected the packed weights of a quantized layer of teletensor, got "
                f"{type(param).__name__}: set the weights by set_weight_bias()"
            )
        self.param = CellParams(*param)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)


class RNNBase(nn.Module):
    """The common base of the layers; ``mode`` is LSTM or GRU.

    The input of a layer is quantized with the range of the whole sequence, the state with its own in each step.
    """

    _FLOAT_MODULE: type[nn.Module] = nn.RNNBase
    _version = 2

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = q.qint8,
    ):  # fmt: skip
        super().__init__()
        if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, "
                f"but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if mode not in ("LSTM", "GRU"):
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.dtype, self.version, self.training = dtype, 2, False
        rows, torch = {"LSTM": 4, "GRU": 3}[mode] * hidden_size, _C.torch
        weights = {}
        for layer, suffix in self._directions():
            entering = input_size if layer == 0 else hidden_size * (1 + bidirectional)
            for kind, size in (("ih", entering), ("hh", hidden_size)):
                weight = torch.randn(rows, size)
                weights[f"weight_{kind}_l{layer}{suffix}"] = (
                    create.quantize_per_tensor(weight, 0.1, 0, q.qint8) if dtype == q.qint8 else weight
                )
                weights[f"bias_{kind}_l{layer}{suffix}"] = torch.randn(rows)
        self.set_weight_bias(weights)

    def _directions(self) -> list[tuple[int, str]]:
        """The layers and directions, in order: (number, suffix of names)."""
        return [(layer, suffix) for layer in range(self.num_layers) for suffix in ("", "_reverse")[: 1 + self.bidirectional]]

    def _get_name(self) -> str:
        return f"DynamicQuantized{self.mode}"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0), ("bidirectional", False)):
            value = getattr(self, name)
            text += f", {name}={value}" if value != usual else ""
        return text

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def check_input(self, input: Tensor, batch_sizes: Any) -> None:
        """Raises RuntimeError for an input of other sizes."""
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.shape[-1]:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}")

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Sets quantized weights and float biases by PyTorch's names (weight_ih_l0, ...)."""
        values, w = [], weight_bias_dict
        for layer, suffix in self._directions():
            names = [f"{{}}_{kind}_l{layer}{suffix}" for kind in ("ih", "hh")]
            pairs = [(w[name.format("weight")], w[name.format("bias")]) for name in names]
            values.append(PackedParameter(CellParams(*(pack_weight_bias(*pair, self.dtype) for pair in pairs))))
        self._all_weight_values = nn.ModuleList(values)

    def _weight_bias(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {"weight": {}, "bias": {}}
        for (layer, suffix), value in zip(self._directions(), self._all_weight_values):
            for kind, packed in zip(("ih", "hh"), value.param):
                weight, bias = unpack_weight_bias(packed, self.dtype)
                found["weight"][f"weight_{kind}_l{layer}{suffix}"] = weight
                found["bias"][f"bias_{kind}_l{layer}{suffix}"] = bias
        return found

    def get_weight(self) -> dict[str, Tensor]:
        """The quantized weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Tensor | None]:
        """The biases by name."""
        return self._weight_bias()["bias"]

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    # -- computation

    def _direction(self, x: Tensor, params: CellParams, state: Any, reverse: bool, sizes: list[int] | None) -> tuple[Tensor, Any]:
        """One direction of a layer: x (length, batch, size), or the rows of a packed sequence."""
        reduce_range = self.version is not None and self.version >= 2
        step = lstm_step if self.mode == "LSTM" else gru_step
        inputs = product(x, params.ih, self.dtype, reduce_range)
        parts = list(inputs.unbind(0)) if sizes is None else list(inputs.split(sizes))
        results: list = [None] * len(parts)
        ended: dict[int, Any] = {}
        first = state
        if sizes is not None:
            state = _rows(first, 0, sizes[-1] if reverse else sizes[0])
        for i in reversed(range(len(parts))) if reverse else range(len(parts)):
            count, have = parts[i].shape[0], _hidden(state).shape[0]
            if count < have:  # sequences that ended
                ended[count], state = _rows(state, count, have), _rows(state, 0, count)
            elif count > have:  # sequences that begin
                state = _joined(state, _rows(first, have, count))
            state = step(parts[i], product(_hidden(state), params.hh, self.dtype, reduce_range), state)
            results[i] = _hidden(state)
        for count in sorted(ended):
            state = _joined(state, ended[count])
        return (_C.torch.stack(results) if sizes is None else _C.torch.cat(results)), state

    def _layers(self, x: Tensor, states: list, sizes: list[int] | None) -> tuple[Tensor, list]:
        """All layers; ``states`` of each layer and direction."""
        last, count = [], 1 + self.bidirectional
        for layer in range(self.num_layers):
            results = []
            for direction in range(count):
                i = layer * count + direction
                result, state = self._direction(x, self._all_weight_values[i].param, states[i], direction == 1, sizes)
                results.append(result)
                last.append(state)
            x = results[0] if count == 1 else _C.torch.cat(results, -1)
            if self.dropout and layer + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, self.training)
        return x, last

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        packed = isinstance(input, PackedSequence)
        x = input.data if packed else input
        sizes = [int(n) for n in input.steps] if packed else None
        self.check_input(x, sizes)
        if self.batch_first and not packed:
            x = x.transpose(0, 1)
        batch = sizes[0] if packed else x.shape[1]
        kinds = 2 if self.mode == "LSTM" else 1
        expected = (self.num_layers * (1 + self.bidirectional), batch, self.hidden_size)
        if hx is None:
            tensors = [_C.torch.zeros(*expected, dtype=x.dtype, device=x.device)] * kinds
        else:
            tensors = list(hx) if kinds == 2 else [hx]
        for i, tensor in enumerate(tensors):
            if tuple(tensor.shape) != expected:
                raise RuntimeError(f"Expected hidden{f'[{i}]' if kinds == 2 else ''} size {expected}, got {list(tensor.shape)}")
        if packed and hx is not None and input.sorted_indices is not None:
            tensors = [t.index_select(1, input.sorted_indices) for t in tensors]
        states = [tuple(t[i] for t in tensors) if kinds == 2 else tensors[0][i] for i in range(expected[0])]
        x, last = self._layers(x, states, sizes)
        found = [_C.torch.stack([s[i] if kinds == 2 else s for s in last]) for i in range(kinds)]
        if packed:
            if input.unsorted_indices is not None:
                found = [t.index_select(1, input.unsorted_indices) for t in found]
            x = input._with_data(x)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, tuple(found) if kinds == 2 else found[0]

    # -- creation

    @classmethod
    def _empty(cls, mod: nn.Module, dtype: Any) -> RNNBase:
        """A layer with the sizes of a float or reference layer."""
        return cls(mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional, dtype)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> RNNBase:
        """The quantized layer of an LSTM or GRU with a QConfig."""
        del use_precomputed_fake_quant  # weights are observed again, as in PyTorch
        classes = {nn.LSTM: LSTM, nn.GRU: GRU}
        if type(mod) not in classes:
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        if getattr(mod, "proj_size", 0):
            raise NotImplementedError(f"[RNNBase.from_float] expected proj_size=0, got {mod.proj_size}")
        make, dtype = weight_observer(mod)
        made = classes[type(mod)]._empty(mod, dtype)
        values = []
        for layer, suffix in made._directions():
            parts = []
            for kind in ("ih", "hh"):
                weight, bias = (getattr(mod, f"{what}_{kind}_l{layer}{suffix}") for what in ("weight", "bias"))
                parts.append(packed_weight(weight, bias, make, dtype))
            values.append(PackedParameter(CellParams(*parts)))
        made._all_weight_values = nn.ModuleList(values)
        return made

    @classmethod
    def from_reference(cls, ref_mod: nn.Module) -> RNNBase:
        """The quantized layer of a reference layer."""
        made = cls._empty(ref_mod, ref_mod.weight_ih_l0_dtype)
        made.set_weight_bias(ref_mod.get_quantized_weight_bias_dict())
        return made


def _hidden(state: Any) -> Tensor:
    return state[0] if isinstance(state, tuple) else state


def _rows(state: Any, begin: int, end: int) -> Any:
    """Some sequences' states."""
    return tuple(t[begin:end] for t in state) if isinstance(state, tuple) else state[begin:end]


def _joined(a: Any, b: Any) -> Any:
    """The states of more sequences."""
    if isinstance(a, tuple):
        return tuple(_C.torch.cat(pair) for pair in zip(a, b))
    return _C.torch.cat([a, b])


class LSTM(RNNBase):
    """An LSTM with quantized weights. Arguments and results as of torch.nn.LSTM."""

    _FLOAT_MODULE = nn.LSTM

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """A GRU with quantized weights. Arguments and results as of torch.nn.GRU."""

    _FLOAT_MODULE = nn.GRU

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("GRU", *args, **kwargs)


set_module("teletensor.ao.nn.quantized.dynamic.modules.rnn", GRU, LSTM, PackedParameter, RNNBase)
__getattr__, __dir__ = defined_by(globals(), "cells", "GRUCell", "LSTMCell", "RNNCell", "RNNCellBase")
