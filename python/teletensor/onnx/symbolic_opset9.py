"""torch.onnx.symbolic_opset9: importable; its functions raise NotImplementedError."""

from ._symbolic import symbolic_functions

__all__ = []

__getattr__ = symbolic_functions(__name__)
