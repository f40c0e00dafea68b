"""torch.ao.nn.qat: modules whose weights are rounded while they are trained."""

from __future__ import annotations

from ...._lazy import lazy_attributes

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear", "dynamic", "modules"]

_NAMES = {"linear": "Linear", "conv": "Conv1d Conv2d Conv3d", "embedding_ops": "Embedding EmbeddingBag"}
__getattr__, __dir__ = lazy_attributes(globals(), ("dynamic",), _NAMES)
