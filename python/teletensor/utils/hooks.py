"""Provides the names of torch.utils.hooks."""

from ..nn.modules._backward_hooks import BackwardHook
from ..nn.modules.module import RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle"]
