"""All tests in this folder use the engine that the tests share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def _shared_engine(_engine):
    """Connects before the first test. No module in this folder may create a tensor when it is imported."""


@pytest.fixture(autouse=True)
def _seeded(torch):
    """Seeds the random numbers of each test."""
