"""Which sizes and ints are symbols: those that have changed since an earlier capture, or that the user has marked."""

from __future__ import annotations

from typing import Any

from . import config


class SizeHistory:
    """Sizes of tensors and ints that the captures of one function have seen, by the text of their source."""

    def __init__(self) -> None:
        self._sizes: dict[str, list[int | None] | None] = {}  # None: it has changed
        self._numbers: dict[str, float | None] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing was captured yet."""
        return not self._sizes and not self._numbers

    def content(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What it has seen until now, for restore()."""
        return {name: list(sizes) if sizes is not None else None for name, sizes in self._sizes.items()}, dict(self._numbers)

    def restore(self, sizes: dict[str, Any], numbers: dict[str, Any]) -> None:
        """Sets what content() has returned in another process."""
        self._sizes, self._numbers = sizes, numbers

    def changed_dims(self, name: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Notes the sizes of a tensor, and returns the dimensions in which they have differed: all if it had another rank."""
        known = self._sizes.setdefault(name, list(sizes))
        if known is None or len(known) != len(sizes):
            self._sizes[name] = None
            return tuple(range(len(sizes)))
        for i, size in enumerate(sizes):
            if known[i] != size:
                known[i] = None
        return tuple(i for i, size in enumerate(known) if size is None)

    def has_changed(self, name: str, value: float) -> bool:
        """Notes a number, and returns whether it has differed."""
        if self._numbers.setdefault(name, value) != value:
            self._numbers[name] = None
        return self._numbers[name] is None


class SizePolicy:
    """Which sizes and ints of one capture are symbols.

    Args:
        dynamic: the argument of torch.compile.
        history: what earlier captures have seen.

    Attributes:
        is_first: whether nothing was captured before.
        can_follow: whether there can be symbols at all: not with autocast, whose casts are not part of what is recorded.
    """

    can_follow = True

    def __init__(self, dynamic: bool | None, history: SizeHistory) -> None:
        self._history = history
        self.is_first = history.is_empty
        self.are_all_dynamic = bool(dynamic) if dynamic is not None else not config.assume_static_by_default
        self.is_automatic = dynamic is not False and config.automatic_dynamic_shapes
        self.may_be_dynamic = config.dynamic_shapes and (self.are_all_dynamic or self.is_automatic and not history.is_empty)

    def dims_of(self, tensor: Any, name: str, is_static: bool) -> tuple[int, ...]:
        """The dimensions of a tensor whose sizes are symbols. `is_static`: it is a parameter, or belongs to a module."""
        marked, maybe = getattr(tensor, "_dynamo_dynamic_indices", ()), getattr(tensor, "_dynamo_weak_dynamic_indices", ())
        static = getattr(tensor, "_dynamo_static_indices", ())
        sizes = tuple(tensor.shape)
        changed = () if is_static else self._history.changed_dims(name, sizes)
        found = set(marked) | set(maybe)
        if not is_static and self.are_all_dynamic:
            found |= set(range(len(sizes)))
        elif self.is_automatic:
            found |= set(changed)
        found = {dim for dim in found - (set(static) - set(marked)) if sizes[dim] > 1}
        return tuple(sorted(found)) if config.dynamic_shapes else ()

    def is_symbol(self, value: int, name: str, is_argument: bool) -> bool:
        """Whether an int is a symbol. `is_argument`: it is an argument or in one."""
        changed = self._history.has_changed(name, value)
        if not self.may_be_dynamic or config.specialize_int or not 2 <= value < 1 << 31:
            return False
        return self.is_automatic and changed or self.are_all_dynamic and is_argument

    def is_input(self, value: float, name: str, is_argument: bool) -> bool:
        """Whether a float is an input of graphs. `is_argument`: it is an argument or in one."""
        changed = self._history.has_changed(name, value)
        if config.specialize_float:
            return False
        return self.is_automatic and changed or self.are_all_dynamic and is_argument
