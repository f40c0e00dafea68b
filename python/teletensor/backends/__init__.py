"""Switches that PyTorch code sets; here the engine decides."""

from __future__ import annotations


class _Switches:
    """Attributes that may be set and read, and change nothing."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def is_available(self) -> bool:
        """Whether the library is there."""
        return False


cudnn = _Switches(benchmark=False, deterministic=True, enabled=False, allow_tf32=False)
mkldnn = _Switches(enabled=True)
mps = _Switches()
cuda = _Switches(matmul=_Switches(allow_tf32=False))
