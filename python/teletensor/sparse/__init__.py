"""torch.sparse: operations on sparse layouts. Importable; there are no sparse layouts yet."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable

from .. import _C
from .._not_implemented import not_implemented

__all__ = [  # noqa: F822 - some are added below
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS", "addmm",
    "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "softmax", "sum", "to_sparse_semi_structured",
]  # fmt: skip


class check_sparse_tensor_invariants(contextlib.ContextDecorator):  # noqa: N801 - PyTorch's name
    """Whether constructors of sparse tensors check their arguments. There are none."""

    _enabled = False

    @classmethod
    def is_enabled(cls) -> bool:
        """The setting."""
        return cls._enabled

    @classmethod
    def enable(cls) -> None:
        """Turns the checks on."""
        check_sparse_tensor_invariants._enabled = True

    @classmethod
    def disable(cls) -> None:
        """Turns the checks off."""
        check_sparse_tensor_invariants._enabled = False

    def __init__(self, enable: bool = True):
        self.state = enable
        self.saved_state: bool | None = None

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context nesting."
            )
        self.saved_state = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *exc: Any) -> None:
        check_sparse_tensor_invariants._enabled = bool(self.saved_state)
        self.saved_state = None


def mm(mat1: _C.Tensor, mat2: _C.Tensor) -> _C.Tensor:
    """torch.mm, of strided matrices."""
    return _C.torch.mm(mat1, mat2)


def addmm(mat: _C.Tensor, mat1: _C.Tensor, mat2: _C.Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> _C.Tensor:
    """torch.addmm, of strided matrices."""
    return _C.torch.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def as_sparse_gradcheck(gradcheck: Callable) -> Callable:
    """Returns a gradcheck that also accepts ``masked`` and ``check_batched_grad``; all tensors are strided."""

    @functools.wraps(gradcheck)
    def check(*args: Any, masked: bool = False, **kwargs: Any) -> Any:
        return gradcheck(*args, masked=masked, **kwargs)

    return check


not_implemented(
    globals(), "there are no sparse layouts yet; use a strided tensor and the function of torch or torch.nn.functional",
    "log_softmax softmax sum to_sparse_semi_structured spdiags sampled_addmm",
    "ByteTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor SparseSemiStructuredTensor "
    "SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS",
)  # fmt: skip
