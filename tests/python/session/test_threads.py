"""Number of threads of an operation: the engine's, and a session's limit."""

import subprocess
import sys

import pytest

from tests.conftest import IN_PROCESS, client_environment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

PRINT = "import teletensor as t; {}print(t.get_num_threads())"


def threads(code: str = "", **environment: str) -> int:
    """What get_num_threads() returns in a process of its own, after some code."""
    environment = client_environment(**{"TELETENSOR_ADDRESS": "", "TELETENSOR_THREADS": "0", **environment})
    run = [sys.executable, "-c", PRINT.format(code)]
    return int(subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize(
    ("environment", "code", "expected"),
    [
        ({"OMP_NUM_THREADS": "1"}, "", 1),
        ({"OMP_NUM_THREADS": "3"}, "", 3),
        ({"OMP_NUM_THREADS": "3", "TELETENSOR_THREADS": "2"}, "", 2),
        ({"OMP_NUM_THREADS": "3"}, "t.set_num_threads(2); ", 2),
        ({"OMP_NUM_THREADS": "3"}, "t.ones(1).item(); t.set_num_threads(1); t.set_num_threads(100); ", 3),
    ],
)
def test_number_of_threads(environment, code, expected):
    assert threads(code, **environment) == expected


def test_sessions_have_their_own_limits(daemon):
    connect = f"t.connect({daemon.address!r}); "
    of_engine = threads(connect)
    assert threads(connect + "t.set_num_threads(1); ") == 1
    assert threads(connect) == of_engine
