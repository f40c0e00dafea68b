"""Fixtures: processes with an engine each."""

from __future__ import annotations

import pytest

from ...conftest import IN_PROCESS
from .ranks import Ranks


def _skip_in_process() -> None:
    if IN_PROCESS:
        pytest.skip("the ranks start private engines")


@pytest.fixture(scope="session")
def ranks():
    """Four ranks, shared by all tests that do not damage them."""
    _skip_in_process()
    group = Ranks(4)
    yield group
    group.stop()


@pytest.fixture
def own_ranks():
    """Starts ranks for one test, which may kill them."""
    _skip_in_process()
    groups = []

    def start(count: int, **environment: str) -> Ranks:
        groups.append(Ranks(count, **environment))
        return groups[-1]

    yield start
    for group in groups:
        for rank in group.all:
            rank.stop()


@pytest.fixture(scope="session")
def controller():
    """A process without a group, for cases that control several engines. Started again after a test that ended it."""
    _skip_in_process()
    process = Ranks(1)
    yield process
    process.stop()
