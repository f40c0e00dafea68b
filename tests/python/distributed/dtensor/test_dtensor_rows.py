"""Every declared operator on distributed tensors: values and gradients equal those of ordinary tensors."""

from __future__ import annotations

import pytest

from ....operators.samples import OPERATORS
from . import dtensor_row_cases as cases

pytestmark = pytest.mark.slow

NAMES = [
    op.name
    for op in OPERATORS
    if op.entry["samples"] and not op.is_random and any(p.is_tensor or p.is_tensor_list for p in op.params)
]


@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_in_every_placement(controller, name):
    (failures,) = controller.run_without_group(1, cases.check_operator, name)
    assert failures == []
