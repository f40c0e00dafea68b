"""Reasons for failures of PyTorch's unit tests with teletensor: by a regular expression over "file::class::test: message"."""

from __future__ import annotations

REASONS: dict[str, str] = {
    r": AbsentName: |tests\.conformance\.distributed\.absent\.AbsentName": "uses a private name of PyTorch",
}
