"""torchao.testing.pt2e._xnnpack_quantizer: where torchao keeps XNNPACKQuantizer."""

from ....ao.quantization.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

__all__ = ["XNNPACKQuantizer", "get_symmetric_quantization_config"]
