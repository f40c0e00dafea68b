"""Values during a run of a model, and their conversions.

A value is one of
- an engine tensor;
- a NumPy array: a constant of the model, strings, or what was computed from them in the client;
- Sizes: an int64 array with SymInts, which a trace has instead of an array that depends on sizes of its inputs;
- Narrow: one of the former two, of an element type that the engine stores in another dtype;
- a list: a sequence;
- None: an optional value that is absent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import teletensor as torch

from ..._symbolic_bool import hint
from . import _types

Tensor = torch.Tensor


class Sizes(NamedTuple):
    """An int64 array of ints and SymInts (dtype object)."""

    array: np.ndarray


class Narrow(NamedTuple):
    """A tensor or array with the ONNX element type that its dtype does not show."""

    value: Any
    type: int


def fixed(number: Any) -> bool:
    """Whether a size is a plain int, not one that a trace or torch.export records."""
    return type(number) is int or isinstance(number, np.integer)


def is_negative(number: Any) -> bool:
    """Whether a symbolic size is negative where it is recorded. Asking does not fix it."""
    return hint(number) < 0


def sizes(numbers: Any) -> np.ndarray | Sizes:
    """A host value of numbers, which may be symbolic; Sizes only if one is. The argument is a list, or an object array."""
    if not isinstance(numbers, np.ndarray):
        listed = list(numbers)
        numbers = np.empty(len(listed), dtype=object)
        for i, number in enumerate(listed):  # an assignment of all would ask sizes of recordings for arrays
            numbers[i] = number
    if not all(fixed(n) for n in numbers.flat):
        if any(fixed(n) and not -(1 << 63) <= n < 1 << 63 for n in numbers.flat):
            raise OverflowError("[onnx] expected sizes that are int64 numbers")
        return Sizes(numbers)
    return numbers.astype(np.int64)


def is_host(value: Any) -> bool:
    """Whether a value is in the client."""
    if isinstance(value, Narrow):
        value = value.value
    return isinstance(value, (np.ndarray, Sizes))


def is_text(value: Any) -> bool:
    """Whether a value is an array of strings."""
    return isinstance(value, np.ndarray) and value.dtype == object


def plain(value: Any) -> Any:
    """The tensor or array of a value."""
    return value.value if isinstance(value, Narrow) else value


def type_of(value: Any) -> int:
    """The ONNX element type of a tensor, array, Sizes or Narrow."""
    if isinstance(value, Narrow):
        return value.type
    if isinstance(value, Tensor):
        return _types.TYPE_OF[value.dtype]
    if isinstance(value, Sizes):
        return _types.INT64
    if isinstance(value, np.ndarray):
        return _types.type_of_array(value)
    raise TypeError(f"[onnx] expected a tensor, got {type(value).__name__}")


def from_array(array: np.ndarray) -> Any:
    """A host value for an array of any type that ONNX has: Narrow for types that the engine stores in another dtype."""
    number = _types.type_of_array(array)
    if number == _types.STRING:
        return array.astype(object)
    if number not in _types.NARROW:
        return array
    stored = {torch.uint8: np.uint8, torch.int8: np.int8, torch.float16: np.float16, torch.float32: np.float32}
    return Narrow(array.astype(stored[_types.DTYPES[number]]), number)


def to_engine(array: np.ndarray, device: Any) -> Tensor:
    """A tensor with an array's values, which are copied."""
    number = _types.type_of_array(array)
    if number == _types.STRING:
        raise TypeError("[onnx] expected numbers, got strings, which operators on the engine do not accept")
    if not array.flags.c_contiguous or not array.flags.writeable:
        array = array.copy(order="C")
    if number in (_types.BFLOAT16, _types.E4M3FN, _types.E5M2):
        raw = np.uint16 if number == _types.BFLOAT16 else np.uint8
        return torch.from_numpy(array.view(raw)).to(device).view(_types.DTYPES[number])
    return torch.from_numpy(array).to(device)


def tensor(value: Any, device: Any) -> Tensor:
    """A value as a tensor on a device."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Narrow):
        return tensor(value.value, device)
    if isinstance(value, Sizes):
        flat = [torch.full((1,), n, dtype=torch.int64, device=device) for n in value.array.flat]
        return torch.cat(flat).reshape(value.array.shape)
    if isinstance(value, np.ndarray):
        return to_engine(value, device)
    raise TypeError(f"[onnx] expected a tensor, got {type(value).__name__}")


def array(value: Any) -> np.ndarray:
    """A value as an array, of dtype object for Sizes. Waits for the engine if the value is there."""
    value = plain(value)
    if isinstance(value, Sizes):
        return value.array
    if isinstance(value, np.ndarray):
        return value
    if not isinstance(value, Tensor):
        raise TypeError(f"[onnx] expected a tensor, got {type(value).__name__}")
    if value.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        raw = torch.uint16 if value.dtype == torch.bfloat16 else torch.uint8
        return value.detach().contiguous().view(raw).cpu().numpy().view(_types.numpy_of(_types.TYPE_OF[value.dtype]))
    return value.detach().cpu().numpy()


def output(value: Any, number: int | None = None) -> Any:
    """A value as an array of its ONNX element type, or a list of them. `number` is the declared type, if known."""
    if isinstance(value, (list, tuple)) and not isinstance(value, (Narrow, Sizes)):
        return [output(v) for v in value]
    if value is None:
        return None
    if isinstance(value, dict):
        return value
    found = array(value)
    if isinstance(value, Sizes):
        return found.astype(np.int64)
    if isinstance(value, Narrow):
        number = value.type
    if number in _types.NARROW and found.dtype != object:
        return found.astype(_types.numpy_of(number))
    return found


def ints(value: Any) -> list:
    """The numbers of a vector or scalar of integers, as ints and SymInts. Waits for the engine if the value is there."""
    found = array(value)
    if found.size > 1 << 20:
        raise ValueError(f"[onnx] expected at most 1,048,576 numbers, got {found.size}")
    return [int(n) if fixed(n) or found.dtype != object else n for n in found.reshape(-1)]


def bounded(count: int, what: str, most: int = 1 << 24) -> int:
    """A number of elements that the client is to make.

    Raises:
        ValueError: there are more than it makes.
    """
    if count > most:
        raise ValueError(f"[{what}] expected at most {most} elements in the client, got {count}")
    return count


def integer(value: Any) -> Any:
    """The number of a tensor with one element, an int or a SymInt."""
    found = ints(value)
    if len(found) != 1:
        raise ValueError(f"[onnx] expected one number, got {len(found)}")
    return found[0]


def numbers(value: Any) -> list[float]:
    """The numbers of a vector or scalar, as floats."""
    return [float(n) for n in array(value).reshape(-1)]


def truth(value: Any) -> bool:
    """The value of a bool tensor with one element."""
    found = array(value)
    if found.size != 1:
        raise ValueError(f"[onnx] expected one condition, got {found.size}")
    return bool(found.reshape(-1)[0])


def shape_of(value: Any) -> tuple:
    """The sizes of a value, as ints and SymInts."""
    value = plain(value)
    return tuple(value.array.shape if isinstance(value, Sizes) else value.shape)
