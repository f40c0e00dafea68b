"""Changes the placement of local tensors, by collectives along one dimension of a mesh at a time.

Gradients have the placement of their tensor, except that the gradient of a Partial tensor is replicated.
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import _C
from .._device_mesh import DeviceMesh, Member
from . import _observer
from ._spec import Spec, outer_size, part
from .placement_types import Partial, Placement, Replicate, Shard

ops = _C.ops


def _pad(tensor: _C.Tensor, dim: int, size: int) -> _C.Tensor:
    """Appends zeros along a dimension."""
    missing = size - tensor.shape[dim]
    if missing == 0:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = missing
    return ops.cat([tensor, ops.zeros(shape, dtype=tensor.dtype, device=tensor.device)], dim)


def _narrow(tensor: _C.Tensor, dim: int, size: int) -> _C.Tensor:
    return tensor if tensor.shape[dim] == size else ops.clone(ops.narrow(tensor, dim, 0, size))


def _first(local: _C.Tensor, member: Member, mesh_dim: int) -> _C.Tensor:
    """The tensor at the first rank along a dimension of the mesh, zeros elsewhere. Not computed by a product, which
    would turn inf and NaN into NaN.
    """
    if member.coordinate[mesh_dim] == 0:
        return local
    return local.masked_fill(ops.ones([], dtype=_C.bool, device=local.device), 0)


def on_first_rank(locals_: Sequence[_C.Tensor], spec: Spec) -> list[_C.Tensor]:
    """Copies of a tensor as summands of it, along the dimensions of the mesh with Partial placements. Without communication."""
    tensors = list(locals_)
    for k, member in enumerate(spec.mesh._members()):
        with member.session():
            for mesh_dim, placement in enumerate(spec.placements):
                if isinstance(placement, Partial):
                    tensors[k] = _first(tensors[k], member, mesh_dim)
    return tensors


def summed_gradients(locals_: Sequence[_C.Tensor], spec: Spec) -> list[_C.Tensor]:
    """Copies of a tensor, of which each rank uses its own to compute a summand, along the dimensions with Partial
    placements.
    """
    tensors = list(locals_)
    for mesh_dim, placement in enumerate(spec.placements):
        if isinstance(placement, Partial):
            for k, member in enumerate(spec.mesh._members()):
                if tensors[k].requires_grad:
                    tensors[k] = ops.group_gradient_reduced(tensors[k], member.groups[mesh_dim])
    return tensors


class _Step:
    """A change along one dimension of the mesh, for one member."""

    def __init__(self, spec: Spec, size: Sequence[int], member: Member, mesh_dim: int):
        self.spec, self.size, self.member, self.mesh_dim = spec, size, member, mesh_dim
        self.group, self.ranks = member.groups[mesh_dim], spec.mesh.shape[mesh_dim]

    def _whole_size(self, dim: int) -> int:
        return outer_size(self.spec, self.size, self.member, self.mesh_dim, dim)

    def _part_size(self, dim: int) -> int:
        return part(self._whole_size(dim), self.ranks, self.member.coordinate[self.mesh_dim])[1]

    def _chunk_size(self, dim: int) -> int:
        return -(-self._whole_size(dim) // self.ranks)

    def gather(self, local: _C.Tensor, dim: int) -> _C.Tensor:
        """Shard to Replicate."""
        padded = _pad(local, dim, self._chunk_size(dim))
        return _narrow(ops.group_gathered(padded, self.group, dim=dim, ranks=self.ranks, sums=False), dim, self._whole_size(dim))

    def divide(self, local: _C.Tensor, dim: int, sums: bool) -> _C.Tensor:
        """Replicate, or with `sums` Partial, to Shard."""
        padded = _pad(local, dim, self._chunk_size(dim) * self.ranks)
        if _observer.divided is not None:
            _observer.divided(sums)
        return _narrow(ops.group_scattered(padded, self.group, dim=dim, ranks=self.ranks, sums=sums), dim, self._part_size(dim))

    def reduce(self, local: _C.Tensor, op: str) -> _C.Tensor:
        """Partial to Replicate."""
        if op == "avg":
            return ops.group_reduced(local, self.group, op="sum", sums=False) / self.ranks
        return ops.group_reduced(local, self.group, op=op, sums=False)

    def exchange(self, local: _C.Tensor, source: int, target: int) -> _C.Tensor:
        """Shard(source) to Shard(target)."""
        padded = _pad(_pad(local, source, self._chunk_size(source)), target, self._chunk_size(target) * self.ranks)
        result = ops.group_exchanged(padded, self.group, split_dim=target, concat_dim=source, ranks=self.ranks)
        return _narrow(_narrow(result, source, self._whole_size(source)), target, self._part_size(target))

    def make_partial(self, local: _C.Tensor, op: str) -> _C.Tensor:
        """Replicate to Partial: the value at the first rank and zeros elsewhere, or for other reductions the value."""
        if op == "product":
            raise NotImplementedError("[redistribute] Replicate to Partial('product') is not supported")
        if op != "sum":
            return local
        summed = ops.group_gradient_reduced(local, self.group) if local.requires_grad else local
        return _first(summed, self.member, self.mesh_dim)

    def run(self, local: _C.Tensor, source: Placement, target: Placement) -> _C.Tensor:
        if isinstance(source, Replicate):
            if isinstance(target, Shard):
                return self.divide(local, target.dim, sums=False)
            return self.make_partial(local, target.reduce_op)
        if isinstance(source, Shard):
            if isinstance(target, Shard):
                return self.exchange(local, source.dim, target.dim)
            return self.gather(local, source.dim)
        if isinstance(target, Shard) and source.reduce_op == "sum":
            return self.divide(local, target.dim, sums=True)
        return self.reduce(local, source.reduce_op)


def _steps(source: Sequence[Placement], target: Sequence[Placement]):
    """The changes as (mesh dimension, from, to), in an order in which parts of one tensor dimension stay nested."""
    current = list(source)
    changed = [i for i, (a, b) in enumerate(zip(source, target, strict=True)) if a != b]
    dims = [{p.dim for p in (source[i], target[i]) if isinstance(p, Shard)} for i in range(len(current))]
    for i in changed:
        alone = all(dims[i].isdisjoint(dims[j]) for j in range(len(current)) if j != i)
        one_step = not (isinstance(current[i], Shard) and isinstance(target[i], Partial)) and not (
            isinstance(current[i], Partial) and (isinstance(target[i], Partial) or current[i].reduce_op != "sum")
        )
        if alone and one_step:
            yield i, current[i], target[i]
            current[i] = target[i]
    for i in reversed(range(len(current))):
        nested = isinstance(current[i], Shard) and any(
            current[j] != target[j] and current[i].dim in dims[j] for j in range(i)
        )
        if (current[i] != target[i] or nested) and not isinstance(current[i], Replicate):
            yield i, current[i], Replicate()
            current[i] = Replicate()
    for i in range(len(current)):
        if current[i] != target[i]:
            yield i, current[i], target[i]
            current[i] = target[i]


def redistribute_locals(
    locals_: Sequence[_C.Tensor], spec: Spec, size: Sequence[int], target: Sequence[Placement]
) -> list[_C.Tensor]:
    """Returns the local tensors in another placement on the same mesh. No call waits."""
    tensors = list(locals_)
    for mesh_dim, source, wanted in _steps(spec.placements, target):
        for k, member in enumerate(spec.mesh._members()):
            with member.session():
                tensors[k] = _Step(spec, size, member, mesh_dim).run(tensors[k], source, wanted)
        spec = spec.replace(mesh_dim, wanted)
    return tensors


def broadcast_along(mesh: DeviceMesh, mesh_dim: int, locals_: Sequence[_C.Tensor], root: int = 0, among=None) -> list[_C.Tensor]:
    """Copies the tensors of the ranks at position `root` along a dimension of the mesh to the other ranks.

    `among` selects the members that take part; by default all do.
    """
    result = list(locals_)
    for k, member in enumerate(mesh._members()):
        if among is not None and not among(member):
            continue
        with member.session():
            result[k] = result[k].detach().clone()
            _C.ops.group_broadcast([result[k]], member.groups[mesh_dim], root=root, work=0)
    return result


def equalized(mesh: DeviceMesh, locals_: Sequence[_C.Tensor]) -> list[_C.Tensor]:
    """Makes random numbers equal on all members. One process per rank draws equal ones, from equally seeded generators."""
    if len(locals_) > 1:
        for mesh_dim in range(mesh.ndim):
            locals_ = broadcast_along(mesh, mesh_dim, locals_, 0, lambda member, m=mesh_dim: not any(member.coordinate[m + 1 :]))
    return list(locals_)
