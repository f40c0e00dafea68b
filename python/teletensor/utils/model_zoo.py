"""torch.utils.model_zoo: the former names of functions of torch.hub. Nothing is downloaded."""

from __future__ import annotations

from typing import Any

from .. import hub
from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url", "tqdm"]  # noqa: F822 - tqdm is imported at its first use


def __getattr__(name: str) -> Any:
    """tqdm, if that package is installed."""
    if name != "tqdm":
        raise AttributeError(f"module 'teletensor.utils.model_zoo' has no attribute {name!r}")
    return hub.tqdm
