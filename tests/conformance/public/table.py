"""Which of PyTorch's public names exist here, which of those only raise NotImplementedError, and why the rest is missing."""

from __future__ import annotations

import ast
import fnmatch
import importlib
import inspect
import textwrap
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from .record import NAMES

REASONS = Path(__file__).with_name("reasons.yaml")
PAGE = Path(__file__).resolve().parents[3] / "docs/names.md"
_ABSENT = object()


def public_names(path: Path = NAMES) -> list[str]:
    """All of PyTorch's public names, with their modules."""
    rows = [line.split(": ", 1) for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [f"{module}.{name}" for module, names in rows for name in names.split()]


def reasons(path: Path = REASONS) -> dict[str, str]:
    """Maps patterns of names to the reason why these names are missing."""
    return {pattern: row["why"] for row in yaml.safe_load(path.read_text()) for pattern in row["names"].split()}


def reason(name: str, table: dict[str, str]) -> tuple[str, str]:
    """(pattern, reason) of a missing name; the most specific pattern counts. ("", "") if there is none."""
    found = [pattern for pattern in table if fnmatch.fnmatchcase(name, pattern)]
    pattern = max(found, key=len, default="")
    return pattern, table.get(pattern, "")


def find(package: ModuleType, name: str) -> Any:
    """The package's object for `torch.a.b`; `_ABSENT` if there is none."""
    module, _, attribute = name.rpartition(".")
    if module == "torch.Tensor":
        return getattr(package.Tensor, attribute, _ABSENT)
    path = package.__name__ + module.removeprefix("torch")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(importlib.import_module(path), attribute, _ABSENT)
    except ImportError:
        return _ABSENT


def absent(package: ModuleType, names: list[str]) -> list[str]:
    """The names that the package does not have."""
    return [name for name in names if find(package, name) is _ABSENT]


def uses(paths: list[Path]) -> dict[str, int]:
    """The number of programs that use each name, from files with lines `count|name`."""
    found: dict[str, int] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            count, _, name = line.partition("|")
            if count.isdigit():
                found[name] = found.get(name, 0) + int(count)
    return found


def _only_raises(function: Any) -> bool:
    """Whether a function's body is a docstring and `raise NotImplementedError(...)`."""
    if "NotImplementedError" not in function.__code__.co_names:
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return False
    body = [s for s in getattr(tree, "body", []) if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], ast.Raise) or not isinstance(body[0].exc, ast.Call):
        return False
    return getattr(body[0].exc.func, "id", "") == "NotImplementedError"


def not_implemented(found: Any) -> str:
    """What is missing, from the message of a function or class that raises NotImplementedError; empty for others."""
    why = getattr(found, "__not_implemented__", "")
    if why:
        return why
    found = inspect.unwrap(getattr(found, "__wrapped__", found)) if callable(found) else found
    function = vars(found).get("__init__") if inspect.isclass(found) else found
    if not inspect.isfunction(function) or not _only_raises(function):
        return ""
    text = (inspect.getdoc(found) or "").split("\n")[0]
    return text.removeprefix("Raises NotImplementedError").lstrip(":; ").rstrip(".") or "not implemented"


@dataclass
class Report:
    """The names by what exists here."""

    works: list[str] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)  # name -> device; acts as in a PyTorch without the device; part of `works`
    raises: dict[str, str] = field(default_factory=dict)  # name -> what is not implemented
    explained: dict[str, str] = field(default_factory=dict)  # missing name -> reason
    unexplained: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)  # patterns that match no missing name

    @property
    def total(self) -> int:
        """The number of public names."""
        return len(self.works) + len(self.raises) + len(self.explained) + len(self.unexplained)


def report(package: ModuleType, names: list[str], table: dict[str, str]) -> Report:
    """Looks up every name in the package."""
    result, used = Report(), set()
    for name in names:
        found = find(package, name)
        if found is _ABSENT:
            pattern, why = reason(name, table)
            used.add(pattern)
            if why:
                result.explained[name] = why
            else:
                result.unexplained.append(name)
        elif why := not_implemented(found):
            result.raises[name] = why
        else:
            result.works.append(name)
            if device := getattr(found, "__absent_device__", ""):
                result.absent[name] = f"as in a build of PyTorch without {device}: counts are zero, other calls raise PyTorch's errors"
    result.stale = [pattern for pattern in table if pattern not in used]
    return result


def _rows(names: dict[str, str]) -> list[str]:
    """A row of a Markdown table per module and reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, why in names.items():
        module, _, attribute = name.rpartition(".")
        groups.setdefault((module, why), []).append(attribute)
    return [f"| `{module}` | {', '.join(f'`{n}`' for n in found)} | {why} |" for (module, why), found in sorted(groups.items())]


def emit(result: Report) -> str:
    """The page as Markdown."""
    lines = ["# Public names of PyTorch 2.15 that are missing or not implemented", ""]
    lines += ["Generated by `make names` from `tests/conformance/public`; other differences are in [differences.md](differences.md).", ""]
    lines += ["## Names that exist and raise NotImplementedError when called", "", "| module | names | what is not implemented |"]
    lines += ["|---|---|---|", *_rows(result.raises), ""]
    lines += ["## Names of devices that the engine does not have", "", "| module | names | what they do |", "|---|---|---|"]
    lines += [*_rows(result.absent), ""]
    lines += ["## Names that do not exist", "", "| module | names | reason |", "|---|---|---|", *_rows(result.explained)]
    return "\n".join(lines) + "\n"
