"""Frames: the symbolic execution of one function, instruction by instruction.

`_opcodes_311` has the methods by name of the instruction. A frame of a version of Python without such a table is not executed.
"""

from __future__ import annotations

import builtins
import types
from typing import Any

from ._bytecode import Instruction, decode
from ._resume import locals_plus
from ._source import CHECK_IS, CHECK_MISSING, DICT_ITEM, Source, constant
from ._values import DELETED, Break, CellValue, Constant, ExceptionValue, FunctionValue, Raised, Value

_decoded: dict[int, tuple[types.CodeType, list[Instruction], dict[int, int]]] = {}


def instructions_of(code: types.CodeType) -> list[Instruction]:
    """The instructions, which are decoded once."""
    known = _decoded.get(id(code))
    if known is None or known[0] is not code:
        known = _decoded[id(code)] = (code, decode(code), {})
        if len(_decoded) > 4096:
            _decoded.pop(next(iter(_decoded)))
    return known[1]


class Returned(Exception):  # noqa: N818 - ends run()
    """The function returns."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Yielded(Exception):  # noqa: N818
    """The generator yields."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Frame:
    """The state of a function that is executed.

    Args:
        ex: the executor.
        function: the function.
        parameters: their values by name.
        table: the methods by name of the instruction.
    """

    def __init__(self, ex: Any, function: FunctionValue, parameters: dict[str, Value], table: dict[str, Any]) -> None:
        self.ex, self.function, self.table = ex, function, table
        self.code = function.code
        self.instructions = instructions_of(self.code)
        self.names = locals_plus(self.code)
        self.locals: dict[str, Value] = dict(parameters)
        self.cells: dict[str, CellValue] = {}
        self.stack: list[Value] = []
        self.at = 0
        self.group = 0  # where the current instruction begins, with what prepares it
        self.keyword_names: tuple[str, ...] = ()
        self.handled: list[Value] = []  # exceptions that are being handled, outermost first
        self.is_started = False
        self.caller: Frame | None = None  # the frame that executes this one
        self._first = self.code.co_varnames[0] if self.code.co_argcount else None

    def first_argument(self) -> Value | None:
        """The first parameter, which super() needs."""
        if self._first is None:
            return None
        if self._first in self.cells:
            return self.cells[self._first].content
        return self.locals.get(self._first)

    @property
    def line(self) -> int | None:
        """The line of the current instruction, which step() has left behind."""
        return self.instructions[max(self.at - 1, 0)].positions[0]

    @property
    def is_in_handler(self) -> bool:
        """Whether a suspended generator would run code of its own if it were closed."""
        return self.instructions[max(self.at - 1, 0)].handler is not None

    # -- running

    def run(self) -> Value:
        """Executes until the function returns. Raises Raised if it raises."""
        before, self.ex.frame = self.ex.frame, self
        self.caller = before
        try:
            while True:
                self.step()
        except Returned as e:
            return e.value
        finally:
            self.ex.frame = before

    def resume(self, sent: Value, exception: Value | None) -> tuple[bool, Value]:
        """Continues a generator. Returns (True, what it yields) or (False, its result)."""
        before, self.ex.frame = self.ex.frame, self
        self.caller = before
        try:
            if exception is not None:
                self.handle(Raised(exception), self.instructions[self.at - 1])
            elif self.is_started:
                self.stack.append(sent)
            self.is_started = True
            while True:
                self.step()
        except Returned as e:
            return False, e.value
        except Yielded as e:
            return True, e.value
        finally:
            self.ex.frame = before

    def step(self) -> None:
        """Executes one instruction."""
        i = self.instructions[self.at]
        name = i.name
        if name != "CALL" and (name != "PRECALL" or not self.keyword_names):
            self.group = self.at
        self.at += 1
        self.ex.count_step()
        method = self.table.get(name)
        if method is None:
            raise Break(f"the instruction {i.name} of Python's bytecode")
        try:
            method(self, i)
        except Raised as e:
            if e.value.source is None and e.value.context is None and self.handled and e.value is not self.handled[-1]:
                e.value.context = self.handled[-1]
            self.handle(e, i)

    def handle(self, raised: Raised, i: Instruction) -> None:
        """Continues at the handler of the instruction, or raises."""
        if i.handler is None:
            self.at = i.index + 1  # for messages
            raise raised
        target, depth, with_position = i.handler
        del self.stack[depth:]
        if with_position:
            self.stack.append(Constant(i.index))
        self.stack.append(raised.value)
        self.at = target.index

    # -- stack and variables

    def push(self, value: Value) -> None:
        self.stack.append(value)

    def pop(self) -> Value:
        return self.stack.pop()

    def pop_many(self, n: int) -> list[Value]:
        """The last n values, the deepest first."""
        if n == 0:
            return []
        values = self.stack[-n:]
        del self.stack[-n:]
        return values

    def load_local(self, name: str) -> Value:
        value = self.locals.get(name)
        if value is None:
            raise Raised(ExceptionValue(UnboundLocalError, [
                Constant(f"cannot access local variable '{name}' where it is not associated with a value")
            ]))  # fmt: skip
        return value

    def load_cell(self, name: str) -> Value:
        cell = self.cells[name]
        if cell.content is None:
            cls = NameError if name in self.code.co_freevars else UnboundLocalError
            text = (
                f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
                if cls is NameError
                else f"cannot access local variable '{name}' where it is not associated with a value"
            )
            raise Raised(ExceptionValue(cls, [Constant(text)]))
        return cell.content

    def load_global(self, name: str) -> Value:
        """A global variable or a builtin."""
        ex, values = self.ex, self.function.globals
        written = ex.written_globals(values)
        is_deleted = name in written and written[name] is DELETED
        if name in written and not is_deleted:
            return written[name]
        source = self.globals_source()
        if name in values and not is_deleted:
            return ex.wrap(values[name], source.then(DICT_ITEM, name))
        if not is_deleted:
            ex.guards.check(CHECK_MISSING, source, name)
        original = self.function.original  # which keeps those of its definition
        of = values.get("__builtins__", builtins) if original is None else original.__builtins__
        of = of if isinstance(of, dict) else vars(of)
        if name not in of:
            raise Raised(ExceptionValue(NameError, [Constant(f"name '{name}' is not defined")]))
        found = of[name]
        ex.guards.check(CHECK_IS, constant(of).then(DICT_ITEM, name), found)
        return ex.wrap(found, constant(found))

    def globals_source(self) -> Source:
        """Where the function's global variables are."""
        if self.function.globals_source is not None:
            # Guards on the code do not determine the globals, with which a function may have been created again.
            self.ex.guards.check(CHECK_IS, self.function.globals_source, self.function.globals)
        return constant(self.function.globals)
