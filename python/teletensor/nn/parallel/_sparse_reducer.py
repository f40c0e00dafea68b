"""Sparse gradients of DistributedDataParallel: those of embeddings with sparse=True."""

from __future__ import annotations

from typing import Any

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ..._gradients import clear
from ..._sparse.tensor import SparseTensor, coo
from ...distributed._options import AllreduceOptions
from ..modules.module import Module
from ..modules.sparse import Embedding, EmbeddingBag
from ._pass_marks import PassMarks


def sparse_parameters(module: Module, parameters: list[Tensor]) -> list[bool]:
    """Whether each parameter's first module is an embedding with sparse=True, whose gradient is sparse."""
    found: dict[int, bool] = {}
    for each in module.modules():
        for p in each.parameters(recurse=False):
            found.setdefault(id(p), isinstance(each, (Embedding, EmbeddingBag)) and bool(each.sparse))
    return [found.get(id(p), False) for p in parameters]


def sparse_gradient(parameter: Tensor) -> SparseTensor:
    """A parameter's gradient; without one, a sparse_coo tensor without elements."""
    if parameter.grad is not None:
        return parameter.grad.detach()
    indices = _C.torch.empty((1, 0), dtype=_C.int64, device=parameter.device)
    values = _C.torch.empty((0, *parameter.shape[1:]), dtype=parameter.dtype, device=parameter.device)
    return coo(indices, values, parameter.shape, True)


def require_sparse(name: str, gradient: Tensor | None, group: Any) -> None:
    """Raises RuntimeError, and aborts the group, if a gradient is not sparse_coo. None is allowed."""
    if gradient is not None and not (isinstance(gradient, SparseTensor) and gradient.is_sparse):
        _fail(name, f"a gradient of layout torch.sparse_coo, got {gradient.layout}", group)


def _fail(name: str, expected: str, group: Any) -> None:
    group.abort(f"rank {group.rank()} has no sparse gradient of the parameter {name}")
    raise RuntimeError(f"[DistributedDataParallel] expected for the parameter {name} {expected}")


class SparseReducer:
    """Averages the gradients of parameters, which are sparse_coo, when a backward pass has been issued: the ranks gather and add
    the elements, one collective per parameter. Waits for the numbers of elements.

    Args:
        names: the parameters' names, for errors.
        group: the ranks.
        wire_dtype: the dtype in which gradients are sent and added; None: their own.
    """

    def __init__(self, names: list[str], parameters: list[Tensor], group: Any, wire_dtype: _C.dtype | None):
        self._names, self._parameters, self._group, self._wire_dtype = names, parameters, group, wire_dtype
        self._marks = PassMarks()
        self._before: list[Tensor | None] | None = None  # the gradients before the pass; None: no pass is expected

    def prepare(self, synchronizes: bool) -> None:
        """Begins a pass. `synchronizes`: whether its gradients are averaged."""
        self._before = [p.grad for p in self._parameters] if synchronizes else None
        self._marks.is_reached = False

    def marked(self, output: Any) -> Any:
        """The module's output, whose gradients show that a backward pass belongs to the module."""
        return output if self._before is None else self._marks.mark(output)

    def finish(self, allows_unused: bool) -> None:
        """Ends a pass: averages the gradients, unless the pass belongs to another module.

        Raises:
            RuntimeError: a gradient is missing, and `allows_unused` is False; or a gradient is strided. The group is aborted.
        """
        if self._before is None or self._marks.is_reached is False:
            return
        if self._marks.is_reached is None and all(p.grad is before for p, before in zip(self._parameters, self._before, strict=True)):
            return
        self._before = None
        for name, p in zip(self._names, self._parameters, strict=True):
            if p.grad is None and not allows_unused:
                hint = "pass find_unused_parameters=True if the loss does not depend on all parameters"
                _fail(name, f"a gradient, got none; {hint}", self._group)
            require_sparse(name, p.grad, self._group)
        for p in self._parameters:
            self._average(p)

    def reduce_zeros(self) -> None:
        """Takes part in the averages of the other ranks' pass, with gradients without elements."""
        clear(self._parameters)
        self._before = None
        for p in self._parameters:
            self._average(p)

    def _average(self, parameter: Tensor) -> None:
        with no_grad():
            own = sparse_gradient(parameter)
            total = own.to(self._wire_dtype or own.dtype) / self._group.size()
            self._group.allreduce([total], AllreduceOptions(asyncOp=False)).wait()
            if parameter.grad is not None or total._nnz():  # otherwise no rank has used the parameter
                parameter.grad = total.to(parameter.dtype)
