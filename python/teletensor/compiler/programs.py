"""Programs (docs/programs.md), under the name of the package that offers them."""

from __future__ import annotations

from .._programs import ProgramStats, Stats, TracedProgram, explain, stats, trace, trace_sizes

__all__ = ["ProgramStats", "TracedProgram", "Stats", "explain", "stats", "trace", "trace_sizes"]
