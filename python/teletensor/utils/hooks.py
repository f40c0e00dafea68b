"""Provides the names of torch.utils.hooks."""

from ..nn.modules.module import RemovableHandle

__all__ = ["RemovableHandle"]
