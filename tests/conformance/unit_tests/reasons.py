"""Reasons for failures of PyTorch's unit tests with teletensor: by a regular expression over "file::class::test: message"."""

from __future__ import annotations

REASONS: dict[str, str] = {
    r""": AssertionError: ["'].*["'] does not match ["']""": "an error has another text",
    r"not implemented yet \(docs/names\.md\)": "uses a name that teletensor lacks (docs/names.md)",
    r"AbsentName: |<tests\.conformance\.distributed\.absent\.Abs": "uses a private name of PyTorch",
}
