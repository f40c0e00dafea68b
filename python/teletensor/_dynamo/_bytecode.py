"""Code objects of CPython 3.11 as lists of instructions, and back."""

from __future__ import annotations

import dis
import opcode
import types
from collections.abc import Iterable
from typing import Any

_CACHES = getattr(opcode, "_inline_cache_entries", [0] * 256)
_EXTENDED = opcode.opmap["EXTENDED_ARG"]
_JUMPS = frozenset(dis.opname[op] for op in opcode.hasjrel)


class Instruction:
    """One instruction. Jumps refer to their target; arguments include those of EXTENDED_ARG, which is left out."""

    __slots__ = ("arg", "handler", "index", "name", "positions", "target")

    def __init__(self, name: str, arg: int = 0, target: Instruction | None = None, positions: tuple = (None,) * 4) -> None:
        self.name, self.arg, self.target, self.positions = name, arg, target, positions
        self.handler: tuple[Instruction, int, bool] | None = None  # where exceptions continue, stack depth, lasti
        self.index = -1  # in the list that decode() returned

    @property
    def is_jump(self) -> bool:
        return self.name in _JUMPS

    def __repr__(self) -> str:
        return f"{self.index} {self.name} {self.arg}"


def decode(code: types.CodeType) -> list[Instruction]:
    """The instructions of a code object."""
    raw, positions = code.co_code, list(code.co_positions())
    found: list[Instruction] = []
    by_offset: dict[int, Instruction] = {}
    jumps: list[tuple[Instruction, int]] = []
    at, extended, start = 0, 0, 0
    while at < len(raw):
        op, arg = raw[at], raw[at + 1] | extended
        if op == _EXTENDED:
            extended = arg << 8
            at += 2
            continue
        name = dis.opname[op]
        instruction = Instruction(name, arg, None, positions[at // 2])
        instruction.index = len(found)
        found.append(instruction)
        after = at + 2 + 2 * _CACHES[op]
        for offset in range(start, at + 2, 2):
            by_offset[offset] = instruction
        if name in _JUMPS:
            jumps.append((instruction, after + 2 * (-arg if "BACKWARD" in name else arg)))
        at, extended, start = after, 0, after
    for instruction, offset in jumps:
        instruction.target = by_offset[offset]
    ranges = dis._parse_exception_table(code)
    for entry in ranges:
        for offset in range(entry.start, entry.end, 2):
            if offset in by_offset:
                by_offset[offset].handler = (by_offset[entry.target], entry.depth, bool(entry.lasti))
    return found


def copied(instructions: Iterable[Instruction]) -> list[Instruction]:
    """A copy of the list whose jumps and handlers refer to the copies."""
    instructions = list(instructions)
    copies = {}
    for i in instructions:
        copy = Instruction(i.name, i.arg, None, i.positions)
        copy.index = i.index
        copies[id(i)] = copy
    for i in instructions:
        copy = copies[id(i)]
        if i.target is not None:
            copy.target = copies[id(i.target)]
        if i.handler is not None:
            copy.handler = (copies[id(i.handler[0])], *i.handler[1:])
    return [copies[id(i)] for i in instructions]


def _size(arg: int) -> int:
    return 1 + (arg > 0xFF) + (arg > 0xFFFF) + (arg > 0xFFFFFF)


def assemble(code: types.CodeType, instructions: list[Instruction], **changes: Any) -> types.CodeType:
    """The code object with these instructions and other changes, which types.CodeType.replace() accepts."""
    sizes = {id(i): _size(i.arg) for i in instructions}
    while True:
        offsets, at = {}, 0
        for i in instructions:
            offsets[id(i)] = at
            at += sizes[id(i)] + _CACHES[dis.opmap[i.name]]
        is_stable = True
        for i in instructions:
            if i.target is None:
                continue
            distance = offsets[id(i.target)] - (offsets[id(i)] + sizes[id(i)] + _CACHES[dis.opmap[i.name]])
            if "BACKWARD" in i.name:
                distance = -distance
            if distance < 0:
                raise ValueError(f"[assemble] {i.name} jumps in the wrong direction")
            i.arg = distance
            if _size(distance) > sizes[id(i)]:
                sizes[id(i)] = _size(distance)
                is_stable = False
        if is_stable:
            break
    raw = bytearray()
    for i in instructions:
        for shift in range(8 * (sizes[id(i)] - 1), 0, -8):
            raw += bytes((_EXTENDED, i.arg >> shift & 0xFF))
        op = dis.opmap[i.name]
        raw += bytes((op, i.arg & 0xFF))
        raw += bytes(2 * _CACHES[op])
    ends = {id(i): offsets[id(i)] + sizes[id(i)] + _CACHES[dis.opmap[i.name]] for i in instructions}
    return code.replace(
        co_code=bytes(raw),
        co_exceptiontable=_exception_table(instructions, offsets, ends),
        co_linetable=_line_table(instructions, offsets, ends, code.co_firstlineno),
        **changes,
    )


def _exception_table(instructions: list[Instruction], offsets: dict[int, int], ends: dict[int, int]) -> bytes:
    table = bytearray()

    def number(value: int, first: int = 0) -> None:
        chunks = [value & 63]
        while value > 63:
            value >>= 6
            chunks.append(value & 63)
        for position, chunk in enumerate(reversed(chunks)):
            more = 64 if position < len(chunks) - 1 else 0
            table.append(chunk | more | (first if position == 0 else 0))

    position = 0
    while position < len(instructions):
        handler = instructions[position].handler
        last = position
        if handler is None:
            position += 1
            continue
        while last + 1 < len(instructions) and instructions[last + 1].handler == handler:
            last += 1
        start, end = offsets[id(instructions[position])], ends[id(instructions[last])]
        number(start, 128)
        number(end - start)
        number(offsets[id(handler[0])])
        number(handler[1] << 1 | handler[2])
        position = last + 1
    return bytes(table)


def _line_table(instructions: list[Instruction], offsets: dict[int, int], ends: dict[int, int], line: int) -> bytes:
    table = bytearray()

    def number(value: int) -> None:
        while value > 63:
            table.append(value & 63 | 64)
            value >>= 6
        table.append(value)

    for i in instructions:
        length = ends[id(i)] - offsets[id(i)]
        start, end, column, end_column = i.positions
        while length > 0:
            units = min(length, 8)
            length -= units
            if start is None:
                table.append(0x80 | 15 << 3 | units - 1)
            elif None in (end, column, end_column) or end < start:
                table.append(0x80 | 13 << 3 | units - 1)
                delta = start - line
                number(-delta << 1 | 1 if delta < 0 else delta << 1)
                line = start
            else:
                table.append(0x80 | 14 << 3 | units - 1)
                delta = start - line
                number(-delta << 1 | 1 if delta < 0 else delta << 1)
                number(end - start)
                number(column + 1)
                number(end_column + 1)
                line = start
    return bytes(table)
