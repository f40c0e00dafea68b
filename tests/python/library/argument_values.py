"""What operators receive for values of all kinds as arguments of all types of schemas, as PyTorch 2.15 has it.

Written to argument_values.json, for test_argument_values.py:

.venv-peers/bin/python -m tests.python.library.argument_values
"""

from __future__ import annotations

import array
import decimal
import enum
import fractions
import json
import re
from collections import UserList, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

TABLE = Path(__file__).with_name("argument_values.json")
TYPES = (
    "int float bool str Scalar SymInt int? float? bool? str? Scalar? SymInt? int[] int[1] int[2] int[2]? SymInt[] SymInt[2] float[] "
    "float[2] bool[] bool[2] str[] Scalar[] Tensor?[] Tensor[] Tensor[2] Tensor Tensor? Tensor[]? int[]? float[]? bool[]? str[]? Scalar[]? "
    "SymInt[]? int?[] Device Device? ScalarType ScalarType? Layout Layout? MemoryFormat MemoryFormat? Generator? complex int[][]"
).split()


class Number(enum.IntEnum):
    """An enumeration of ints."""

    THREE = 3


class Whole(int):
    """A subclass of int."""


class Text(str):
    """A subclass of str."""


class Indexed:
    """Has __index__ and nothing else."""

    def __index__(self) -> int:
        return 4


class Floating:
    """Has __float__ and nothing else."""

    def __float__(self) -> float:
        return 4.5


def values(torch: Any) -> dict[str, Callable[[], Any]]:
    """The values by name; made for each use, because some can be read once."""
    t = torch.tensor
    return {
        "True": lambda: True, "IntEnum": lambda: Number.THREE, "1": lambda: 1, "int subclass": lambda: Whole(5),
        "2.5": lambda: 2.5, "2.0": lambda: 2.0, "1j": lambda: 1j, "np.int64": lambda: np.int64(2),
        "np.int32": lambda: np.int32(2), "np.uint8": lambda: np.uint8(2), "np.float64": lambda: np.float64(2.5),
        "np.float32": lambda: np.float32(2.5), "np.bool_": lambda: np.bool_(True),
        "np.complex128": lambda: np.complex128(1 + 2j), "2**63": lambda: 2**63, "2**70": lambda: 2**70,
        "-2**63": lambda: -(2**63), "2**1100": lambda: 2**1100, "nan": lambda: float("nan"), "object": object,
        "set": lambda: {1}, "generator": lambda: (i for i in (1, 2)), "dict": lambda: {1: 2}, "range": lambda: range(3),
        "device": lambda: torch.device("cpu"), "dtype": lambda: torch.float32, "layout": lambda: torch.strided,
        "memory format": lambda: torch.contiguous_format, "Generator": lambda: torch.Generator(), "tensor int": lambda: t(3),
        "tensor float": lambda: t(2.5), "tensor bool": lambda: t(True), "tensor complex": lambda: t(1j),
        "tensor requires_grad": lambda: t(2.5, requires_grad=True), "tensor of 1": lambda: t([3]),
        "tensor of 1 float": lambda: t([3.5]), "tensor of 2": lambda: t([3, 4]),
        "Parameter": lambda: torch.nn.Parameter(t([1.0, 2.0])), "None": lambda: None, "[]": list, "()": tuple,
        "[1, 2]": lambda: [1, 2], "[1]": lambda: [1], "(1, 2)": lambda: (1, 2), "[True, False]": lambda: [True, False],
        "[1.5, 2.0]": lambda: [1.5, 2.0], "[1, 2.5]": lambda: [1, 2.5], "[2.5, 1]": lambda: [2.5, 1], "[1j]": lambda: [1j],
        "['a']": lambda: ["a"], "[None]": lambda: [None], "[1, None]": lambda: [1, None], "[2**70]": lambda: [2**70],
        "[IntEnum]": lambda: [Number.THREE], "[np.int64]": lambda: [np.int64(1)], "[1, np.int64]": lambda: [1, np.int64(2)],
        "[np.float64]": lambda: [np.float64(2.0)], "[np.bool_]": lambda: [np.bool_(True)], "[object]": lambda: [object()],
        "[tensor int]": lambda: [t(1), t(2)], "[1, tensor int]": lambda: [1, t(2)], "[tensor float]": lambda: [t(1.5)],
        "[tensor bool]": lambda: [t(True)], "[np.float32]": lambda: [np.float32(1.5)],
        "[Fraction]": lambda: [fractions.Fraction(1, 2)], "[Indexed]": lambda: [Indexed()], "[dtype]": lambda: [torch.float32],
        "{'a'}": lambda: {"a"}, "[b'a']": lambda: [b"a"], "{tensor}": lambda: {t([1, 2])}, "[[tensor]]": lambda: [[t([1])]],
        "[[1, 2], (3,)]": lambda: [[1, 2], (3,)], "[tensor of 1]": lambda: [t([1])],
        "np array of 2 dims": lambda: np.array([[1, 2]]), "tensor of 2 dims": lambda: t([[1, 2]]),
        "[tensor of 2]": lambda: [t([1, 2])], "[tensor, None]": lambda: [t([1, 2]), None],
        "(tensor, None)": lambda: (t([1, 2]), None), "(tensor,)": lambda: (t([1, 2]),), "[1, object]": lambda: [1, object()],
        "[1, 'a']": lambda: [1, "a"], "[[1]]": lambda: [[1]], "[1, [2]]": lambda: [1, [2]],
        "np array": lambda: np.array([1, 2]), "np array of floats": lambda: np.array([1.5, 2.5]),
        "np array of 0 dims": lambda: np.array(3), "np array of 0 dims float": lambda: np.array(2.5),
        "Size": lambda: torch.Size([1, 2]), "'cpu'": lambda: "cpu", "'float32'": lambda: "float32", "Text": lambda: Text("a"),
        "b'a'": lambda: b"a", "'x'": lambda: "x", "Fraction": lambda: fractions.Fraction(1, 2),
        "UserList": lambda: UserList([1, 2]), "Indexed": Indexed, "Floating": Floating, "float": lambda: float,
        "map": lambda: map(int, [1, 2]), "zip": lambda: zip([1], [2]), "dict keys": lambda: {1: 2}.keys(),
        "dict values": lambda: {1: 2}.values(), "deque": lambda: deque([1, 2]), "bytearray": lambda: bytearray(b"a"),
        "array": lambda: array.array("i", [1, 2]), "memoryview": lambda: memoryview(b"a"),
        "np array of 1": lambda: np.array([3]), "Decimal": lambda: decimal.Decimal("2.5"), "iterator": lambda: iter([1, 2]),
        "frozenset": lambda: frozenset([1]), "-2**63-1": lambda: -(2**63) - 1, "2**64": lambda: 2**64,
        "'cpu:1'": lambda: "cpu:1", "np.str_": lambda: np.str_("a"), "Storage": lambda: t([1.0]).untyped_storage(),
    }  # fmt: skip


def described(value: Any) -> str:
    """The type and the value that an operator received."""
    kind = type(value)
    if kind in (list, tuple):
        return f"{kind.__name__}({', '.join(map(described, value))})"
    if hasattr(value, "requires_grad"):
        return f"{kind.__name__} {value.tolist()}"
    plain = kind in (int, float, bool, str, complex, type(None)) or kind.__module__ in ("numpy", __name__)
    text = repr(value)
    return f"{kind.__name__} {text}" if plain or text.startswith(("torch.", "device")) else kind.__name__


def outcomes(torch: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """By type of an argument: the type that errors name, what an operator received by value, and the errors of other types or texts."""
    library = torch.library.Library("argument_values", "FRAGMENT")
    received: list[Any] = []
    for number, kind in enumerate(TYPES):
        library.define(f"f{number}({kind} a) -> ()")
        library.impl(f"f{number}", lambda a: received.append(a), "CompositeExplicitAutograd")  # noqa: PLW0108
        op = getattr(torch.ops.argument_values, f"f{number}").default
        found: dict[str, Any] = {"expected": set(), "received": {}, "errors": {}}
        for name, make in values(torch).items():
            received.clear()
            value = make()
            try:
                op(value)
            except Exception as e:  # noqa: BLE001 - the type is part of the result
                text = rf"argument_values::f{number}\(\) Expected a value of type '(.*)' for argument 'a' but instead found type '(.*)'\."
                match = re.fullmatch(text, str(e).partition("\n")[0])
                if match and type(e) is RuntimeError and match[2] == type(value).__name__:
                    found["expected"].add(match[1])
                else:
                    found["errors"][name] = type(e).__name__
            else:
                found["received"][name] = described(received[0])
        (found["expected"],) = found["expected"]
        yield kind, found
    library._destroy()


if __name__ == "__main__":
    import torch

    lines = [f"{json.dumps(kind)}: {json.dumps(found)}" for kind, found in outcomes(torch)]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
