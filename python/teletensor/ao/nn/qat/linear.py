"""Linear whose weight is rounded while it is trained."""

from __future__ import annotations

from typing import Any

from .... import nn
from ...._C import Tensor
from ...._lazy import set_module
from ....nn import functional as F
from ....nn.utils.parametrize import is_parametrized, transfer_parametrizations_and_params, type_before_parametrizations
from ..intrinsic.fused import LinearReLU


def configuration(mod: nn.Module, expected: type, name: str) -> Any:
    """A module's QConfig. Raises AssertionError if there is none, or if the module has another class."""
    found = type_before_parametrizations(mod)
    if found is not expected:
        raise AssertionError(f"{name}.from_float only works for {expected.__name__}, got {found.__name__}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")
    return mod.qconfig


class Linear(nn.Linear):
    """A linear layer whose weight a FakeQuantize rounds."""

    _FLOAT_MODULE: type[nn.Module] = nn.Linear

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None, device: Any = None, dtype: Any = None
    ):
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """The module for training, which shares the parameters of a linear layer with a QConfig.

        ``use_precomputed_fake_quant`` has no effect: no weight is rounded yet, as in PyTorch.
        """
        del use_precomputed_fake_quant
        qconfig = configuration(mod, cls._FLOAT_MODULE, f"qat.{cls.__name__}")
        if type_before_parametrizations(mod) is LinearReLU:
            mod = mod[0]
        made = cls(mod.in_features, mod.out_features, bias=mod.bias is not None, qconfig=qconfig)
        for name in ("weight", "bias"):
            if is_parametrized(mod, name):
                transfer_parametrizations_and_params(mod, made, name)
            else:
                setattr(made, name, getattr(mod, name))
        return made

    def to_float(self) -> nn.Module:
        """A linear layer with copies of the parameters, not rounded."""
        linear = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        linear.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            linear.bias = nn.Parameter(self.bias.detach())
        linear.train(self.training)
        return linear


set_module("teletensor.ao.nn.qat.modules.linear", Linear)
