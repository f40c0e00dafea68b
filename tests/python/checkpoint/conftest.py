"""Fixture: an engine with a folder for checkpoints."""

from __future__ import annotations

import pytest

from tests.conftest import IN_PROCESS

from .scripts import addresses


@pytest.fixture
def root(own_daemon, tmp_path):
    """Starts an engine with a checkpoint root, which scripts.run() uses; returns the folder."""
    if IN_PROCESS:
        pytest.skip("requires an engine in another process")
    folder = tmp_path / "root"
    folder.mkdir()
    addresses.append(own_daemon("--checkpoint-root", str(folder)).address)
    return folder
