"""Linear layers with a quantized weight of which blocks are zero.

The weight is stored with its zeros, so that the layers compute what those of torch.ao.nn.quantized do, in the same time. The block
size is kept for the layers' files.
"""

from __future__ import annotations

from typing import Any

from ..... import _C, nn, ops
from ..... import _quantized_names as q
from ....._C import Tensor
from ...quantized.linear import empty_weight
from ...quantized.utils import hide_packed_params, qparams, quantize_weight

__all__ = ["Linear", "LinearPackedParams"]


class LinearPackedParams(nn.Module):
    """The qint8 weight of a linear layer, its bias and the size of its blocks."""

    _version = 1

    def __init__(self, row_block_size: int = 1, col_block_size: int = 4, dtype: Any = q.qint8):
        super().__init__()
        if dtype != q.qint8:
            raise NotImplementedError("Linear prepacking only supports QINT8")
        self.dtype = dtype
        self.set_weight_bias(empty_weight([1, 1], dtype), None, row_block_size, col_block_size)

    def _get_name(self) -> str:
        return "SparseQuantizedLinearPackedParams"

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None, row_block_size: int | None, col_block_size: int | None) -> None:
        """Packs a weight (out, in), a bias and a block size."""
        _check_blocks(row_block_size, col_block_size)
        self._packed_params, self._block_size = ops.quantized.linear_prepack(weight, bias), (row_block_size, col_block_size)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None, int, int]:
        return (*ops.quantized.linear_unpack(self._packed_params), *self._block_size)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *args: Any) -> None:
        del strict  # no name is missing: the layer's tensors are in one entry
        _check_version(self, local_metadata)
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *args)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


def _check_blocks(rows: Any, columns: Any) -> None:
    if rows is None or columns is None:
        raise AssertionError(
            f"row_block_size and col_block_size must not be None, got row_block_size={rows}, col_block_size={columns}"
        )


def _check_version(module: Any, local_metadata: dict) -> None:
    version = local_metadata.get("version")
    if version is not None and version > module._version:
        raise AssertionError(f"version {version} > self._version {module._version}")


class BlockLinear(nn.Module):
    """What static and dynamic layers have in common."""

    _version = 1
    _FLOAT_MODULE: Any = nn.Linear
    _kind = ""  # the end of PyTorch's message about other dtypes

    def __init__(
        self, in_features: int, out_features: int, row_block_size: int, col_block_size: int, bias: bool = True, dtype: Any = q.qint8
    ):
        super().__init__()
        if dtype != q.qint8:
            raise NotImplementedError(f"Only QINT8 is supported for Sparse Quantized Linear{self._kind}")
        self.in_features, self.out_features = in_features, out_features
        self._packed_params = LinearPackedParams(row_block_size, col_block_size, dtype)
        zeros = _C.torch.zeros(out_features) if bias else None
        self._packed_params.set_weight_bias(empty_weight([out_features, in_features], dtype), zeros, row_block_size, col_block_size)

    def __repr__(self) -> str:
        return hide_packed_params(self, LinearPackedParams)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None, int, int]:
        return self._packed_params._weight_bias()

    def weight(self) -> Tensor:
        """The weight (out_features, in_features), quantized."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias, float32."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w: Tensor, b: Tensor | None, row_block_size: int | None, col_block_size: int | None) -> None:
        """Sets a quantized weight, a bias and the block size."""
        _check_blocks(row_block_size, col_block_size)
        self.out_features, self.in_features = w.shape
        self._packed_params.set_weight_bias(w, b, row_block_size, col_block_size)

    @classmethod
    def _made(cls, mod: nn.Module, weight: Tensor, observer: Any, blocks: tuple[int, int]) -> Any:
        """The layer of a float layer, its weight, the weight's observer and the block size."""
        observer(weight)
        if observer.dtype != q.qint8:
            raise AssertionError(f"Weight observer must have dtype torch.qint8, got {observer.dtype}")
        zero_point = observer.calculate_qparams()[1]
        if zero_point.any() if isinstance(zero_point, Tensor) else zero_point != 0:
            raise AssertionError(f"Weight zero point must map to 0, got {zero_point}")
        made = cls(mod.in_features, mod.out_features, *blocks, dtype=observer.dtype)
        made.set_weight_bias(quantize_weight(weight.detach().float(), observer), mod.bias, *blocks)
        return made


class Linear(BlockLinear):
    """A linear layer of and to quantized tensors, with this module's ``scale`` and ``zero_point``."""

    def __init__(
        self, in_features: int, out_features: int, row_block_size: int, col_block_size: int, bias: bool = True, dtype: Any = q.qint8
    ):
        super().__init__(in_features, out_features, row_block_size, col_block_size, bias, dtype)
        self.scale, self.zero_point = 1.0, 0

    @classmethod
    def _get_name(cls) -> str:
        return "SparseQuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, zero_point={self.zero_point}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def forward(self, x: Tensor) -> Tensor:
        return ops.quantized.linear(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"], destination[prefix + "zero_point"] = _C.tensor(self.scale), _C.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *args: Any) -> None:
        del strict
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        state_dict.pop(prefix + "op_type", None)  # PyTorch's loader expects an entry that its layer does not store
        _check_version(self, local_metadata)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *args)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """The layer of an observed layer with ``sparse_params["sparse_block_shape"]``, which a sparsifier's squash_mask() sets."""
        del use_precomputed_fake_quant  # as in PyTorch
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"{cls._get_name()}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "sparse_params"):
            raise AssertionError(
                "Expecting the Linear to have `sparse_params`. Make sure you have provided arguments "
                'in the `sparsifier.squash_mask(params_to_save=("sparse_block_shape",))` method.'
            )
        blocks = mod.sparse_params.get("sparse_block_shape", None)
        if not isinstance(blocks, (tuple, list)):
            raise AssertionError(f"sparse_block_shape must be tuple or list, got {type(blocks)}")
        if len(blocks) != 2:
            raise AssertionError(f"sparse_block_shape must have length 2, got {len(blocks)}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        made = cls._made(mod, mod.weight, mod.qconfig.weight(), tuple(blocks))
        made.scale, made.zero_point = qparams(mod.activation_post_process)
        return made
