"""torch.distributed.rpc: calls, references, errors and limits."""

from __future__ import annotations

import pytest

from ..values import DTYPES
from . import rpc_cases as cases

pytestmark = pytest.mark.slow


def run(group, size: int, case, settings: dict | None = None, **options) -> list:
    """Runs a case on workers, which meet at the port of the ranks' groups: a session serves a limited number of stores."""
    return group.run_without_group(size, cases.run, case.__name__, group._port, options, settings)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_calls(ranks, size):
    run(ranks, size, cases.calls)


def test_every_dtype(ranks):
    run(ranks, 2, cases.every_dtype, dtypes=DTYPES)


def test_large_tensors(ranks):
    run(ranks, 2, cases.large_tensors)


def test_arguments_are_values(ranks):
    run(ranks, 2, cases.arguments_are_values)


def test_errors_keep_their_type_and_traceback(ranks):
    for messages in run(ranks, 2, cases.errors):
        assert len(messages) == 9
        assert "On WorkerInfo(id=" in messages[0] and "ValueError('the reason')" in messages[0]
        assert "index 7 is out of bounds" in messages[-1]


def test_refused_calls(ranks):
    expected = [
        ("ValueError", "unregistered: decorate it with rpc.register"),
        ("ValueError", "expected a registered function or an operator, got print"),
        ("ValueError", "<lambda>"),
        ("TypeError", "function should be callable"),
        ("ValueError", "got save"),
        ("TypeError", "cannot send an object of type"),
        ("TypeError", "cannot send an object of type"),
        ("ValueError", "expected at most 8388608 bytes"),
        ("RuntimeError", "Unknown destination worker worker9"),
        ("RuntimeError", "Unknown destination worker id 77"),
        ("ValueError", "Cannot get WorkerInfo"),
        ("PermissionError", "no registered function 'builtins:eval'"),
        ("PermissionError", "no registered function 'os:system'"),
        ("KeyError", "no.such"),
        ("ValueError", "expected an RRef that worker"),
        ("RuntimeError", "Could not find autograd context"),
    ]
    for found in run(ranks, 2, cases.refused):
        assert found.pop() == 1, "the workers go on"
        for (kind, message), (expected_kind, part) in zip(found, expected, strict=True):
            assert kind == expected_kind and part in message, (kind, message)


def test_futures_and_threads(ranks):
    run(ranks, 2, cases.futures)


def test_async_execution(ranks):
    run(ranks, 3, cases.asynchronous, {"num_worker_threads": 2})


def test_timeouts(ranks):
    for found in run(ranks, 2, cases.timeouts, {"rpc_timeout": 0.3}):
        for kind, message in found[:3]:
            assert kind == "RuntimeError" and "RPC ran for more than set timeout (50 ms)" in message
        assert "RPC ran for more than set timeout (300 ms)" in found[3][1]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_references(ranks, size):
    run(ranks, size, cases.references)


def test_values_are_freed_with_their_last_reference(ranks):
    run(ranks, 3, cases.reference_counts)


def test_beside_a_process_group(ranks):
    run(ranks, 3, cases.in_a_group, port=ranks._port)
