"""torch.ao.nn.sparse.quantized: linear layers that store blocks of zeros in fewer bytes. Not implemented."""

from __future__ import annotations

from ...._not_implemented import not_implemented

not_implemented(
    globals(), "weights that store blocks of zeros in fewer bytes do not exist; use torch.ao.nn.quantized.Linear",
    classes="Linear LinearPackedParams",
)  # fmt: skip
