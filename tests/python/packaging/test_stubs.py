"""The type stubs declare exactly the existing names."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("TELETENSOR_BUILD", Path(__file__).resolve().parents[3] / "build"))
STUBS = BUILD / "generated/stubs/_C"


def defined(body: list[ast.stmt]) -> set[str]:
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("module", ["torch", "functional", "ops"])
def test_functions(torch, module):
    there = {name for name in vars(getattr(torch._C, module)) if not name.startswith("__")}
    assert defined(ast.parse((STUBS / f"{module}.pyi").read_text()).body) == there


def test_tensor(torch):
    tree = ast.parse((STUBS / "__init__.pyi").read_text())
    tensor = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    lacking = [name for name in defined(tensor.body) if not hasattr(torch.Tensor, name)]
    assert lacking == []
    fields = {node.target.id for node in tensor.body if isinstance(node, ast.AnnAssign)}
    public = {name for name in vars(torch.Tensor) if not name.startswith("_")}
    assert sorted(public - defined(tensor.body) - fields) == []
