"""Compares the recorded declarations of PyTorch with our signatures, and writes the table of differences."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from . import ours
from .compare import differences
from .reasons import reason

DECLARATIONS = Path(__file__).with_name("declarations.txt")

PAGE = """# Signatures compared with PyTorch's

`make signatures` compares the parameters of all public callables (names, order, defaults, positional or keyword-only,
overloads) with the declarations in PyTorch's wheel ({version}) and writes this page. Every call that PyTorch's
declarations allow is accepted alike, except for the differences below.

| difference | of | why |
|---|---|---|
"""


@dataclass(frozen=True)
class Difference:
    name: str
    text: str
    why: str  # empty if not explained


@dataclass
class Result:
    compared: int
    absent: list[str]
    found: list[Difference]

    @property
    def unexplained(self) -> list[str]:
        return [f"{d.name}: {d.text}" for d in self.found if not d.why]


@functools.cache
def recorded(path: Path = DECLARATIONS) -> dict[str, list[str]]:
    """PyTorch's parameter lists by name."""
    rows: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            name, parameters = line.split("(", 1)
            rows[name].append(parameters.removesuffix(")"))
    return dict(rows)


def version(path: Path = DECLARATIONS) -> str:
    """The version of PyTorch whose declarations are recorded."""
    return path.read_text().splitlines()[0].split("PyTorch ")[1].split(",")[0]


@functools.cache
def check() -> Result:
    """Compares all recorded names. A class of ours may define a method in any base class."""
    found, absent, compared = [], [], 0
    for name, theirs in recorded().items():
        try:
            mine = ours.signatures(name)
        except ours.Absent:
            absent.append(name)
            continue
        compared += 1
        found += [Difference(name, text, reason(name, text)) for text in differences(theirs, mine)]
    return Result(compared, absent, found)


def summary(result: Result) -> str:
    """The totals, in one line."""
    differing = {d.name for d in result.found}
    unexplained = {d.name for d in result.found if not d.why}
    return (
        f"{result.compared} callables compared, {len(result.absent)} absent or not implemented here; {len(result.found)} differences in "
        f"{len(differing)} callables, {len(result.unexplained)} in {len(unexplained)} of them not explained"
    )


def page(result: Result) -> str:
    """The table as Markdown, differences with one reason in one row."""
    rows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for d in result.found:
        rows[(d.why or "not explained", d.text)].append(d.name.removeprefix("torch."))
    lines = []
    for (why, text), names in sorted(rows.items()):
        lines.append(f"| {text} | {', '.join(f'`{n}`' for n in sorted(names))} | {why} |")
    return PAGE.format(version=version()) + "".join(line + "\n" for line in lines)
