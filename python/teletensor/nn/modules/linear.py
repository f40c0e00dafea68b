"""Linear maps."""

from __future__ import annotations

import math

from ... import _C
from ..._lazy import defined_by
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]  # noqa: F822 - one is imported at its first use


class Identity(Module):
    """Returns its input. Arguments of the constructor are ignored, so that it can stand for any module.

    >>> torch.nn.Identity(54, unused=1)(torch.ones(2)).tolist()
    [1.0, 1.0]
    """

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    """input @ weight.T + bias.

    Args:
        in_features, out_features: sizes of the last dimension of the input and of the output.
        bias: whether to add a learned vector.
        device, dtype: of the parameters.

    The input has shape (*, in_features), the output (*, out_features); ``weight`` has shape (out_features, in_features) and
    ``bias`` (out_features). Both start as uniform numbers within 1 / sqrt(in_features).

    Raises:
        RuntimeError: the last dimension of an input is not in_features, or its dtype is not the weight's.

    >>> torch.nn.Linear(3, 2)(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(_C.torch.empty(out_features, in_features, device=device, dtype=dtype))
        learned = Parameter(_C.torch.empty(out_features, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", learned)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform in +-1/sqrt(in_features)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear that dynamic quantization leaves as it is, such as the output projection of MultiheadAttention."""


class Bilinear(Module):
    """x1 W x2 + b for every output feature."""

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device=None, dtype=None
    ):  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        make = {"device": device, "dtype": dtype}
        self.weight = Parameter(_C.torch.empty(out_features, in1_features, in2_features, **make))
        self.register_parameter("bias", Parameter(_C.torch.empty(out_features, **make)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform in +-1/sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )

# PyTorch has these names here.
__getattr__, __dir__ = defined_by(globals(), "lazy", "LazyLinear")
