"""GlobGroup: patterns of names of modules or files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .._lazy import set_module

__all__ = ["GlobGroup"]


class GlobGroup:
    """Names that match one of the patterns in ``include`` and none in ``exclude``.

    Names and patterns consist of segments, divided by ``separator``. In a segment of a pattern, ``*`` is any text; a segment ``**``
    is any number of segments: ``torch.**`` matches ``torch`` and ``torch.nn.functional``, ``torch.*`` only ``torch.nn``.
    """

    def __init__(self, include: str | Iterable[str], *, exclude: str | Iterable[str] = (), separator: str = "."):
        self._text = f"GlobGroup(include={include}, exclude={exclude})"
        self.include, self.exclude = _compiled(include, separator), _compiled(exclude, separator)
        self.separator = separator

    def __repr__(self) -> str:
        return self._text

    def matches(self, candidate: str) -> bool:
        """Whether a name belongs to the group."""
        text = self.separator + candidate  # each segment has a separator before it
        return any(p.fullmatch(text) for p in self.include) and not any(p.fullmatch(text) for p in self.exclude)


def _compiled(patterns: str | Iterable[str], separator: str) -> list[re.Pattern]:
    return [_expression(p, separator) for p in ([patterns] if isinstance(patterns, str) else patterns)]


def _expression(pattern: str, separator: str) -> re.Pattern:
    start, text = re.escape(separator), f"[^{re.escape(separator)}]"
    parts = []
    for segment in pattern.split(separator):
        if segment == "**":
            parts.append(f"({start}{text}+)*")
        elif "**" in segment:
            raise ValueError("** can only appear as an entire path segment")
        else:
            parts.append(start + f"{text}*".join(map(re.escape, segment.split("*"))))
    return re.compile("".join(parts))


set_module("teletensor.package.glob_group", GlobGroup)
