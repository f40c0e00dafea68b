"""load_sharded_optimizer_state_dict, which is not supported."""

from __future__ import annotations

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(model_state_dict, optimizer_key, storage_reader, planner=None):
    """Not supported: raises NotImplementedError."""
    raise NotImplementedError(
        "[load_sharded_optimizer_state_dict] not supported: load() reads the result of get_optimizer_state_dict() in place"
    )


load_sharded_optimizer_state_dict.__not_implemented__ = "deprecated in PyTorch; load() with get_optimizer_state_dict() does it"
