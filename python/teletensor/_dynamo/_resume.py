"""Code that continues a function after a graph break, in the middle of its bytecode.

The state of a frame travels in a tuple: the values on the stack, the function, and the local variables that are bound. The
code begins with a prologue that restores the state and jumps to an instruction. It may end at graph breaks: after an
instruction, it packs the state again and calls what continues there.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from ._bytecode import Instruction, assemble, copied, decode

_STATE = "<state>"
_CELL_OPERATIONS = frozenset((
    "MAKE_CELL", "LOAD_CLOSURE", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLASSDEREF",
))  # fmt: skip


def call_first(function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """Stands for the NULL below a function on the stack, which no tuple can contain."""
    return function(*args, **kwargs)


class Layout(NamedTuple):
    """What the tuple of a frame's state contains.

    Attributes:
        depth: the number of values on the stack, which come first; the function follows.
        bound: the indices of the bound local variables and cells, whose values follow.
    """

    depth: int
    bound: tuple[int, ...]


def locals_plus(code: types.CodeType) -> list[str]:
    """The names of local variables, cells and free variables by the index that instructions use."""
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    return [*code.co_varnames, *cells, *code.co_freevars]


def _load_constant(constants: list, value: Any) -> Instruction:
    for i, known in enumerate(constants):
        if known is value:
            return Instruction("LOAD_CONST", i)
    constants.append(value)
    return Instruction("LOAD_CONST", len(constants) - 1)


def resume_code(
    code: types.CodeType, layout: Layout, target: int, exits: list[tuple[int, bool, Layout, Callable]], null_at: int | None = None
) -> types.CodeType:
    """A code object of one parameter, the tuple, that continues at an instruction.

    Args:
        code: the function's code.
        layout: of the tuple.
        target: the index of the instruction.
        exits: graph breaks: the index of an instruction, whether they are at its jump target instead of after it, the
            layout of the state there, and a function that receives the tuple and returns the result.
        null_at: the position on the stack where a NULL is restored, below the function that the instruction calls: it then
            sees the frame of this code, and not that of call_first.
    """
    instructions = copied(decode(code))
    constants = list(code.co_consts)
    n = code.co_nlocals
    for i in instructions:
        if i.name in _CELL_OPERATIONS and i.arg >= n:
            i.arg += 1  # the state has an index of its own, after the local variables

    def index(local: int) -> int:
        return local + (local >= n)

    first = instructions[target]
    line = (code.co_firstlineno,) * 2 + (0, 0) if first.positions[0] is None else first.positions
    prologue: list[Instruction] = []

    def emit(name: str, arg: int = 0, target: Instruction | None = None) -> None:
        prologue.append(Instruction(name, arg, target, line))

    if code.co_freevars:
        emit("COPY_FREE_VARS", len(code.co_freevars))
    emit("RESUME", 0)
    if n:
        emit("LOAD_FAST", 0)
        emit("STORE_FAST", n)
    for i in range(layout.depth):
        if i == null_at:
            emit("PUSH_NULL")
            continue
        emit("LOAD_FAST", n)
        prologue.append(_load_constant(constants, i))
        emit("BINARY_SUBSCR")
    if n and 0 not in layout.bound:
        emit("DELETE_FAST", 0)
    for position, local in enumerate(layout.bound):
        emit("LOAD_FAST", n)
        prologue.append(_load_constant(constants, layout.depth + 1 + position))
        emit("BINARY_SUBSCR")
        emit("STORE_FAST", index(local))
    # Only the function remains of the state, so that its values are freed when the function drops them.
    emit("LOAD_FAST", n)
    prologue.append(_load_constant(constants, layout.depth))
    emit("BINARY_SUBSCR")
    emit("STORE_FAST", n)
    emit("JUMP_FORWARD", 0, first)
    for i in prologue:
        i.positions = line

    trailers: list[Instruction] = []
    inserted: dict[int, list[Instruction]] = {}
    for at, at_target, exit_layout, continuation in exits:
        trailer: list[Instruction] = []

        def pack(name: str, arg: int = 0, trailer: list = trailer, at: int = at) -> None:
            trailer.append(Instruction(name, arg, None, instructions[at].positions))

        pack("LOAD_FAST", n)
        for local in exit_layout.bound:
            is_cell = local >= n or code.co_varnames[local] in code.co_cellvars
            pack("LOAD_CLOSURE" if is_cell else "LOAD_FAST", index(local))
        pack("BUILD_TUPLE", exit_layout.depth + 1 + len(exit_layout.bound))
        pack("PUSH_NULL")
        trailer.append(_load_constant(constants, continuation))
        pack("SWAP", 2)  # [tuple, NULL, f] -> [NULL, f, tuple]
        pack("SWAP", 3)
        pack("PRECALL", 1)
        pack("CALL", 1)
        pack("RETURN_VALUE")
        at_break = instructions[at]
        if at_target:
            at_break.target = trailer[0]
            at_break.name = at_break.name.replace("BACKWARD", "FORWARD")
        else:
            inserted[at] = [Instruction("JUMP_FORWARD", 0, trailer[0], at_break.positions)]
        trailers += trailer
    _remove_nulls(instructions, target, constants, inserted)
    body: list[Instruction] = []
    for position, i in enumerate(instructions):
        body.append(i)
        body += inserted.get(position, ())
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return assemble(
        code, prologue + body + trailers, co_argcount=1, co_posonlyargcount=0, co_kwonlyargcount=0,
        co_varnames=(*code.co_varnames, _STATE), co_nlocals=n + 1, co_consts=tuple(constants), co_flags=flags,
        co_stacksize=code.co_stacksize + len(locals_plus(code)) + 6,
    )  # fmt: skip


def _remove_nulls(instructions: list[Instruction], at: int, constants: list, inserted: dict[int, list[Instruction]]) -> None:
    """Replaces an instruction at a graph break that pushes a NULL by two that push call_first instead."""
    i = instructions[at]
    after = inserted.get(at)
    if after is None:
        return
    if i.name == "LOAD_METHOD":
        i.name = "LOAD_ATTR"
        push = _load_constant(constants, call_first)
        push.positions = i.positions
        inserted[at] = [push, Instruction("SWAP", 2, None, i.positions), *after]
    elif i.name == "LOAD_GLOBAL" and i.arg & 1:
        i.arg &= ~1
        push = _load_constant(constants, call_first)
        push.positions = i.positions
        inserted[at] = [push, Instruction("SWAP", 2, None, i.positions), *after]
