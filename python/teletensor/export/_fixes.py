"""Violated constraints of dynamic sizes: the message of export(), with the declarations that would serve."""

from __future__ import annotations

import re
from typing import Any

from ._errors import UserError


class ViolatedError(UserError):
    """A module does not serve all sizes that were declared.

    Attributes:
        reasons: comparisons that do not hold for all sizes, as text.
        fixes: declarations that serve, by the name of the size.
    """

    def __init__(self, names: list[str], reasons: list[str], fixes: dict[str, str]) -> None:
        self.reasons, self.fixes = reasons, fixes
        joined = ", ".join(names)
        lines = [f"Constraints violated ({joined})!"]
        for reason in reasons:
            lines.append(f"  - Not all values of {joined} in the specified range satisfy the generated guard {reason}")
        for name, value in fixes.items():
            if value.isdigit():
                lines.append(f"  - You marked {name} as dynamic but your code specialized it to be a constant ({value})")
        if fixes:
            lines += ["Suggested fixes:", *(f"  {name} = {value}" for name, value in fixes.items())]
        super().__init__("\n".join(lines))


_FIX = re.compile(r"^\s+(\w+) = (?:(\d+)|(\w+)|Dim\('(\w+)'((?:, (?:min|max)=\d+)*)\))$", re.MULTILINE)


def parsed_fixes(message: str) -> dict[str, Any]:
    """The declarations in a message, by name: an int, the name of another symbol, or a dict of bounds."""
    _, separator, text = message.partition("Suggested fixes:")
    found: dict[str, Any] = {}
    for name, number, other, _, bounds in _FIX.findall(text if separator else ""):
        if number:
            found[name] = int(number)
        elif other:
            found[name] = other
        else:
            found[name] = {k: int(v) for k, v in re.findall(r"(min|max)=(\d+)", bounds)}
    return found
