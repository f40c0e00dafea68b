"""State of exports in this process."""

from __future__ import annotations

exporting = 0  # exports that are running
symbolics: dict[str, object] = {}  # functions of register_custom_op_symbolic, by the operator's name
