"""Collectives, training, pipelines and divided sequences with tensors on a GPU."""

from __future__ import annotations

import pytest

from ....conftest import SIMULATED
from ..model_parallel import context_parallel_cases, pipeline_cases
from ..ranks import Ranks
from . import device_cases

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def gpu_ranks(ranks):  # `ranks` skips runs without private engines
    group = Ranks(2, TELETENSOR_CUDA_PLUGIN=SIMULATED)
    yield group
    group.stop()


@pytest.mark.parametrize("length", [1, 1000])
def test_collectives(gpu_ranks, length):
    assert gpu_ranks.run(2, device_cases.collectives, length=length) == [[], []]


@pytest.mark.parametrize("kind", ["DistributedDataParallel", "fully_shard"])
def test_training(gpu_ranks, kind):
    assert max(gpu_ranks.run(2, device_cases.trains, kind=kind)) < 1e-5


def test_tensors_of_different_sizes(gpu_ranks):
    gpu_ranks.run(2, device_cases.different_sizes)


def test_arguments_are_copied_to_the_device(gpu_ranks):
    assert gpu_ranks.run(2, device_cases.moved_inputs) == [["cuda"] * 4] * 2


def test_pipeline(gpu_ranks):
    assert max(gpu_ranks.run(2, pipeline_cases.on_devices)) < 1e-5


@pytest.mark.parametrize("method", ["allgather", "alltoall"])
def test_divided_sequences(gpu_ranks, method):
    for differences in gpu_ranks.run(2, context_parallel_cases.compares, method=method, device="cuda"):
        assert max(differences) < 1e-4
