"""draft_export(): a program for the sizes that a module permits, with a report of those it does not."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from ..nn import Module
from ._export import Exported, export, found_for, ordered, program_of
from ._fixes import ViolatedError
from ._preserved import check_names
from ._strict import check_whole
from .dynamic_shapes import symbols_of
from .exported_program import ExportedProgram

__all__ = ["DraftExportReport", "FailureReport", "FailureType", "draft_export"]


class FailureType(enum.IntEnum):
    """What export() would have refused."""

    MISSING_FAKE_KERNEL = 1
    DATA_DEPENDENT_ERROR = 2
    GUARD_ADDED = 3
    MISMATCHED_FAKE_KERNEL = 4

    def __str__(self) -> str:
        return self.name


@dataclass
class FailureReport:
    """One thing that export() would have refused.

    Attributes:
        failure_type: its kind.
        data: "expr", the comparison or the reason, and "suggested_fixes", declarations by the name of a size.
        xfail: always False.
    """

    failure_type: FailureType
    data: dict[str, Any]
    xfail: bool = False

    def print(self, str_to_filename: dict[str, str]) -> str:
        """The failure as text."""
        del str_to_filename
        fixes = "".join(f"\n        {n} = {v}" for n, v in self.data.get("suggested_fixes", {}).items())
        return (
            "Guard Added.\n    A size that was declared dynamic is limited by the module: "
            f"{self.data['expr']}.{f'{chr(10)}    Declarations that serve:{fixes}' if fixes else ''}"
        )


@dataclass
class DraftExportReport:
    """What export() would have refused of a module."""

    failures: list[FailureReport]
    str_to_filename: dict[str, str] = field(default_factory=dict)
    expressions_created: dict[int, dict[str, Any]] = field(default_factory=dict)
    op_profiles: dict[str, Any] = field(default_factory=dict)

    def successful(self) -> bool:
        """Whether export() accepts the module."""
        return not self.failures

    def __repr__(self) -> str:
        return f"DraftExportReport({self.failures})"

    def __str__(self) -> str:
        if self.successful():
            return "Congratulations: No issues are found during export, and it was able to soundly produce a graph."
        parts = [f"WARNING: {len(self.failures)} issue(s) found during export, and it was not able to soundly produce a graph."]
        return "\n".join([*parts, *(f"{i}. {f.print(self.str_to_filename)}" for i, f in enumerate(self.failures, 1))])

    def apply_suggested_fixes(self) -> None:
        """Raises NotImplementedError, as in PyTorch."""
        raise NotImplementedError("Not implemented yet")


def draft_export(
    mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None,
    preserve_module_call_signature: tuple[str, ...] = (), strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """export(), with sizes that the module limits declared as it permits, as with Dim.AUTO; the program's `_report` lists them.

    The arguments are those of export().

    Raises:
        GuardOnDataDependentSymNode: forward branches on values of tensors. PyTorch makes a program with assertions.
    """
    options = {
        "preserve_module_call_signature": preserve_module_call_signature, "strict": strict,
        "prefer_deferred_runtime_asserts_over_guards": prefer_deferred_runtime_asserts_over_guards,
    }  # fmt: skip
    if prefer_deferred_runtime_asserts_over_guards or not isinstance(mod, Module) or not isinstance(args, tuple):
        return export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, **options)  # raises
    check_names(mod, preserve_module_call_signature)
    what = Exported(mod, args, ordered(mod, args, dict(kwargs or {})), tuple(preserve_module_call_signature))
    symbols = symbols_of(dynamic_shapes, mod, args, what.kwargs)
    if strict:
        check_whole(mod, args, what.kwargs)
    failures: list[FailureReport] = []
    try:
        found = found_for(what, symbols)
    except GuardOnDataDependentSymNode:
        raise
    except ViolatedError as e:
        for text in e.reasons:
            failures.append(FailureReport(FailureType.GUARD_ADDED, {"expr": text, "suggested_fixes": e.fixes}))
        found = found_for(what, _limited(symbols, e.fixes))
    program = program_of(what, *found)
    program._report = DraftExportReport(failures)
    return program


def _limited(symbols: list[Any], fixes: dict[str, str]) -> list[Any]:
    """The symbols as the fixes declare them: without those that are constants, equal ones as one."""
    from ._fixes import parsed_fixes

    found = parsed_fixes("Suggested fixes:\n" + "\n".join(f"  {n} = {v}" for n, v in fixes.items()))
    kept = {s.name: s for s in symbols if not isinstance(found.get(s.name), (int, str))}
    for symbol in symbols:
        rule = found.get(symbol.name)
        if isinstance(rule, str) and rule in kept:
            kept[rule].places = [*kept[rule].places, *symbol.places]
        elif isinstance(rule, dict):
            symbol.low, symbol.high = rule.get("min", symbol.low), rule.get("max", symbol.high)
    for symbol in kept.values():
        symbol.kind = "AUTO"
    return list(kept.values())
