"""The engine's continuous profile: what all sessions did when it sampled them. For `teletensor profile`."""

from __future__ import annotations

import collections
from collections.abc import Iterable

from .. import _printable

_FIELDS = ("principal", "session", "phase", "op", "kernel", "site")


def decode(text: str) -> dict:
    """Returns a reply of Admin.profile() with numbers as numbers."""
    reply = _printable.loads(text)
    reply["samples"] = int(reply["samples"])
    for entry in reply["entries"]:
        entry["session"], entry["count"] = int(entry["session"]), int(entry["count"])
    return reply


def _key(entry: dict) -> tuple:
    return tuple(entry[field] for field in _FIELDS)


def since(before: dict, after: dict) -> dict:
    """Returns what was sampled between two replies of one engine."""
    known = {_key(entry): entry["count"] for entry in before["entries"]}
    entries = [{**entry, "count": entry["count"] - known.get(_key(entry), 0)} for entry in after["entries"]]
    numbers = {name: after[name] - before[name] for name in ("seconds", "samples", "cpu_seconds")}
    return {**after, **numbers, "entries": [entry for entry in entries if entry["count"] > 0]}


def collapsed(profile: dict) -> str:
    """Returns a line per stack with its number of samples, for flame graphs: principal, session, line, operators."""
    lines: collections.Counter[str] = collections.Counter()
    for entry in profile["entries"]:
        operators = [entry["op"], entry["kernel"]] if entry["kernel"] != entry["op"] else [entry["op"]]
        parts = [entry["principal"], f"session {entry['session']}", entry["site"], entry["phase"], *operators]
        lines[";".join(part.replace(";", ",") for part in parts if part)] += entry["count"]
    return "".join(f"{stack} {count}\n" for stack, count in sorted(lines.items()))


def rows(profile: dict, by: Iterable[str] = ("session", "phase", "op", "site")) -> list[tuple]:
    """Returns the totals of samples by fields, the largest first: the fields, the count, its share of the busy samples."""
    counts: collections.Counter[tuple] = collections.Counter()
    for entry in profile["entries"]:
        counts[tuple(entry[field] for field in by)] += entry["count"]
    total = sum(counts.values())
    return [(*key, count, count / total) for key, count in counts.most_common()]


def table(profile: dict, by: tuple[str, ...] = ("session", "phase", "op", "site"), limit: int = 30) -> str:
    """Returns the totals as a table.

    A session that executes has one sample per `1 / rate` seconds; its share is that of the sessions' time.
    """
    cost = profile["cpu_seconds"] / profile["seconds"] if profile["seconds"] > 0 else 0.0
    head = (
        f"{profile['samples']} samples in {profile['seconds']:.1f} s, at most {profile['rate']:g} per second; "
        f"sampling took {100 * cost:.2f} % of one core"
    )
    found = rows(profile, by)
    if not found:
        return head + "\nno session had work"
    cells = [(*by, "samples", "share")] + [
        (*(str(part) or "-" for part in row[:-2]), str(row[-2]), f"{100 * row[-1]:.1f} %") for row in found[:limit]
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    text = len(by)
    lines = [
        "  ".join(c.ljust(w) if i < text else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in cells
    ]
    more = [f"... {len(found) - limit} more"] if len(found) > limit else []
    return "\n".join([head, *lines, *more])
