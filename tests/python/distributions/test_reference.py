"""Distributions, transforms, constraints and divergences, compared with PyTorch's results in reference.json."""

import json
from pathlib import Path

import numpy as np
import pytest

from . import cases

pytestmark = pytest.mark.usefixtures("device")

REFERENCE = json.loads(Path(__file__).with_name("reference.json").read_text())


def check(actual, expected, place: str, rtol: float = 1e-7) -> None:
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys(), place
        for key in expected:
            check(actual[key], expected[key], f"{place} {key}", rtol)
    elif isinstance(expected, (str, bool)) or isinstance(actual, str):
        assert actual == expected, place
    elif isinstance(expected, list) and any(isinstance(e, (str, list)) for e in expected):
        assert len(actual) == len(expected), place
        for i, (a, e) in enumerate(zip(actual, expected)):
            check(a, e, f"{place}[{i}]", rtol)
    else:
        assert np.shape(actual) == np.shape(expected), f"{place}: {actual} {expected}"
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-9, err_msg=place)


def row_name(row) -> str:
    return f"{row[0]}-{'-'.join(row[1])}" if isinstance(row[1], dict) else row[0]


@pytest.mark.parametrize("index", range(len(cases.DISTRIBUTIONS)), ids=map(row_name, cases.DISTRIBUTIONS))
def test_distributions(torch, index):
    row, expected = cases.DISTRIBUTIONS[index], REFERENCE["distributions"][index]
    # PyTorch's polynomials for Bessel functions have an error of 2e-7, and their derivatives a larger one.
    check(cases.evaluate(torch, row), expected, row[0], 1e-4 if row[0] == "VonMises" else 1e-7)


@pytest.mark.parametrize("index", range(len(cases.TRANSFORMS)), ids=map(row_name, cases.TRANSFORMS))
def test_transforms(torch, index):
    check(cases.evaluate_transform(torch, cases.TRANSFORMS[index]), REFERENCE["transforms"][index], cases.TRANSFORMS[index][0])


def test_constraints(torch):
    for row, expected in zip(cases.CONSTRAINTS, REFERENCE["constraints"], strict=True):
        check(cases.evaluate_constraint(torch, row), expected, row[0])


def test_divergences(torch):
    check(cases.evaluate_divergences(torch), REFERENCE["divergences"], "KL")
