"""Sparse, nested and quantized tensors in a checkpoint of several ranks: a value that describes each (as of `tree`), and its components,
which are stored as tensors named after it, such as "weight/0"."""

from __future__ import annotations

import json
from typing import Any

from ..._C import Tensor
from ..._checkpoint import tree
from ...serialization._composed import is_composed

__all__ = ["component_owner", "divided", "is_composed"]


def divided(fqn: str, value: Tensor) -> tuple[str, dict[str, Tensor]]:
    """The JSON text that describes a sparse, nested or quantized tensor, and its components by name."""
    components: dict[str, Tensor] = {}

    def name_of(tensor: Tensor) -> str:
        name = f"{fqn}/{len(components)}"
        components[name] = tensor
        return name

    encoded: Any = tree.encode(value, name_of)
    return json.dumps(encoded), components


def component_owner(name: str) -> str:
    """The name of the tensor of which a tensor of this name may be a component."""
    return name.rpartition("/")[0]
