"""Distribution: the common interface of all distributions."""

from __future__ import annotations

import functools
import warnings

from .. import _C
from .._C import Size, Tensor
from .._functions import broadcast_shapes
from .._grad_mode import no_grad
from .._tracing_state import is_compiling
from . import constraints
from ._validation import Check, holds_for, require
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A batch of distributions over events; see torch.distributions.Distribution.

    Parameters and values are checked unless validate_args is False, which waits for the engine once per constructor, log_prob()
    or cdf(); not for parameters that are numbers. The default is off with `python -O`, and while code is captured.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: dict = {}
    support = None
    _validate_args = __debug__
    _arguments: dict | None = None  # the parameters as given to the constructor, until it has checked them

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether arguments are checked by default."""
        if value not in (True, False):
            raise ValueError(f"expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        elif is_compiling():
            self._validate_args = False
        arguments, self._arguments = self._arguments, None
        if self._validate_args:
            self._check_arguments(arguments or {})

    def _check_arguments(self, arguments: dict) -> None:
        """Checks the parameters, except those given as numbers in `arguments` for which the constraints are known to hold."""
        checks = []
        for name, constraint in self.arg_constraints.items():
            is_lazy = isinstance(getattr(type(self), name, None), lazy_property) and name not in self.__dict__
            if constraints.is_dependent(constraint) or is_lazy:
                continue
            value = getattr(self, name)
            if not holds_for(constraint, arguments.get(name), value.dtype):
                checks.append(Check(constraint, value, functools.partial(self._invalid_parameter, name, constraint, value)))
        require(checks)

    def _invalid_parameter(self, name: str, constraint, value) -> str:
        return (
            f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} "
            f"to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
        )

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()) -> Tensor:
        """Draws samples without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()) -> Tensor:
        """Draws samples that propagate gradients to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Draws n samples."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or of the probability."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The cumulative distribution function."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of cdf."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution's support."""
        raise NotImplementedError

    def expand(self, batch_shape, _instance=None) -> Distribution:
        """The same distribution with a larger batch shape."""
        raise NotImplementedError

    def _extended_shape(self, sample_shape=()) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def _validate_sample(self, value: Tensor) -> None:
        """Checks the shape of a value and that it is in the support, if arguments are to be checked."""
        if not self._validate_args or ("_validate_args" not in self.__dict__ and is_compiling()):
            return
        if not isinstance(value, Tensor):
            raise ValueError(f"The value argument to log_prob must be a Tensor, got {type(value).__name__}")
        expected, split = Size((*self._batch_shape, *self._event_shape)), value.dim() - len(self._event_shape)
        if split < 0 or tuple(value.shape[split:]) != tuple(self._event_shape):
            raise ValueError(f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}.")
        try:
            broadcast_shapes(value.shape, expected)
        except RuntimeError:
            raise ValueError(
                f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
            ) from None
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if support is not None:
            require([Check(support, value, functools.partial(self._outside_support, support, value))])

    def _outside_support(self, support, value) -> str:
        return (
            f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
            f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
        )

    def _copy_for(self, cls: type, instance=None) -> Distribution:
        """The object that `expand` of class `cls` fills in. It has no attributes yet."""
        if instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a "
                "custom .expand() method."
            )
        return type(self).__new__(type(self)) if instance is None else instance

    _get_checked_instance = _copy_for  # PyTorch's name, which subclasses in libraries call

    def _set_shapes(self, batch_shape, event_shape=(), validate_args: bool = False) -> None:
        """Completes a copy, whose parameters are set and have been checked already.

        `_validate_args` is set last: subclasses may define it as a property that depends on other attributes.
        """
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        self._validate_args = validate_args

    def __repr__(self) -> str:
        given = {k: v for k in self.arg_constraints if isinstance(v := self.__dict__.get(k), Tensor)}
        shown = [f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in given.items()]
        return f"{type(self).__name__}({', '.join(shown)})"


class _Elementwise(Distribution):
    """A distribution of scalars whose parameters are broadcast to the batch shape."""

    parameters: tuple[str, ...] = ()

    def _set(self, validate_args: bool | None, **parameters) -> None:
        from .utils import broadcast_all

        for name, value in zip(parameters, broadcast_all(*parameters.values())):
            setattr(self, name, value)
        first = getattr(self, next(iter(parameters)))
        if self._arguments is None:
            self._arguments = parameters
        Distribution.__init__(self, first.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = type(self).__new__(type(self)) if _instance is None else _instance
        new.__dict__.update({k: v for k, v in self.__dict__.items() if not isinstance(v, Tensor)})
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor):
                setattr(new, name, value.expand(batch_shape))
        new._set_shapes(batch_shape, validate_args=self._validate_args)
        return new

    def _uniform(self, sample_shape, like: Tensor) -> Tensor:
        """Uniform random numbers, clamped to [eps, 1 - eps]."""
        from .utils import clamp_probs

        return clamp_probs(_C.torch.rand(*self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)
                           if self._extended_shape(sample_shape) else _C.torch.rand_like(like))  # fmt: skip


class _LocationScale(_Elementwise):
    """The base of distributions with a location and a scale. rsample() applies icdf() to uniform numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self._set(validate_args, loc=loc, scale=scale)

    mode = property(lambda self: self.loc)

    def rsample(self, sample_shape=()):
        return self.icdf(self._uniform(sample_shape, self.loc))
