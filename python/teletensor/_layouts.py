"""torch.layout, torch.memory_format and torch.qscheme: names of layouts, which are text."""

from __future__ import annotations


class _Name(str):
    """A name that equals its text, and whose repr is its text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class layout(_Name):  # noqa: N801 - PyTorch's name
    """The type of torch.strided. Other layouts are not available."""

    __slots__ = ()


class memory_format(_Name):  # noqa: N801 - PyTorch's name
    """The type of torch.contiguous_format, torch.channels_last and the others."""

    __slots__ = ()


strided = layout("torch.strided")
contiguous_format, preserve_format = memory_format("torch.contiguous_format"), memory_format("torch.preserve_format")
channels_last, channels_last_3d = memory_format("torch.channels_last"), memory_format("torch.channels_last_3d")
legacy_contiguous_format = contiguous_format
