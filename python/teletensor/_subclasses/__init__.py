"""torch._subclasses: FakeTensor and FakeTensorMode."""

from __future__ import annotations

from .._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "fake_tensor": "DynamicOutputShapeException FakeTensor FakeTensorMode UnsupportedFakeTensorException",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("fake_tensor",), _NAMES)

__all__ = ["DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]
