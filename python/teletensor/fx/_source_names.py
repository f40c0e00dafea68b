"""Checks of the names that generated code contains: a name that is no identifier could be any code."""

from __future__ import annotations

import keyword
import re
from typing import Any

_UNQUOTED = re.compile(r'[^"\\\x00-\x1f\x7f]*')  # stands for itself between quotes


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and text.isidentifier() and not keyword.iskeyword(text)


def _name(text: Any, what: str) -> str:
    """A name that is written to source. Raises ValueError for what is no identifier: it could be any code."""
    if not _is_name(text):
        raise ValueError(f"[CodeGen] expected {what} to be an identifier, got {text!r}")
    return text


def _parameter(text: Any) -> str:
    """The name of a parameter, with its asterisks."""
    if isinstance(text, str):
        _name(text[min(2, len(text) - len(text.lstrip("*"))) :], "the name of a parameter")
        return text
    return _name(text, "the name of a parameter")


def _format_target(base: str, target: str) -> str:
    """`base.a.b` for the qualified name a.b; getattr() for parts that are not identifiers.

    Raises:
        ValueError: a part has quotes, backslashes or control characters.
    """
    for part in target.split("."):
        if _is_name(part):
            base = f"{base}.{part}"
        elif _UNQUOTED.fullmatch(part):
            base = f'getattr({base}, "{part}")'
        else:
            raise ValueError(f"[CodeGen] expected a path of names without quotes and control characters, got {target!r}")
    return base
