"""torch.serialization: saving and loading in PyTorch's file format."""

from __future__ import annotations

import contextlib
import os
import pickle
from typing import Any

_NAMES = {
    "LoadError": "_errors",
    "LoadEndianness": "_settings", "get_crc32_options": "_settings", "get_default_load_endianness": "_settings",
    "get_default_mmap_options": "_settings", "set_crc32_options": "_settings", "set_default_load_endianness": "_settings",
    "set_default_mmap_options": "_settings", "skip_data": "_settings",
    "StorageType": "_globals", "add_safe_globals": "_globals", "clear_safe_globals": "_globals",
    "get_safe_globals": "_globals", "safe_globals": "_globals",
    "default_restore_location": "_locations", "location_tag": "_locations", "register_package": "_locations",
    "validate_cuda_device": "_locations", "validate_hpu_device": "_locations",
    "get_unsafe_globals_in_checkpoint": "_load",
}  # fmt: skip

__all__ = [
    "SourceChangeWarning", "check_module_version_greater_or_equal", "load", "mkdtemp", "normalize_storage_type", "save",
    "storage_to_tensor_type", *_NAMES,
]  # fmt: skip

DEFAULT_PROTOCOL = 2
MAP_LOCATION: Any = Any  # the type of load()'s map_location: a function, device, name or dict of names
FILE_LIKE: Any = Any  # the type of files: a path or an object with read() or write()


class SourceChangeWarning(Warning):
    """A warning of PyTorch about modules in files. Never issued: files with modules are not loaded."""


def save(
    obj: object, f, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """Writes an object, usually a state_dict, to a path or a binary file, in PyTorch's format. Waits for the values.

    Tensors that share memory also share it after loading. A file at the path is replaced when the new one is complete;
    it is unchanged if saving fails. Files need only `write`.

    Args:
        obj: tensors, storages, numbers, texts, containers; also objects that pickle accepts, which load only creates if
            their classes are registered with add_safe_globals().
        pickle_module: only ``pickle``.
        pickle_protocol: 1 to 5, or None for pickle's default. PyTorch's load(weights_only=True) only reads 2.
        _use_new_zipfile_serialization: False writes the format of PyTorch before 1.6.
        _disable_byteorder_record: omits the entry that names the byte order.

    Raises:
        NotImplementedError: the object contains a module or an optimizer, whose code cannot be loaded.
        RuntimeError: tensors of different dtypes share memory, or the path's folder does not exist.
    """
    from ._save import save as run

    run(obj, f, pickle_module, pickle_protocol, _use_new_zipfile_serialization, _disable_byteorder_record)


def load(
    f,
    map_location=None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads an object that PyTorch or save wrote. Runs no code from the file.

    Tensors are created on the devices from which they were saved, and share memory as they did. Each storage is sent to
    the engine once. A path ``*.safetensors`` is read as a safetensors file.

    Args:
        f: a path, or a binary file that can seek.
        map_location: a device for all storages; a dict from location tags to location tags; or a function of a storage on
            the CPU and its location tag that returns a storage in its place, or None.
        pickle_module: only ``pickle`` with ``weights_only=False``, or None.
        weights_only: both values have the same meaning: tensors, plain data, containers, and classes and functions
            registered with add_safe_globals().
        mmap: whether the file, given by its path, is mapped instead of read.
        pickle_load_args: ``encoding`` and ``errors``: of texts that Python 2 wrote.

    Raises:
        teletensor.serialization.LoadError: the file is damaged, or contains classes or functions that are not registered.
            LoadError is a pickle.UnpicklingError and a RuntimeError.
        NotImplementedError: the file contains nested tensors.
        RuntimeError: a tensor was on a GPU that this engine does not have.
        OSError: the file cannot be opened or read.
    """
    from ._load import load as run

    return run(f, map_location, pickle_module, weights_only=weights_only, mmap=mmap, **pickle_load_args)


@contextlib.contextmanager
def mkdtemp():
    """A context with the path of a temporary folder, which is removed at the end."""
    import tempfile

    with tempfile.TemporaryDirectory() as path:
        yield path


def _is_path(name_or_buffer: Any) -> bool:
    """Whether a value is a path instead of a file."""
    return isinstance(name_or_buffer, (str, os.PathLike))


@contextlib.contextmanager
def _open_file_like(name_or_buffer: Any, mode: str):
    """A context with the file of a path, which is closed at the end, or with the given file, which is flushed if it is written.

    Raises:
        RuntimeError: the mode for a given file contains neither "w" nor "r".
        AttributeError, io.UnsupportedOperation: a given file for reading cannot seek.
    """
    if _is_path(name_or_buffer):
        with open(name_or_buffer, mode) as file:
            yield file
    elif "w" in mode:
        yield name_or_buffer
        name_or_buffer.flush()
    elif "r" in mode:
        name_or_buffer.seek(name_or_buffer.tell())
        yield name_or_buffer
    else:
        raise RuntimeError(f"Expected 'r' or 'w' in mode but got {mode}")


def _is_zipfile(f: Any) -> bool:
    """Whether a zip archive begins at the file's position, which is kept."""
    start = f.tell()
    magic = f.read(4)
    f.seek(start)
    return magic == b"PK\x03\x04"


def check_module_version_greater_or_equal(module, req_version_tuple: tuple, error_if_malformed: bool = True) -> bool:
    """Whether a module's ``__version__`` is at least a tuple of numbers.

    Raises:
        RuntimeError: the version has another form, and `error_if_malformed` is True; otherwise this is a warning.
    """
    try:
        parts = module.__version__.split(".")
        return tuple(type(wanted)(part) for wanted, part in zip(req_version_tuple, parts, strict=False)) >= tuple(
            req_version_tuple
        )
    except Exception as error:  # noqa: BLE001 - whatever a module's version is
        message = (
            f"'{module.__name__}' module version string is malformed '{getattr(module, '__version__', None)}' and cannot be compared "
            f"with tuple {req_version_tuple!s}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        import warnings

        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def normalize_storage_type(storage_type: type) -> type:
    """The storage class of the CPU with the name of a storage class."""
    import teletensor

    return getattr(teletensor, storage_type.__name__)


def storage_to_tensor_type(storage) -> type:
    """The tensor type of a storage's dtype and device, such as FloatTensor."""
    import teletensor
    from teletensor import cuda

    from ..storage import NAMES

    kind = NAMES[storage.dtype].replace("Storage", "Tensor")
    return getattr(cuda if storage.device.type == "cuda" else teletensor, kind)


def __getattr__(name: str):
    if name in _NAMES:
        import importlib

        value = getattr(importlib.import_module(f".{_NAMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'teletensor.serialization' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
