"""Settings of save and load: checksums, byte order, memory mapping, and files without their tensors' bytes."""

from __future__ import annotations

import mmap
import threading
from enum import Enum

from .._lazy import set_module
from ..utils.serialization import config


class LoadEndianness(Enum):
    """The byte order of files that do not name theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files that do not name theirs; None is little endian."""
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of files that do not name theirs.

    Raises:
        TypeError: the value is neither a LoadEndianness nor None.
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            f"Invalid argument type in function set_default_load_endianness: expected LoadEndianness, got {type(endianness).__name__}"
        )
    config.load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether save computes checksums."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether save computes checksums. Files without are loaded without a check; other programs may reject them."""
    if not isinstance(compute_crc32, bool):
        raise TypeError(f"[set_crc32_options] expected a bool, got {type(compute_crc32).__name__}")
    config.save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """The flags with which load(mmap=True) maps files: mmap.MAP_PRIVATE or mmap.MAP_SHARED."""
    return config.load.mmap_flags


class set_default_mmap_options:  # noqa: N801 - PyTorch's name
    """Sets the flags with which load(mmap=True) maps files, until the end of the block if used as a context.

    Both flags have the same effect, because the mapping is only read: the bytes are copied to the engine.

    Raises:
        ValueError: the value is neither mmap.MAP_PRIVATE nor mmap.MAP_SHARED.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self._previous = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception) -> None:
        config.load.mmap_flags = self._previous


class _State(threading.local):
    skips_data = False


state = _State()


class skip_data:  # noqa: N801 - PyTorch's name
    """In the block, save leaves zeros in place of the tensors' bytes, and load returns tensors whose bytes are 0."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError(
                "[skip_data] expected materialize_fake_tensors to be False: there are no fake tensors"
            )

    def __enter__(self) -> None:
        self._previous, state.skips_data = state.skips_data, True

    def __exit__(self, *exception) -> None:
        state.skips_data = self._previous


set_module("teletensor.serialization", LoadEndianness, set_default_mmap_options, skip_data)
