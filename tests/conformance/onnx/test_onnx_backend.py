"""ONNX's backend tests, and random graphs against onnxruntime."""

from __future__ import annotations

import json

import pytest

from . import operators, random_graphs, run


@pytest.mark.slow
def test_the_backend_tests_pass_as_expected():
    """About 2,000 tests, in 10 s. `expected.json` lists those that fail, with reasons."""
    tests = run.cases()
    assert len(tests) > 1800
    failed = run.run(tests)
    assert set(failed) == set(json.loads(run.EXPECTED.read_text())), failed


def test_the_page_of_operators_is_current():
    assert operators.PAGE.read_text() == operators.page(), "run python -m tests.conformance.onnx.operators"


@pytest.mark.parametrize("seed", range(0, 100, 10))
def test_random_graphs_equal_onnxruntime(seed):
    for number in range(seed, seed + 10):
        text = random_graphs.differences(number)
        assert not text or text.startswith("refused"), f"graph {number}: {text}"
