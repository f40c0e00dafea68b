"""The linear layer that quantizes its input itself."""

from __future__ import annotations

from typing import Any

from ...... import nn, ops
from ......_C import Tensor
from ..linear import BlockLinear, _check_version
from ..utils import LinearBlockSparsePattern

__all__ = ["Linear"]


class Linear(BlockLinear):
    """A linear layer of and to float32, with a qint8 weight of which blocks are zero."""

    _op_type = "sparse_dynamic"
    _kind = " Dynamic"

    def _get_name(self) -> str:
        return "SparseQuantizedDynamicLinear"

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, qscheme={self.weight().qscheme()}"

    def forward(self, x: Tensor) -> Tensor:
        return ops.quantized.linear_dynamic(x, self._packed_params._packed_params)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "op_type"] = self._op_type

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *args: Any) -> None:
        del strict
        kind = state_dict.pop(prefix + "op_type")
        if kind != self._op_type:
            raise AssertionError(f"Cannot load from op_type [{kind}], expecting [{self._op_type}]")
        _check_version(self, local_metadata)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *args)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """The layer of a float layer with a ``qconfig``, in blocks of the present LinearBlockSparsePattern."""
        del use_precomputed_fake_quant  # as in PyTorch
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f" nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if mod.qconfig is not None and mod.qconfig.weight is not None:
            observer = mod.qconfig.weight()
        else:
            from .....quantization.qconfig import default_dynamic_qconfig

            observer = default_dynamic_qconfig.weight()
        mask = getattr(mod.qconfig, "mask", False)
        weight = mask * mod.weight if isinstance(mask, Tensor) or mask else mod.weight
        return cls._made(mod, weight, observer, LinearBlockSparsePattern.block_size())
