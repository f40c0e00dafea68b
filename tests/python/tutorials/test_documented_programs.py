"""The Python blocks of all pages are valid programs whose imports and names exist; two of them run as they stand."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from types import ModuleType

import pytest

from tests.conftest import IN_PROCESS, client_environment
from tests.python.tutorials import page as pages

ROOT = pages.ROOT
BLOCK = re.compile(r"^( *)```python[^\n]*\n(.*?)^\1```$", re.M | re.S)
DOCUMENTS = [
    path
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "examples/README.md"])
    if BLOCK.search(path.read_text())
]


def programs(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a page, with the numbers of their first lines."""
    return [(text.count("\n", 0, m.start(2)) + 1, textwrap.dedent(m[2])) for m in BLOCK.finditer(text)]


def _run(statement: ast.stmt, names: dict) -> None:
    exec(compile(ast.Module([statement], []), "import", "exec"), names)  # noqa: S102 - our own documentation


def unknown_names(program: str, names: dict) -> list[str]:
    """The attributes of imported modules that do not exist. `names` has the imports of the page so far, and gets those of
    the program. Imports of packages that are not installed are left out."""
    tree = ast.parse(program)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            try:
                _run(node, names)
            except ModuleNotFoundError as error:
                if str(error.name).startswith("teletensor"):
                    raise
    missing = []
    for node in ast.walk(tree):
        path, root = [], node
        while isinstance(root, ast.Attribute):
            path.insert(0, root.attr)
            root = root.value
        if not path or not isinstance(root, ast.Name):
            continue
        value = names.get(root.id)
        for attribute in path:
            if not isinstance(value, ModuleType):
                break
            if not hasattr(value, attribute):
                missing.append(f"{root.id}.{'.'.join(path)}")
                break
            value = getattr(value, attribute)
    return sorted(set(missing))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_exist(torch, path):
    import teletensor.distributed
    import teletensor.nn.functional

    # What most pages assume without importing it.
    names = {"torch": torch, "nn": torch.nn, "F": teletensor.nn.functional, "dist": teletensor.distributed}
    missing = [(line, unknown_names(program, names)) for line, program in programs(path.read_text())]
    assert [(line, found) for line, found in missing if found] == []


def test_unknown_names_are_found(torch):
    program = "import teletensor as torch\nx = torch.linalg.nothing(torch.ones(3).anything)\n"
    assert unknown_names(program, {}) == ["torch.linalg.nothing"]
    with pytest.raises(ModuleNotFoundError):
        unknown_names("import teletensor.nothing", {})
    assert unknown_names("import a_package_that_is_not_installed", {}) == []


@pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")
@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_first_program_runs(daemon, name):
    _, program = programs((ROOT / name).read_text())[0]
    program, found = re.subn(r'connect\("[^"]*gpu-box:7070"\)', f'connect("{daemon.address}")', program)
    assert found == 1
    done = subprocess.run(
        [sys.executable, "-c", program], env=client_environment(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"-?\d+\.\d+\n", done.stdout)
