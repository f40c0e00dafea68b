"""Activations: a table of functions and the arguments that their modules store."""

from __future__ import annotations

import inspect
import warnings

from ... import _C
from ..._lazy import defined_by
from .. import functional as F
from ..init import constant_, xavier_normal_, xavier_uniform_  # noqa: F401 - programs import these from here
from ..parameter import Parameter
from ._table import REQUIRED, bound_arguments, functional_forward
from .linear import NonDynamicallyQuantizableLinear  # noqa: F401 - programs import these from here
from .module import Module

# Maps module names to (function, stored arguments with their defaults, in order).
_TABLE = {
    "ReLU": ("relu", {"inplace": False}),
    "LeakyReLU": ("leaky_relu", {"negative_slope": 0.01, "inplace": False}),
    "ELU": ("elu", {"alpha": 1.0, "inplace": False}),
    "SELU": ("selu", {"inplace": False}),
    "CELU": ("celu", {"alpha": 1.0, "inplace": False}),
    "GELU": ("gelu", {"approximate": "none"}),
    "SiLU": ("silu", {"inplace": False}),
    "Mish": ("mish", {"inplace": False}),
    "Hardsigmoid": ("hardsigmoid", {"inplace": False}),
    "Hardswish": ("hardswish", {"inplace": False}),
    "Hardshrink": ("hardshrink", {"lambd": 0.5}),
    "Softshrink": ("softshrink", {"lambd": 0.5}),
    "Sigmoid": ("sigmoid", {}),
    "Tanh": ("tanh", {}),
    "Tanhshrink": ("tanhshrink", {}),
    "Softsign": ("softsign", {}),
    "LogSigmoid": ("logsigmoid", {}),
    "Softplus": ("softplus", {"beta": 1.0, "threshold": 20.0}),
    "Threshold": ("threshold", {"threshold": REQUIRED, "value": REQUIRED, "inplace": False}),
    "Softmax": ("softmax", {"dim": None}),
    "LogSoftmax": ("log_softmax", {"dim": None}),
    "Softmin": ("softmin", {"dim": None}),
    "GLU": ("glu", {"dim": -1}),
}

__all__ = [*_TABLE, "Hardtanh", "MultiheadAttention", "PReLU", "RReLU", "ReLU6", "Softmax2d"]  # noqa: F822 - one is imported at its first use


_DOCS = {
    "ReLU": """max(input, 0), of any shape.

Args:
    inplace: whether to overwrite the input.

>>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0])).tolist()
[0.0, 2.0]
""",
    "LeakyReLU": """input where it is positive, else negative_slope times input; of any shape.

Args:
    negative_slope: the factor of negative elements.
    inplace: whether to overwrite the input.

>>> torch.nn.LeakyReLU(0.5)(torch.tensor([-1.0, 2.0])).tolist()
[-0.5, 2.0]
""",
    "Sigmoid": """1 / (1 + exp(-input)), of any shape. Integers and booleans become the default dtype.

>>> torch.nn.Sigmoid()(torch.tensor([0.0])).tolist()
[0.5]
""",
    "Tanh": """tanh(input), of any shape. Integers and booleans become the default dtype.

>>> torch.nn.Tanh()(torch.tensor([0.0])).tolist()
[0.0]
""",
    "Softmax": """exp(input) divided by its sum along a dimension, of any shape.

Args:
    dim: this dimension. None: as PyTorch's older releases chose it, with a warning.

Raises:
    IndexError: an input has no such dimension.

>>> torch.nn.Softmax(dim=-1)(torch.zeros(1, 2)).tolist()
[[0.5, 0.5]]
""",
    "GELU": """input times the normal distribution function of input (Hendrycks and Gimpel, 2016), of any shape.

Args:
    approximate: "none", or "tanh" for an approximation by tanh.

Raises:
    RuntimeError: another value of approximate.

>>> torch.nn.GELU()(torch.tensor([0.0, 100.0])).tolist()
[0.0, 100.0]
""",
}


def _make(name: str, function: str, kept: dict) -> type:
    signature, bind = bound_arguments(name, kept)

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        for key, value in bind(args, kwargs).items():
            if key == "dim" and not (value is None or isinstance(value, int) and not isinstance(value, bool)):
                raise TypeError(f"dim must be an int or None, got {type(value)}")
            setattr(self, key, value)

    __init__.__signature__ = signature.replace(
        parameters=[inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *signature.parameters.values()]
    )

    def extra_repr(self) -> str:
        shown = {k: getattr(self, k) for k in kept if k != "inplace" or self.inplace and name not in ("Hardsigmoid", "Hardswish")}
        if name in ("Hardshrink", "Softshrink"):
            return str(self.lambd)
        return ", ".join(f"{k}={v!r}" for k, v in shown.items())

    doc = _DOCS.get(name, f"The module of functional.{function}.")
    forward = functional_forward(("input",), function, {key: f"self.{key}" for key in kept}, __name__)
    members = {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__doc__": doc, "__module__": __name__}
    return type(name, (Module,), members)


globals().update({name: _make(name, *row) for name, row in _TABLE.items()})


class Hardtanh(Module):
    """Clamps to [min_val, max_val]."""

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None,
        max_value: float | None = None,
    ):  # fmt: skip
        super().__init__()
        for old, value in (("min", min_value), ("max", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}_value` is deprecated and rename to `{old}_val`", FutureWarning, stacklevel=2
                )
        self.min_val, self.max_val = min_val if min_value is None else min_value, max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val must be larger than min_val, got {self.max_val} <= {self.min_val}")

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """Clamps to [0, 6]."""

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class PReLU(Module):
    """Leaky relu with one learned slope, or one per channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(_C.torch.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets all slopes to the initial value."""
        self.weight.detach().fill_(self.init)

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

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Softmax2d(Module):
    """softmax over the channels of images."""

    def forward(self, input):
        return F.softmax(input, -3)

# PyTorch has these names here.
__getattr__, __dir__ = defined_by(globals(), "transformer", "MultiheadAttention")
