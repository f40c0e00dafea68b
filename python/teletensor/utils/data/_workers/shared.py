"""Memory that a worker process shares with its parent, and the encoding of batches in it.

The worker writes arrays into memory files without a name (memfd), whose descriptors the parent receives through the
worker's socket. The kernel frees them when both processes have ended, however they end. The parent returns a segment
after use, so that its pages are reused.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import socket
import struct
import tempfile
from dataclasses import dataclass
from typing import Any

from .... import _C
from ...._C import Tensor

_HEADER = struct.Struct("<QQ")  # sizes of the message's two parts
INLINE = 1 << 15  # arrays of fewer bytes are part of the message
_MAX_DESCRIPTORS = 128  # per message; the kernel accepts 253


class SessionNeededError(BaseException):
    """Raised in a forked worker that uses tensors. Not an Exception, so that a data set does not catch it."""


def send(sock: socket.socket, head: bytes, data: bytes, descriptors: list[int]) -> None:
    """Sends a message of two parts with file descriptors; the receiver gets duplicates of the descriptors."""
    for begin in range(_MAX_DESCRIPTORS, len(descriptors), _MAX_DESCRIPTORS):
        socket.send_fds(sock, [_HEADER.pack(0, 0)], descriptors[begin : begin + _MAX_DESCRIPTORS])
    socket.send_fds(sock, [_HEADER.pack(len(head), len(data))], descriptors[:_MAX_DESCRIPTORS])
    sock.sendall(head)
    sock.sendall(data)


def _receive_exactly(sock: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        count = sock.recv_into(view[got:])
        if count == 0:
            raise EOFError
        got += count
    return data


def receive(sock: socket.socket) -> tuple[bytearray, bytearray, list[int]]:
    """Receives a message: its parts and descriptors. Raises EOFError if the peer has closed its end."""
    later: list[int] = []
    while True:
        header, descriptors, _, _ = socket.recv_fds(sock, _HEADER.size, _MAX_DESCRIPTORS)
        if not header:
            raise EOFError
        header += _receive_exactly(sock, _HEADER.size - len(header))
        size, data_size = _HEADER.unpack(header)
        if size > 0:
            return _receive_exactly(sock, size), _receive_exactly(sock, data_size), [*descriptors, *later]
        later += descriptors  # descriptors that do not fit in the message's own header


@dataclass
class Segment:
    """A piece of shared memory."""

    number: int
    memory: mmap.mmap
    free: bool = False


def _make_file(size: int) -> int:
    """A descriptor of a file without a name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("teletensor-batch", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


class SegmentWriter:
    """The worker's side: hands out segments, and reuses those that the parent has returned."""

    def __init__(self) -> None:
        self._segments: dict[int, Segment] = {}
        self._next = 0
        self._taken: list[int] = []  # since begin_batch()
        self._created: list[tuple[int, int]] = []
        self._dropped: list[int] = []

    def changes(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Since the last call: (number, descriptor) of new segments, and the numbers of segments that are not used again."""
        created, dropped = self._created, self._dropped
        self._created, self._dropped = [], []
        return created, dropped

    def release(self, numbers: list[int]) -> None:
        """Marks segments as free."""
        for number in numbers:
            self._segments[number].free = True

    def end_batch(self, used: list[int]) -> None:
        """Marks the segments taken since the last call as free, except those used."""
        self.release([number for number in self._taken if number not in used and number in self._segments])
        self._taken = []

    def take(self, size: int) -> Segment:
        """A segment of at least `size` bytes."""
        free = [s for s in self._segments.values() if s.free]
        fitting = [s for s in free if size <= len(s.memory) <= 4 * size + (1 << 20)]
        if fitting:
            segment = min(fitting, key=lambda s: len(s.memory))
            segment.free = False
            self._taken.append(segment.number)
            return segment
        for unused in free:  # of other sizes
            del self._segments[unused.number]
            self._dropped.append(unused.number)
        capacity = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        descriptor = _make_file(capacity)
        segment = Segment(self._next, mmap.mmap(descriptor, capacity))
        self._next += 1
        self._taken.append(segment.number)
        self._segments[segment.number] = segment
        self._created.append((segment.number, descriptor))
        return segment

    def array(self, shape, dtype) -> SharedArray:
        """An array in shared memory, with undefined values."""
        import numpy as np

        dtype = np.dtype(dtype)
        count = 1
        for size in shape:
            count *= size
        segment = self.take(max(1, count * dtype.itemsize))
        return SharedArray(np.frombuffer(segment.memory, dtype, count).reshape(shape), segment.number)


@dataclass
class SharedArray:
    """An array that becomes a tensor in the parent. Without a segment it is sent in the message."""

    array: Any
    segment: int | None = None
    view_as: str | None = None  # a dtype that NumPy lacks, whose bytes the array holds


@dataclass
class Numbers:
    """Python numbers that become a tensor in the parent."""

    values: list
    floating: bool


_NUMPY_LACKS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


def array_of(tensor: Tensor) -> SharedArray:
    """A copy of a tensor's values."""
    tensor = tensor.detach()
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _NUMPY_LACKS:
        return SharedArray(tensor.numpy(force=True))
    return SharedArray(tensor.contiguous().view(getattr(_C, _NUMPY_LACKS[name])).numpy(force=True), None, name)


def tensor_of(array, view_as: str | None) -> Tensor:
    """A tensor with a copy of the array's values."""
    tensor = _C.tensor(array)
    return tensor if view_as is None else tensor.view(getattr(_C, view_as))


class _Encoder(pickle.Pickler):
    """Pickles a batch; large arrays and tensors are written to shared memory."""

    def __init__(self, file: io.BytesIO, writer: SegmentWriter, may_use_session: bool):
        super().__init__(file, protocol=5)
        self._writer, self._may_use_session = writer, may_use_session
        self.used: list[int] = []

    def _encode_array(self, leaf: SharedArray) -> tuple:
        import numpy as np

        array = leaf.array
        number = leaf.segment
        if number is None and array.nbytes < INLINE:
            return None, array.tobytes(), array.dtype.str, array.shape, leaf.view_as
        if number is None:
            shared = self._writer.array(array.shape, array.dtype)
            np.copyto(shared.array, array)
            number = shared.segment
        self.used.append(number)
        return number, None, array.dtype.str, array.shape, leaf.view_as

    def persistent_id(self, value: Any) -> tuple | None:
        if isinstance(value, SharedArray):
            return "tensor", self._encode_array(value), False
        if isinstance(value, Numbers):
            return "numbers", value.values, value.floating
        if isinstance(value, Tensor):
            if not self._may_use_session:
                raise SessionNeededError
            return "tensor", self._encode_array(array_of(value)), value.requires_grad
        kind = type(value)
        if kind.__module__ == "numpy" and kind.__name__ in ("ndarray", "memmap") and value.nbytes >= INLINE:
            if value.dtype.kind in "biufcSUmM" and value.dtype.names is None:
                return "array", self._encode_array(SharedArray(value)), False
        return None


class Decoder:
    """The parent's side: maps segments and rebuilds batches, whose tensors are uploaded at once."""

    def __init__(self) -> None:
        self._memory: dict[int, mmap.mmap] = {}

    def map(self, numbers: list[int], descriptors: list[int], dropped: list[int]) -> None:
        """Adds the segments of new descriptors, which are closed, and removes others."""
        for number in dropped:
            self._memory.pop(number, None)
        for number, descriptor in zip(numbers, descriptors):
            try:
                self._memory[number] = mmap.mmap(descriptor, 0)
            finally:
                os.close(descriptor)

    def decode(self, data: bytes) -> Any:
        """The batch of an Encoder's bytes."""
        return _Decoder(io.BytesIO(data), self._memory).load()


class _Decoder(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, memory: dict[int, mmap.mmap]):
        super().__init__(file)
        self._memory = memory

    def _array(self, place: tuple):
        import numpy as np

        number, data, dtype, shape, _ = place
        count = 1
        for size in shape:
            count *= size
        return np.frombuffer(self._memory[number] if data is None else data, dtype, count).reshape(shape)

    def persistent_load(self, pid: tuple) -> Any:
        kind, place, flag = pid
        if kind == "numbers":
            return _C.tensor(place, dtype=_C.float64) if flag else _C.tensor(place)
        array = self._array(place)
        if kind == "array":
            return array.copy()
        tensor = tensor_of(array, place[4])
        return tensor.requires_grad_() if flag else tensor


def encode(value: Any, writer: SegmentWriter, may_use_session: bool) -> tuple[bytes, list[int]]:
    """The bytes of a batch, and the numbers of the segments that it uses."""
    file = io.BytesIO()
    encoder = _Encoder(file, writer, may_use_session)
    encoder.dump(value)
    return file.getvalue(), encoder.used
