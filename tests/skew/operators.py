"""The operators of a released version beside those of this tree. A client omits trailing arguments that equal their defaults,
so a newer engine may add parameters with defaults at the end, and nothing else."""

from __future__ import annotations

from pathlib import Path

from engine.codegen.declaration import load
from engine.codegen.signature import parse_signature

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDED = Path(__file__).parent / "operators_0.1.txt"


def current(root: Path = ROOT) -> dict[int, tuple[str, str]]:
    """Maps the ids of a tree's operators to their names and signatures."""
    return {op.entry["id"]: (op.name, op.entry["sig"]) for op in load(root / "engine/ops")}


def recorded() -> dict[int, tuple[str, str]]:
    """Maps the ids of the operators of version 0.1 to their names and signatures."""
    table = {}
    for line in RECORDED.read_text().splitlines():
        number, rest = line.split(" ", 1)
        name, signature = rest.split("(", 1)
        table[int(number)] = (name, f"({signature}")
    return table


def changes(old: dict[int, tuple[str, str]], new: dict[int, tuple[str, str]]) -> list[str]:
    """Describes each change by which an engine with `new` could misunderstand a client with `old`."""
    found = []
    for number, (name, text) in old.items():
        if number not in new:
            found.append(f"{name}: operator {number} was removed")
            continue
        if new[number][0] != name:
            found.append(f"{name}: operator {number} is now {new[number][0]}")
            continue
        before, after = parse_signature(text), parse_signature(new[number][1])
        if before.num_outputs != after.num_outputs:
            found.append(f"{name}: another number of results")
        changed = [b.name for a, b in zip(before.params, after.params) if a != b]
        removed = [a.name for a in before.params[len(after.params) :]]
        required = [b.name for b in after.params[len(before.params) :] if not b.has_default]
        found += [f"{name}: parameter {each} changed" for each in changed[:1]]
        found += [f"{name}: parameter {each} was removed" for each in removed]
        found += [f"{name}: the new parameter {each} has no default" for each in required]
    return found
