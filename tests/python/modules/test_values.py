"""Values, texts and calls of hooks equal PyTorch's, which record.py stored in values.json."""

import json
import warnings

import pytest

from ..names.record import plain
from ..names.test_values import check
from .record import VALUES, cases

CASES, RECORDED = cases(), json.loads(VALUES.read_text())


@pytest.mark.parametrize("name", CASES)
def test_value_equals_pytorchs(torch, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(plain(CASES[name](torch)), RECORDED[name], name)


def test_every_recorded_value_has_a_case():
    assert set(RECORDED) == set(CASES)
