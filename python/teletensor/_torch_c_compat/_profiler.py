"""torch._C._profiler: the ranges that generated code records."""

from __future__ import annotations

from typing import Any

from ..profiler import record_function


class _RecordFunctionFast(record_function):
    """A range with the given name in profiles.

    Raises:
        NotImplementedError: values are given; profiles have no values of inputs.
    """

    def __init__(self, name: str, input_values: list | tuple | None = None, keyword_values: dict[str, Any] | None = None):
        if input_values or keyword_values:
            raise NotImplementedError("[_RecordFunctionFast] profiles record no values of inputs: expected only a name")
        super().__init__(name)
