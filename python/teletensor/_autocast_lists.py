"""PyTorch's autocast lists for functions that are composed in Python of several operators.

The engine has the lists of operators (engine/schema/autocast.cc). A listed function receives cast tensors, and its own
calls are not cast again. Entries are the policies on CPUs and on GPUs: "lower" precision, "float32", "widest" of the
tensors' dtypes, "as given" without casts, or None: the function's own calls decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Callable

from . import _C
from ._C import Tensor

_POOLING = (
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices", "max_unpool1d",
    "max_unpool2d", "max_unpool3d",
)  # fmt: skip
_FFT = (
    "fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn",
)  # fmt: skip
_LINALG = (
    "cholesky", "cholesky_ex", "inv", "inv_ex", "svd", "svdvals", "eig", "eigvals", "eigh", "eigvalsh", "qr",
    "householder_product", "solve", "lstsq", "tensorinv", "tensorsolve", "matrix_rank", "cond",
)  # fmt: skip
_MAIN = (
    "geqrf", "inverse", "pinverse", "ormqr", "orgqr", "svd", "lu_solve", "triangular_solve", "cholesky_inverse",
    "cholesky_solve", "stft", "lu",
)  # fmt: skip
_CPU = ("float32", None)

# By module, then by name.
LISTS: dict[str, dict[str, tuple]] = {
    "teletensor": {
        **dict.fromkeys(_MAIN, _CPU),
        "block_diag": ("as given", "as given"), "convolution": ("as given", None),
        "pdist": (None, "float32"), "norm": (None, "float32"),
        "chain_matmul": (None, "lower"), "einsum": (None, "lower"), "tensordot": (None, "widest"), "vdot": (None, "widest"),
    },
    "teletensor.functional": {
        "norm": (None, "float32"), "chain_matmul": (None, "lower"), "einsum": (None, "lower"), "tensordot": (None, "widest"),
        "stft": _CPU, "lu": _CPU,
    },
    "teletensor.nn.functional": {
        **dict.fromkeys(_POOLING, _CPU),
        "cross_entropy": ("float32", None), "multilabel_soft_margin_loss": (None, "float32"),
        "instance_norm": (None, "as given"), "interpolate": ("as given", "float32"), "pad": ("padding", None),
        "pdist": (None, "float32"),
    },
    "teletensor.linalg": {
        **dict.fromkeys(_LINALG, _CPU),
        "vecdot": ("lower", "lower"), "multi_dot": (None, "lower"), "matrix_norm": (None, "float32"),
    },
    "teletensor.fft": dict.fromkeys(_FFT, _CPU),
}  # fmt: skip


def policies(module: str, name: str) -> tuple | None:
    """The policies of a function, or with module "teletensor" of a method of Tensor; None if it is in no list."""
    return LISTS.get(module, {}).get(name)


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for item in value for t in _tensors(item)]


def _of_padding(args: tuple, kwargs: dict) -> str | None:
    """The policy of pad(input, pad, mode): PyTorch lists reflection of one or two dimensions, and replication."""
    amounts = args[1] if len(args) > 1 else kwargs["pad"]
    mode = args[2] if len(args) > 2 else kwargs.get("mode", "constant")
    return "float32" if mode == "replicate" or (mode == "reflect" and len(amounts) <= 4) else None


def is_cast(value, device_type: str) -> bool:
    return (
        isinstance(value, _C.Tensor)
        and value.is_floating_point()
        and value.device.type == device_type
        and value.dtype is not _C.float64
    )


def cast(value, device_type: str, dtype):
    """Casts the floating-point tensors on the device type, except float64; searches iterables and mappings."""
    if isinstance(value, _C.Tensor):
        return value.to(dtype) if is_cast(value, device_type) else value
    if isinstance(value, (str, bytes)) or hasattr(value, "__array__"):
        return value
    if isinstance(value, Mapping):
        return {cast(k, device_type, dtype): cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, Iterable):
        values = (cast(v, device_type, dtype) for v in value)
        return type(value)(values) if isinstance(value, (list, tuple)) else values
    return value


def call(function: Callable, listed: tuple, args: tuple, kwargs: dict | None) -> Any:
    """Calls a listed function while autocast is enabled in this thread."""
    kwargs = kwargs or {}
    tensors = _tensors([args, kwargs])
    # A call on a GPU may have numbers on the CPU, so GPUs come first.
    for device, policy in (("cuda", listed[1]), ("cpu", listed[0])):
        lower = _C.autocast_dtype(device)
        if policy is None or lower is None or not any(t.device.type == device for t in tensors):
            continue
        if policy == "padding" and (policy := _of_padding(args, kwargs)) is None:
            break
        dtypes = {t.dtype for t in tensors if is_cast(t, device)}
        if policy == "lower" or (policy == "widest" and dtypes == {lower}):
            dtype = lower
        else:
            dtype = _C.float32
        if policy != "as given":
            args, kwargs = cast(args, device, dtype), cast(kwargs, device, dtype)
        _C.set_autocast_enabled(device, False)
        try:
            return function(*args, **kwargs)
        finally:
            _C.set_autocast_enabled(device, True)
    return function(*args, **kwargs)


_C.set_autocast_caller(call)
