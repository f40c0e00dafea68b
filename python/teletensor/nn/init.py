"""Initialisation of parameters, in place and without recording gradients.

Methods: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
networks" (2010); He et al., "Delving deep into rectifiers" (2015); Saxe et al., "Exact solutions
to the nonlinear dynamics of learning in deep linear neural networks" (2013).
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import Callable

from .. import _C
from .._C import Tensor
from .._generator import Generator
from .._grad_mode import no_grad
from .._overridable import wrap_functions as _wrap_functions

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse", "sparse_",
    "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_",
]  # fmt: skip

_LINEAR = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid",
)  # fmt: skip
_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4, **dict.fromkeys(_LINEAR, 1)}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The gain that preserves the variance through a nonlinearity; `param` is the slope of leaky_relu."""
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        else:
            slope = param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _fan_in_and_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = _fan_in_and_out


@no_grad
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills with uniform numbers from [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills with normal numbers."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Generator | None = None
) -> Tensor:
    """Fills with normal numbers truncated to [a, b], by inverse transform sampling."""
    low, high = (0.5 * (1 + math.erf((x - mean) / std / math.sqrt(2))) for x in (a, b))
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=3,
        )
    if high - low < _TAIL:
        return tensor.copy_(_of_tail(tensor, (a - mean) / std, (b - mean) / std, generator).mul_(std).add_(mean).clamp_(a, b))
    tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
    return tensor.copy_((tensor.erfinv() * (std * math.sqrt(2)) + mean).clamp(a, b))


_TAIL = 1e-3  # probability of an interval below which the inverse of erf is not precise enough


def _of_tail(like: Tensor, a: float, b: float, generator: Generator | None) -> Tensor:
    """Standard normal numbers of an improbable interval [a, b], in float64."""
    if a > 0:
        return _of_tail(like, -b, -a, generator).neg_()
    draws = like.new_empty(like.shape, dtype=_C.float64)
    low, high = (0.5 * math.erfc(-x / math.sqrt(2)) for x in (a, b))
    if high > 0:
        return _C.ops.special_ndtri(draws.uniform_(low, high, generator=generator))
    # Beyond 38 standard deviations the probabilities are 0 in float64. There the square's density is exponential, apart
    # from a factor between 1 - 1 / b^2 and 1.
    return draws.uniform_(generator=generator).log_().mul_(-2).add_(b * b).sqrt_().neg_()


@no_grad
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value."""
    return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones."""
    return constant_(tensor, 1.0)


@no_grad
def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity."""
    from .. import eye

    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(eye(*tensor.shape))


@no_grad
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills with a convolution that copies input channels to output channels, per group."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    tensor.zero_()
    per_group = tensor.shape[0] // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    for g in range(groups if per_group else 0):
        for d in range(min(per_group, tensor.shape[1])):
            tensor[(g * per_group + d, d, *centre)] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills with uniform numbers within gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    Args:
        tensor: of 2 dimensions or more: (out, in, *window).
        gain: see calculate_gain().
        generator: draws the numbers; None: the session's.

    Returns:
        The tensor. Nothing is recorded.

    Raises:
        ValueError: the tensor has less than 2 dimensions.

    >>> torch.nn.init.xavier_uniform_(torch.empty(4, 2)).abs().max().item() <= 1
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_fan_in_and_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills with normal numbers of standard deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    Args:
        tensor: of 2 dimensions or more: (out, in, *window).
        gain: see calculate_gain().
        generator: draws the numbers; None: the session's.

    Returns:
        The tensor. Nothing is recorded.

    Raises:
        ValueError: the tensor has less than 2 dimensions.

    >>> torch.nn.init.xavier_normal_(torch.empty(100, 100)).std().item() < 0.2
    True
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fan_in_and_out(tensor))), generator)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The tensor's fan_in or fan_out."""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _fan_in_and_out(tensor)[mode == "fan_out"]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def _warn_about_empty_tensor(tensor: Tensor) -> Tensor:
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return tensor


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Fills with uniform numbers of variance gain^2 / fan."""
    if 0 in tensor.shape:
        return _warn_about_empty_tensor(tensor)
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Fills with normal numbers of standard deviation gain / sqrt(fan) (He et al., "Delving deep into rectifiers", 2015).

    Args:
        tensor: of 2 dimensions or more: (out, in, *window).
        a: the negative slope of leaky_relu.
        mode: "fan_in" (in times the window's size) or "fan_out".
        nonlinearity: the activation that follows, whose gain is calculate_gain(nonlinearity, a).
        generator: draws the numbers; None: the session's.

    Returns:
        The tensor. Nothing is recorded.

    Raises:
        ValueError: the tensor has less than 2 dimensions, or the mode or the nonlinearity is not known.

    >>> torch.nn.init.kaiming_normal_(torch.empty(200, 50), nonlinearity="relu").std().item() > 0.15
    True
    """
    if 0 in tensor.shape:
        return _warn_about_empty_tensor(tensor)
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


@no_grad
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fills with orthonormal rows or columns times gain. NumPy computes them in the client by QR of a normal matrix."""
    import numpy as np

    from .. import randn
    from .. import tensor as make

    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    q, r = np.linalg.qr(randn(max(rows, columns), min(rows, columns), generator=generator).double().numpy())
    q = q * np.sign(np.diag(r))
    return tensor.copy_(make(np.ascontiguousarray(q.T if rows < columns else q) * gain).reshape(tensor.shape))


@no_grad
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fills a matrix with normal numbers, and a fraction of each column with zeros (Martens, 2010)."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.device.type == "meta":
        return tensor
    rows, columns = tensor.shape
    tensor.normal_(0, std, generator=generator)
    zeros = math.ceil(sparsity * rows)
    if zeros:
        # A random permutation per column.
        order = _C.torch.empty(rows, columns, device=tensor.device).uniform_(generator=generator).argsort(0)
        tensor.scatter_(0, order[:zeros], 0)
    return tensor


def _old_name(function: Callable) -> Callable:
    """The deprecated name of an initialisation, without the final underscore."""
    new = function.__name__

    @functools.wraps(function)
    def deprecated(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{new[:-1]}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    deprecated.__name__ = new[:-1]
    return deprecated


uniform, normal, constant, orthogonal = map(_old_name, (uniform_, normal_, constant_, orthogonal_))
eye, dirac, sparse = map(_old_name, (eye_, dirac_, sparse_))
xavier_uniform, xavier_normal = map(_old_name, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_old_name, (kaiming_uniform_, kaiming_normal_))

# Names that libraries use
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_, _no_grad_fill_ = uniform_, normal_, trunc_normal_, constant_
_no_grad_zero_ = zeros_

_wrap_functions(globals())
