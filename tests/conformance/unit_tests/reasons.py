"""Reasons for failures of PyTorch's unit tests with teletensor: by a regular expression over "file::class::test: message"."""

from __future__ import annotations

REASONS: dict[str, str] = {
    r""": AssertionError: ["'].*["'] does not match ["']""": "an error has another text",
    r"not implemented yet \(docs/names\.md\)": "uses a name that teletensor lacks (docs/names.md)",
    r"fill_uninitialized_memory: torch\.empty leaves": "requires the setting fill_uninitialized_memory, which is refused",
    r": AbsentName: |tests\.conformance\.distributed\.absent\.AbsentName": "uses a private name of PyTorch",
}
