"""Communication hooks of DistributedDataParallel that are written in Python."""

from __future__ import annotations

from collections.abc import Callable

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ..._sparse.tensor import SparseTensor
from ...distributed._grad_bucket import GradBucket, views_of
from ...distributed._options import AllreduceOptions
from ...distributed._reduce_op import ReduceOp
from ._pass_marks import PassMarks
from ._sparse_reducer import require_sparse, sparse_gradient


class HookReducer:
    """Reduces the gradients of a module's parameters by a hook, when a backward pass has been issued.

    Args:
        state: the hook's first argument.
        hook: ``hook(state, bucket)`` returns a Future of the reduced buffer, or of a list with it.
        parameters: the parameters, in the order in which the module registers them. Buckets are formed in reverse order.
        is_sparse: whether each parameter's gradient is sparse. Such a parameter has a bucket of its own, whose buffer is the gradient.
        bucket_bytes: the size of the first bucket, and of the others.
        group: the ranks.
    """

    def __init__(
        self, state, hook: Callable, parameters: list[Tensor], is_sparse: list[bool], bucket_bytes: tuple[int, int], group
    ):  # fmt: skip
        self._state, self._hook, self._parameters, self._group = state, hook, parameters, group
        self._is_sparse = is_sparse
        self._buckets = _divided(parameters, is_sparse, bucket_bytes)
        self._before: list | None = None  # the parameters' gradients before the pass; None: no pass is expected
        # the gradients before the first pass since the last reduction, if that pass was not reduced
        self._before_local: list | None = None
        self._marks = PassMarks()

    def prepare(self, synchronizes: bool) -> None:
        """Begins a pass. `synchronizes`: whether its gradients are reduced."""
        before = [_version(p.grad) for p in self._parameters]
        if not synchronizes and self._before_local is None:
            self._before_local = before
        self._before = before if synchronizes else None
        self._marks.is_reached = False

    def marked(self, output):
        """The module's output, whose gradients show that a backward pass belongs to the module.

        If it has no tensors to mark, a pass belongs to the module if it changes a gradient of its parameters.
        """
        return output if self._before is None else self._marks.mark(output)

    def finish(self, names: list[str], allows_unused: bool) -> None:
        """Ends a pass: reduces the gradients, unless the pass belongs to another module.

        Raises:
            RuntimeError: the pass computed no gradient for a parameter, and `allows_unused` is False.
        """
        if self._before is None or self._marks.is_reached is False:
            return
        used = self._changed_since(self._before)
        if self._marks.is_reached is None and not any(used):
            return
        if allows_unused and self._before_local is not None:
            used = self._changed_since(self._before_local)
        self._before = self._before_local = None
        for name, p, is_sparse in zip(names, self._parameters, self._is_sparse, strict=True):
            if is_sparse:
                require_sparse(name, p.grad, self._group)
        with no_grad():
            if allows_unused:
                keeps = self._unused_by_all(used)
            elif all(used):
                keeps = set()
            else:
                self._fail([name for name, is_used in zip(names, used, strict=True) if not is_used])
            self._reduce(keeps)

    def _changed_since(self, before: list) -> list[bool]:
        return [p.grad is not None and _version(p.grad) != v for p, v in zip(self._parameters, before, strict=True)]

    def _fail(self, unused: list[str]) -> None:
        self._group.abort(f"rank {self._group.rank()} computed no gradient for parameters {' '.join(unused)}")
        raise RuntimeError(
            f"expected a gradient of every parameter, got none for parameters {' '.join(unused)}; pass "
            "find_unused_parameters=True to DistributedDataParallel if the loss does not depend on all of them"
        )

    def _unused_by_all(self, used: list[bool]) -> set[int]:
        """The indices of the parameters that no rank uses. Waits for the other ranks if this rank does not use all."""
        counts = _C.tensor([int(is_used) for is_used in used], dtype=_C.int32, device="cpu")
        self._group.allreduce([counts], AllreduceOptions(reduceOp=ReduceOp.SUM)).wait()
        if all(used):
            return set()
        return {i for i, count in enumerate(counts.tolist()) if count == 0}

    def _reduce(self, keeps: set[int]) -> None:
        futures = []
        for index, bucket in enumerate(self._buckets):
            members = [self._parameters[i] for i in bucket]
            flat = sparse_gradient(members[0]) if self._is_sparse[bucket[0]] else _C.torch.cat([
                _C.torch.zeros(p.numel(), dtype=p.dtype, device=p.device) if p.grad is None else p.grad.detach().reshape(-1)
                for p in members
            ])  # fmt: skip
            futures.append(self._hook(self._state, GradBucket(index, index + 1 == len(self._buckets), members, flat)))
        for bucket, future in zip(self._buckets, futures, strict=True):
            result = future.wait()
            flat = result[0] if isinstance(result, (list, tuple)) else result
            members = [self._parameters[i] for i in bucket]
            if self._is_sparse[bucket[0]]:
                if bucket[0] not in keeps:
                    members[0].grad = flat.to(members[0].dtype)
                continue
            for i, p, view in zip(bucket, members, views_of(flat, members), strict=True):
                if i in keeps:
                    continue
                if p.grad is None:
                    p.grad = view.to(p.dtype).clone()
                else:
                    p.grad.detach().copy_(view)


def _version(grad: Tensor | None) -> tuple | None:
    if isinstance(grad, SparseTensor):  # each pass adds a new object
        return grad._elements._handle, grad._version
    return None if grad is None else (grad._handle, grad._version)


def _divided(parameters: list[Tensor], is_sparse: list[bool], bucket_bytes: tuple[int, int]) -> list[list[int]]:
    """The indices of the parameters in each bucket: in reverse order, with one dtype per bucket, those of sparse gradients alone."""
    buckets: list[list[int]] = []
    current: dict = {}  # by dtype: the bucket that is being filled, and its size
    for i in reversed(range(len(parameters))):
        p = parameters[i]
        if is_sparse[i]:
            buckets.append([i])
            continue
        number, size = current.get(p.dtype, (None, 0))
        if number is None or size >= bucket_bytes[0 if number == 0 else 1]:
            number, size = len(buckets), 0
            buckets.append([])
        buckets[number].append(i)
        current[p.dtype] = number, size + p.numel() * p.element_size()
    return buckets
