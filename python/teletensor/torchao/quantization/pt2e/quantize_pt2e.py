"""torchao.quantization.pt2e.quantize_pt2e: prepare_pt2e, prepare_qat_pt2e, convert_pt2e."""

from ....ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

__all__ = ["convert_pt2e", "prepare_pt2e", "prepare_qat_pt2e"]
