"""A few of each fault of tests/chaos; `make chaos` causes more of them, and a slow disk, whose effect takes time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.__main__ import rehearse, undisturbed
from tests.conftest import IN_PROCESS, SANITIZER

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

STEPS = 90
ROUNDS = {"cut links": 1, "killed clients": 3, "killed engines": 2, "restarted engines": 1, "paused engine": 1,
          "full disk": 1, "no descriptors": 1, "clock jumps": 2, "expired certificate": 1}  # fmt: skip
FAKETIME = any(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


@pytest.fixture(scope="module")
def digest():
    return undisturbed(STEPS)


@pytest.mark.parametrize("name", ROUNDS)
def test_fault_does_no_harm(name, digest):
    if name == "clock jumps" and not FAKETIME:
        pytest.skip("libfaketime is not installed; deploy/packages_chaos.txt")
    if SANITIZER and name == "no descriptors":
        pytest.skip("in a sanitizer's build: without a descriptor it cannot open its report, and ends the process")
    done, complaints = rehearse(name, STEPS, digest, rounds=ROUNDS[name])
    if SANITIZER:  # which keeps freed memory for some time
        complaints = [c for c in complaints if "resident bytes left" not in c]
    assert complaints == [], done


def test_harm_is_noticed():
    _, complaints = rehearse("paused engine", STEPS, "another digest", rounds=1)
    assert complaints == ["the weights differ from those of an undisturbed run"] * 2
