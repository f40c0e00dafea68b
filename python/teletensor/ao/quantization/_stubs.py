"""Modules that mark where a quantized model converts its values."""

from __future__ import annotations

from typing import Any

from ..._lazy import set_module
from ...nn import Module


class _Stub(Module):
    def __init__(self, qconfig: Any = None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        return x


class QuantStub(_Stub):
    """Marks where floating-point values become quantized ones. Returns its input."""


class DeQuantStub(_Stub):
    """Marks where quantized values become floating-point ones. Returns its input."""


class QuantWrapper(Module):
    """A module between a QuantStub and a DeQuantStub."""

    def __init__(self, module: Module):
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:  # noqa: N803 - PyTorch's name
        return self.dequant(self.module(self.quant(X)))


def add_quant_dequant(module: Module) -> Module:
    """Replaces modules without submodules that have a ``qconfig`` by QuantWrappers of them, in place."""
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


set_module("teletensor.ao.quantization.stubs", DeQuantStub, QuantStub, QuantWrapper)
