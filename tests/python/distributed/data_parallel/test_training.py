"""Differentiable collectives, SyncBatchNorm and DistributedSampler."""

from __future__ import annotations

import pytest

from . import training_cases as cases


@pytest.mark.parametrize("size", [1, 2, 3])
def test_gradients_of_collectives(ranks, size):
    ranks.run(size, cases.gradients)


@pytest.mark.parametrize(("dims", "empty"), [(2, False), (3, False), (4, False), (4, True)])
def test_sync_batch_norm_equals_batch_norm_of_all_batches(ranks, dims, empty):
    ranks.run(3, cases.sync_batch_norm, dims=dims, empty=empty)


def test_sync_batch_norm_without_a_group_is_a_batch_norm(torch):
    x = torch.randn(5, 4)
    assert torch.nn.SyncBatchNorm(4)(x).tolist() == torch.nn.BatchNorm1d(4)(x).tolist()


def test_sampler_uses_the_default_group(ranks):
    assert ranks.run(3, cases.sampler) == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]


def test_sampler_without_a_group_requires_its_rank(torch):
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        torch.utils.data.DistributedSampler(range(10))
