"""Communication hooks of DistributedDataParallel that are written in Python."""

from __future__ import annotations

from collections.abc import Callable

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ...distributed._grad_bucket import GradBucket, views_of
from ...distributed._options import AllreduceOptions
from ...distributed._reduce_op import ReduceOp
from ._pass_marks import PassMarks, changed_since, versions
from ._sparse_reducer import Kind, fail_missing, kind_of, kinds_of_all, own_gradient


class HookReducer:
    """Reduces the gradients of a module's parameters by a hook, when a backward pass has been issued.

    Args:
        state: the hook's first argument.
        hook: ``hook(state, bucket)`` returns a Future of the reduced buffer, or of a list with it.
        parameters: the parameters, in the order in which the module registers them. Buckets are formed in reverse order.
        is_sparse: whether each parameter's gradient is sparse. Such a parameter has a bucket of its own, whose buffer is the
            gradient, strided if it is strided on some rank.
        bucket_bytes: the size of the first bucket, and of the others.
        group: the ranks.
    """

    def __init__(
        self, state, hook: Callable, parameters: list[Tensor], is_sparse: list[bool], bucket_bytes: tuple[int, int], group
    ):  # fmt: skip
        self._state, self._hook, self._parameters, self._group = state, hook, parameters, group
        self._is_sparse = is_sparse
        self._buckets = _divided(parameters, is_sparse, bucket_bytes)
        self.marks = PassMarks(parameters)
        # the gradients before the first pass since the last reduction, if that pass was not reduced
        self._before_local: list | None = None

    def prepare_local(self) -> None:
        """Begins a pass whose gradients are not reduced."""
        if self._before_local is None:
            self._before_local = versions(self._parameters)

    def finish(self, names: list[str], allows_unused: bool) -> None:
        """Ends a pass: reduces the gradients, unless the pass belongs to another module.

        Raises:
            RuntimeError: the pass computed no gradient for a parameter, and `allows_unused` is False. The group is aborted.
        """
        used = self.marks.changed()
        if not self.marks.is_of_module(used):
            return
        if allows_unused and self._before_local is not None:
            used = changed_since(self._parameters, self._before_local)
        self.marks.is_pending, self._before_local = False, None
        with no_grad():
            if allows_unused:
                keeps = self._unused_by_all(used)
            elif all(used):
                keeps = set()
            else:
                fail_missing(self._group, [name for name, is_used in zip(names, used, strict=True) if not is_used])
            self._reduce(keeps)

    def _unused_by_all(self, used: list[bool]) -> set[int]:
        """The indices of the parameters that no rank uses. Waits for the other ranks if this rank does not use all."""
        counts = _C.tensor([int(is_used) for is_used in used], dtype=_C.int32, device="cpu")
        self._group.allreduce([counts], AllreduceOptions(reduceOp=ReduceOp.SUM)).wait()
        if all(used):
            return set()
        return {i for i, count in enumerate(counts.tolist()) if count == 0}

    def _reduce(self, keeps: set[int]) -> None:
        sparse = [i for i, is_sparse in enumerate(self._is_sparse) if is_sparse]
        own = [kind_of(self._parameters[i].grad) for i in sparse]
        kinds = dict(zip(sparse, kinds_of_all(own, self._group), strict=True)) if sparse else {}
        futures = []
        for index, bucket in enumerate(self._buckets):
            members = [self._parameters[i] for i in bucket]
            kind = kinds.get(bucket[0], Kind.STRIDED)
            if kind is Kind.STRIDED:
                flat = _C.torch.cat([own_gradient(p, kind).reshape(-1) for p in members])
            else:
                flat = own_gradient(members[0], kind)
            futures.append(self._hook(self._state, GradBucket(index, index + 1 == len(self._buckets), members, flat)))
        for bucket, future in zip(self._buckets, futures, strict=True):
            result = future.wait()
            flat = result[0] if isinstance(result, (list, tuple)) else result
            members = [self._parameters[i] for i in bucket]
            if kinds.get(bucket[0], Kind.STRIDED) is not Kind.STRIDED:
                if bucket[0] not in keeps:
                    members[0].grad = flat.to(members[0].dtype)
                continue
            for i, p, view in zip(bucket, members, views_of(flat, members), strict=True):
                if i in keeps:
                    continue
                if p.grad is None or p.grad.is_sparse:
                    p.grad = view.to(p.dtype).clone()
                else:
                    p.grad.detach().copy_(view)


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
