"""Errors of programs whose control flow depends on data or on sizes; PyTorch's module of the same name."""

from __future__ import annotations

__all__ = ["ConstraintViolationError", "GuardOnDataDependentSymNode", "ShapeEnv"]


class ConstraintViolationError(RuntimeError):
    """A size that was declared dynamic must have one value, or values of a smaller range."""


class GuardOnDataDependentSymNode(RuntimeError):  # noqa: N818 - PyTorch's name
    """Python code needs the value of a tensor that is computed by the recorded program."""


class ShapeEnv:
    """The sizes of a symbolic graph's example, by symbol, and the comparisons of sizes that the graph relies on.

    Attributes:
        var_to_val: the example's sizes by symbol.
        guards: the comparisons, as text.
    """

    def __init__(self, sizes: dict[str, int] | None = None, guards: list[str] | None = None) -> None:
        self.var_to_val, self.guards = dict(sizes or {}), list(guards or [])

    def format_guards(self, verbose: bool = False) -> str:
        """The comparisons, one per line. `verbose` adds the symbols with their sizes in the example."""
        lines = [f" - {g}" for g in self.guards]
        return "\n".join([*lines, *(f" - {n} == {v} in the example" for n, v in self.var_to_val.items())] if verbose else lines)
