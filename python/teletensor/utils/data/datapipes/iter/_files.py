"""Pipes of files on this machine."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe


@functional_datapipe("list_files")
class FileLister(IterDataPipe):
    """The paths of the files in folders, sorted within each folder.

    Args:
        root: a folder, several, or a pipe of them.
        masks: patterns of file names (fnmatch); by default all files.
        recursive: whether the files of inner folders are listed.
        abspath: whether paths are absolute.
        non_deterministic: the order is that of the file system.
        length: the number of files, for len(); -1: unknown.
    """

    def __init__(
        self, root: str | Sequence[str] | IterDataPipe = ".", masks: str | list[str] = "", *, recursive: bool = False,
        abspath: bool = False, non_deterministic: bool = False, length: int = -1,
    ) -> None:  # fmt: skip
        self.datapipe = [root] if isinstance(root, str) else root
        self.masks = [masks] if isinstance(masks, str) else masks
        self.recursive, self.abspath, self.non_deterministic, self.length = recursive, abspath, non_deterministic, length

    def _in_folder(self, folder: str) -> Iterator[str]:
        for path, folders, files in os.walk(folder):
            if not self.non_deterministic:
                files.sort()
                folders.sort()
            for name in files:
                if not any(self.masks) or any(fnmatch.fnmatch(name, mask) for mask in self.masks):
                    yield os.path.abspath(os.path.join(path, name)) if self.abspath else os.path.join(path, name)
            if not self.recursive:
                return

    def __iter__(self) -> Iterator[str]:
        for folder in self.datapipe:
            yield from self._in_folder(folder)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("open_files")
class FileOpener(IterDataPipe):
    """Pairs of a path and the open file, which the caller closes."""

    def __init__(self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        mode = self.mode if self.mode.startswith("r") else f"r{self.mode}"
        for path in self.datapipe:
            yield path, open(path, mode, encoding=self.encoding)  # noqa: SIM115 - the caller closes it

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("read_from_stream")
class StreamReader(IterDataPipe):
    """Pairs of a path and the content of its file, or its parts of `chunk` bytes; closes the files."""

    def __init__(self, datapipe: IterDataPipe, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path, stream in self.datapipe:
            with stream:
                while part := stream.read(self.chunk):
                    yield path, part
