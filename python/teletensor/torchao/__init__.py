"""torchao's names: quantization of weights and of exported models.

Programs import it as ``teletensor.torchao``; in programs that run as ``teletensor run`` or with ``teletensor.as_torch``,
``import torchao`` returns it too. PyPI's torchao is not needed, and is not imported then: it calls private parts of PyTorch.
"""

from __future__ import annotations

from .._lazy import lazy_attributes

__version__ = "0.18.0"  # the release whose names and values are followed
__all__ = ["dtypes", "quantization", "quantize_", "testing"]
__getattr__, __dir__ = lazy_attributes(
    globals(), ("core", "dtypes", "quantization", "testing", "utils"), {"quantization.quant_api": "quantize_"}
)
