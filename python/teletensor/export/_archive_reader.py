"""ArchiveReader: the JSON and tensors of a .pt2 archive, whose sizes are compared before anything is read."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import teletensor

from .. import _C
from .._C import Tensor
from ..nn import Parameter
from ._deserialize import device_of, flag, number_of
from ._file_names import path, text
from ._schema import dtype_of

_ENTRIES = 1 << 17
_JSON = 64 << 20  # bytes
_PACKED = 64 << 20  # bytes of a compressed member that is no tensor
_EXPANDED = 64 << 20  # bytes by which the elements of a file's tensors may exceed what is stored: expanded tensors
_UNPACKED, _RATIO = 1 << 30, 16  # bytes of all deflated members; more only if the file has a 16th of them
_MODEL = "models/model.json"


class ArchiveReader:
    """Reads the members of an archive. Each raises RuntimeError for what does not follow the format.

    Args:
        archive: the archive, whose members have one folder in front of their names.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        members = archive.infolist()
        if len(members) > _ENTRIES:
            raise RuntimeError(f"[export.load] expected at most {_ENTRIES} members of the archive, got {len(members)}")
        model = next((m.filename for m in members if m.filename.endswith(f"/{_MODEL}")), None)
        if model is None:
            raise RuntimeError("[export.load] expected a .pt2 archive with a program named model")
        self._archive, self._root = archive, model.removesuffix(_MODEL)
        self._members = {m.filename: m for m in members}
        self._expanded = 0
        _check_members(members, archive.fp)

    def has(self, name: str) -> bool:
        """Whether there is a member."""
        return self._root + name in self._members

    def _info(self, name: str) -> zipfile.ZipInfo:
        found = self._members.get(self._root + name)
        if found is None:
            raise RuntimeError(f"[export.load] the archive has no member {name}")
        return found

    def read(self, name: str, limit: int | None = None) -> bytes:
        """The bytes of a member, at most `limit`."""
        info = self._info(name)
        packed = info.compress_type != zipfile.ZIP_STORED
        limit = limit if limit is not None else _PACKED if packed else info.file_size
        if info.file_size > limit:
            raise RuntimeError(f"[export.load] expected at most {limit} bytes of {name}, got {info.file_size}")
        with self._archive.open(info) as member:
            content = member.read(info.file_size)  # with a size, decompression stops there
        if len(content) != info.file_size:
            raise RuntimeError(f"[export.load] expected {info.file_size} bytes of {name}, got {len(content)}")
        return content

    def json(self, name: str) -> dict:
        """The object of a JSON member."""
        found = json.loads(self.read(name, _JSON))
        if not isinstance(found, dict):
            raise RuntimeError(f"[export.load] expected an object in {name}, got {type(found).__name__}")
        return found

    def tensors(self, folder: str) -> dict[str, Tensor]:
        """The tensors of data/weights or data/constants by name. Tensors of one member share its memory."""
        config = f"data/{folder}/model_{folder}_config.json"
        if not self.has(config):
            return {}
        entries = self.json(config)["config"]
        for name, entry in entries.items():
            path(name, "a tensor's name")
            if entry["use_pickle"]:
                raise NotImplementedError(
                    f"[export.load] {name} is pickled in the file; only tensors without a class of their own are read"
                )
        layouts: dict[str, dict[str, _Layout]] = {}
        for entry in entries.values():
            member = f"data/{folder}/{text(entry['path_name'], 'the name of a member')}"
            layouts.setdefault(member, {}).setdefault(_key(entry), _Layout(entry["tensor_meta"], flag(entry["is_param"], "is_param")))
        made = {member: self._tensors_of(member, found) for member, found in layouts.items()}
        return {name: made[f"data/{folder}/{entry['path_name']}"][_key(entry)] for name, entry in entries.items()}

    def _tensors_of(self, member: str, layouts: dict[str, _Layout]) -> dict[str, Tensor]:
        info = self._info(member)
        size, used = info.file_size, max(layout.used for layout in layouts.values())
        if used > size or (info.compress_type != zipfile.ZIP_STORED and used != size):
            raise RuntimeError(f"[export.load] expected {used} bytes of {member}, got {size}")
        for layout in layouts.values():
            self._expanded += max(0, layout.bytes - size)
            if self._expanded > _EXPANDED:
                raise RuntimeError(f"[export.load] expected at most {_EXPANDED} bytes of elements more than the file stores")
        content = bytearray(self.read(member, size))
        shared: dict[Any, Tensor] = {}  # by device
        return {key: layout.tensor(content, shared) for key, layout in layouts.items()}


def _key(entry: dict) -> str:
    return json.dumps([entry["is_param"], entry["tensor_meta"]])


class _Layout:
    """How a tensor is laid out in a member's bytes.

    Attributes:
        used: the member's bytes up to the last element.
        bytes: the bytes of all elements.
    """

    def __init__(self, meta: dict, is_parameter: bool) -> None:
        self.is_parameter, self.dtype, self.device = is_parameter, dtype_of(meta["dtype"]), device_of(meta["device"])
        self.requires_grad = flag(meta["requires_grad"], "requires_grad")
        sizes, strides = ([number_of(n) for n in meta[k]] for k in ("sizes", "strides"))
        if len(sizes) != len(strides) or len(sizes) > 64:
            raise RuntimeError(f"[export.load] expected as many strides as sizes, at most 64, got {len(sizes)} and {len(strides)}")
        self.sizes, self.strides, self.offset = sizes, strides, number_of(meta["storage_offset"])
        count = 1
        for n in sizes:
            count *= n
        last = self.offset + sum((n - 1) * s for n, s in zip(sizes, strides)) if count else -1
        self.used, self.bytes = (last + 1) * self.dtype.itemsize, count * self.dtype.itemsize

    def tensor(self, content: bytearray, shared: dict[Any, Tensor]) -> Tensor:
        """The tensor, as a view of the memory of its device in `shared`."""
        if not self.bytes:
            value = teletensor.empty(self.sizes, dtype=self.dtype, device=self.device)
        else:
            if self.device not in shared:
                shared[self.device] = teletensor.frombuffer(content, dtype=_C.uint8).to(self.device)
            whole = len(content) // self.dtype.itemsize * self.dtype.itemsize
            flat = shared[self.device][:whole].view(self.dtype)
            value = flat.as_strided(self.sizes, self.strides, self.offset).detach()
        return Parameter(value, self.requires_grad) if self.is_parameter else value.requires_grad_(self.requires_grad)


def _check_members(members: list[zipfile.ZipInfo], file: Any) -> None:
    """Raises RuntimeError if the members have other compressions than PyTorch reads, or more stored bytes than the file."""
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
            raise RuntimeError(f"[export.load] expected {member.filename[:100]} stored or deflated, without encryption")
        if member.compress_type == zipfile.ZIP_STORED and member.file_size != member.compress_size:
            raise RuntimeError(f"[export.load] expected one size of the stored member {member.filename[:100]}")
    total = file.seek(0, io.SEEK_END)
    if sum(m.compress_size for m in members) > total:
        raise RuntimeError("[export.load] expected members that fit into the file")
    unpacked = sum(m.file_size for m in members if m.compress_type == zipfile.ZIP_DEFLATED)
    if unpacked > max(_UNPACKED, _RATIO * total):
        raise RuntimeError(f"[export.load] expected deflated members that fit into memory, got {unpacked} bytes in a file of {total}")


def check_packed(content: io.BytesIO) -> None:
    """Raises RuntimeError for an archive within the archive that is larger when it is unpacked."""
    if not zipfile.is_zipfile(content):
        raise RuntimeError("[export.load] expected example inputs as torch.save writes them")
    with zipfile.ZipFile(content) as archive:
        _check_members(archive.infolist(), content)
        if any(m.compress_type != zipfile.ZIP_STORED for m in archive.infolist()):
            raise RuntimeError("[export.load] expected example inputs without compression")
    content.seek(0)
