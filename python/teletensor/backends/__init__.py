"""torch.backends: settings, most of which have no effect because the engine selects the implementations."""

from __future__ import annotations

from .._functions import get_float32_matmul_precision, set_float32_matmul_precision


class _IgnoredSettings:
    """Attributes that can be set and read but have no effect."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def is_available(self) -> bool:
        """Whether the library is available to the client: always False."""
        return False


class _Matmul:
    """torch.backends.cuda.matmul: allow_tf32 is an alias of set_float32_matmul_precision."""

    @property
    def allow_tf32(self) -> bool:
        """Whether GPUs may multiply float32 in TF32."""
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        set_float32_matmul_precision("high" if allowed else "highest")


cudnn = _IgnoredSettings(benchmark=False, deterministic=True, enabled=False, allow_tf32=False)
mkldnn = _IgnoredSettings(enabled=True)
mps = _IgnoredSettings()
cuda = _IgnoredSettings(matmul=_Matmul())
