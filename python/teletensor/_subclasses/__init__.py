"""torch._subclasses: FakeTensor and FakeTensorMode."""

from __future__ import annotations

from .fake_tensor import DynamicOutputShapeException, FakeTensor, FakeTensorMode, UnsupportedFakeTensorException

__all__ = ["DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]
