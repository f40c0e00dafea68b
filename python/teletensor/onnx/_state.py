"""State of exports in this process."""

from __future__ import annotations

from collections.abc import Callable

export: Callable | None = None  # the function that ExportableModule.to_onnx calls
exporting = 0  # exports that are running
symbolics: dict[str, object] = {}  # functions of register_custom_op_symbolic, by the operator's name
