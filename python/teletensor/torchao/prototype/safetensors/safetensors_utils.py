"""Metadata of flattened state dicts."""

from __future__ import annotations

import json
from typing import Any


def is_metadata_torchao(metadata: dict[str, Any]) -> bool:
    """Whether metadata of a safetensors file describes tensors that torchao has flattened."""
    if not metadata or "tensor_names" not in metadata:
        return False
    try:
        names = json.loads(metadata["tensor_names"])
    except (TypeError, ValueError):
        return False
    return isinstance(names, list) and bool(names) and all(isinstance(metadata.get(name), str) for name in names)
