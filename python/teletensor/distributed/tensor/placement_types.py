"""Placements: how a DTensor is distributed along one dimension of a mesh."""

from __future__ import annotations

REDUCE_OPS = ("sum", "avg", "max", "min", "product")


class Placement:
    """The base of Shard, Replicate and Partial. Placements are values."""

    __slots__ = ()

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is divided, along this dimension if one is given."""
        return False

    def is_replicate(self) -> bool:
        """Whether each rank has the whole tensor."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the tensor is the reduction of the ranks' tensors, by this operation if one is given."""
        return False


class Shard(Placement):
    """The tensor is divided among the ranks along dimension `dim`.

    Each part but the last has ceil(size / ranks) entries, as those of ``torch.chunk``; the last ranks may have none.
    """

    __slots__ = ("dim",)

    def __init__(self, dim: int):
        if not isinstance(dim, int):
            raise TypeError(f"[Shard] expected an int, got {type(dim).__name__}")
        self.dim = dim

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or self.dim == dim

    def __eq__(self, other) -> bool:
        return isinstance(other, Shard) and self.dim == other.dim

    def __hash__(self) -> int:
        return hash((Shard, self.dim))

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


class Replicate(Placement):
    """Each rank has the whole tensor."""

    __slots__ = ()

    def is_replicate(self) -> bool:
        return True

    def __eq__(self, other) -> bool:
        return isinstance(other, Replicate)

    def __hash__(self) -> int:
        return hash(Replicate)

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """The tensor is the reduction ("sum", "avg", "max", "min" or "product") of the ranks' tensors of the same size."""

    __slots__ = ("reduce_op",)

    def __init__(self, reduce_op: str = "sum"):
        if reduce_op not in REDUCE_OPS:
            raise ValueError(f"[Partial] expected one of {', '.join(REDUCE_OPS)}, got {reduce_op!r}")
        self.reduce_op = reduce_op

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return reduce_op is None or self.reduce_op == reduce_op

    def __eq__(self, other) -> bool:
        return isinstance(other, Partial) and self.reduce_op == other.reduce_op

    def __hash__(self) -> int:
        return hash((Partial, self.reduce_op))

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class _StridedShard(Shard):
    """PyTorch's placement of a dimension divided in another order than the mesh's; there are no such DTensors."""

    __slots__ = ()

    def __init__(self, dim: int, *, split_factor: int):
        raise NotImplementedError("[_StridedShard] dimensions are divided in the order of the mesh's dimensions only")
