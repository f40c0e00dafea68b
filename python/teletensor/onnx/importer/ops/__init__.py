"""The operators of ONNX, by subject. Each file has a table: name -> (version that it applies from, function), ...

A function receives a Call and the inputs, tensors unless `keeps` declares otherwise, and returns a value or a tuple of
values. An operator whose definition has changed is listed with each version that needs another function.
"""

from __future__ import annotations

from ...._lazy import lazy_attributes

__getattr__, __dir__ = lazy_attributes(globals(), None, {"_table": "OPERATORS find"})
