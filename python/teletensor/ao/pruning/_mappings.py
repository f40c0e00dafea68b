"""torch.ao.pruning._mappings: the quantized layers of weights with blocks of zeros."""

from __future__ import annotations

from ... import nn

__all__ = ["get_dynamic_sparse_quantized_mapping", "get_static_sparse_quantized_mapping"]


def get_static_sparse_quantized_mapping() -> dict:
    """By class of a float layer, the class of its quantized layer."""
    from ..nn.sparse import quantized

    return {nn.Linear: quantized.Linear}


def get_dynamic_sparse_quantized_mapping() -> dict:
    """By class of a float layer, the class of its layer that quantizes the input itself."""
    from ..nn.sparse.quantized import dynamic

    return {nn.Linear: dynamic.Linear}
