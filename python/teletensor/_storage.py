"""UntypedStorage: the bytes that a tensor and its views share in the engine."""

from __future__ import annotations

import os
import warnings
import weakref

from . import _C
from ._C import Tensor
from ._lazy import set_module

_live: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # storages by UntypedStorage._key()


def no_address_error(what: str) -> str:
    """Returns the error message of `what`, a function that would return the address of a tensor's bytes."""
    return (
        f"{what}: the tensor's bytes are in an engine and have no address in this process. Copy them here with .numpy() "
        "(.cpu() first on a GPU), or compare storages: a.untyped_storage() == b.untyped_storage(), a.is_set_to(b)"
    )


def byte_view(tensor: Tensor) -> Tensor:
    """All bytes of the storage of a tensor as a uint8 tensor, without a copy."""
    start = tensor.detach().as_strided((0,), (1,), 0).view(_C.uint8)
    return start.as_strided((tensor._storage[1],), (1,), 0)


def tensor_of_file(filename, shared: bool, nbytes: int | None) -> Tensor:
    """The bytes of UntypedStorage.from_file(); None: all bytes of the file."""
    size = os.path.getsize(filename) if os.path.isfile(filename) else -1
    if shared and size < (nbytes or 0):
        raise NotImplementedError(f"[from_file] expected a file of at least {nbytes} bytes with shared=True: engines do not write files")
    if 0 <= size < (nbytes or 0):
        raise RuntimeError(f"[from_file] file <{filename}> size <{size}> is smaller than the required mapping size <{nbytes}>")
    try:
        with open(filename, "rb") as file:
            data = file.read(-1 if nbytes is None else nbytes)
    except OSError as error:
        raise RuntimeError(f"[from_file] unable to open file <{filename}> in read-only mode: {error.strerror} ({error.errno})") from None
    tensor = _C.from_bytes(data, _C.uint8, [len(data)], _C.device("cpu"))
    if shared:
        warnings.warn("[from_file] shared=True: a read-only copy of the file, which later changes of the file do not change", stacklevel=3)
        _C.mark_read_only(tensor)
    return tensor


class UntypedStorage:
    """The bytes of a tensor and its views: ``UntypedStorage(size)``, ``UntypedStorage(values)``, ``tensor.untyped_storage()``.

    Storages of the same bytes are equal and have equal hashes. A storage keeps the bytes alive, but not the tensor. A
    slice (``storage[4:8]``) is a storage of some of the bytes. Reading an element waits for the engine.
    """

    is_sparse = False

    def __init__(self, *args, device=None) -> None:
        if len(args) > 1:
            raise TypeError(f"UntypedStorage() takes at most 1 positional argument, got {len(args)}")
        device = "cpu" if device is None else device  # also with another default device
        values = args[0] if args else 0
        if isinstance(values, bool) or not (isinstance(values, int) or hasattr(values, "__iter__")):
            raise TypeError(f"UntypedStorage(): expected a size or a sequence of bytes, got {type(values).__name__}")
        if isinstance(values, int):
            self._set(_C.torch.empty(values, dtype=_C.uint8, device=device))
        else:
            self._set(_C.tensor(list(values), dtype=_C.uint8, device=device))

    @classmethod
    def _of(cls, tensor: Tensor) -> UntypedStorage:
        """The storage of a tensor: as long as it exists, the same object for all tensors that share the bytes."""
        number, size = tensor._storage
        key = (tensor._session, number, tensor.device, 0, size)
        self = _live.get(key)
        if self is None:
            self = _live[key] = cls._new(tensor)
        return self

    @classmethod
    def _new(cls, tensor: Tensor) -> UntypedStorage:
        self = cls.__new__(cls)
        self._set(tensor)
        return self

    def _set(self, tensor: Tensor) -> None:
        self._number, self._bytes = tensor._storage
        self._start = 0  # of a slice
        self._session = tensor._session
        plain = tensor.detach()
        self._tensor = plain if type(plain) is Tensor else Tensor.__new__(Tensor, plain)
        self._bytes_tensor: Tensor | None = None
        self.device: _C.device = tensor.device

    def _view(self) -> Tensor:
        """The bytes as a uint8 tensor."""
        if self._bytes_tensor is None:
            whole = byte_view(self._tensor)
            whole_size = self._tensor._storage[1]
            self._bytes_tensor = whole if self._bytes == whole_size else whole.narrow(0, self._start, self._bytes)
        return self._bytes_tensor

    def _as_default_dtype(self) -> Tensor:
        """What ``Tensor(storage)`` returns."""
        return tensor_of(self, _C.default_dtype())

    def _as(self, dtype: _C.dtype, offset: int = 0, size=None, stride=None) -> Tensor:
        """A view of the bytes as a tensor; without sizes, of all elements.

        Raises:
            RuntimeError: the tensor would not be within the storage, or its start is not a multiple of the item size.
        """
        item = dtype.itemsize
        count = self._bytes // item
        size = [count - offset] if size is None else list(size)
        stride = contiguous_strides(size) if stride is None else list(stride)
        if len(size) != len(stride):
            raise RuntimeError(f"[set_] expected as many strides as sizes, got {size} and {stride}")
        extent = 0 if 0 in size else offset + 1 + sum((n - 1) * step for n, step in zip(size, stride))
        if offset < 0 or min((*size, *stride), default=0) < 0 or extent > count or self._start % item:
            raise RuntimeError(
                f"[set_] setStorage: sizes {size}, strides {stride}, storage offset {offset}, and itemsize {item} requiring a "
                f"storage size of {extent * item} are out of bounds for storage of size {self._bytes}"
            )
        if self._tensor.dtype is dtype:
            base = self._tensor
        else:
            base = byte_view(self._tensor).narrow(0, 0, self._tensor._storage[1] // item * item).view(dtype)
        return base.as_strided(size, stride, offset + self._start // item).detach()

    def nbytes(self) -> int:
        """The storage's size in bytes."""
        return self._bytes

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Always 1."""
        return 1

    @property
    def is_cuda(self) -> bool:
        """Whether the bytes are in a GPU's memory."""
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """The GPU's index, or -1."""
        return self.device.index if self.is_cuda else -1

    def data_ptr(self) -> int:
        """A number that identifies the storage's first byte in this process: storages of the same bytes have the same.

        It has more than 64 bits, so that it cannot be used as an address. 0 if the storage is empty or has no data.
        """
        empty = not self._bytes or self.device.type == "meta"
        return 0 if empty else ((self._session << 64 | self._number) << 64) + self._start

    @property
    def _cdata(self) -> int:
        raise RuntimeError(no_address_error("UntypedStorage._cdata"))

    def _key(self) -> tuple:
        return (self._session, self._number, self.device, self._start, self._bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"<UntypedStorage {self._number} of {self._bytes} bytes on {self.device}>"

    def __getitem__(self, index):
        if not isinstance(index, slice):
            return self._view()[index].item()
        start, stop, step = index.indices(self._bytes)
        if step != 1:
            raise RuntimeError(f"[UntypedStorage] expected a slice with step 1, got {step}")
        part = type(self)._new(self._tensor)
        part._start, part._bytes = self._start + start, max(stop - start, 0)
        return part

    def __setitem__(self, index, value) -> None:
        self._view()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as numbers. Waits for the engine."""
        return self._view().tolist()

    def fill_(self, value) -> UntypedStorage:
        """Sets every byte."""
        self._view().fill_(value)
        return self

    def copy_(self, source, non_blocking: bool | None = None) -> UntypedStorage:
        """Copies the bytes of another storage of the same size."""
        source = getattr(source, "_untyped_storage", source)
        if source.nbytes() != self.nbytes():
            raise RuntimeError(f"[copy_] expected a storage of {self.nbytes()} bytes, got {source.nbytes()}")
        self._view().copy_(source._view())
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return type(self)._of(self._view().clone())

    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        return type(self)(device=self.device)

    def to(self, *, device, non_blocking: bool = False) -> UntypedStorage:
        """The storage itself, or a copy on another device."""
        device = _C.placed(device)
        return self if device == self.device else type(self)._of(self._view().to(device))

    def cpu(self) -> UntypedStorage:
        """The storage itself, or a copy on the engine's CPU."""
        return self.to(device="cpu")

    def cuda(self, device=None, non_blocking: bool = False) -> UntypedStorage:
        """The storage itself, or a copy on a GPU."""
        return self.to(device="cuda" if device is None else _C.device(device))

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def resizable(self) -> bool:
        """Always False."""
        return False

    def resize_(self, size: int) -> UntypedStorage:
        """Raises NotImplementedError, unless the size is unchanged: a client's handle cannot grow a shared storage."""
        if size != self._bytes:
            raise NotImplementedError(
                f"[resize_] a storage of {self._bytes} bytes cannot be resized to {size} bytes: create a new one"
            )
        return self

    def is_pinned(self, device=None) -> bool:
        """Always False: the client holds no bytes to pin."""
        return False

    def pin_memory(self, device=None) -> UntypedStorage:
        """The storage itself: the client holds no bytes to pin."""
        return self

    def is_shared(self) -> bool:
        """Always True: the bytes are in the engine, not in this process."""
        return True

    def share_memory_(self) -> UntypedStorage:
        """The storage itself: the bytes are in the engine, not in this process."""
        return self

    def byteswap(self, dtype: _C.dtype) -> None:
        """Reverses the bytes of each number, for files of computers with another byte order."""
        size = dtype.itemsize // (2 if dtype.is_complex else 1)
        if size > 1:
            bytes_ = self._view()
            whole = bytes_[: self._bytes // size * size].view(-1, size)
            whole.copy_(whole.flip(1))

    @classmethod
    def from_buffer(cls, buffer, byte_order: str | None = None, *, dtype: _C.dtype = _C.uint8) -> UntypedStorage:
        """A copy of the bytes of an object with a buffer. `byte_order` is "native", "little" or "big"."""
        if byte_order not in (None, "native", "little", "big"):
            raise ValueError(f"[from_buffer] expected byte_order to be 'native', 'little' or 'big', got {byte_order!r}")
        data = bytes(buffer)
        storage = cls._of(_C.from_bytes(data, _C.uint8, [len(data)], _C.device("cpu")))
        if byte_order == "big":
            storage.byteswap(dtype)
        return storage

    @classmethod
    def from_file(cls, filename, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """A copy of the first bytes of a file, or of all of them if `nbytes` is 0.

        With `shared` it is read-only, with a warning, because an engine does not write to the file.

        Raises:
            NotImplementedError: `shared` is True and the file does not exist, or has fewer bytes: it is not written.
        """
        return cls._of(tensor_of_file(filename, bool(shared), nbytes or None))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._bytes

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        copies = memo.setdefault("torch", {})  # also of the tensors with this storage
        if self not in copies:
            copies[self] = self.clone()
        return copies[self]

    def __reduce__(self):
        return reduce_storage(self)


def contiguous_strides(size) -> list[int]:
    """The strides of a new tensor of this size, in row-major order."""
    strides, step = [], 1
    for n in reversed(size):
        strides.append(step)
        step *= max(n, 1)
    return strides[::-1]


def storage_from_bytes(data: bytes, device: str) -> UntypedStorage:
    """The storage that reduce_storage() described."""
    return UntypedStorage._of(_C.from_bytes(data, _C.uint8, [len(data)], _C.device(device)))


def reduce_storage(storage: UntypedStorage) -> tuple:
    """How a storage is pickled. Waits for the bytes."""
    data = bytearray(storage.nbytes())
    if data:
        _C.read_into(storage._view(), data)
    return storage_from_bytes, (bytes(data), str(storage.device))


IN_PICKLES = "teletensor.serialization._by_value"  # the module of functions in pickles of tensors and storages
storage_from_bytes.__module__ = reduce_storage.__module__ = IN_PICKLES


def is_storage(obj) -> bool:
    """Whether an object is an UntypedStorage or a TypedStorage."""
    return isinstance(obj, UntypedStorage) or isinstance(getattr(obj, "_untyped_storage", None), UntypedStorage)


def tensor_of(storage, dtype: _C.dtype | None) -> Tensor:
    """A tensor that shares the storage's bytes. Without a dtype: of a TypedStorage's, otherwise of integers, as in PyTorch.

    Raises:
        RuntimeError: a TypedStorage has another dtype.
    """
    own = getattr(storage, "dtype", None)
    if own is not None and dtype not in (None, own):
        raise RuntimeError(f"Expected a Storage of type {dtype} or an UntypedStorage, but got {own}")
    return getattr(storage, "_untyped_storage", storage)._as(dtype or own or _C.int64)


set_module("teletensor.storage", UntypedStorage)
