"""Values of programs as JSON, and their comparison."""

from __future__ import annotations

import math
from typing import Any

_FULL = 64  # tensors with more elements are stored as sums


def plain(value: Any) -> Any:
    """A value as JSON. A tensor becomes its dtype, size and elements, or four sums if it has more than 64 elements."""
    if hasattr(value, "detach") and hasattr(value, "dtype"):
        return _tensor(value)
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):  # NumPy
        return value.tolist()
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _tensor(value: Any) -> dict[str, Any]:
    import numpy

    dtype = str(value.dtype).rpartition(".")[2]
    value = value.detach().cpu()
    value = value.float() if dtype in ("bfloat16", "float16") else value
    array = value.numpy()
    if array.size <= _FULL:
        elements = numpy.ravel(array)
        elements = [[v.real, v.imag] for v in elements.tolist()] if numpy.iscomplexobj(array) else elements.tolist()
        return {"dtype": dtype, "size": list(array.shape), "elements": elements}
    flat = numpy.ravel(array).astype(numpy.complex128 if numpy.iscomplexobj(array) else numpy.float64)
    place = numpy.arange(flat.size)
    sums = [flat.real, flat.imag, flat.real * numpy.cos(place), flat.real * numpy.sin(place * 0.37)]
    finite = [v[numpy.isfinite(v)] for v in sums]
    return {
        "dtype": dtype,
        "size": list(array.shape),
        "sums": [float(v.sum()) for v in finite],
        "scale": float(numpy.sqrt((numpy.abs(finite[0]) ** 2).sum())),
        "finite": int(finite[0].size),
    }


def difference(actual: Any, expected: Any, tolerance: float, path: str = "") -> str:
    """Describes the first difference; "" if there is none. Numbers may differ by `tolerance` of their size."""
    if isinstance(expected, dict) and "dtype" in expected and isinstance(actual, dict):
        return _tensor_difference(actual, expected, tolerance, path)
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or list(actual) != list(expected):
            return f"{path}: {_short(actual)} instead of {_short(expected)}"
        return next((d for k in expected if (d := difference(actual[k], expected[k], tolerance, f"{path}.{k}"))), "")
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return f"{path}: {_short(actual)} instead of {_short(expected)}"
        pairs = enumerate(zip(actual, expected))
        return next((d for i, (a, e) in pairs if (d := difference(a, e, tolerance, f"{path}[{i}]"))), "")
    if isinstance(expected, float) and isinstance(actual, (int, float)) and not isinstance(actual, bool):
        return "" if _close(actual, expected, tolerance, abs(expected)) else f"{path}: {actual} instead of {expected}"
    return (
        ""
        if actual == expected and type(actual) is type(expected)
        else f"{path}: {_short(actual)} instead of {_short(expected)}"
    )


def _tensor_difference(actual: dict, expected: dict, tolerance: float, path: str) -> str:
    for key in ("dtype", "size", "finite"):
        if actual.get(key) != expected.get(key):
            return f"{path}: {key} {actual.get(key)} instead of {expected.get(key)}"
    key = "elements" if "elements" in expected else "sums"
    numbers = [x for v in expected[key] for x in (v if isinstance(v, list) else [v])]
    others = [x for v in actual[key] for x in (v if isinstance(v, list) else [v])]
    scale = expected.get("scale") or max((abs(v) for v in numbers if math.isfinite(v)), default=0)
    exact = expected["dtype"] == "bool" or "int" in expected["dtype"]
    for i, (a, e) in enumerate(zip(others, numbers)):
        if not (a == e if exact and key == "elements" else _close(a, e, tolerance, scale)):
            return f"{path}: {key}[{i}] {a} instead of {e}"
    return ""


def _close(a: float, e: float, tolerance: float, scale: float) -> bool:
    return a == e or (a != a and e != e) or abs(a - e) <= tolerance * max(scale, 1e-3)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 120 else text[:117] + "..."
