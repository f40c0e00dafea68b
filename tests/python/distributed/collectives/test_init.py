"""init_process_group: environment, URLs and stores; leaving and forming again; the end of a process."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from ....conftest import client_environment
from ..ranks import free_port
from . import init_cases as cases

pytestmark = pytest.mark.slow


def test_from_the_environment_several_times(ranks):
    assert ranks.run_without_group(3, cases.from_environment, free_port(), 3) == [[6.0] * 3 + [7]] * 3


def test_from_slurm(ranks):
    results = ranks.run_without_group(3, cases.from_slurm, free_port())
    assert results == [[6.0, rank, rank] for rank in range(3)]


def test_from_a_url(ranks, tmp_path):
    for url in (f"tcp://127.0.0.1:{free_port()}", f"file://{tmp_path / 'store'}"):
        assert ranks.run_without_group(2, cases.from_url, url) == [[3.0, "cpu:gloo", "cpu:gloo", 2, 1]] * 2
    assert ranks.run_without_group(2, cases.from_url_with_rank, f"tcp://localhost:{free_port()}") == [3.0] * 2


def test_from_a_store(ranks, tmp_path):
    assert ranks.run_without_group(3, cases.from_store, str(tmp_path / "store")) == [[6.0, 6.0]] * 3


def test_rejected_arguments(ranks):
    (messages,) = ranks.run_without_group(1, cases.rejected)
    environment = "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable"
    expected = [
        "ValueError: Default process group has not been initialized, please make sure to call init_process_group.",
        f"{environment} RANK expected, but not set",
        f"{environment} WORLD_SIZE expected, but not set",
        f"{environment} MASTER_ADDR expected, but not set",
        "ValueError: Error initializing torch.distributed using tcp:// rendezvous: port number missing",
        "ValueError: Error initializing torch.distributed using tcp:// rendezvous: rank parameter missing",
        "RuntimeError: No rendezvous handler for other://",
        "TypeError: Expected timeout argument to be of type datetime.timedelta, got 3",
        "RuntimeError: Distributed package doesn't have MPI built in",
        "RuntimeError: Distributed package doesn't have NCCL built in",
        "AssertionError: Unknown c10d backend type UNKNOWN",
        "ValueError: Invalid device:backend pairing: cpu:gloo:x",
        "AssertionError: Cannot specify both init_method and store.",
        "AssertionError: Process group cannot be None",
    ]
    assert len(messages) == len(expected)
    for message, beginning in zip(messages, expected, strict=True):
        assert message.startswith(beginning)


def test_processes_that_exit_without_destroying_the_group(own_ranks):
    group = own_ranks(2)
    assert group.run_without_group(2, cases.exit_without_destroying, free_port()) == [3.0] * 2
    for rank in group.all:
        rank.stop()
        assert rank.process.returncode == 0


def test_uncaught_exception_is_preceded_by_the_rank():
    script = textwrap.dedent(f"""
        import teletensor.distributed as dist
        dist.init_process_group("gloo", "tcp://127.0.0.1:{free_port()}", rank=0, world_size=1)
        raise KeyError("missing")
    """)
    environment = client_environment(TELETENSOR_THREADS="1")
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1 and "[rank0]: KeyError: 'missing'" in done.stderr


def test_store_of_the_default_group(ranks):
    assert ranks.run(2, cases.default_store) == [["0", "1"]] * 2
