"""Functions that compose operators in Python are listed with their reason in python/teletensor/COMPOSED.md.

A function composes operators if it, with the private functions of its file that it calls, contains at least two calls of
operators or of methods that are operators. `python -m tests.python.functions.test_composed` prints the functions by file.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from engine.codegen.declaration import load
from engine.codegen.python_bindings import names_of

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "python/teletensor"
PAGE = PACKAGE / "COMPOSED.md"
HOMES = ("_ops/*.py", "_functions.py", "linalg/*.py", "nn/*.py", "fft.py", "special.py", "signal/*.py", "masked/_functions.py")
# Names in these files through which functions call operators.
PLACES = {"_torch", "_ops", "_functional", "_C.ops", "_C.torch", "_C.functional", "_C.linalg", "_C.fft", "_C.special"}


def composing_functions(source: str, methods: set[str]) -> set[str]:
    """The public functions of a file that call two or more operators."""
    functions = {n.name: n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)}

    def is_operator(node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.MatMult)
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return False
        owner = ast.unparse(node.func.value)
        return owner in PLACES or (node.func.attr in methods and owner not in ("math", "warnings"))

    def count(name: str, seen: set[str]) -> int:
        if name in seen:
            return 0
        seen.add(name)
        nodes = list(ast.walk(functions[name]))
        called = [n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in functions]
        return sum(map(is_operator, nodes)) + sum(count(other, seen) for other in called)

    return {name for name in functions if not name.startswith("_") and count(name, set()) > 1}


def found() -> dict[str, set[str]]:
    """The composing functions, by file."""
    methods = {name for op in load(ROOT / "engine/ops") if "Tensor" in op.python for name in names_of(op)} - {"real", "imag"}
    files = sorted(path for pattern in HOMES for path in PACKAGE.glob(pattern))
    by_file = {str(path.relative_to(PACKAGE)): composing_functions(path.read_text(), methods) for path in files}
    return {file: names for file, names in by_file.items() if names}


def listed() -> dict[str, set[str]]:
    """The functions of the page's table, by file; each row has a reason."""
    rows: dict[str, set[str]] = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            assert len(cells) == 3 and len(cells[2]) > 10, line
            names = rows.setdefault(cells[0].strip("`"), set())
            own = set(re.findall(r"`(\w+)`", cells[1]))
            assert own and not own & names, line
            names |= own
    return rows


def test_functions_are_listed_with_reasons():
    assert found() == listed()


def test_counting():
    source = "def f(x): return x.exp().log()\ndef g(x): return x.exp()\ndef _h(x): return x.exp()\ndef i(x): return _h(x) @ x\n"
    assert composing_functions(source, {"exp", "log"}) == {"f", "i"}


if __name__ == "__main__":
    for file, names in found().items():
        print(file, *sorted(names))
