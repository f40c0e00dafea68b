"""torch.utils.flop_counter: importable. Operations are not counted in the client."""

from __future__ import annotations

from typing import Any

__all__ = ["FlopCounterMode", "register_flop_formula"]


class FlopCounterMode:
    """Raises NotImplementedError: operations are not counted in the client; torch.profiler counts them.

    Raises:
        NotImplementedError: always.
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None) -> None:
        raise NotImplementedError("[FlopCounterMode] operations are not counted; use torch.profiler.profile(with_flops=True)")


def register_flop_formula(targets: Any, get_raw: bool = False) -> Any:
    """Raises NotImplementedError, like FlopCounterMode."""
    raise NotImplementedError("[register_flop_formula] operations are not counted in the client")
