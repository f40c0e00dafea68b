"""The functions that pickles of PyTorch's tensors name, for pickle.load() of files that PyTorch wrote with pickle.dump()."""

from __future__ import annotations

import io
from typing import Any

from . import _utils, serialization, storage

# By the name in torch._utils, the name in serialization/_rebuild.py.
_REBUILD = {
    "_rebuild_tensor": "rebuild_tensor", "_rebuild_tensor_v2": "rebuild_tensor", "_rebuild_tensor_v3": "rebuild_tensor_v3",
    "_rebuild_parameter": "rebuild_parameter", "_rebuild_parameter_with_state": "rebuild_parameter_with_state",
    "_rebuild_sparse_tensor": "rebuild_sparse_tensor", "_rebuild_qtensor": "rebuild_qtensor",
    "_rebuild_meta_tensor_no_storage": "rebuild_meta_tensor", "_rebuild_device_tensor_from_cpu_tensor": "rebuild_device_tensor",
}  # fmt: skip


def _rebuild_function(name: str) -> Any:
    if name not in _REBUILD:
        raise AttributeError(f"module {_utils.__name__!r} has no attribute {name!r}")
    from .serialization import _rebuild

    function = getattr(_rebuild, _REBUILD[name])
    function.__module__, function.__qualname__ = _utils.__name__, name  # as files name it
    return function


def _layout(name: str) -> Any:
    from .serialization._globals import _layout as named

    return named(name)


def _load_from_bytes(data: bytes) -> Any:
    """The storage in such a pickle, which contains files of torch.save()."""
    return serialization.load(io.BytesIO(data), weights_only=False)


def provide() -> None:
    """Adds the functions to the modules that the pickles name. Modules of lower layers cannot import them."""
    _utils.__getattr__ = _rebuild_function
    storage._load_from_bytes = _load_from_bytes
    serialization._get_layout = _layout
