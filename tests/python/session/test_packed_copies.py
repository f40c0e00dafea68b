"""The memory of weights that products pack: it belongs to the session, whose calls do not fail for want of it."""

from __future__ import annotations

import pytest

from tests.conftest import IN_PROCESS, Daemon
from tests.python.session.test_session import run_script

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="the limit is a daemon's")

SEVERAL_NUMBERS_OF_ROWS = """
import teletensor as torch
w = torch.randn(2500, 4000)  # 40 MB
want = None
for rows in (8, 80, 8, 400, 80, 500, 8, 1):
    for _ in range(3):
        found = torch.ones(rows, 2500) @ w
        first, last = found[0].tolist(), found[-1].tolist()
        want = want or first
        assert max(abs(a - b) for got in (first, last) for a, b in zip(got, want, strict=True)) < 1e-2, rows
print(torch.session_info()["held_bytes"] < 90_000_000)
"""

OVERLAPPING_PARTS = """
import teletensor as torch
w, x = torch.randn(1024, 2100), torch.randn(4, 1024)
for first in range(40):
    for _ in range(3):
        (x @ w[:, first : first + 2048]).sum().item()
print(torch.session_info()["held_bytes"] < 40_000_000)
torch.zeros(5_000_000).sum().item()
"""


@pytest.mark.parametrize("script", [SEVERAL_NUMBERS_OF_ROWS, OVERLAPPING_PARTS])
def test_copies_leave_room(tmp_path, script):
    engine = Daemon(tmp_path, "--session-memory-limit", "100MB")
    result = run_script(script, engine)
    assert engine.stop() == 0
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "True"
