"""FrozenModule: the result of torch.jit.freeze."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .._C import Tensor
from ..nn import Module
from ._script import Example, RecursiveScriptModule


class FrozenModule(RecursiveScriptModule):
    """A module in evaluation mode whose parameters are constants: it has none, and only the attributes that were preserved."""

    def __init__(self, original: Module, example: Example | None, preserved: list[str]) -> None:
        own = copy.deepcopy(original).requires_grad_(False)
        for name in preserved:
            if not hasattr(own, name):
                raise AttributeError(f"[jit.freeze] the module has no attribute {name!r} to preserve")
        super().__init__(own, example)
        self.__dict__["_preserved"] = frozenset(preserved)
        for registry in ("_parameters", "_buffers", "_modules"):
            self.__dict__[registry] = {}

    def train(self, mode: bool = True) -> FrozenModule:
        """Returns the module; training mode raises RuntimeError."""
        if mode:
            raise RuntimeError("[jit.freeze] a frozen module stays in evaluation mode")
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> FrozenModule:
        """Returns the module, whose constants stay as they are."""
        del fn, recurse
        return self

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The state of a module without parameters and buffers."""
        return Module.state_dict(self, *args, destination=destination, prefix=prefix, keep_vars=keep_vars)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Loads nothing; names raise RuntimeError if strict."""
        return Module.load_state_dict(self, state_dict, strict, assign)

    def _load_from_state_dict(self, *args: Any) -> None:
        Module._load_from_state_dict(self, *args)

    def __getattr__(self, name: str) -> Any:
        if name in ("code", "graph", "inlined_graph", "_original", "_example"):
            return super().__getattr__(name)
        if name in self.__dict__.get("_preserved", ()):
            return getattr(self._original, name)
        raise AttributeError(f"'{self.original_name}' object has no attribute '{name}' (frozen)")

    def __deepcopy__(self, memo: dict) -> FrozenModule:
        return FrozenModule(copy.deepcopy(self._original, memo), self._example, sorted(self._preserved))
