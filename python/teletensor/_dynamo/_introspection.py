"""Functions that look at frames: they and their callers run in frames of their own, as plain Python."""

from __future__ import annotations

import builtins
import types
from typing import Any

from ._attributes import STDLIB
from ._frames import instructions_of

# Names of functions that return frames or lines, of the modules sys, inspect and traceback.
_ATTRIBUTES = frozenset((
    "_getframe", "_current_frames", "_getframemodulename", "currentframe", "getouterframes", "extract_stack", "format_stack",
    "print_stack", "walk_stack",
))  # fmt: skip
# Functions that read their caller's variables, by id; whether only calls without arguments do.
_WHETHER_WITHOUT_ARGUMENTS = {
    id(builtins.locals): False, id(builtins.eval): False, id(builtins.exec): False, id(builtins.vars): True, id(builtins.dir): True,
}  # fmt: skip


def sees_frames_of_callers(code: types.CodeType) -> bool:
    """Whether a function of the user's reads frames: perhaps its caller's."""
    return bool(_ATTRIBUTES & set(code.co_names)) and not code.co_filename.startswith(STDLIB)


def names_lines_of_callers(code: types.CodeType) -> bool:
    """Whether a function may pass `stacklevel` to warnings.warn() or a logger, which then name a line of its caller."""
    return any(isinstance(names, tuple) and "stacklevel" in names for names in code.co_consts)


def reason_to_run_plainly(code: types.CodeType, values: dict[str, Any]) -> str:
    """Why a function with these global variables must have its own frame; empty if it need not."""
    found = _ATTRIBUTES & set(code.co_names)
    if found:
        return f"it calls {min(found)}()"
    if "stack" in code.co_names and "inspect" in (*code.co_names, *code.co_varnames):
        return "it calls inspect.stack"
    of = values.get("__builtins__", builtins)
    of = of if isinstance(of, dict) else vars(of)
    for name in code.co_names:
        without_arguments = _WHETHER_WITHOUT_ARGUMENTS.get(id(values.get(name, of.get(name))))
        if without_arguments is not None and _loads(code, name, without_arguments):
            return f"it calls {name}()"
    return ""


def _loads(code: types.CodeType, name: str, without_arguments: bool) -> bool:
    """Whether the code reads a global variable, or calls it without arguments."""
    instructions = instructions_of(code)
    for i, after in zip(instructions, instructions[1:]):
        if i.name == "LOAD_GLOBAL" and code.co_names[i.arg >> 1] == name:
            if not without_arguments or after.name == "PRECALL" and after.arg == 0:
                return True
    return False
