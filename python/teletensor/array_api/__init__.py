"""The Python array API standard, revision 2024.12.

    import teletensor.array_api as xp
    x = xp.linspace(0, 1, 5)

Arrays have the class Array: a Tensor that follows the standard where PyTorch differs from it.
"""

from __future__ import annotations

import importlib
from typing import Any

# The names are imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_DUNDERS = ("__all__", "__array_api_version__", "__array_namespace_info__")


def __getattr__(name: str) -> Any:
    if name in ("fft", "linalg"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in _DUNDERS or not name.startswith("_"):
        functions = importlib.import_module(f"{__name__}._functions")
        if name in vars(functions)["__all__"] or name in _DUNDERS:
            return getattr(functions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__"), *_DUNDERS})
