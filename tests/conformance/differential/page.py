"""Reasons of differences (reasons.yaml), totals, and the page."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import yaml

from .pool import Row

TABLE = yaml.safe_load(Path(__file__).with_name("reasons.yaml").read_text())
# Kinds of differences, each with its text in the totals. A reason explains only differences of the kinds that it names.
KINDS = {
    "accepted": "calls that PyTorch refuses are accepted",
    "refused": "calls that PyTorch accepts raise an exception",
    "exception": "raise an exception of another type",
    "result": "return another result",
}

PAGE = """# Calls with moved arguments, compared with PyTorch

`make differential` calls public functions, methods, modules, optimizers, schedulers, distributions, samplers,
initialisations, gradient functions and transforms in PyTorch {version} and in teletensor, with each argument moved from its
default and with all arguments by keyword and by position. It compares values, dtypes, sizes, `requires_grad`, the effect on
arguments, state dicts, gradients of modules, and exception types, and writes this page.

{summary}.

Each difference has a reason (`tests/conformance/differential/reasons.yaml`), which names the kinds of differences that it
explains. A number that differs, without an exception, is explained only if it is random or undefined, if its rounding is
amplified, or if PyTorch's is a fault; the reason says which.

| difference, in an example | of | calls | kind | why |
|---|---|---:|---|---|
"""


@dataclass(frozen=True)
class Difference:
    path: str  # such as `torch.add`
    argument: str  # such as `alpha=2`
    text: str
    why: str  # empty if not explained


def kind_of(text: str) -> str:
    """The kind of a difference (KINDS)."""
    if re.search(r"(^|: )no error, PyTorch raises \w", text):
        return "accepted"
    if re.search(r"; PyTorch raises \w", text):
        return "exception"
    return "refused" if re.search(r"(^|: )\w*(Error|Exception)\b: ", text) else "result"


def entry_of(path: str, argument: str, text: str) -> dict | None:
    """The first entry of reasons.yaml that explains a difference."""
    name, kind = path.removeprefix("torch."), kind_of(text)
    for entry in TABLE:
        if kind not in entry["kind"].split(", "):
            continue
        names = entry["names"] if isinstance(entry["names"], list) else [entry["names"]]
        is_named = any(fnmatch.fnmatchcase(name, n) for n in names)
        if is_named and fnmatch.fnmatchcase(argument, entry.get("argument", "*")) and re.search(entry.get("saying", ""), text):
            return entry
    return None


def differences(rows: list[Row]) -> tuple[list[Difference], list[dict]]:
    """All differences, and the entries of reasons.yaml that explain none of them."""
    found, used = [], set()
    for row in rows:
        for path, argument, text in row.found:
            entry = entry_of(path, argument, text)
            used.add(id(entry))
            found.append(Difference(path, argument, text, entry["why"] if entry else ""))
    return found, [entry for entry in TABLE if id(entry) not in used]


def summary(rows: list[Row], found: list[Difference]) -> str:
    """The totals, in one line."""
    counts = {kind: sum(row.counts.get(kind, 0) for row in rows) for kind in ("passed", "failed", "skipped", "missing")}
    overloads = {overload for row in rows for overload in row.overloads}
    functions = {overload.split("#")[0] for overload in overloads}
    by_kind = Counter(kind_of(d.text) for d in found)
    kinds = [f"{by_kind[kind]} {text}" for kind, text in KINDS.items()]
    return (
        f"{len(functions)} functions, methods and classes, {len(overloads)} overloads, {counts['passed'] + counts['failed']} "
        f"comparisons: {counts['passed']} as in PyTorch, {counts['failed']} differ ({', '.join(kinds)}), "
        f"{sum(not d.why for d in found)} of them without a reason; {counts['skipped']} calls have no counterpart (PyTorch does "
        f"not implement them, or their layout is not strided), {counts['missing']} are of absent names"
    )


def page(rows: list[Row], version: str, lacking: list[str] | tuple = ()) -> str:
    """The differences as a Markdown table, one row per reason. `lacking`: names that were not compared."""
    found, _ = differences(rows)
    by_reason: dict[str, list[Difference]] = defaultdict(list)
    for d in found:
        by_reason[d.why or "not explained"].append(d)
    lines = []
    for why, group in sorted(by_reason.items()):
        example = group[0]
        told = re.sub(r" \(issued at [^()]*\)", "", example.text)  # a path of this machine
        text = f"{example.path.removeprefix('torch.')}, {example.argument}: {told}".replace("|", "\\|").replace("\n", " ")[:200]
        kinds = ", ".join(sorted({kind_of(d.text) for d in group}))
        lines.append(f"| {text} | {_names(group)} | {len(group)} | {kinds} | {why} |")
    total = summary(rows, found) + (f"; not compared: {', '.join(f'`{name}`' for name in lacking)}" if lacking else "")
    return PAGE.format(version=version, summary=total) + "".join(line + "\n" for line in lines)


def _names(group: list[Difference]) -> str:
    """The functions and arguments of some differences, as in "`add` (alpha, out)"."""
    arguments: dict[str, set[str]] = defaultdict(set)
    for d in group:
        arguments[d.path.removeprefix("torch.")].add(d.argument.split("=")[0])
    return ", ".join(f"`{name}` ({', '.join(sorted(given))})" for name, given in sorted(arguments.items()))
