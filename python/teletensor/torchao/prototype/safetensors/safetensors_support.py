"""Names that transformers imports; calls raise NotImplementedError: quantized tensors are saved with torch.save() here."""

from __future__ import annotations

from typing import Any


def flatten_tensor_state_dict(tensors_dict: dict[str, Any]) -> Any:
    """Raises NotImplementedError: use torch.save()."""
    raise NotImplementedError(f"[flatten_tensor_state_dict] {len(tensors_dict)} tensors: use torch.save() for quantized tensors")


def unflatten_tensor_state_dict(tensors_data_dict: dict[str, Any], metadata: dict[str, Any]) -> Any:
    """Raises NotImplementedError: use torch.load()."""
    count = len(tensors_data_dict), len(metadata)
    raise NotImplementedError(f"[unflatten_tensor_state_dict] {count[0]} tensors, {count[1]} entries: use torch.load()")
