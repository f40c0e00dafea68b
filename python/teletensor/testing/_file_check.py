"""FileCheck: checks that texts occur in another text in a given order, as LLVM's tool of that name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .._lazy import set_module

Span = tuple[int, int]  # the begin and the end of a match


@dataclass(frozen=True)
class _Check:
    kind: str  # check, not, same, next, dag, regex
    text: str

    def find(self, text: str, start: int) -> Span | None:
        """The first match from `start` on."""
        pattern = self.text if self.kind == "regex" else re.escape(self.text)
        match = re.compile(pattern).search(text, start)
        return match.span() if match else None


class FileCheck:
    """Checks of a text, in order. Each method adds one and returns the object; ``run(text)`` raises RuntimeError if one fails."""

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def _add(self, kind: str, text: str) -> FileCheck:
        self._checks.append(_Check(kind, text))
        return self

    def check(self, test_string: str) -> FileCheck:
        """The text occurs after the match of the previous check."""
        return self._add("check", test_string)

    def check_not(self, test_string: str) -> FileCheck:
        """The text does not occur between the matches of the previous and the next check."""
        return self._add("not", test_string)

    def check_same(self, test_string: str) -> FileCheck:
        """The text occurs after the previous match, in the same line."""
        return self._add("same", test_string)

    def check_next(self, test_string: str) -> FileCheck:
        """The text occurs after the previous match, in the next line."""
        return self._add("next", test_string)

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> FileCheck:
        """The text occurs `count` times after the previous match; if `exactly`, not again before the match of the next check."""
        for _ in range(count):
            self._add("check", test_string)
        return self._add("not", test_string) if exactly else self

    def check_dag(self, test_string: str) -> FileCheck:
        """The text occurs after the previous match; successive checks of this kind match in any order."""
        return self._add("dag", test_string)

    def check_regex(self, test_string: str) -> FileCheck:
        """A match of the regular expression occurs after the previous match."""
        return self._add("regex", test_string)

    def check_source_highlighted(self, test_string: str) -> FileCheck:
        """Not implemented: it looks for marks in error messages of TorchScript."""
        raise NotImplementedError("[FileCheck] check_source_highlighted reads error messages of TorchScript, of which there are none")

    def run(self, test_string: str) -> None:
        """Checks a text. Raises RuntimeError that names the check that failed, or if there are no checks."""
        if not self._checks:
            raise RuntimeError("[FileCheck] expected at least one check, got none")
        end, group_start, absent = 0, 0, []
        for i, check in enumerate(self._checks):
            if check.kind == "not":
                absent.append(check)
                continue
            in_group = check.kind == "dag" and i > 0 and self._checks[i - 1].kind == "dag"
            group_start = group_start if in_group else end
            begin, last = self._matched(check, test_string, group_start)
            self._refuse(absent, test_string[end:begin])
            end, absent = max(end, last) if in_group else last, []
        self._refuse(absent, test_string[end:])

    def _matched(self, check: _Check, text: str, start: int) -> Span:
        found = check.find(text, start)
        between = text[start : found[0]].count("\n") if found else 0
        expected = {"same": 0, "next": 1}.get(check.kind, between)
        if found is None or between != expected:
            where = {"same": " in the same line", "next": " in the next line"}.get(check.kind, "")
            raise RuntimeError(f"Expected to find {check.text!r}{where} but did not find it. Searched string:\n{text[start:]}")
        return found

    def _refuse(self, absent: list[_Check], text: str) -> None:
        for check in absent:
            if check.find(text, 0) is not None:
                raise RuntimeError(f"Expected to not find {check.text!r} but found it. Searched string:\n{text}")


set_module("teletensor", FileCheck)
