"""Embeddings whose weights are rounded while they are trained."""

from __future__ import annotations

from typing import Any

from .... import _quantized_names as q
from .... import nn
from ...._C import Tensor
from ...._lazy import set_module
from ....nn import functional as F
from .linear import configuration


def _check(qconfig: Any, name: str) -> None:
    scheme = qconfig.weight().qscheme
    if scheme != q.per_channel_affine_float_qparams:
        raise AssertionError(f"{name} weights requires a qscheme of torch.per_channel_affine_float_qparams Got {scheme}")


class Embedding(nn.Embedding):
    """An embedding whose rows a FakeQuantize rounds."""

    _FLOAT_MODULE: type[nn.Module] = nn.Embedding

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        device: Any = None, dtype: Any = None, qconfig: Any = None,
    ):  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, device=device, dtype=dtype
        )
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        _check(qconfig, "Embedding")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight_fake_quant(self.weight), self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.sparse,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Embedding:
        """The module for training, which shares the weight of an embedding with a QConfig."""
        del use_precomputed_fake_quant
        qconfig = configuration(mod, cls._FLOAT_MODULE, f"qat.{cls.__name__}")
        _check(qconfig, "Embedding")
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.padding_idx, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.sparse,
            mod.weight, qconfig=qconfig,
        )  # fmt: skip

    def to_float(self) -> nn.Module:
        """An embedding with a copy of the weight, not rounded."""
        made = nn.Embedding(
            self.num_embeddings, self.embedding_dim, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )
        made.weight = nn.Parameter(self.weight.detach())
        return made.train(self.training)


class EmbeddingBag(nn.EmbeddingBag):
    """Sums or means of rows, which a FakeQuantize rounds."""

    _FLOAT_MODULE: type[nn.Module] = nn.EmbeddingBag

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, qconfig: Any = None, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight, include_last_offset,
            padding_idx, device=device, dtype=dtype,
        )  # fmt: skip
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        _check(qconfig, "Embedding Bag")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight_fake_quant(self.weight), offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
            self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> EmbeddingBag:
        """The module for training, which shares the weight of an EmbeddingBag with a QConfig."""
        del use_precomputed_fake_quant
        qconfig = configuration(mod, cls._FLOAT_MODULE, f"qat.{cls.__name__}")
        _check(qconfig, "Embedding Bag")
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse, mod.weight,
            mod.include_last_offset, mod.padding_idx, qconfig=qconfig,
        )  # fmt: skip

    def to_float(self) -> nn.Module:
        """An EmbeddingBag with a copy of the weight, not rounded."""
        made = nn.EmbeddingBag(
            self.num_embeddings, self.embedding_dim, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse, None,
            self.include_last_offset, self.padding_idx,
        )  # fmt: skip
        made.weight = nn.Parameter(self.weight.detach())
        return made.train(self.training)


set_module("teletensor.ao.nn.qat.modules.embedding_ops", Embedding, EmbeddingBag)
