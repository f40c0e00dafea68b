"""Provides the names of functorch.experimental.control_flow."""

from ..._higher_order_ops import cond, map  # noqa: A004 - PyTorch's name

__all__ = ["cond", "map"]
