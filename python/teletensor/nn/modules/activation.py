"""Activations: a table of functions and the arguments that their modules keep."""

from __future__ import annotations

from ... import _C
from .. import functional as F
from ..parameter import Parameter
from .module import Module

# module -> (function, the arguments it keeps with their defaults, in order)
_TABLE = {
    "ReLU": (F.relu, {"inplace": False}),
    "ReLU6": (F.relu6, {"inplace": False}),
    "LeakyReLU": (F.leaky_relu, {"negative_slope": 0.01, "inplace": False}),
    "ELU": (F.elu, {"alpha": 1.0, "inplace": False}),
    "SELU": (F.selu, {"inplace": False}),
    "CELU": (F.celu, {"alpha": 1.0, "inplace": False}),
    "GELU": (F.gelu, {"approximate": "none"}),
    "SiLU": (F.silu, {"inplace": False}),
    "Mish": (F.mish, {"inplace": False}),
    "Hardtanh": (F.hardtanh, {"min_val": -1.0, "max_val": 1.0, "inplace": False}),
    "Hardsigmoid": (F.hardsigmoid, {"inplace": False}),
    "Hardswish": (F.hardswish, {"inplace": False}),
    "Hardshrink": (F.hardshrink, {"lambd": 0.5}),
    "Softshrink": (F.softshrink, {"lambd": 0.5}),
    "Sigmoid": (F.sigmoid, {}),
    "Tanh": (F.tanh, {}),
    "Tanhshrink": (F.tanhshrink, {}),
    "Softsign": (F.softsign, {}),
    "LogSigmoid": (F.logsigmoid, {}),
    "Softplus": (F.softplus, {"beta": 1, "threshold": 20}),
    "Threshold": (F.threshold, {"threshold": 0.0, "value": 0.0, "inplace": False}),
    "Softmax": (F.softmax, {"dim": None}),
    "LogSoftmax": (F.log_softmax, {"dim": None}),
    "Softmin": (F.softmin, {"dim": None}),
    "GLU": (F.glu, {"dim": -1}),
}

__all__ = [*_TABLE, "PReLU", "RReLU", "Softmax2d"]


def _make(name: str, function, kept: dict) -> type:
    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        values = {**kept, **dict(zip(kept, args)), **kwargs}
        unknown = [k for k in values if k not in kept]
        if unknown or len(args) > len(kept):
            raise TypeError(f"{name}.__init__() got an unexpected argument {(unknown or [args[-1]])[0]!r}")
        for key, value in values.items():
            setattr(self, key, value)

    def forward(self, input):
        return function(input, **{key: getattr(self, key) for key in kept})

    def extra_repr(self) -> str:
        shown = {k: getattr(self, k) for k in kept if k != "inplace" or self.inplace}
        return ", ".join(f"{k}={v}" for k, v in shown.items())

    doc = f"The module of functional.{getattr(function, '__name__', name.lower())}."
    members = {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__doc__": doc, "__module__": __name__}
    return type(name, (Module,), members)


globals().update({name: _make(name, *row) for name, row in _TABLE.items()})


class PReLU(Module):
    """Leaky relu with learned slopes, one or one a channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(_C.torch.full((num_parameters,), init, device=device, dtype=dtype))

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """Leaky relu with random slopes in training."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Softmax2d(Module):
    """softmax over the channels of images."""

    def forward(self, input):
        return F.softmax(input, -3)
