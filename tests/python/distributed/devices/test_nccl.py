"""Collectives of tensors on GPUs by NCCL, simulated: whether it is used, and the values.

The simulated NCCL (tests/cuda/simulated/nccl.cc) is part of the simulated CUDA library, to which a folder of
LD_LIBRARY_PATH has links. It logs its calls.
"""

from __future__ import annotations

import collections
import os
import time
from pathlib import Path

import pytest

from ....conftest import SIMULATED
from ..failures import failure_cases
from ..failures.test_failures import form, kill
from ..ranks import Ranks
from . import device_cases

SHARED = {"TELETENSOR_SIMULATED_UUID": "one for all"}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not SIMULATED, reason="uses simulated GPUs")]


def environment(path: Path, **more: str) -> dict[str, str]:
    """The environment of ranks with simulated GPUs and NCCL; `path` is an empty folder."""
    libraries, exchange = path / "libraries", path / "exchange"
    for folder in (libraries, exchange):
        folder.mkdir()
    for name in ("libnccl.so.2", "libcuda.so.1"):
        (libraries / name).symlink_to(SIMULATED)
    search = [str(libraries), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {
        "TELETENSOR_CUDA_PLUGIN": SIMULATED,
        "LD_LIBRARY_PATH": os.pathsep.join(search),
        "TELETENSOR_SIMULATED_NCCL": str(exchange),
        **more,
    }


def calls(path: Path) -> collections.Counter:
    """How often each function of NCCL was called, by all ranks."""
    counts: collections.Counter = collections.Counter()
    for log in (path / "exchange").glob("calls-*"):
        counts.update(line.split()[0] for line in log.read_text().splitlines())
    return counts


@pytest.fixture(scope="module")
def nccl(ranks, tmp_path_factory):  # `ranks` skips runs without private engines
    """Four ranks, and the folder with their logs."""
    path = tmp_path_factory.mktemp("nccl")
    group = Ranks(4, **environment(path))
    yield group, path
    group.stop()


def used(nccl, size: int, case, **options) -> collections.Counter:
    """Runs a case, which returns the names of wrong results; returns the calls of NCCL that it made."""
    group, path = nccl
    before = calls(path)
    assert group.run(size, case, **options) == [[]] * size
    deadline = time.monotonic() + 10
    while True:  # the engines leave the group in the background
        made = calls(path) - before
        if made["init"] == made["destroy"] + made["abort"] or time.monotonic() > deadline:
            return made
        time.sleep(0.01)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("length", [1, 1000])
def test_collectives(nccl, size, length):
    assert used(nccl, size, device_cases.collectives, length=length) == {
        "init": size,
        "all_reduce": size,
        "broadcast": size,
        "all_gather": 2 * size,
        "reduce_scatter": size,
        "messages": size,
        "finalize": size,
        "destroy": size,
    }


@pytest.mark.parametrize("size", [1, 2, 3])
def test_reductions_of_all_dtypes(nccl, size):
    counts = used(nccl, size, device_cases.reductions)
    assert counts["all_reduce"] == size * device_cases.reductions_of_nccl()
    assert counts["reduce"] == counts["reduce_scatter"] == size


@pytest.mark.parametrize("size", [1, 2, 4])
def test_pieces(nccl, size):
    counts = used(nccl, size, device_cases.pieces)
    assert counts["messages"] == 4 * size


def test_groups_have_their_own_communicators(nccl):
    counts = used(nccl, 4, device_cases.in_groups)
    assert counts["init"] == counts["destroy"] == 4 + 4


def test_other_memory_is_copied_through_the_host(nccl):
    counts = used(nccl, 3, device_cases.mixed_devices)
    assert counts["init"] == 3
    assert counts["all_reduce"] == 4 * 3


def test_errors_do_not_reach_nccl(nccl):
    counts = used(nccl, 2, device_cases.errors)
    assert counts["all_reduce"] == 2 * 2


@pytest.mark.parametrize("change", [SHARED, {"TELETENSOR_GROUP_NCCL": "off"}], ids=["shared GPU", "off"])
def test_without_nccl(own_ranks, tmp_path, change):
    group = own_ranks(2, **environment(tmp_path, **change))
    assert group.run(2, device_cases.collectives, length=100) == [[]] * 2
    assert not calls(tmp_path)


def test_one_rank_without_nccl(own_ranks, tmp_path):
    (tmp_path / "with").mkdir()
    group = own_ranks(2, **environment(tmp_path / "with"))
    group.all[1].stop()
    group.all[1] = type(group.all[1])(TELETENSOR_CUDA_PLUGIN=SIMULATED)
    assert group.run(2, device_cases.collectives, length=100) == [[]] * 2
    assert not calls(tmp_path / "with")


def test_training(nccl):
    group, path = nccl
    for kind, reduction in (("DistributedDataParallel", "all_reduce"), ("fully_shard", "reduce_scatter")):
        before = calls(path)
        assert max(group.run(2, device_cases.trains, kind=kind)) < 1e-5
        assert (calls(path) - before)[reduction] >= 2 * 2  # per step and rank


def test_compressed_gradients(nccl):
    group, path = nccl
    before = calls(path)
    assert max(group.run(2, device_cases.trains, kind="DistributedDataParallel", compresses=True)) < 1e-2
    assert (calls(path) - before)["all_reduce"] >= 2 * 2


def test_failed_gradients(nccl):
    for error in nccl[0].run(2, device_cases.failed_gradients):
        assert "out of bounds" in error or "out of range" in error


def test_lost_rank(own_ranks, tmp_path):
    group = own_ranks(3, **environment(tmp_path))
    pids = form(group, 3, "shm")
    for rank in range(3):
        group.all[rank].start(failure_cases.stream_on_gpu, 1000, 20)
    time.sleep(1.5)
    assert calls(tmp_path)["all_reduce"] > 0
    kill(group, 2, "engine", pids)
    for rank in range(2):
        assert "rank 2" in group.all[rank].result()
