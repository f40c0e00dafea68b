"""autocast: runs products in lower precision, sums and exponentials in float32, in a block or a function.

The engine casts, by PyTorch's lists (engine/schema/autocast.cc); `float32_on` and `widest_on` apply the lists to functions
that are composed here of several operators.
"""

from __future__ import annotations

import functools
import warnings

from .. import _C, cuda
from .._autocast_lists import cast
from .._autocast_lists import cast as _cast  # noqa: F401 - programs import it from here

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DTYPES = (_C.bfloat16, _C.float16)


# PyTorch's device types with autocast that no engine has: a block has no effect.
_OTHER_TYPES = frozenset(("hpu", "ipu", "maia", "mps", "mtia", "privateuseone", "xla", "xpu"))


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast supports the device type."""
    return device_type in ("cpu", "cuda") or device_type in _OTHER_TYPES


def has_gpus() -> bool:
    """Whether the engine has a GPU."""
    return cuda.is_available()


def autocast_decorator(autocast_instance, func):
    """The function, called in the region of an autocast object."""

    @functools.wraps(func)
    def decorated(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    return decorated


class autocast:  # noqa: N801 - PyTorch's name
    """Casts the inputs of operators that this thread calls on one type of device; see torch.autocast.

    Casts of parameters are kept in the engine until the outermost block ends, unless ``cache_enabled`` is False.
    """

    def __init__(self, device_type: str, dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self._has_effect = device_type not in _OTHER_TYPES
        if not self._has_effect:
            dtype, enabled = dtype or _C.float16, False
        elif not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        if cache_enabled is not None and not isinstance(cache_enabled, bool):
            raise TypeError(f"enabled must be a bool (got {type(cache_enabled).__name__})")
        dtype = dtype or _C.autocast_fast_dtype(device_type)
        self.device, self.fast_dtype = device_type, dtype
        self._cache_enabled = _C.autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda" and not has_gpus():
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        elif enabled and dtype not in _DTYPES:
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before: list = []

    def __enter__(self) -> autocast:
        if not self._has_effect:
            return self
        self._before.append((_C.autocast_dtype(self.device), _C.autocast_fast_dtype(self.device), _C.autocast_cache_enabled()))
        _C.set_autocast_enabled(self.device, self._enabled)
        if self.fast_dtype in _DTYPES:
            _C.set_autocast_fast_dtype(self.device, self.fast_dtype)
        _C.set_autocast_cache_enabled(self._cache_enabled)
        _C.add_autocast_nesting(1)
        return self

    def __exit__(self, *exc) -> bool:
        if not self._has_effect:
            return False
        active, dtype, cache = self._before.pop()
        _C.set_autocast_enabled(self.device, active is not None)
        _C.set_autocast_fast_dtype(self.device, dtype)
        _C.set_autocast_cache_enabled(cache)
        if _C.add_autocast_nesting(-1) == 0:
            _C.end_autocast_regions()
        return False

    def __call__(self, func):
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n        output = model(input)"
            )
        return autocast_decorator(self, func)


class restored:  # noqa: N801 - used like autocast
    """A block with the autocast state that the thread had when the object was created."""

    def __init__(self):
        self._regions = [
            (device, _C.autocast_fast_dtype(device), _C.autocast_dtype(device) is not None, _C.autocast_cache_enabled())
            for device in ("cpu", "cuda")
        ]

    def __enter__(self) -> None:
        self._entered = [autocast(*region) for region in self._regions]
        for region in self._entered:
            region.__enter__()

    def __exit__(self, *exc) -> None:
        for region in reversed(self._entered):
            region.__exit__(*exc)


def custom_fwd(fwd=None, *, device_type: str, cast_inputs=None):
    """Decorates a Function's forward for use with autocast.

    If autocast is enabled and ``cast_inputs`` is given, casts the tensors to this dtype and disables autocast in
    forward. The backward decorated with custom_bwd runs in the same autocast state as forward.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx, *args, **kwargs):
        is_enabled = _C.autocast_dtype(device_type) is not None
        ctx._dtype = _C.autocast_fast_dtype(device_type)
        ctx._fwd_used_autocast = is_enabled and cast_inputs is None
        if not is_enabled or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *cast(args, device_type, cast_inputs), **cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type: str):
    """Decorates the backward of a Function whose forward uses custom_fwd: restores the autocast state of forward."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx, *grads):
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return bwd(ctx, *grads)

    return decorated


class _UnmanagedAutocast(autocast):
    """A region that _enter_autocast begins and _exit_autocast ends."""


def _enter_autocast(*vals) -> _UnmanagedAutocast:
    mode = _UnmanagedAutocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode: _UnmanagedAutocast) -> None:
    mode.__exit__(None, None, None)
