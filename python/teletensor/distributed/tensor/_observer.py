"""Functions that observe DTensors: CommDebugMode sets them while its block runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

called: Callable[[str, list[Any]], None] | None = None  # before an operator with DTensors: its name and arguments
divided: Callable[[bool], None] | None = None  # when a tensor is divided along a dimension of a mesh: whether it is summed
