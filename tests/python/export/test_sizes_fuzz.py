"""A fixed number of the random functions of tests/fuzz/sizes_fuzz.py, which runs more of them, with more sizes."""

from __future__ import annotations

import pytest

from tests.fuzz import sizes_fuzz


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(40))
def test_graphs_of_many_sizes(torch, number):
    """Each entry point gives the function's values, or refuses."""
    check = sizes_fuzz.Check(torch, sizes_fuzz.ENTRY_POINTS, budget=1.0)
    names = [name for name in sizes_fuzz.ENTRY_POINTS if name != "aot_function" or number % 10 == 1]  # which is slow
    report = check(sizes_fuzz.made_program(torch, 1, number, 25), names)
    assert not report, report


def test_programs_are_determined_by_the_seed(torch):
    first, again = (sizes_fuzz.made_program(torch, 5, 3, 10) for _ in range(2))
    assert first == again and len(first.shapes) > 1
