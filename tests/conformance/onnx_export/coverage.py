"""Which operators of core ATen, and which modules, export to ONNX."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.module_db.samples import CASES as MODULE_CASES  # noqa: F401 - replaced if the table has another name
from tests.python.onnx_export import rows_core, rows_layers, rows_layout

CORE = Path(__file__).with_name("core_aten.txt")

# Operators that do not exist here because the functions that have them in PyTorch call others: the rows that test the functions.
ELSEWHERE = {}
