"""torch.sparse.check_sparse_tensor_invariants and as_sparse_gradcheck."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._lazy import set_module
from . import check
from .convert import block_of, to_dense, to_sparse
from .tensor import BLOCKS, SparseTensor, compressed, coo


class check_sparse_tensor_invariants(contextlib.ContextDecorator):  # noqa: N801 - PyTorch's name
    """Whether constructors check indices at once, which waits for the engine: a setting, a context and a decorator.

    Operators check indices whatever the setting is; an invalid one is an error of their results.
    """

    @staticmethod
    def is_enabled() -> bool:
        """The setting."""
        return check.enabled

    @staticmethod
    def enable() -> None:
        """Turns the checks on."""
        check.set_enabled(True)

    @staticmethod
    def disable() -> None:
        """Turns the checks off."""
        check.set_enabled(False)

    def __init__(self, enable: bool = True):
        self.state = enable
        self.saved_state: bool | None = None

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context nesting."
            )
        self.saved_state = self.is_enabled()
        check.set_enabled(self.state)

    def __exit__(self, *exc: Any) -> None:
        check.set_enabled(bool(self.saved_state))
        self.saved_state = None


def _parts(tensor: SparseTensor, masked: bool) -> tuple[Tensor, Callable[[Tensor], SparseTensor]]:
    """The values of a sparse tensor, and a function that makes the tensor of such values."""
    detached = tensor.detach()
    if not masked:  # all elements are stored, so that the gradient has all
        dense = to_dense(detached)
        block = block_of(tensor) if tensor._layout in BLOCKS else None
        ones = _C.torch.ones(dense.shape, dtype=_C.bool, device=dense.device)
        if tensor.is_sparse:
            full = to_sparse(ones, tensor.sparse_dim())
        else:
            full = to_sparse(ones, layout=tensor._layout, blocksize=block, dense_dim=tensor.dense_dim() or None)
        detached = dense.sparse_mask(full)
    values = detached._elements.clone().requires_grad_()
    if detached.is_sparse:
        return values, lambda v: coo(detached._coo, v, detached.shape, detached._coalesced)
    return values, lambda v: compressed(detached._layout, detached._compressed, detached._plain, v, detached.shape)


def _strided(result: Any) -> Any:
    if isinstance(result, SparseTensor):
        return to_dense(result)
    return type(result)(map(_strided, result)) if isinstance(result, (list, tuple)) else result


def as_sparse_gradcheck(gradcheck: Callable) -> Callable:
    """Returns a gradcheck whose function may have sparse inputs and results.

    With ``masked=True``, gradients of sparse inputs are compared at the stored elements only; else all elements are stored.
    """

    @functools.wraps(gradcheck)
    def check_gradients(func: Callable, inputs: Any, **kwargs: Any) -> Any:
        masked = kwargs.pop("masked", False)
        given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        makers: dict[int, Callable] = {}
        for i, value in enumerate(given):
            if isinstance(value, SparseTensor) and value.requires_grad:
                given[i], makers[i] = _parts(value, masked)

        def function(*values: Any) -> Any:
            return _strided(func(*(makers[i](v) if i in makers else v for i, v in enumerate(values))))

        return gradcheck(function, tuple(given), **kwargs)

    return check_gradients


set_module("teletensor.sparse", check_sparse_tensor_invariants)
