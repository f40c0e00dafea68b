"""torch.onnx.ops: operators of ONNX as functions."""

from __future__ import annotations

from .._not_implemented import not_implemented

not_implemented(
    globals(), "the operators of ONNX's own domain are not available; use torch.nn.functional",
    "aten_decompositions attention rms_normalization rotary_embedding symbolic symbolic_multi_out",
)  # fmt: skip
