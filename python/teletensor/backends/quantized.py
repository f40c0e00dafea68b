"""torch.backends.quantized: the library whose results quantized operators have.

Products are exact in integers, so that the results of these libraries are the same, and the name selects nothing. "qnnpack" is
not offered: its sums of quantized tensors differ by one step in 1 to 2 % of the elements.
"""

from __future__ import annotations

import sys
from types import ModuleType

__all__ = ["engine", "supported_engines"]  # noqa: F822 - properties of the module

_ENGINES = ("none", "onednn", "x86", "fbgemm")


class _Settings(ModuleType):
    _engine = "x86"

    @property
    def engine(self) -> str:
        """The name of the library."""
        return self._engine

    @engine.setter
    def engine(self, name: str) -> None:
        if name not in _ENGINES:
            raise RuntimeError(f"quantized engine {name} is not supported, expected one of {', '.join(_ENGINES)}")
        self._engine = name

    @property
    def supported_engines(self) -> list[str]:
        """The names that can be set."""
        return list(_ENGINES)


sys.modules[__name__].__class__ = _Settings
