"""torch.utils.hooks' names."""

from ..nn.modules.module import RemovableHandle

__all__ = ["RemovableHandle"]
