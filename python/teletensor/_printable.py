"""Texts that another process chose, for terminals, pages and notebooks: base/text.h does the same in C++."""

from __future__ import annotations

import json
import re
from typing import Any

# Control characters, line and paragraph separators, marks of bidirectional text, surrogates of invalid UTF-8.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: object) -> str:
    """The text with escape sequences such as ``\\n``, ``\\x1b`` and ``\\u202e`` for characters that start a line, control
    a terminal or reorder the text around them."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), str(text))


def loads(text: str) -> Any:
    """The value of a JSON text from an engine, with printable texts."""
    return _tree(json.loads(text))


def _tree(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_tree(each) for each in value]
    if isinstance(value, dict):
        return {printable(key): _tree(each) for key, each in value.items()}
    return value
