"""Embeddings with quantized rows, which give float32."""

from __future__ import annotations

from typing import Any

from .... import _C, nn, ops
from .... import _quantized_names as q
from ...._C import Tensor
from ...._lazy import set_module
from ...._quantized import create
from ...quantization.qconfig import float_qparams_weight_only_qconfig
from .. import qat
from .utils import hide_packed_params, quantize_weight

_DTYPES = (q.quint8, q.quint4x2)


def _empty(count: int, size: int, dtype: Any) -> Tensor:
    return create._empty_per_channel_affine_quantized(
        [count, size], scales=_C.torch.ones(count), zero_points=_C.torch.zeros(count), axis=0, dtype=dtype
    )


class EmbeddingPackedParams(nn.Module):
    """The rows of an embedding with their scales and zero points, in the form that the kernels take."""

    _version = 1

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = q.quint8):
        super().__init__()
        self.dtype = dtype
        if dtype not in _DTYPES:
            raise NotImplementedError(f"Unsupported dtype on quantized embedding! Supports quint8 and quint4x2. Got dtype: {dtype}")
        self.set_weight(_empty(num_embeddings, embedding_dim, dtype))

    def set_weight(self, weight: Tensor) -> None:
        """Packs a weight with a scale for each row."""
        if self.dtype not in _DTYPES:
            raise NotImplementedError("Unsupported dtype for quantized embedding prepack! Supports quint8 and quint4x2.")
        self._packed_weight = ops.quantized.embedding_bag_prepack(weight)

    def _weight(self) -> Tensor:
        return ops.quantized.embedding_bag_unpack(self._packed_weight)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list, unexpected_keys: list, error_msgs: list
    ) -> None:
        del strict  # no name is missing: the rows are in one entry
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight(state_dict.pop(prefix + "_packed_weight"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def __repr__(self) -> str:
        return repr(self._weight())


def _observer(mod: nn.Module, qat_class: type | None, float_class: type, name: str) -> nn.Module:
    """The observer of an embedding's rows."""
    if hasattr(mod, "weight_fake_quant"):
        if qat_class is not None and type(mod) is not qat_class:
            raise AssertionError(f"nnq.{name}.from_float with fake quant only works for {qat_class.__name__}")
        observer = mod.weight_fake_quant
    else:
        if type(mod) is not float_class:
            raise AssertionError(f"nnq.{name}.from_float only works for {float_class.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError(f"{name} input float module must have qconfig defined")
        configured = mod.qconfig is not None and mod.qconfig.weight is not None
        observer = (mod.qconfig if configured else float_qparams_weight_only_qconfig).weight()
    if observer.qscheme != q.per_channel_affine_float_qparams:
        raise AssertionError(f"{name} quantization is only supported with float_qparams_weight_only_qconfig.")
    if observer.dtype not in _DTYPES:
        raise AssertionError(f"The only supported dtype for nnq.{name} is torch.quint8 and torch.quint4x2, got {observer.dtype}")
    observer(mod.weight)
    return observer


class Embedding(nn.Module):
    """An embedding whose rows are quantized, each with its own scale. Its results are float32."""

    _version = 1

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        dtype: Any = q.quint8,
    ):  # fmt: skip
        super().__init__()
        del padding_idx, norm_type, scale_grad_by_freq, sparse  # of gradients, which quantized rows do not have
        if max_norm is not None:
            raise NotImplementedError(f"[Embedding] expected max_norm=None: quantized rows are not renormalized; got {max_norm}")
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        if _weight is not None and list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError(f"expected a weight of sizes {[num_embeddings, embedding_dim]}, got {list(_weight.shape)}")
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            self._packed_params.set_weight(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        four_bits = self._packed_params.dtype == q.quint4x2
        function = ops.quantized.embedding_4bit if four_bits else ops.quantized.embedding_byte
        return function(self._packed_params._packed_weight, indices)

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def __repr__(self) -> str:
        return hide_packed_params(self, EmbeddingPackedParams)

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self._packed_params.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def set_weight(self, w: Tensor) -> None:
        """Sets quantized rows."""
        self._packed_params.set_weight(w)

    def weight(self) -> Tensor:
        """The quantized rows."""
        return self._packed_params._weight()

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Embedding:
        """The quantized embedding of an embedding with a QConfig."""
        del use_precomputed_fake_quant  # rows are observed again, as in PyTorch
        observer = _observer(mod, qat.Embedding, nn.Embedding, "Embedding")
        made = Embedding(mod.num_embeddings, mod.embedding_dim, dtype=observer.dtype)
        made.set_weight(quantize_weight(mod.weight.detach().float(), observer))
        return made

    @classmethod
    def from_reference(cls, ref_embedding: nn.Module) -> Embedding:
        """The embedding of a reference embedding."""
        r = ref_embedding
        return cls(
            r.num_embeddings, r.embedding_dim, r.padding_idx, r.max_norm, r.norm_type, r.scale_grad_by_freq, r.sparse,
            r.get_quantized_weight(), r.weight_dtype,
        )  # fmt: skip


class EmbeddingBag(Embedding):
    """Sums of quantized rows. Its results are float32."""

    _version = 1

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "sum", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, dtype: Any = q.quint8,
    ):  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, None, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=_weight, dtype=dtype
        )
        self.mode, self.pruned_weights, self.include_last_offset = mode, False, include_last_offset

    def forward(
        self, indices: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None,
        compressed_indices_mapping: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        four_bits = self._packed_params.dtype == q.quint4x2
        function = ops.quantized.embedding_bag_4bit if four_bits else ops.quantized.embedding_bag_byte
        return function(
            self._packed_params._packed_weight, indices, offsets, False, 0, self.pruned_weights, per_sample_weights,
            compressed_indices_mapping, self.include_last_offset,
        )  # fmt: skip

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> EmbeddingBag:
        """The quantized module of an EmbeddingBag with a QConfig. As in PyTorch, it computes sums, whatever the mode."""
        del use_precomputed_fake_quant
        observer = _observer(mod, None, nn.EmbeddingBag, "EmbeddingBag")
        made = EmbeddingBag(
            mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse,
            include_last_offset=mod.include_last_offset, dtype=observer.dtype,
        )  # fmt: skip
        made.set_weight(quantize_weight(mod.weight.detach().float(), observer))
        return made

    @classmethod
    def from_reference(cls, ref_embedding_bag: nn.Module) -> EmbeddingBag:
        """The module of a reference module."""
        r = ref_embedding_bag
        return cls(
            r.num_embeddings, r.embedding_dim, r.max_norm, r.norm_type, r.scale_grad_by_freq, r.mode, r.sparse,
            r.get_quantized_weight(), r.include_last_offset, r.weight_dtype,
        )  # fmt: skip


set_module("teletensor.ao.nn.quantized.modules.embedding_ops", Embedding, EmbeddingBag, EmbeddingPackedParams)
