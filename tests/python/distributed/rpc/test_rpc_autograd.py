"""Distributed autograd and DistributedOptimizer: gradients and losses are those of one engine."""

from __future__ import annotations

import pytest

from . import rpc_autograd_cases as cases

pytestmark = pytest.mark.slow


def run(group, size: int, case) -> None:
    group.run_without_group(size, cases.run, case.__name__, group._port, {})


def test_one_call(ranks):
    run(ranks, 2, cases.one_call)


@pytest.mark.parametrize("size", [2, 3])
def test_graphs_of_calls(ranks, size):
    run(ranks, size, cases.graphs)


def test_several_passes(ranks):
    run(ranks, 2, cases.several_passes)


def test_errors(ranks):
    run(ranks, 2, cases.errors)


def test_contexts_are_released_on_all_workers(ranks):
    run(ranks, 3, cases.contexts_are_released)


def test_threads(ranks):
    run(ranks, 2, cases.threads)


def test_backward_of_a_reference(ranks):
    run(ranks, 2, cases.rref_backward)


@pytest.mark.parametrize("size", [2, 3])
def test_training_gives_the_losses_of_one_engine(ranks, size):
    run(ranks, size, cases.training)


def test_modules_on_other_workers(ranks):
    run(ranks, 2, cases.remote_module)
