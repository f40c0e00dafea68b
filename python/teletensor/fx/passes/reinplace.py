"""reinplace: replaces operators by their in-place forms. Not implemented."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["reinplace"]


def reinplace(gm: Any, *sample_args: Any) -> NoReturn:
    """Raises NotImplementedError: it needs graphs of functional aten operators, which only torch.export creates."""
    raise NotImplementedError("[reinplace] requires graphs of functional aten operators, which are not implemented")
