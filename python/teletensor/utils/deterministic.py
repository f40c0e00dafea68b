"""torch.utils.deterministic: whether new tensors without values are filled."""

from __future__ import annotations

import sys
import types

from .. import _C

__all__ = ["sys", "types"]

_mode = False  # the mode of use_deterministic_algorithms()
_fill = True


def set_mode(mode: bool, fill: bool | None = None) -> None:
    """Sets the mode of use_deterministic_algorithms(), and whether it fills memory."""
    global _mode, _fill
    _mode, _fill = mode, _fill if fill is None else fill
    _C.set_fills_new(_mode and _fill)


class _Module(types.ModuleType):
    """The module, so that its attribute can be set."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether torch.empty() and others fill tensors with NaN, or the largest number of the dtype, while
        use_deterministic_algorithms() is on.
        """
        return _fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        set_mode(_mode, bool(mode))


sys.modules[__name__].__class__ = _Module
