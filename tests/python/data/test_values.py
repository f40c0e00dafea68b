"""Orders, batches and errors of torch.utils.data, compared with PyTorch's (recorded by record.py)."""

import json
import warnings

import pytest

from .record import VALUES, cases, plain

pytestmark = pytest.mark.slow

np = pytest.importorskip("numpy")
RECORDED = json.loads(VALUES.read_text()) if VALUES.exists() else {}


@pytest.mark.parametrize("name", sorted(cases()))
def test_value(torch, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = json.loads(json.dumps(plain(cases()[name](torch))))
    expected = RECORDED[name]
    if isinstance(expected, list) and isinstance(found, list):
        wrong = [(i, a, b) for i, (a, b) in enumerate(zip(found, expected)) if a != b]
        assert wrong == [] and len(found) == len(expected)
    assert found == expected
