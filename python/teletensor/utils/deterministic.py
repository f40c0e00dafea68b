"""torch.utils.deterministic: whether new tensors without values are filled. The engine never fills them."""

from __future__ import annotations

import sys
import types

__all__ = ["sys", "types"]


class _Module(types.ModuleType):
    """The module, so that its attribute can be set."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """False: torch.empty leaves values undefined, also with use_deterministic_algorithms."""
        return False

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if mode:
            raise NotImplementedError("fill_uninitialized_memory: torch.empty leaves values undefined; use torch.zeros")


sys.modules[__name__].__class__ = _Module
