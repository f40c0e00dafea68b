"""WebDataset: samples in tar shards, in the layout of the webdataset library."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from ...._mt19937 import MT19937
from ..dataset import IterableDataset
from .sharding import ranks, share
from .tar import TarError, members

_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}")
_MAX_SHARDS = 1_000_000
_MAX_ARRAYS = 1 << 30  # bytes of the arrays in an .npz member


def expand(pattern: str) -> list[str]:
    """The paths of a pattern such as "train-{000..127}.tar"; numbers have the width of the first one."""
    match = _BRACES.search(pattern)
    if match is None:
        return [pattern]
    first, last = int(match[1]), int(match[2])
    if not 0 <= last - first < _MAX_SHARDS:
        raise ValueError(f"[WebDataset] expected an increasing range of less than {_MAX_SHARDS} shards, got {match[0]}")
    width = len(match[1])
    paths = [f"{pattern[: match.start()]}{i:0{width}}{pattern[match.end() :]}" for i in range(first, last + 1)]
    return [path for each in paths for path in expand(each)]


def _image(data: bytes) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "[WebDataset] decoding images needs the package Pillow: pip install pillow, or pass decode=None for the bytes"
        ) from error
    import numpy as np

    with Image.open(io.BytesIO(data)) as image:
        return np.ascontiguousarray(np.asarray(image.convert("RGB")).transpose(2, 0, 1))


def _npy(data: bytes) -> Any:
    from .arrays import array_of_npy

    return array_of_npy(data)


def _npz(data: bytes) -> dict[str, Any]:
    from .arrays import arrays_of_npz

    return arrays_of_npz(data, _MAX_ARRAYS)


def _text(data: bytes) -> str:
    return data.decode("utf-8")


def default_decoders() -> dict[str, Callable[[bytes], Any]]:
    """Functions by extension: images become uint8 arrays of shape (3, H, W), numbers int, text str, JSON Python values."""
    found: dict[str, Callable[[bytes], Any]] = dict.fromkeys(("jpg", "jpeg", "png", "webp", "bmp", "ppm", "gif"), _image)
    found |= dict.fromkeys(("cls", "cls2", "index", "id", "count"), int)
    found |= dict.fromkeys(("txt", "text", "transcript"), _text)
    return found | {"json": json.loads, "jsn": json.loads, "npy": _npy, "npz": _npz}


def _split(name: str) -> tuple[str, str]:
    """The key and the extension of a member: the file's name is split at its first dot."""
    folder, _, file = name.rpartition("/")
    stem, _, extension = file.partition(".")
    return (f"{folder}/{stem}" if folder else stem), extension.lower()


class WebDataset(IterableDataset):
    """Samples in tar shards: consecutive members with the same key, as dicts by extension, with "__key__" and "__url__".

    Shards are divided among ranks and a loader's workers, so there should be at least as many as workers of all ranks.
    Shards are local files, also compressed with gzip (.tar.gz, .tgz).

    Args:
        urls: a path, a pattern such as "train-{000..127}.tar", or several.
        decode: functions by extension, which replace or extend default_decoders(); None: all contents stay bytes.
        shuffle: number of samples in a buffer, from which samples are drawn; the order of shards is drawn too. 0: no shuffling.
        seed: of the order, together with the epoch; all ranks must use the same.
        on_error: "raise", or "skip": a warning, and the rest of a damaged shard, or a sample that cannot be decoded, is left out.
        max_member_bytes: the limit of one file in a shard.
        rank, world_size: by default those of the default process group.

    Raises:
        ValueError: a shard is damaged or truncated, a member exceeds the limit or cannot be decoded, or a key has two members with
            the same extension. Its text names the shard and the member.
        ImportError: an image is decoded and Pillow is not installed.
    """

    def __init__(
        self, urls: str | os.PathLike | Sequence[str | os.PathLike], *,
        decode: Mapping[str, Callable[[bytes], Any]] | None = {},  # noqa: B006 - not changed
        shuffle: int = 0, seed: int = 0, on_error: str = "raise", max_member_bytes: int = 1 << 28, rank: int | None = None,
        world_size: int | None = None,
    ):  # fmt: skip
        several = [urls] if isinstance(urls, (str, os.PathLike)) else list(urls)
        self.urls = [path for url in several for path in expand(os.fspath(url))]
        if not self.urls:
            raise ValueError("[WebDataset] expected at least one shard, got none")
        if remote := [url for url in self.urls if "://" in url or url.startswith("pipe:")]:
            raise NotImplementedError(f"[WebDataset] expected local files, got {remote[0]!r}: copy or mount remote shards first")
        if on_error not in ("raise", "skip"):
            raise ValueError(f"[WebDataset] expected on_error to be 'raise' or 'skip', got {on_error!r}")
        if shuffle < 0 or max_member_bytes < 1:
            raise ValueError(f"[WebDataset] expected a shuffle buffer >= 0 and a limit >= 1, got {shuffle} and {max_member_bytes}")
        self._decoders = None if decode is None else default_decoders() | dict(decode)
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self.on_error, self.max_member_bytes = on_error, max_member_bytes
        self.rank, self.world_size = ranks(rank, world_size)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which determines the order with `shuffle`."""
        self.epoch = epoch

    def _fail(self, text: str, cause: BaseException | None = None) -> None:
        """Raises ValueError, or warns."""
        if self.on_error == "raise":
            raise ValueError(f"[WebDataset] {text}") from cause
        warnings.warn(f"[WebDataset] skipped: {text}", stacklevel=2)

    def _open(self, path: str) -> BinaryIO:
        return gzip.open(path, "rb") if path.endswith((".gz", ".tgz")) else open(path, "rb")  # type: ignore[return-value]

    def _groups(self, path: str) -> Iterator[dict[str, Any]]:
        """The samples of a shard, not decoded."""
        sample: dict[str, Any] = {}
        try:
            with self._open(path) as file:
                for name, content in members(file, self.max_member_bytes):
                    key, extension = _split(name)
                    if not extension or key.rpartition("/")[2] == "":
                        continue  # a file without an extension, or a hidden one
                    if sample and sample["__key__"] != key:
                        yield sample
                        sample = {}
                    if extension in sample:
                        raise TarError(f"two members {name!r}")
                    sample = sample or {"__key__": key, "__url__": path}
                    sample[extension] = content
        except (TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            self._fail(f"{path}: {error}", error)
            return  # the current sample may lack members
        if sample:
            yield sample

    def _decode(self, sample: dict[str, Any]) -> dict[str, Any] | None:
        if self._decoders is None:
            return sample
        decoded = {}
        for extension, value in sample.items():
            function = None if extension.startswith("__") else self._decoders.get(extension.rpartition(".")[2])
            try:
                decoded[extension] = value if function is None else function(value)
            except (ImportError, MemoryError):
                raise
            except Exception as error:
                self._fail(f"{sample['__url__']}: {sample['__key__']}.{extension}: {type(error).__name__}: {error}", error)
                return None
        return decoded

    def _samples(self) -> Iterator[dict[str, Any]]:
        shards = self.urls
        if self.shuffle:
            shards = [shards[i] for i in MT19937(self.seed + self.epoch).randperm(len(shards))]
        for path in share(shards, self.rank, self.world_size):
            for sample in self._groups(path):
                if (decoded := self._decode(sample)) is not None:
                    yield decoded

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self.shuffle:
            yield from self._samples()
            return
        numbers, buffer = MT19937(self.seed + self.epoch + 1), []
        for sample in self._samples():
            buffer.append(sample)
            if len(buffer) >= self.shuffle:
                at = numbers.randint(len(buffer), 1)[0]
                buffer[at], buffer[-1] = buffer[-1], buffer[at]
                yield buffer.pop()
        for i in numbers.randperm(len(buffer)):
            yield buffer[i]
