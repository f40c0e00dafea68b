"""ShardedTensor: this rank's elements of a parameter, in state dicts; checkpoints store them as a part of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _C
from ..._C import Tensor

if TYPE_CHECKING:
    from ._unit import ShardedUnit


class ShardedTensor(Tensor):
    """This rank's elements of a parameter, of a flat parameter, or of a tensor that is divided like it. Without history.

    Results of operations are ordinary tensors, except those of detach(), clone(), cpu() and to().
    """

    __torch_function__ = _C._disabled_torch_function_impl
    _unit: ShardedUnit
    _index: int | None  # index of the parameter in the unit; None: the flat parameter

    def __new__(cls, data: Tensor, unit: ShardedUnit, index: int | None):
        self = Tensor.__new__(cls, data.detach() if data.requires_grad else data)
        self._unit, self._index = unit, index
        return self

    def __init__(self, *args, **kwargs):
        pass

    def __shards__(self) -> tuple[tuple[int, ...], list]:
        """The shape of the whole, and this rank's boxes (``torch.distributed.checkpoint``)."""
        return boxes_of_part(self._unit, self._index, Tensor.detach(self))

    def _same(self, data: Tensor) -> ShardedTensor:
        return ShardedTensor(data, self._unit, self._index)

    def detach(self) -> ShardedTensor:
        return self._same(super().detach())

    def clone(self, *args, **kwargs) -> ShardedTensor:
        return self._same(super().clone(*args, **kwargs))

    def cpu(self, *args, **kwargs) -> ShardedTensor:
        return self._same(super().cpu(*args, **kwargs))

    def to(self, *args, **kwargs) -> ShardedTensor:
        return self._same(super().to(*args, **kwargs))

    def __deepcopy__(self, memo: dict) -> ShardedTensor:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]


def boxes_of_part(unit: ShardedUnit, index: int | None, part: Tensor) -> tuple[tuple[int, ...], list]:
    """The shape of a parameter, and the boxes of a rank's elements of it, which are views of `part`."""
    from ..checkpoint._shards import flat_boxes

    low = unit.part_numel * unit.rank
    if index is None:
        count = min(max(unit.numel - low, 0), unit.part_numel)
        return (unit.numel,), [((low,), part[:count])] if count else []
    entry = unit.entries[index]
    shape = tuple(entry.shape)
    if unit.ranks == 1:
        return shape, [((0,) * len(shape), part.view(shape))]
    start, end = unit.bounds(entry)
    return shape, list(flat_boxes(shape, start + low - entry.offset, part)) if end > start else []
