"""Import of ONNX models: load() makes a module of a model, whose operators the engine executes.

`_plan` turns a model's graphs into steps, `_run` executes them, `ops/` has the operators by subject.
"""

from __future__ import annotations

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_model": "OnnxModel load",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("ops",), _NAMES)

__all__ = ["OnnxModel", "load"]
