"""Sparse gradients of DistributedDataParallel: those of embeddings with sparse=True."""

from __future__ import annotations

import enum
from importlib import import_module
from typing import Any, NoReturn

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ..._gradients import sparse_leaves
from ..._sparse.tensor import SparseTensor, coo
from ...distributed._options import AllreduceOptions
from ...distributed._reduce_op import ReduceOp
from ..modules.module import Module
from ..modules.sparse import Embedding, EmbeddingBag


def sparse_parameters(module: Module, parameters: list[Tensor]) -> list[bool]:
    """Whether each parameter is a parameter of an embedding with sparse=True, whose gradient is sparse."""
    embeddings = [m for m in module.modules() if isinstance(m, (Embedding, EmbeddingBag)) and m.sparse]
    found = {id(p) for m in embeddings for p in m.parameters(recurse=False)}
    if found:  # registers the operators that zeros call, also on a rank that has made no sparse tensor
        import_module("teletensor._sparse.functions")
    return [id(p) in found for p in parameters]


def own_gradient(parameter: Tensor, kind: Kind) -> Tensor:
    """A parameter's gradient, strided if `kind` is STRIDED, otherwise sparse_coo; without one, zeros."""
    gradient = parameter.grad
    if kind is Kind.STRIDED:
        return _C.torch.zeros_like(parameter) if gradient is None else gradient.detach().to_dense()
    if gradient is not None:
        return gradient.detach()
    indices = _C.torch.empty((1, 0), dtype=_C.int64, device=parameter.device)
    values = _C.torch.empty((0, *parameter.shape[1:]), dtype=parameter.dtype, device=parameter.device)
    return coo(indices, values, parameter.shape, True)


class Kind(enum.IntEnum):
    """What a rank has as the gradient of a parameter, in increasing order: the greatest of the ranks' determines their collective."""

    NONE = 0
    SPARSE = 1
    STRIDED = 2


def kind_of(gradient: Tensor | None) -> Kind:
    """The kind of a gradient."""
    return Kind.NONE if gradient is None else Kind.SPARSE if isinstance(gradient, SparseTensor) else Kind.STRIDED


def kinds_of_all(own: list[Kind], group: Any) -> list[Kind]:
    """The greatest kind of each gradient on any rank; `own`: on this rank. Waits for the other ranks."""
    kinds = _C.tensor(own, dtype=_C.int32, device="cpu")
    group.allreduce([kinds], AllreduceOptions(reduceOp=ReduceOp.MAX, asyncOp=False)).wait()
    return [Kind(kind) for kind in kinds.tolist()]


def fail(group: Any, problem: str, expected: str) -> NoReturn:
    """Raises RuntimeError, also in the collectives of the other ranks, which name this rank and the `problem`."""
    group.abort(f"rank {group.rank()} {problem}")
    raise RuntimeError(f"[DistributedDataParallel] expected {expected}")


def fail_missing(group: Any, names: list[str]) -> NoReturn:
    """fail() because the pass computed no gradient for the parameters."""
    text = " ".join(names)
    hint = "pass find_unused_parameters=True to DistributedDataParallel if the loss does not depend on all of them"
    fail(group, f"computed no gradient for parameters {text}",
         f"a gradient of every parameter, got none for parameters {text}; {hint}")  # fmt: skip


def require_no_sparse(group: Any, names: list[str], parameters: list[Tensor]) -> None:
    """fail() if the pass added a sparse gradient to one of the parameters."""
    leaves = sparse_leaves()
    if leaves and (wrong := [name for name, p in zip(names, parameters, strict=True) if id(p) in leaves]):
        text = " ".join(wrong)
        hint = "use nn.Embedding or nn.EmbeddingBag, or sparse=False"
        fail(group, f"computed sparse gradients for parameters {text}",
             f"sparse gradients only of parameters of embeddings with sparse=True, got some for parameters {text}; {hint}")  # fmt: skip


class SparseReducer:
    """Averages the gradients of parameters of sparse embeddings when a backward pass has been issued, one collective per parameter:
    the ranks gather and add the elements, unless a gradient is strided on some rank, because the weight is also used in
    another way. Waits for the numbers of elements.

    Args:
        parameters: the parameters.
        group: the ranks.
        wire_dtype: the dtype in which gradients are sent and added; None: their own.
    """

    def __init__(self, parameters: list[Tensor], group: Any, wire_dtype: _C.dtype | None):
        self.parameters, self._group, self._wire_dtype = parameters, group, wire_dtype

    def average(self, kinds: list[Kind]) -> None:
        """Averages the gradients. `kinds`: of the parameters, as of kinds_of_all(). Gradients that no rank has stay None."""
        for p, kind in zip(self.parameters, kinds, strict=True):
            if kind is not Kind.NONE:
                self._average(p, kind)

    def _average(self, parameter: Tensor, kind: Kind) -> None:
        with no_grad():
            own = own_gradient(parameter, kind)
            total = own.to(self._wire_dtype or own.dtype) / self._group.size()
            self._group.allreduce([total], AllreduceOptions(asyncOp=False)).wait()
            parameter.grad = total.to(parameter.dtype)
