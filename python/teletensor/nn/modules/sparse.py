"""Embedding modules."""

from __future__ import annotations

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class _EmbeddingBase(Module):
    """A learned table of num_embeddings rows of size embedding_dim. The padding row gets no gradient."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, max_norm, norm_type, scale_grad_by_freq,
        weight, device, dtype,
    ):  # fmt: skip
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise AssertionError("Padding_idx must be within num_embeddings")
        if weight is not None and tuple(weight.shape) != (num_embeddings, embedding_dim):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.padding_idx = padding_idx if padding_idx is None or padding_idx >= 0 else padding_idx + num_embeddings
        if weight is not None:
            self.weight = Parameter(weight, weight.is_floating_point() or weight.is_complex())
        else:
            self.weight = Parameter(_C.torch.empty(num_embeddings, embedding_dim, device=device, dtype=dtype))
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws standard normal values; the padding row is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx].zero_()

    def _extra(self, usual: dict) -> str:
        """The text of the options that differ from their defaults."""
        return "".join(f", {k}={getattr(self, k)}" for k, default in usual.items() if getattr(self, k) != default)

    @classmethod
    def _from(cls, embeddings, freeze: bool, **options):
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        module = cls(*embeddings.shape, _weight=embeddings, **options)
        module.weight.requires_grad = not freeze
        return module


class Embedding(_EmbeddingBase):
    """A learned table, of which it selects rows by index.

    Args:
        num_embeddings, embedding_dim: rows and columns of the table.
        padding_idx: a row of zeros, which receives no gradient; negative numbers count from the end.
        max_norm: rows that are selected and have a larger norm are scaled to it, in the table.
        norm_type: p of this norm.
        scale_grad_by_freq: whether gradients are divided by the number of times that a row occurs in the input.
        sparse: whether the gradient is a sparse tensor.
        device, dtype: of the table.

    The input is int32 or int64 of shape (*), the output has shape (*, embedding_dim). The table starts as normal numbers.

    Raises:
        AssertionError: padding_idx is not within the table.
        IndexError: an index is not within the table. It is raised when the program next waits.

    >>> torch.nn.Embedding(10, 3, padding_idx=0)(torch.tensor([[1, 0]])).shape
    torch.Size([1, 2, 3])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm=None, norm_type=2.0,
        scale_grad_by_freq=False, sparse=False, _weight=None, _freeze: bool = False, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, _weight, device, dtype
        )
        if _freeze:
            self.weight.requires_grad = False
        self.sparse = sparse

    def forward(self, input):
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "sparse": False}
        return f"{self.num_embeddings}, {self.embedding_dim}" + self._extra(usual)

    @classmethod
    def from_pretrained(
        cls, embeddings, freeze: bool = True, padding_idx: int | None = None, max_norm=None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """Creates a module from a table (num_embeddings, embedding_dim), which is trained only if freeze is False."""
        return cls._from(
            embeddings, freeze, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip


class EmbeddingBag(_EmbeddingBase):
    """Computes the sum, mean or maximum of each bag of rows of a learned table."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
        mode: str = "mean", sparse=False, _weight=None, include_last_offset: bool = False, padding_idx: int | None = None,
        device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, _weight, device, dtype
        )
        self.mode, self.include_last_offset = mode, include_last_offset
        self.sparse = sparse

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights=per_sample_weights, include_last_offset=self.include_last_offset, padding_idx=self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        before = self._extra({"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False})
        return f"{self.num_embeddings}, {self.embedding_dim}{before}, mode={self.mode!r}" + self._extra({"padding_idx": None})

    @classmethod
    def from_pretrained(
        cls, embeddings, freeze: bool = True, max_norm=None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        mode: str = "mean", sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> EmbeddingBag:  # fmt: skip
        """Creates a module from a table (num_embeddings, embedding_dim), which is trained only if freeze is False."""
        return cls._from(
            embeddings, freeze, max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, mode=mode,
            sparse=sparse, include_last_offset=include_last_offset, padding_idx=padding_idx,
        )  # fmt: skip
