"""FakeTensorProp: runs a graph without values. Not implemented; see ShapeProp with tensors on the device "meta"."""

from __future__ import annotations

from typing import Any

from ..interpreter import Interpreter

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Raises NotImplementedError."""

    def __init__(self, module: Any, mode: Any = None) -> None:
        raise NotImplementedError("[FakeTensorProp] fake tensors are not implemented; use ShapeProp on the device 'meta'")
