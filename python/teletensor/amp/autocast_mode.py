"""autocast: runs products in lower precision, sums and exponentials in float32, in a block or a function."""

from __future__ import annotations

import functools

from .. import _C
from .._options import check_optional_flags

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DEFAULTS = {"cpu": _C.bfloat16, "cuda": _C.float16}


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast supports the device type."""
    return device_type in _DEFAULTS


def fast_dtype(device_type: str):
    """The dtype of autocast of a device type."""
    if device_type not in _DEFAULTS:
        raise RuntimeError(f"expected a device type that supports autocast ({', '.join(_DEFAULTS)}), got '{device_type}'")
    return _DEFAULTS[device_type]


def set_fast_dtype(device_type: str, dtype) -> None:
    """Sets the dtype of later autocast blocks of a device type."""
    fast_dtype(device_type)
    if dtype not in (_C.float16, _C.bfloat16):
        raise RuntimeError(f"[set_autocast_dtype] expected dtype to be float16 or bfloat16, got {dtype}")
    _DEFAULTS[device_type] = dtype


class autocast:  # noqa: N801 - PyTorch's name
    """Casts the inputs of operators that this thread calls on one type of device; see torch.autocast.

    ``cache_enabled`` has no effect because casts are not cached.
    """

    def __init__(self, device_type: str, dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        check_optional_flags("autocast", cache_enabled=cache_enabled)
        dtype = dtype or _DEFAULTS[device_type]
        if enabled and dtype not in (_C.float16, _C.bfloat16):
            raise RuntimeError(f"[autocast] expected dtype to be float16 or bfloat16, got {dtype}")
        self.device, self.fast_dtype, self._enabled = device_type, dtype, enabled
        self._before: list = []

    def __enter__(self) -> autocast:
        self._before.append(_C.autocast_dtype(self.device))
        _C.set_autocast_dtype(self.device, self.fast_dtype if self._enabled else None)
        return self

    def __exit__(self, *exc) -> None:
        _C.set_autocast_dtype(self.device, self._before.pop())

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapped


def custom_fwd(fwd=None, *, device_type: str = "cuda", cast_inputs=None):
    """Decorates a Function's forward for use with autocast.

    If autocast is enabled and ``cast_inputs`` is given, casts the tensors to this dtype and disables autocast in
    forward. The backward decorated with custom_bwd runs in the same autocast state as forward.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx, *args, **kwargs):
        dtype = _C.autocast_dtype(device_type)
        ctx._autocast = None if cast_inputs is not None else dtype
        if dtype is None or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            named = {k: _cast(v, device_type, cast_inputs) for k, v in kwargs.items()}
            return fwd(ctx, *(_cast(a, device_type, cast_inputs) for a in args), **named)

    return decorated


def custom_bwd(bwd=None, *, device_type: str = "cuda"):
    """Decorates the backward of a Function whose forward uses custom_fwd: restores the autocast state of forward."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx, *grads):
        with autocast(device_type, ctx._autocast, ctx._autocast is not None):
            return bwd(ctx, *grads)

    return decorated


def _cast(value, device_type: str, dtype):
    """Casts the floating-point tensors on the device type, except float64; searches lists, tuples and dicts."""
    if isinstance(value, _C.Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype is not _C.float64
        return value.to(dtype) if fits else value
    if isinstance(value, dict):
        return {k: _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    return value
