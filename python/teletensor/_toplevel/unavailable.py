"""Functions of the module torch for quantized tensors that raise NotImplementedError."""

from __future__ import annotations

from typing import Any

from .._not_implemented import not_implemented
from . import QUANTIZED


def _add(what: str, functions: str) -> None:
    names: dict[str, Any] = {"__name__": "teletensor"}
    not_implemented(names, what, functions)
    globals().update({name: value for name, value in names.items() if name != "__name__"})


_add(
    "fbgemm_pack_quantized_matrix packs their weights, a kernel of one library; use torch.ao.nn.quantized.dynamic.GRUCell and its like",
    QUANTIZED,
)
