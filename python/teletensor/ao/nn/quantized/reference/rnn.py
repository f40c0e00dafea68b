"""Recurrent layers and cells that compute with the numbers of their quantized weights."""

from __future__ import annotations

from typing import Any

from ..... import _C, nn
from ..... import _quantized_names as q
from ....._C import Tensor
from ....._lazy import set_module
from .utils import DEFAULT, as_tensor, quantized, rounded


def _parameters(module: nn.Module, name: str) -> tuple:
    """A weight's scheme, dtype, scale, zero point and dimension of channels."""
    return tuple(getattr(module, name + end, None) for end in ("_qscheme", "_dtype", "_scale", "_zero_point", "_axis_int"))


def get_quantized_weight(module: nn.Module, wn: str) -> Tensor | None:
    """A module's weight as a quantized tensor."""
    return quantized(getattr(module, wn).detach(), *_parameters(module, wn)) if hasattr(module, wn) else None


def _rounded(module: nn.Module, name: str) -> Tensor:
    return rounded(getattr(module, name), *_parameters(module, name))


class _WithWeights(nn.Module):
    """A module with several quantized weights: a mix-in before its class."""

    def _init_weight_qparams_dict(self, weight_qparams_dict: dict[str, Any] | None, names: list[str], device: Any) -> None:
        table = weight_qparams_dict or {**dict.fromkeys(names, DEFAULT), "is_decomposed": False}
        if table["is_decomposed"]:
            raise NotImplementedError(f"[{self._get_name()}] expected is_decomposed=False, got True")
        self.is_decomposed = False
        for name, found in table.items():
            if name == "is_decomposed":
                continue
            scheme = found["qscheme"]
            if scheme not in (None, q.per_tensor_affine, q.per_channel_affine):
                raise AssertionError(f"qscheme: {scheme} is not supported in {self._get_name()}")
            setattr(self, name + "_qscheme", scheme)
            setattr(self, name + "_dtype", found["dtype"])
            if scheme is None:
                continue
            axis = found["axis"] if scheme == q.per_channel_affine else 0
            self.register_buffer(name + "_scale", as_tensor(found["scale"], _C.float32, device))
            self.register_buffer(name + "_zero_point", as_tensor(found["zero_point"], _C.int32, device))
            self.register_buffer(name + "_axis", as_tensor(axis, _C.int32, device))
            setattr(self, name + "_axis_int", int(axis))

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"


class RNNCellBase(_WithWeights):
    """The common part of the cells."""

    def _init_cell(self, weight_qparams_dict: dict[str, Any] | None, device: Any) -> None:
        if weight_qparams_dict is not None and len(weight_qparams_dict) != 3:
            raise AssertionError(f"Expected length for weight_qparams_dict to be 3, got {len(weight_qparams_dict)}")
        self._init_weight_qparams_dict(weight_qparams_dict, ["weight_ih", "weight_hh"], device)

    def _step(self, operator: Any, input: Tensor, hx: Any) -> Any:
        weights = (self.get_weight_ih(), self.get_weight_hh())
        return operator(input, hx, *weights, self.bias_ih, self.bias_hh)

    def get_quantized_weight_ih(self) -> Tensor:
        """The quantized weight of inputs."""
        return get_quantized_weight(self, "weight_ih")

    def get_quantized_weight_hh(self) -> Tensor:
        """The quantized weight of states."""
        return get_quantized_weight(self, "weight_hh")

    def get_weight_ih(self) -> Tensor:
        """The numbers of the quantized weight of inputs."""
        return _rounded(self, "weight_ih")

    def get_weight_hh(self) -> Tensor:
        """The numbers of the quantized weight of states."""
        return _rounded(self, "weight_hh")

    @classmethod
    def from_float(cls, mod: nn.Module, weight_qparams_dict: dict[str, Any]) -> nn.Module:
        """The reference cell of a float cell and its weights' scales and zero points."""
        nonlinearity = [mod.nonlinearity] if hasattr(mod, "nonlinearity") else []
        made = cls(
            mod.input_size, mod.hidden_size, mod.bias, *nonlinearity, mod.weight_ih.device, mod.weight_ih.dtype, weight_qparams_dict
        )
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            setattr(made, name, getattr(mod, name))
        return made


class RNNCell(RNNCellBase, nn.RNNCell):
    """One step of an RNN, whose weights are rounded in each call."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None, dtype: Any = None,
        weight_qparams_dict: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, nonlinearity, device, dtype)
        self._init_cell(weight_qparams_dict, device)


class _GatedCell(RNNCellBase):
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams_dict: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self._init_cell(weight_qparams_dict, device)


class LSTMCell(_GatedCell, nn.LSTMCell):
    """One step of an LSTM, whose weights are rounded in each call."""


class GRUCell(_GatedCell, nn.GRUCell):
    """One step of a GRU, whose weights are rounded in each call."""


class RNNBase(_WithWeights):
    """The common part of the layers."""

    def _init_layer(self, weight_qparams_dict: dict[str, Any] | None, device: Any) -> None:
        names = [name for name in self._flat_weights_names if name.startswith("weight")]
        self._init_weight_qparams_dict(weight_qparams_dict, names, device)

    def get_quantized_weight_bias_dict(self) -> dict[str, Any]:
        """The quantized weights and the biases by name."""
        return {
            name: get_quantized_weight(self, name) if name.startswith("weight") else getattr(self, name)
            for name in self._flat_weights_names
        }

    def get_flat_weights(self) -> list[Tensor]:
        """The numbers of the quantized weights, and the biases."""
        return [_rounded(self, n) if n.startswith("weight") else getattr(self, n) for n in self._flat_weights_names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return self.get_flat_weights()

    @classmethod
    def from_float(cls, mod: nn.Module, weight_qparams_dict: dict[str, Any]) -> nn.Module:
        """The reference layer of a float layer and its weights' scales and zero points."""
        made = cls(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional,
            weight_qparams_dict=weight_qparams_dict,
        )  # fmt: skip
        for name in mod._flat_weights_names:
            setattr(made, name, getattr(mod, name))
        return made


class LSTM(RNNBase, nn.LSTM):
    """An LSTM whose weights are rounded in each call."""

    def __init__(self, *args: Any, weight_qparams_dict: dict[str, Any] | None = None, device: Any = None, **kwargs: Any):
        super().__init__(*args, device=device, **kwargs)
        self._init_layer(weight_qparams_dict, device)


class GRU(RNNBase, nn.GRU):
    """A GRU whose weights are rounded in each call."""

    def __init__(self, *args: Any, weight_qparams_dict: dict[str, Any] | None = None, device: Any = None, **kwargs: Any):
        super().__init__(*args, device=device, **kwargs)
        self._init_layer(weight_qparams_dict, device)


set_module("teletensor.ao.nn.quantized.reference.modules.rnn", RNNCell, LSTMCell, GRUCell, LSTM, GRU, RNNCellBase, RNNBase)
