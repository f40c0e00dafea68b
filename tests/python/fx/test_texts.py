"""Compares printed graphs and generated code with the texts that record.py wrote with PyTorch."""

from __future__ import annotations

import json

import pytest

import teletensor as torch
import teletensor.fx

from . import cases, programs
from .record import TEXTS, plain, texts

EXPECTED = json.loads(TEXTS.read_text())
# Functions that PyTorch takes from private modules; teletensor's graphs name the public ones.
RENAMED = {"torch._C._nn.": "torch.nn.functional."}


@pytest.fixture(scope="module")
def found():
    return json.loads(json.dumps(texts(torch)))


@pytest.mark.parametrize("name", [program.__name__ for program in programs.PLAIN])
@pytest.mark.parametrize("kind", ["graph", "code", "table"])
def test_texts_are_pytorchs(found, name, kind):
    assert found[name][kind] == EXPECTED[name][kind]


def test_readable_text_is_pytorchs(found):
    assert found["readable"] == EXPECTED["readable"]


@pytest.mark.parametrize("name", [program.__name__ for program in programs.CALLING])
def test_functions_have_pytorchs_names(found, name):
    expected = [[op, node, target] for op, node, target in EXPECTED[name]]
    for row in expected:
        for private, public in RENAMED.items():
            row[2] = row[2].replace(private, public)
    assert found[name] == expected


@pytest.mark.parametrize("name", [name for name in vars(cases) if name.startswith("case_")])
def test_results_are_pytorchs(name):
    assert json.loads(json.dumps(plain(getattr(cases, name)(torch)))) == EXPECTED[name]
