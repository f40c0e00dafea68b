"""teletensor.onnx.backend: an implementation of onnx.backend.base.Backend. Names only; see importer/backend.py."""

from __future__ import annotations

from .importer.backend import (
    PreparedModel,
    TeletensorBackend,
    is_compatible,
    prepare,
    run_model,
    run_node,
    supports_device,
)  # fmt: skip

__all__ = ["PreparedModel", "TeletensorBackend", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
