"""Recurrent cells with quantized weights, of and to float tensors."""

from __future__ import annotations

from typing import Any

from ..... import _C, nn, ops
from ..... import _quantized_names as q
from ....._C import Tensor
from ....._lazy import set_module
from ....._quantized import create
from ....quantization.qconfig import default_dynamic_qconfig
from ..utils import quantize_weight


def pack_weight_bias(qweight: Tensor, bias: Tensor | None, dtype: Any) -> Any:
    """A weight and a bias in the form that the kernels take."""
    if dtype == q.qint8:
        return ops.quantized.linear_prepack(qweight, bias)
    return ops.quantized.linear_prepack_fp16(qweight, bias)


def unpack_weight_bias(packed: Any, dtype: Any) -> tuple[Tensor, Tensor | None]:
    """The weight and bias of pack_weight_bias."""
    return (ops.quantized.linear_unpack if dtype == q.qint8 else ops.quantized.linear_unpack_fp16)(packed)


def product(x: Tensor, packed: Any, dtype: Any, reduce_range: bool = True) -> Tensor:
    """x times a packed weight, plus its bias. x is quantized with its own range, if the weight is."""
    if dtype == q.qint8:
        return ops.quantized.linear_dynamic(x, packed, reduce_range)
    return ops.quantized.linear_dynamic_fp16(x, packed)


def weight_observer(mod: nn.Module) -> Any:
    """The constructor of the observers of a float module's weights, and their dtype."""
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    configured = mod.qconfig is not None and mod.qconfig.weight is not None
    make = (mod.qconfig if configured else default_dynamic_qconfig).weight
    dtype = make().dtype
    if dtype not in (q.qint8, _C.float16):
        raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {dtype}")
    if not mod.bias:
        raise AssertionError("mod.bias must be True")
    return make, dtype


def packed_weight(weight: Tensor, bias: Tensor, make: Any, dtype: Any) -> Any:
    """A float weight, quantized and packed."""
    weight = weight.detach().float()
    if dtype == q.qint8:
        observer = make()
        observer(weight)
        weight = quantize_weight(weight, observer)
    return pack_weight_bias(weight, bias.detach(), dtype)


def lstm_step(inputs: Tensor, hidden: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The next (h, c) from the products of the input and of h."""
    i, f, c, o = (hidden + inputs).chunk(4, 1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * c.tanh()
    return o.sigmoid() * cell.tanh(), cell


def gru_step(inputs: Tensor, hidden: Tensor, state: Tensor) -> Tensor:
    """The next h from the products of the input and of h."""
    (ir, iz, ic), (hr, hz, hc) = inputs.chunk(3, 1), hidden.chunk(3, 1)
    new = (ic + hc * (hr + ir).sigmoid()).tanh()
    return (state - new) * (hz + iz).sigmoid() + new


class RNNCellBase(nn.Module):
    """The common base of the cells."""

    _FLOAT_MODULE: type[nn.Module]

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, num_chunks: int = 4, dtype: Any = q.qint8):
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        rows, torch = num_chunks * hidden_size, _C.torch
        self.bias_ih, self.bias_hh = (torch.randn(rows) if bias else None for _ in range(2))
        weights = [torch.randn(rows, size) for size in (input_size, hidden_size)]
        if dtype == q.qint8:
            weights = [create.quantize_per_tensor(w, 1.0, 0, q.qint8) for w in weights]
        self._packed_weight_ih = pack_weight_bias(weights[0], self.bias_ih, dtype)
        self._packed_weight_hh = pack_weight_bias(weights[1], self.bias_hh, dtype)

    def _get_name(self) -> str:
        return "DynamicQuantized" + type(self).__name__.replace("CellBase", "Base")

    def extra_repr(self) -> str:
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        shown = "" if nonlinearity == "tanh" else f", nonlinearity={nonlinearity}"
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias is True else f", bias={self.bias}") + shown

    def check_forward_input(self, input: Tensor) -> None:
        """Raises RuntimeError for an input of another size."""
        if input.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]}, expected {self.input_size}")

    def check_forward_hidden(self, input: Tensor, hx: Tensor, hidden_label: str = "") -> None:
        """Raises RuntimeError for a state of other sizes."""
        if input.shape[0] != hx.shape[0]:
            raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{hidden_label} batch size {hx.shape[0]}")
        if hx.shape[1] != self.hidden_size:
            raise RuntimeError(f"hidden{hidden_label} has inconsistent hidden_size: got {hx.shape[1]}, expected {self.hidden_size}")

    def _products(self, input: Tensor, hx: Tensor | None, label: str = "") -> tuple[Tensor, Tensor, Tensor]:
        """The products of the input and of the state, and the state."""
        self.check_forward_input(input)
        if hx is None:
            hx = _C.torch.zeros(input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device)
        self.check_forward_hidden(input, hx, label)
        return product(input, self._packed_weight_ih, self.weight_dtype), product(hx, self._packed_weight_hh, self.weight_dtype), hx

    def _weight_bias(self) -> dict[str, dict[str, Any]]:
        packed = {"ih": self._packed_weight_ih, "hh": self._packed_weight_hh}
        found = {name: unpack_weight_bias(p, self.weight_dtype) for name, p in packed.items()}
        return {
            "weight": {f"weight_{name}": pair[0] for name, pair in found.items()},
            "bias": {f"bias_{name}": pair[1] for name, pair in found.items()},
        }

    def get_weight(self) -> dict[str, Tensor]:
        """The quantized weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Tensor | None]:
        """The biases by name."""
        return self._weight_bias()["bias"]

    def set_weight_bias(self, weight_bias_dict: dict[str, dict[str, Any]]) -> None:
        """Sets weights and biases in the form of get_weight and get_bias: {"weight": ..., "bias": ...}."""
        for name in ("ih", "hh"):
            weight, bias = weight_bias_dict["weight"][f"weight_{name}"], weight_bias_dict["bias"][f"bias_{name}"]
            setattr(self, f"_packed_weight_{name}", pack_weight_bias(weight, bias, self.weight_dtype))

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list, unexpected_keys: list, error_msgs: list
    ) -> None:
        del strict  # PyTorch's quantized modules do not report names as missing
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            setattr(self, name, state_dict.pop(prefix + name))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    @classmethod
    def _empty(cls, mod: nn.Module, dtype: Any) -> RNNCellBase:
        """A cell with the sizes of a float or reference cell."""
        return cls(mod.input_size, mod.hidden_size, bias=mod.bias, dtype=dtype)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> RNNCellBase:
        """The quantized cell of a float cell with a QConfig."""
        del use_precomputed_fake_quant  # weights are observed again, as in PyTorch
        classes = {nn.LSTMCell: LSTMCell, nn.GRUCell: GRUCell, nn.RNNCell: RNNCell}
        if type(mod) not in classes:
            raise AssertionError("nn.quantized.dynamic.RNNCellBase.from_float only works for nn.LSTMCell, nn.GRUCell and nn.RNNCell")
        make, dtype = weight_observer(mod)
        made = classes[type(mod)]._empty(mod, dtype)
        made._packed_weight_ih = packed_weight(mod.weight_ih, mod.bias_ih, make, dtype)
        made._packed_weight_hh = packed_weight(mod.weight_hh, mod.bias_hh, make, dtype)
        return made

    @classmethod
    def from_reference(cls, ref_mod: nn.Module) -> RNNCellBase:
        """The quantized cell of a reference cell."""
        made = cls._empty(ref_mod, ref_mod.weight_ih_dtype)
        weights = {"weight_ih": ref_mod.get_quantized_weight_ih(), "weight_hh": ref_mod.get_quantized_weight_hh()}
        made.set_weight_bias({"weight": weights, "bias": {"bias_ih": ref_mod.bias_ih, "bias_hh": ref_mod.bias_hh}})
        return made


class RNNCell(RNNCellBase):
    """tanh(W x + b + U h + c), or with relu."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = q.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    @classmethod
    def _empty(cls, mod: nn.Module, dtype: Any) -> RNNCellBase:
        return cls(mod.input_size, mod.hidden_size, mod.bias, mod.nonlinearity, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        inputs, hidden, _ = self._products(input, hx)
        return (hidden + inputs).tanh() if self.nonlinearity == "tanh" else (hidden + inputs).relu()


class LSTMCell(RNNCellBase):
    """One step of an LSTM. Returns (h, c)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = q.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=4, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        inputs, hidden, h = self._products(input, None if hx is None else hx[0], "[0]")
        if hx is not None:
            self.check_forward_hidden(input, hx[1], "[1]")
        return lstm_step(inputs, hidden, (h, h) if hx is None else hx)


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = q.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return gru_step(*self._products(input, hx))


set_module("teletensor.ao.nn.quantized.dynamic.modules.rnn", GRUCell, LSTMCell, RNNCell, RNNCellBase)
