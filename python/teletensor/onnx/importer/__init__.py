"""Import of ONNX models: load() makes a module of a model, whose operators the engine executes.

`_plan` turns a model's graphs into steps, `_run` executes them, `ops/` has the operators by subject.
"""

from __future__ import annotations

from ._model import OnnxModel, load

__all__ = ["OnnxModel", "load"]
