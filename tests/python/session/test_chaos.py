"""A few of each fault of tests/chaos; `make chaos` causes more of them, and those that need further packages."""

from __future__ import annotations

import pytest

from tests.chaos.__main__ import rehearse, undisturbed
from tests.conftest import IN_PROCESS

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

STEPS = 90
ROUNDS = {"cut links": 1, "killed clients": 3, "killed engines": 2, "restarted engines": 1, "paused engine": 1,
          "full disk": 1, "no descriptors": 1}  # fmt: skip


@pytest.fixture(scope="module")
def digest():
    return undisturbed(STEPS)


@pytest.mark.parametrize("name", ROUNDS)
def test_fault_does_no_harm(name, digest):
    done, complaints = rehearse(name, STEPS, digest, rounds=ROUNDS[name])
    assert complaints == [], done


def test_harm_is_noticed():
    _, complaints = rehearse("paused engine", STEPS, "another digest", rounds=1)
    assert complaints == ["the weights differ from those of an undisturbed run"] * 2

