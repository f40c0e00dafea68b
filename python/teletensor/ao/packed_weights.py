"""Linear layers with the 4-bit weights that GPTQ and AWQ write: ``qweight``, ``qzeros``, ``scales``, ``g_idx`` in int32 words.

>>> from teletensor.utils import safetensors  # or any reader of the file
>>> load_packed_linears(model, tensors)  # replaces the nn.Linear modules that the tensors describe
"""

from __future__ import annotations

from collections.abc import Mapping

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from ..nn import Linear, Module, Parameter
from ..nn import functional as F
from ..torchao.quantization import Int4Tensor

__all__ = ["PackedLinear", "awq_weight", "gptq_weight", "load_packed_linears"]

_AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)  # where the values 0 to 7 are in a word


class PackedLinear(Module):
    """A linear layer with a 4-bit weight whose columns may have another order than the input's.

    Args:
        weight: (out, in).
        bias: (out,) or None.
        input_order: the input's element of each column of the weight; None: the same order.
    """

    def __init__(self, weight: Int4Tensor, bias: Tensor | None = None, input_order: Tensor | None = None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight = Parameter(weight, requires_grad=False)
        self.bias = None if bias is None else Parameter(bias, requires_grad=False)
        self.register_buffer("input_order", input_order)

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) to (..., out)."""
        if x.shape[-1] != self.in_features:
            raise RuntimeError(f"[PackedLinear] expected {self.in_features} input features, got {x.shape[-1]}")
        if self.input_order is not None:
            x = x.index_select(-1, self.input_order)
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def _words(packed: Tensor, dim: int, order: tuple[int, ...] = tuple(range(8))) -> Tensor:
    """The 4-bit values of int32 words: `dim` becomes 8 times longer."""
    if packed.dtype != _C.int32 or packed.dim() != 2:
        raise ValueError(f"[packed_weights] expected a matrix of int32, got {packed.dtype} of shape {tuple(packed.shape)}")
    values = _C.torch.stack([(packed >> (4 * place)) & 15 for place in order], dim + 1)
    return values.flatten(dim, dim + 1).to(_C.uint8)


def _grid(values: Tensor, zeros: Tensor, scales: Tensor, group_size: int) -> Int4Tensor:
    """A weight (q - zero) * scale of values (in, out) and zeros and scales (groups, out)."""
    if not scales.is_floating_point():
        raise ValueError(f"[packed_weights] expected floating-point scales, got {scales.dtype}")
    if values.shape[0] % group_size or tuple(zeros.shape) != tuple(scales.shape) or tuple(scales.shape) != (
        values.shape[0] // group_size, values.shape[1],
    ):  # fmt: skip
        raise ValueError(
            f"[packed_weights] expected zeros and scales of groups of {group_size} for a weight {tuple(values.shape)}, got "
            f"{tuple(zeros.shape)} and {tuple(scales.shape)}"
        )
    scales = scales.to(_C.float32)
    return Int4Tensor.from_values(values.t(), scales, (8 - zeros.to(_C.float32)) * scales, group_size)


@no_grad()
def gptq_weight(
    qweight: Tensor, qzeros: Tensor, scales: Tensor, g_idx: Tensor | None = None, *, zero_offset: int = 1
) -> tuple[Int4Tensor, Tensor | None]:
    """The weight (out, in) of GPTQ's tensors, and the order of its columns (None: the input's).

    Args:
        qweight: (in / 8, out), int32; qzeros: (groups, out / 8), int32; scales: (groups, out).
        g_idx: the group of each input (in,); with groups that are not runs the columns are sorted by group.
        zero_offset: what is added to the stored zeros: 1 in the first version of the format ("gptq"), 0 in "gptq_v2".

    Raises:
        ValueError: the shapes do not fit, or the groups have different sizes.
    """
    values, zeros = _words(qweight, 0), _words(qzeros, 1) + zero_offset
    inputs, count = values.shape[0], scales.shape[0] if scales.dim() == 2 else 0
    if count < 1 or inputs % count:
        raise ValueError(f"[packed_weights] expected groups that divide {inputs} inputs, got {count}")
    group_size, order = inputs // count, None
    if g_idx is not None:
        if tuple(g_idx.shape) != (inputs,) or g_idx.dtype not in (_C.int32, _C.int64):
            raise ValueError(f"[packed_weights] expected g_idx of {inputs} integers, got {g_idx.dtype} of shape {tuple(g_idx.shape)}")
        groups = g_idx.to(_C.int64)
        runs = _C.torch.arange(inputs) // group_size
        if not bool((groups == runs).all()):
            order = groups.argsort(stable=True)
            if not bool((groups[order] == runs).all()):
                raise ValueError(f"[packed_weights] expected groups of {group_size} inputs each in g_idx")
            values = values.index_select(0, order)
    return _grid(values, zeros, scales, group_size), order


@no_grad()
def awq_weight(qweight: Tensor, qzeros: Tensor, scales: Tensor) -> Int4Tensor:
    """The weight (out, in) of AWQ's tensors: qweight (in, out / 8), qzeros (groups, out / 8), int32; scales (groups, out).

    Raises:
        ValueError: the shapes do not fit.
    """
    values, zeros = _words(qweight, 1, _AWQ_ORDER), _words(qzeros, 1, _AWQ_ORDER)
    if scales.dim() != 2 or scales.shape[0] < 1 or values.shape[0] % scales.shape[0]:
        raise ValueError(f"[packed_weights] expected groups that divide {values.shape[0]} inputs, got scales {tuple(scales.shape)}")
    return _grid(values, zeros, scales, values.shape[0] // scales.shape[0])


def load_packed_linears(model: Module, tensors: Mapping[str, Tensor], *, zero_offset: int = 1) -> list[str]:
    """Replaces the linear layers that GPTQ's or AWQ's tensors describe, and returns the other names of `tensors`.

    Which of the two formats wrote a layer follows from the shape of its ``qweight``.

    Args:
        tensors: by name, as in a safetensors file: "layers.0.qweight" and so on.
        zero_offset: see gptq_weight().

    Raises:
        KeyError: a tensor of a layer is missing.
        ValueError: a name is not that of an nn.Linear, or the shapes do not fit.
    """
    prefixes = [name.removesuffix("qweight") for name in tensors if name.endswith(".qweight")]
    used: set[str] = set()
    for prefix in prefixes:
        layer = model.get_submodule(prefix[:-1])
        if not isinstance(layer, Linear):
            raise ValueError(f"[packed_weights] expected {prefix[:-1]} to be an nn.Linear, got {type(layer).__name__}")
        qweight, qzeros, scales = (tensors[prefix + part] for part in ("qweight", "qzeros", "scales"))
        order = None
        if qweight.shape[0] == layer.in_features:
            weight = awq_weight(qweight, qzeros, scales)
        else:
            weight, order = gptq_weight(qweight, qzeros, scales, tensors.get(prefix + "g_idx"), zero_offset=zero_offset)
        if tuple(weight.shape) != (layer.out_features, layer.in_features):
            raise ValueError(
                f"[packed_weights] expected a weight of shape {(layer.out_features, layer.in_features)} for {prefix[:-1]}, got "
                f"{tuple(weight.shape)}"
            )
        bias = tensors.get(prefix + "bias", layer.bias)
        if bias is not None and tuple(bias.shape) != (layer.out_features,):
            raise ValueError(f"[packed_weights] expected {layer.out_features} elements of {prefix}bias, got {tuple(bias.shape)}")
        parent, _, name = prefix[:-1].rpartition(".")
        setattr(model.get_submodule(parent), name, PackedLinear(weight, None if bias is None else bias.detach(), order))
        used.update(prefix + part for part in ("qweight", "qzeros", "scales", "g_idx", "bias"))
    return [name for name in tensors if name not in used]
