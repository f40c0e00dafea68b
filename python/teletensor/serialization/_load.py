"""Reading files."""

from __future__ import annotations

import contextlib
import io
import mmap as memory_map
import os
import sys
from collections.abc import Callable
from typing import Any

from .. import _C
from ..storage import TypedStorage
from ..utils.serialization import config
from . import _settings
from ._archive import Archive, BytesSource, FileSource, Source, is_archive
from ._errors import LoadError, as_caller_errors, as_load_errors, require, shown
from ._globals import Globals, classes_of_program, full_name
from ._legacy import load_legacy
from ._locations import Placement
from ._save import check_pickle_module
from ._storages import StorageMaker, storage_fields
from ._unpickler import Input, Keys, Scanner, Unpickler


def load_client_archive(source: Source, placement: Placement, encoding: str, errors: str) -> Any:
    """Reads an archive whose bytes are here."""
    archive = Archive(source)
    maker = StorageMaker(placement, byte_order(archive))

    def make(dtype, nbytes: int, location: str, name: str) -> TypedStorage:
        return maker.make(dtype, nbytes, location, lambda: archive.read(name))

    return load_archive(archive, make, encoding, errors)


def byte_order(archive: Archive) -> str:
    """The byte order of an archive's numbers."""
    if "byteorder" in archive:
        order = bytes(archive.read("byteorder"))
        if order not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {order[:20].decode('ascii', 'replace')}")
        return order.decode()
    default = _settings.get_default_load_endianness()
    orders = {_settings.LoadEndianness.BIG: "big", _settings.LoadEndianness.NATIVE: sys.byteorder}
    return orders.get(default, "little")


def check_is_checkpoint(archive: Archive) -> None:
    """Raises LoadError for archives of other programs."""
    if "constants.pkl" in archive:
        raise LoadError(
            "[load] Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: their code is not run"
        )
    if "data.pkl" not in archive:
        raise LoadError(
            f"[load] expected an entry data.pkl, as files of torch.save have, got {', '.join(map(shown, archive.names()[:4]))}"
        )


def load_archive(archive: Archive, make: Callable, encoding: str = "utf-8", errors: str = "strict") -> Any:
    """Reads an archive's object. `make`: returns the TypedStorage of a dtype, the number of bytes, a location tag and the name
    of an entry."""
    check_is_checkpoint(archive)
    loaded: dict[str, TypedStorage] = {}

    def persistent_load(identity) -> TypedStorage:
        dtype, key, location, numel = storage_fields(identity, 5)
        nbytes = numel * dtype.itemsize
        found = loaded.get(key)
        if found is None or (found.dtype is not dtype and not found.nbytes()):
            name = f"data/{key}"
            stored = archive.size(name)
            require(nbytes <= stored < nbytes + dtype.itemsize, f"{nbytes} bytes in an entry", stored)
            nbytes = stored
            found = loaded[key] = make(dtype, nbytes, location, name)
        require(nbytes <= found.nbytes() < nbytes + dtype.itemsize, "one size of a storage", nbytes)
        return found if found.dtype is dtype else TypedStorage(wrap_storage=found._untyped_storage, dtype=dtype)

    data = bytes(archive.read("data.pkl"))
    keys = Keys()
    source = Input(io.BytesIO(data), len(data))
    return Unpickler(source, Globals(keys), persistent_load, keys, encoding, errors).load()


def _check_readable(f) -> None:
    advice = (
        "You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to "
        "load from it instead."
    )
    if not all(hasattr(f, name) for name in ("read", "readline", "seek", "tell")):
        raise AttributeError(
            f"[load] expected a path or a file with read, readline, seek and tell, got {type(f).__name__}. {advice}"
        )
    try:
        position = f.tell()
        f.seek(0, io.SEEK_END)
        f.seek(position)
    except (OSError, ValueError) as error:
        raise io.UnsupportedOperation(f"[load] the file cannot seek to its end: {error}. {advice}") from None


@contextlib.contextmanager
def opened(f):
    """A context with the binary file of a path, or with the file itself.

    Raises:
        AttributeError: `f` is neither.
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
        return
    with as_caller_errors():
        _check_readable(f)
    yield f


def _read(f, mmap: bool, placement: Placement, encoding: str, errors: str) -> Any:
    with opened(f) as file:
        source = FileSource(file)
        if not is_archive(source):
            if mmap:
                raise LoadError(
                    "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please torch.save your "
                    "checkpoint with this option in order to use mmap."
                )
            return load_legacy(file, source, placement, encoding, errors)
        if not mmap:
            return load_client_archive(source, placement, encoding, errors)
        with memory_map.mmap(
            file.fileno(), 0, flags=config.load.mmap_flags or memory_map.MAP_PRIVATE, prot=memory_map.PROT_READ
        ) as mapped:
            data = BytesSource(mapped)
            try:
                return load_client_archive(data, placement, encoding, errors)
            finally:
                data.release()


def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args,
) -> Any:
    """torch.load, with all arguments."""
    from .._options import check_optional_flags

    check_optional_flags("load", weights_only=weights_only, mmap=mmap)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    check_pickle_module("load", pickle_module)
    encoding, errors = _text_options(pickle_load_args)
    placement = Placement(map_location)
    mmap = config.load.mmap if mmap is None else mmap
    is_path = isinstance(f, (str, os.PathLike))
    if mmap and not is_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    if is_path and os.fsdecode(f).endswith(".safetensors"):
        return _load_safetensors(f, map_location)
    with as_load_errors(), classes_of_program(weights_only is False):
        return _read(f, mmap, placement, encoding, errors)


def _text_options(options: dict) -> tuple[str, str]:
    encoding, errors = options.pop("encoding", "utf-8"), options.pop("errors", "strict")
    if options:
        raise TypeError(f"[load] expected encoding and errors as further arguments, got {', '.join(sorted(options))}")
    if encoding not in ("bytes", "ascii", "ASCII", "utf-8", "utf8", "latin1", "latin-1"):
        raise ValueError(f"[load] expected encoding to be 'bytes', 'ascii', 'utf-8' or 'latin1', got {encoding!r}")
    return encoding, errors


def _load_safetensors(f, map_location):
    if isinstance(map_location, dict) or callable(map_location):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise NotImplementedError(
            f"Loading safetensors file with {kind} map_location is not supported. Use a device string or torch.device instead."
        )
    from ._safetensors import load_file

    device = _C.device("cpu" if map_location is None else map_location)
    with as_load_errors(), open(f, "rb") as file:
        return load_file(FileSource(file), device)


def get_unsafe_globals_in_checkpoint(f) -> list[str]:
    """The full names of classes and functions in a file of save that load would reject.

    Raises:
        ValueError: the file is not an archive of save.
    """
    with as_load_errors(), opened(f) as file:
        source = FileSource(file)
        if not is_archive(source):
            raise _not_a_checkpoint()
        archive = Archive(source)
        if "constants.pkl" in archive:
            raise _not_a_checkpoint(" but got a torchscript checkpoint")
        data = bytes(archive.read("data.pkl"))
        scanner = Scanner(Input(io.BytesIO(data), len(data)))
        scanner.load()
        known = Globals(Keys())
        return sorted({path for path in (full_name(*name) for name in scanner.names) if path not in known})


class _NotACheckpoint(LoadError, ValueError):
    pass


def _not_a_checkpoint(more: str = "") -> LoadError:
    return _NotACheckpoint(f"Expected input to be a checkpoint returned by torch.save{more}")
