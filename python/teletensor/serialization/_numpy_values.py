"""NumPy's arrays, numbers and dtypes in files, with ``weights_only=False``.

NumPy's own functions accept any state. Those here create values of plain dtypes only: booleans, numbers and texts in the
byte order of this machine.
"""

from __future__ import annotations

from typing import Any

from ._constructor import Constructor
from ._errors import require

_KINDS = "biufcUS"
_CODES = (1, 2, 3, 4)  # versions of the states of dtypes
_MODULES = ("numpy._core.multiarray", "numpy.core.multiarray")  # NumPy 2's and NumPy 1's


def _dtype(*args: Any) -> Any:
    import numpy as np

    require(1 <= len(args) <= 3 and type(args[0]) is str and len(args[0]) <= 16, "the code of a dtype", args)
    dtype = np.dtype(args[0])
    require(dtype.kind in _KINDS, "a dtype of numbers or texts", args[0])
    return dtype


def _array(*args: Any) -> Any:
    import numpy as np

    require(len(args) == 3 and args[0] is np.ndarray and args[1] == (0,), "the arguments of an empty array", args)
    return np.empty(0, np.int8)


def _number(*args: Any) -> Any:
    import numpy as np

    valid = len(args) == 2 and isinstance(args[0], np.dtype) and type(args[1]) is bytes and len(args[1]) == args[0].itemsize
    require(valid and args[0].itemsize > 0, "a dtype and the bytes of a number", args)
    return np.frombuffer(args[1], args[0])[0]


def find(module: str, name: str) -> Any:
    """The object that a file may name, or None."""
    import numpy as np

    if module in _MODULES:
        function = {"_reconstruct": _array, "scalar": _number}.get(name)
        return function and Constructor(f"{module}.{name}", function)
    if module == "numpy":
        return {"dtype": Constructor("numpy.dtype", _dtype), "ndarray": np.ndarray}.get(name)
    return None


def is_value(value: object) -> bool:
    """Whether set_state() applies to a value."""
    import numpy as np

    return type(value) is np.ndarray or isinstance(value, np.dtype)


def set_state(value: Any, state: Any) -> None:
    """Gives an array its sizes, dtype and elements. Checks the state of a dtype, which has none here."""
    import numpy as np

    if isinstance(value, np.dtype):
        plain = type(state) is tuple and len(state) >= 8 and state[0] in _CODES and state[2:5] == (None, None, None)
        require(plain and state[1] in ("<", "|", "="), "the state of a dtype in the byte order of this machine", state)
        return
    require(type(state) is tuple and len(state) == 5 and state[0] == 1, "the state of an array", state)
    _, sizes, dtype, fortran, data = state
    is_shape = type(sizes) is tuple and len(sizes) <= 32 and all(type(n) is int and 0 <= n < 2**62 for n in sizes)
    require(is_shape and isinstance(dtype, np.dtype) and type(data) is bytes, "sizes, a dtype and bytes", state)
    count = len(data) // dtype.itemsize if dtype.itemsize else 0
    require(count * dtype.itemsize == len(data) and count == _product(sizes), "as many bytes as the array has", len(data))
    value.__setstate__((1, sizes, dtype, bool(fortran), data))


def _product(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
