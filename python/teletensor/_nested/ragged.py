"""Ragged: the offsets and lengths that nested tensors share. NestedInt: the size of a ragged dimension."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .. import _C
from .._C import Tensor

_numbers = itertools.count()
_of_source: weakref.WeakValueDictionary[tuple, Ragged] = weakref.WeakValueDictionary()


class Ragged:
    """Where the sequences of jagged tensors begin and end along the ragged dimension.

    Tensors with the same Ragged have the same sizes. The sequences' lengths are read from the engine when something needs
    them as numbers, which waits; tensors made of a list of tensors have them without waiting.

    Attributes:
        given, given_lengths: offsets and lengths as they were passed, of an integral dtype.
        number: equal for structures that are equal by construction, such as copies on other devices.
    """

    def __init__(
        self, offsets: Tensor, lengths: Tensor | None = None, sizes: list[int] | None = None, min_seqlen: int | None = None,
        max_seqlen: int | None = None, number: int | None = None,
    ) -> None:  # fmt: skip
        self.given, self.given_lengths = offsets, lengths
        self._converted: dict[str, tuple[int, Tensor]] = {}
        self.number = next(_numbers) if number is None else number
        self._sizes, self._starts = sizes, None if sizes is None or lengths is not None else list(itertools.accumulate([0, *sizes[:-1]]))
        self.given_min, self.given_max = min_seqlen, max_seqlen
        self._versions = self._current_versions()
        _of_source[id(offsets), id(lengths)] = self  # while this object exists, it keeps the tensors and their ids

    @staticmethod
    def of(offsets: Tensor, lengths: Tensor | None, min_seqlen: int | None, max_seqlen: int | None) -> Ragged:
        """The structure of these tensors: the same one for the same objects, as long as a nested tensor has it."""
        key = (id(offsets), id(lengths))
        found = _of_source.get(key)
        if found is None:
            found = Ragged(offsets, lengths)
        found.given_min = min_seqlen if found.given_min is None else found.given_min
        found.given_max = max_seqlen if found.given_max is None else found.given_max
        return found

    def _as_int64(self, name: str, tensor: Tensor) -> Tensor:
        """A vector as the engine's operators take it; converted again after it was written in place."""
        if tensor.dtype is _C.int64:
            return tensor
        version, found = self._converted.get(name, (-1, None))
        if found is None or version != tensor._version:
            found = tensor.to(_C.int64)
            self._converted[name] = tensor._version, found
        return found

    @property
    def offsets(self) -> Tensor:
        """Where the sequences begin: int64 [sequences + 1]."""
        return self._as_int64("offsets", self.given)

    @property
    def lengths(self) -> Tensor | None:
        """The sequences' lengths, int64 [sequences], or None if each sequence ends where the next one begins."""
        return None if self.given_lengths is None else self._as_int64("lengths", self.given_lengths)

    def _current_versions(self) -> tuple:
        return self.given._version, None if self.given_lengths is None else self.given_lengths._version

    @property
    def batch(self) -> int:
        """The number of sequences."""
        return self.offsets.shape[0] - 1

    def _read(self) -> None:
        if self._versions != self._current_versions():  # written in place
            self._sizes = self._starts = self.given_min = self.given_max = None
            self._versions = self._current_versions()
        if self._sizes is None or self._starts is None:
            offsets = self.offsets.tolist()
            lengths = [b - a for a, b in itertools.pairwise(offsets)] if self.lengths is None else self.lengths.tolist()
            self._starts, self._sizes = offsets[:-1], lengths

    def sizes(self) -> list[int]:
        """The sequences' lengths. Waits, unless they are known."""
        self._read()
        return self._sizes  # type: ignore[return-value]

    def starts(self) -> list[int]:
        """The first entries of the sequences. Waits, unless they are known."""
        self._read()
        return self._starts  # type: ignore[return-value]

    def check_within(self, total: int, name: str) -> None:
        """Raises RuntimeError if a sequence is not within the ragged dimension. Waits, unless the lengths are known."""
        end = 0
        for start, size in zip(self.starts(), self.sizes(), strict=True):
            if start < end or size < 0 or start + size > total:
                raise RuntimeError(
                    f"[{name}] expected offsets that do not decrease and sequences between 0 and {total}, got one of length {size} "
                    f"from {start} after one that ends at {end}"
                )
            end = start + size

    def min_seqlen(self) -> int:
        """The length of the shortest sequence. Waits, unless it is known."""
        return min(self.sizes(), default=0) if self.given_min is None else self.given_min

    def max_seqlen(self) -> int:
        """The length of the longest sequence. Waits, unless it is known."""
        return max(self.sizes(), default=0) if self.given_max is None else self.given_max

    def seqlens(self) -> Tensor:
        """The sequences' lengths in the engine: int64 [sequences]."""
        return self.offsets.diff() if self.lengths is None else self.lengths

    def to(self, device: Any) -> Ragged:
        """The same structure with its tensors on another device."""
        if self.offsets.device == device:
            return self
        lengths = None if self.given_lengths is None else self.given_lengths.to(device)
        moved = Ragged(self.given.to(device), lengths, self._sizes, self.given_min, self.given_max, self.number)
        moved._starts = self._starts
        return moved

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ragged) and self.number == other.number

    def __hash__(self) -> int:
        return hash(self.number)


class NestedInt:
    """The size of a ragged dimension: equal only to that of tensors with the same offsets, and at least 2 to comparisons."""

    __slots__ = ("coefficient", "ragged")
    __nested_int__ = True  # torch.Size accepts it

    def __init__(self, ragged: Ragged, coefficient: int = 1) -> None:
        self.ragged, self.coefficient = ragged, coefficient

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and self.ragged == other.ragged and self.coefficient == other.coefficient

    def __hash__(self) -> int:
        return hash((self.ragged.number, self.coefficient))

    def __mul__(self, other: Any) -> NestedInt:
        if type(other) is not int:
            return NotImplemented
        return NestedInt(self.ragged, self.coefficient * other)

    __rmul__ = __mul__

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, NestedInt) and other.ragged == self.ragged:
            return self.coefficient >= other.coefficient
        if type(other) is int and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def __le__(self, other: Any) -> bool:
        if isinstance(other, NestedInt) and other.ragged == self.ragged:
            return self.coefficient <= other.coefficient
        if type(other) is int and other < 2:
            return False
        raise ValueError("le: relation is indeterminate")

    def __gt__(self, other: Any) -> bool:
        return not self.__le__(other)

    def __lt__(self, other: Any) -> bool:
        return not self.__ge__(other)

    def __repr__(self) -> str:
        name = f"j{self.ragged.number}"
        return name if self.coefficient == 1 else f"{self.coefficient}*{name}"


def offsets_of(lengths: Tensor) -> Tensor:
    """The offsets of sequences of these lengths: int64 [sequences + 1]."""
    zero = _C.torch.zeros(1, dtype=_C.int64, device=lengths.device)
    return _C.torch.cat([zero, lengths.to(_C.int64).cumsum(0)])
