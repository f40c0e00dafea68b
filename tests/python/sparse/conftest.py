"""Connects each test to the engine."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _engine(torch) -> None:
    """The session of the fixture `torch`."""
    torch.manual_seed(0)
