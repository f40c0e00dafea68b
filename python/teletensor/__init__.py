"""teletensor: a PyTorch-compatible client for tensors stored in an engine, on this machine or a remote one.

    import teletensor as torch
    x = torch.randn(3, 4, requires_grad=True)
    (x @ x.T).sum().backward()

Only calls that read values or sizes that depend on data wait for the engine; ``sync_report()`` lists the source lines
that waited.
"""

from __future__ import annotations

import builtins as _builtins
import math as _math
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import _C
from ._absent_autocast import absent_autocast as _absent_autocast
from ._C import OutOfMemoryError, Size, Tensor, device, dtype
from ._connection import connect, connect_all, connection, disconnect, immediate_errors, no_sync, sync_report, synchronize
from ._version import __version__

# dtypes and their aliases
from ._C import bfloat16, complex64, complex128, float16, float32, float64, int8, int16, int32, int64  # isort: skip
from ._C import uint8, uint16, uint32, uint64  # isort: skip
from ._C import float8_e4m3fn, float8_e5m2  # isort: skip
from ._C import bool  # noqa: A004 - PyTorch's name

half, float, double = float16, float32, float64  # noqa: A001
short, int, long = int16, int32, int64  # noqa: A001
cfloat, cdouble = complex64, complex128

# Export every operator that PyTorch exports as torch.<name>.
globals().update({name: fn for name, fn in vars(_C.torch).items() if not name.startswith("_")})
_addmm_activation, _scaled_mm = _C.torch._addmm_activation, _C.torch._scaled_mm  # PyTorch exports these too
if _TYPE_CHECKING:
    from ._C.torch import *  # noqa: F403 - for static type checkers

from . import _tensor  # noqa: E402 - adds the methods that are written in Python
from ._functions import *  # noqa: E402,F403
from ._ops.overloads import *  # noqa: E402,F403
from ._ops.join import *  # noqa: E402,F403
from ._dlpack import from_dlpack  # noqa: E402
from ._ops.complex import *  # noqa: E402,F403
from ._ops.einsum import einsum, tensordot  # noqa: E402
from ._ops.inplace import in_place_functions as _in_place_functions  # noqa: E402
from ._ops.math import *  # noqa: E402,F403
from ._ops.shape import *  # noqa: E402,F403
from ._ops.shape import view_copies as _view_copies  # noqa: E402
from ._generator import Generator  # noqa: E402
from ._generator import drawing_functions as _drawing_functions  # noqa: E402
from ._ops import spellings as _spellings  # noqa: E402,F401 - registers itself with the parser
from ._grad_mode import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled  # noqa: E402
from .linalg._torch_names import *  # noqa: E402,F403
from ._ops.native import *  # noqa: E402,F403
from ._layouts import (  # noqa: E402
    channels_last, channels_last_3d, contiguous_format, layout, legacy_contiguous_format, memory_format, preserve_format, strided,
)  # fmt: skip
from ._ops import tensor_queries as _tensor_queries  # noqa: E402
from ._generator import manual_seed  # noqa: E402
from ._random import get_rng_state, initial_seed, seed, set_rng_state  # noqa: E402
from ._ops.spectral import istft, stft  # noqa: E402
from ._tensor_str import set_printoptions  # noqa: E402
from . import autograd, random, types, version  # noqa: E402
from ._lazy import find_older_paths as _find_older_paths  # noqa: E402
from ._lazy import find_sources_of_classes as _find_sources_of_classes  # noqa: E402
from ._lazy import lazy_attributes as _lazy_attributes  # noqa: E402
from ._toplevel import NAMES as _lazy_names  # noqa: E402
from .autograd import Variable  # noqa: E402
from .types import Storage  # noqa: E402

adjoint = Tensor.adjoint
globals().update(_in_place_functions() | _drawing_functions | _view_copies)

from . import _overridable  # noqa: E402 - after every function and method is defined

_overridable.install(globals())


def _c_alias(name: str):
    """Returns a private name of torch._C that libraries use."""
    if name.startswith("__"):  # the import system looks for __path__
        raise AttributeError(f"module 'teletensor._C' has no attribute {name!r}")
    from . import _torch_c_compat

    return getattr(_torch_c_compat, name)


_C.__getattr__ = _c_alias


def _connection_text(self: _C.Connection) -> str:
    """The address, the engine's version and the devices. Does not wait."""
    from ._connection_html import connection_text

    return connection_text(self)


def _connection_html(self: _C.Connection) -> str:
    """A table of the session for notebooks. Waits for the session's memory only."""
    from . import _connection
    from ._connection_html import connection_table

    return connection_table(self, self is _connection._current)


_C.Connection.__repr__ = _connection_text
_C.Connection._repr_html_ = _connection_html


# PyTorch's device types with autocast that no engine has: only queries read its settings.
_OTHER_AUTOCAST = frozenset(("hpu", "ipu", "maia", "mps", "mtia", "privateuseone", "xla", "xpu"))


def is_autocast_enabled(device_type: str = "cuda") -> _builtins.bool:
    """Whether autocast is enabled for a device type in this thread."""
    if device_type in _OTHER_AUTOCAST:
        return device_type in _absent_autocast.enabled
    return _C.autocast_dtype(device_type) is not None


def is_autocast_cpu_enabled() -> _builtins.bool:
    """Same as is_autocast_enabled("cpu")."""
    return is_autocast_enabled("cpu")


def get_autocast_dtype(device_type: str):
    """Returns the autocast dtype of a device type, also while autocast is disabled."""
    if device_type in _OTHER_AUTOCAST:
        return _absent_autocast.dtype(device_type)
    return _C.autocast_fast_dtype(device_type)


def get_autocast_gpu_dtype():
    """Same as get_autocast_dtype("cuda")."""
    return get_autocast_dtype("cuda")


e, pi, inf, nan = _math.e, _math.pi, _math.inf, _math.nan
newaxis = None
torch = _sys.modules[__name__]  # programs write torch.torch.zeros(1)
has_mkl = has_lapack = has_openmp = has_spectral = True  # of the engine's libraries or its own kernels


for _name in " ".join(_lazy_names.values()).split():  # these replace operators of the same names
    if globals().get(_name) is getattr(_C.torch, _name, _C):
        del globals()[_name]
_find_older_paths()
_find_sources_of_classes()
_lazy_attribute, __dir__ = _lazy_attributes(
    globals(), None, _lazy_names, but=("as_torch", "cli"), convert=_overridable.overridable
)


def __getattr__(name: str):
    """Imports names at their first use; finds the modules of the engine's device libraries."""
    if name == "__all__":  # of a star import
        import pkgutil

        from ._toplevel.star_import import star_names

        return star_names(__dir__(), (module.name for module in pkgutil.iter_modules(__path__)))  # noqa: F405
    try:
        return _lazy_attribute(name)
    except AttributeError:
        if name.startswith("__") or not _C.plugin_types():
            raise
        from . import _plugin_devices

        module = _plugin_devices.device_module(name)
        if module is None:
            raise
        return module
