"""Autocast for devices that the engine does not have: settings that only queries read."""

from __future__ import annotations

import threading

from . import _C


class _Autocast(threading.local):
    """The settings of autocast for devices that the engine does not have, which only queries read; per thread."""

    def __init__(self) -> None:
        self.enabled: set[str] = set()
        self._dtypes: dict[str, _C.dtype] = {}

    def enable(self, device: str, enabled: bool) -> None:
        (self.enabled.add if enabled else self.enabled.discard)(device)

    def dtype(self, device: str) -> _C.dtype:
        return self._dtypes.get(device, _C.bfloat16 if device in ("hpu", "xla") else _C.float16)

    def set_dtype(self, device: str, dtype: _C.dtype) -> None:
        if not isinstance(dtype, _C.dtype):
            raise TypeError(f"[autocast] expected a dtype, got {type(dtype).__name__}")
        self._dtypes[device] = dtype


absent_autocast = _Autocast()
