"""torch.utils.serialization.config: the defaults of load and save."""

from __future__ import annotations

from mmap import MAP_PRIVATE


class load:  # noqa: N801 - PyTorch's name
    """Defaults of load: `mmap` (whether files are mapped), `endianness`, `mmap_flags`."""

    mmap: bool = False
    endianness = None
    mmap_flags: int | None = MAP_PRIVATE
    calculate_storage_offsets: bool = False  # no effect: offsets are in the archive's directory, which is read


class save:  # noqa: N801 - PyTorch's name
    """Defaults of save: `compute_crc32`, `storage_alignment` in bytes."""

    compute_crc32: bool = True
    use_pinned_memory_for_d2h: bool = False  # no effect: the engine chooses its memory for transfers
    storage_alignment: int = 64
