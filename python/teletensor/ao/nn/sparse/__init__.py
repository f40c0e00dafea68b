"""torch.ao.nn.sparse: its modules are not implemented, see torch.ao.nn.sparse.quantized."""

from __future__ import annotations

from ...._lazy import lazy_attributes

__getattr__, __dir__ = lazy_attributes(globals(), ("quantized",))
