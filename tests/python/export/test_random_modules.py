"""Random modules: programs of many sizes, files, and ONNX models compute what the modules compute (random_modules.py has more)."""

from __future__ import annotations

import pytest

from .random_modules import check, check_onnx


@pytest.mark.parametrize("seed", [0, 3, 4, 11, 16, 23])
def test_programs(torch, seed):
    check(torch, seed)


@pytest.mark.parametrize("seed", range(5))
def test_onnx_models(torch, seed):
    pytest.importorskip("onnx")
    check_onnx(torch, seed)
