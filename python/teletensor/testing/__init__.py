"""torch.testing: comparisons and tensors for tests."""

from __future__ import annotations

from .._lazy import lazy_attributes

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(
    globals(), (), {"_comparison": "assert_allclose assert_close", "_creation": "make_tensor", "_file_check": "FileCheck"}
)
