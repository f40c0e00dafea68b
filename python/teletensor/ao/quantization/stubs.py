"""torch.ao.quantization.stubs: modules that mark where a quantized model converts its values."""

from ._stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]
