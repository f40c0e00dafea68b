"""GradBucket: the gradients that a communication hook of DistributedDataParallel reduces together."""

from __future__ import annotations

from .._C import Tensor


class GradBucket:
    """Gradients that a communication hook reduces together."""

    def __init__(self, index: int, is_last: bool, parameters: list[Tensor], buffer: Tensor):
        self._index, self._is_last, self._parameters, self._buffer = index, is_last, parameters, buffer

    def index(self) -> int:
        """The bucket's number; buckets are reduced in this order."""
        return self._index

    def is_last(self) -> bool:
        """Whether this is the last bucket of the backward pass."""
        return self._is_last

    def buffer(self) -> Tensor:
        """The concatenated gradients, in one dimension; a sparse gradient as it is."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replaces the concatenated gradients, for example by a copy of another dtype."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradient of each parameter, as a view of the buffer."""
        return [self._buffer] if self._buffer.is_sparse else views_of(self._buffer, self._parameters)

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return list(self._parameters)


GradBucket.__module__ = "teletensor.distributed"


def views_of(flat: Tensor, parameters: list[Tensor]) -> list[Tensor]:
    """Views of concatenated tensors, in the shapes of the parameters."""
    pieces = flat.split([p.numel() for p in parameters])
    return [piece.view(p.shape) for piece, p in zip(pieces, parameters, strict=True)]
