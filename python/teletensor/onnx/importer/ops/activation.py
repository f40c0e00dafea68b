"""Activations and softmax."""

from __future__ import annotations

import teletensor as torch
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name

from .._call import Call

Tensor = torch.Tensor


def _leaky(call: Call, x: Tensor) -> Tensor:
    return F.leaky_relu(x, call.get("alpha", 0.01))


def _elu(call: Call, x: Tensor) -> Tensor:
    return F.elu(x, call.get("alpha", 1.0))


def _selu(call: Call, x: Tensor) -> Tensor:
    old = call.version < 6
    alpha, gamma = (
        call.get("alpha", 1.6732 if old else 1.67326319217681884),
        call.get("gamma", 1.0507 if old else 1.05070102214813232),
    )
    return gamma * torch.where(x > 0, x, alpha * (torch.exp(x) - 1))


def _celu(call: Call, x: Tensor) -> Tensor:
    return F.celu(x, call.get("alpha", 1.0))


def _hard_sigmoid(call: Call, x: Tensor) -> Tensor:
    alpha, beta = call.get("alpha", 0.2), call.get("beta", 0.5)
    if abs(alpha - 1 / 6) < 1e-7 and beta == 0.5:
        return F.hardsigmoid(x)
    return torch.clamp(x * alpha + beta, 0.0, 1.0)


def _gelu(call: Call, x: Tensor) -> Tensor:
    return F.gelu(x, approximate=call.get("approximate", "none"))


def _swish(call: Call, x: Tensor) -> Tensor:
    alpha = call.get("alpha", 1.0)
    return F.silu(x) if alpha == 1.0 else x * torch.sigmoid(alpha * x)


def _swiglu(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return _swish(call, a) * b


def _prelu(call: Call, x: Tensor, slope: Tensor) -> Tensor:
    if call.version < 7 and slope.dim() == 1 and x.dim() > 1:
        slope = slope.reshape([-1] + [1] * (x.dim() - 2))
    return torch.where(x < 0, x * slope, x)


def _shrink(call: Call, x: Tensor) -> Tensor:
    bound, bias = call.get("lambd", 0.5), call.get("bias", 0.0)
    zero = torch.zeros_like(x)
    return torch.where(x < -bound, x + bias, torch.where(x > bound, x - bias, zero)).to(x.dtype)


def _thresholded(call: Call, x: Tensor) -> Tensor:
    return torch.where(x > call.get("alpha", 1.0), x, torch.zeros_like(x))


def _flattened(function: object) -> object:
    """Softmax before version 13: over all dimensions from the axis on."""

    def apply(call: Call, x: Tensor) -> Tensor:
        axis = call.get("axis", 1)
        axis = axis + x.dim() if axis < 0 else axis
        if axis == x.dim() - 1:
            return function(x, -1)
        return function(x.flatten(axis), -1).reshape(x.shape)

    return apply


def _at_axis(function: object) -> object:
    return lambda call, x: function(x, call.get("axis", -1))


def _hard(x: Tensor, axis: int) -> Tensor:
    best = torch.argmax(x, dim=axis, keepdim=True)
    return torch.zeros_like(x).scatter(axis, best, 1.0)


def _softmax(x: Tensor, axis: int) -> Tensor:
    return torch.softmax(x, axis)


def _log_softmax(x: Tensor, axis: int) -> Tensor:
    return torch.log_softmax(x, axis)


TABLE: dict[str, tuple] = {
    "Relu": ((1, lambda call, x: torch.relu(x)),), "Sigmoid": ((1, lambda call, x: torch.sigmoid(x)),),
    "Tanh": ((1, lambda call, x: torch.tanh(x)),), "LeakyRelu": ((1, _leaky),), "Elu": ((1, _elu),), "Selu": ((1, _selu),),
    "Celu": ((1, _celu),), "HardSigmoid": ((1, _hard_sigmoid),), "HardSwish": ((1, lambda call, x: F.hardswish(x)),),
    "Gelu": ((1, _gelu),), "Mish": ((1, lambda call, x: F.mish(x)),), "Swish": ((1, _swish),), "SwiGLU": ((1, _swiglu),),
    "Softplus": ((1, lambda call, x: torch.clamp(x, min=0) + torch.log1p(torch.exp(-torch.abs(x)))),),
    "Softsign": ((1, lambda call, x: F.softsign(x)),), "PRelu": ((1, _prelu),), "Shrink": ((1, _shrink),),
    "ThresholdedRelu": ((1, _thresholded),), "Softmax": ((1, _flattened(_softmax)), (13, _at_axis(_softmax))),
    "LogSoftmax": ((1, _flattened(_log_softmax)), (13, _at_axis(_log_softmax))),
    "Hardmax": ((1, _flattened(_hard)), (13, _at_axis(_hard))),
}  # fmt: skip
