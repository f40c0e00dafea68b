"""torch.storage: storages with a dtype, and the legacy classes FloatStorage, LongStorage, ..., one per dtype and device."""

from __future__ import annotations

from . import _C
from ._C import Tensor
from ._quantized_names import qint8, qint32, quint2x4, quint4x2, quint8
from ._storage import UntypedStorage, tensor_of

__all__ = ["TypedStorage", "UntypedStorage"]

# The legacy classes' names.
DTYPES = {
    "DoubleStorage": _C.float64, "FloatStorage": _C.float32, "HalfStorage": _C.float16, "BFloat16Storage": _C.bfloat16,
    "LongStorage": _C.int64, "IntStorage": _C.int32, "ShortStorage": _C.int16, "CharStorage": _C.int8,
    "ByteStorage": _C.uint8, "BoolStorage": _C.bool, "ComplexDoubleStorage": _C.complex128,
    "ComplexFloatStorage": _C.complex64,
}  # fmt: skip
# The classes of quantized tensors' storages in files. A storage here has the integers' dtype; of less than 8 bits, bytes.
QUANTIZED = {
    "QUInt8Storage": quint8, "QInt8Storage": qint8, "QInt32Storage": qint32, "QUInt4x2Storage": quint4x2,
    "QUInt2x4Storage": quint2x4,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}
_CASTS = {
    "double": _C.float64, "float": _C.float32, "half": _C.float16, "long": _C.int64, "int": _C.int32, "short": _C.int16,
    "char": _C.int8, "byte": _C.uint8, "bool": _C.bool, "bfloat16": _C.bfloat16, "complex_double": _C.complex128,
    "complex_float": _C.complex64, "float8_e5m2": _C.float8_e5m2, "float8_e4m3fn": _C.float8_e4m3fn,
}  # fmt: skip


class TypedStorage:
    """The elements of a storage in one dimension: ``tensor.storage()``, ``TypedStorage(size, dtype=...)``,
    ``TypedStorage(values, dtype=...)`` or ``TypedStorage(wrap_storage=untyped_storage, dtype=...)``.

    Reading an element waits for the engine. PyTorch has deprecated the class; use tensors or UntypedStorage.
    """

    is_sparse = False

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal: bool = False):
        if len(args) > 1 or (args and wrap_storage is not None):
            raise RuntimeError(
                f"TypedStorage(): expected a size, a sequence or wrap_storage, got {len(args)} arguments"
            )
        if wrap_storage is not None:
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage).__name__}"
                )
            if dtype is None:
                raise RuntimeError("TypedStorage(): argument 'dtype' must be specified with wrap_storage")
            if device is not None and _C.placed(device) != wrap_storage.device:
                raise RuntimeError(
                    f"TypedStorage(): expected device {wrap_storage.device} of wrap_storage, got {device}"
                )
            self._untyped_storage = wrap_storage
        else:
            dtype = _C.default_dtype() if dtype is None else dtype
            device = "cpu" if device is None else device  # also with another default device
            values = args[0] if args else 0
            made = isinstance(values, int) and not isinstance(values, bool)
            tensor = (
                _C.torch.empty(values, dtype=dtype, device=device)
                if made
                else _C.tensor(list(values), dtype=dtype, device=device)
            )
            self._untyped_storage = UntypedStorage._of(tensor)
        self.dtype: _C.dtype = dtype

    @property
    def _dtype(self) -> _C.dtype:
        return self.dtype

    @property
    def device(self) -> _C.device:
        """The device of the bytes."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether the bytes are in a GPU's memory."""
        return self._untyped_storage.is_cuda

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def _elements(self) -> Tensor:
        return self._untyped_storage._as(self.dtype)

    def _as_default_dtype(self) -> Tensor:
        return tensor_of(self, _C.default_dtype())

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped_storage

    def _wrap(self, untyped: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype)

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        """The storage's size in bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def get_device(self) -> int:
        """The GPU's index, or -1."""
        return self._untyped_storage.get_device()

    def data_ptr(self) -> int:
        """UntypedStorage.data_ptr."""
        return self._untyped_storage.data_ptr()

    def _index(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self).__name__} with {type(index).__name__}")
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return index

    def __getitem__(self, index: int):
        return self._elements()[self._index(index)].item()

    def __setitem__(self, index, value) -> None:
        elements = self._elements()
        elements[index if isinstance(index, slice) else self._index(index)] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self) -> list:
        """The elements as numbers. Waits for the engine."""
        return self._elements().tolist()

    def fill_(self, value) -> TypedStorage:
        """Sets every element."""
        self._elements().fill_(value)
        return self

    def copy_(self, source, non_blocking: bool | None = None) -> TypedStorage:
        """Copies the elements of another storage of the same size, cast to this dtype."""
        if isinstance(source, UntypedStorage):
            self._untyped_storage.copy_(source)
            return self
        if source.size() != self.size():
            raise RuntimeError(f"[copy_] expected a storage of {self.size()} elements, got {source.size()}")
        self._elements().copy_(source._elements())
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return self._wrap(self._untyped_storage.clone())

    def new(self) -> TypedStorage:
        """An empty storage of the same dtype and device."""
        return TypedStorage(dtype=self.dtype, device=self.device)

    def to(self, *, device, non_blocking: bool = False) -> TypedStorage:
        """The same elements on another device."""
        return self._wrap(self._untyped_storage.to(device=device))

    def cpu(self) -> TypedStorage:
        """The same elements on the engine's CPU."""
        return self.to(device="cpu")

    def cuda(self, device=None, non_blocking: bool = False) -> TypedStorage:
        """The same elements on a GPU."""
        return self._wrap(self._untyped_storage.cuda(device))

    def _to(self, dtype: _C.dtype) -> TypedStorage:
        elements = self._elements()
        return TypedStorage(
            wrap_storage=UntypedStorage._of(elements.clone() if dtype is self.dtype else elements.to(dtype)),
            dtype=dtype,
        )

    def type(self, dtype=None, non_blocking: bool = False):
        """Without arguments, the legacy class's name; otherwise the elements as another class's."""
        module = "torch.cuda" if self.is_cuda else "torch"
        if dtype is None:
            return f"{module}.{NAMES[self.dtype]}" if self.dtype in NAMES else f"{module}.storage.TypedStorage"
        if isinstance(dtype, str):
            dtype = DTYPES[dtype.rpartition(".")[2]]
        return self._to(getattr(dtype, "dtype", dtype))

    def _pickle_storage_type(self) -> str:
        if self.dtype not in NAMES:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return NAMES[self.dtype]

    def pickle_storage_type(self) -> str:
        """The legacy class's name in files."""
        return self._pickle_storage_type()

    def resizable(self) -> bool:
        """Always False."""
        return False

    def resize_(self, size: int) -> TypedStorage:
        """Raises NotImplementedError, unless the size is unchanged."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def is_pinned(self, device=None) -> bool:
        """Always False: the client holds no bytes to pin."""
        return False

    def pin_memory(self, device=None) -> TypedStorage:
        """The storage itself: the client holds no bytes to pin."""
        return self

    def is_shared(self) -> bool:
        """Always True: the bytes are in the engine, not in this process."""
        return True

    def share_memory_(self) -> TypedStorage:
        """The storage itself: the bytes are in the engine, not in this process."""
        return self

    @classmethod
    def from_buffer(cls, buffer, byte_order: str | None = None, *, dtype=None, device=None) -> TypedStorage:
        """A copy of the elements in an object with a buffer."""
        dtype = getattr(cls, "dtype", None) or dtype or _C.default_dtype()
        untyped = UntypedStorage.from_buffer(buffer, byte_order, dtype=dtype)
        return TypedStorage(wrap_storage=untyped if device is None else untyped.to(device=device), dtype=dtype)

    @classmethod
    def from_file(cls, filename, shared: bool = False, size: int = 0) -> TypedStorage:
        """A copy of the first `size` elements of a file."""
        dtype = getattr(cls, "dtype", None) or _C.default_dtype()
        return TypedStorage(wrap_storage=UntypedStorage.from_file(filename, shared, size * dtype.itemsize), dtype=dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and (self.dtype, self._untyped_storage) == (
            other.dtype,
            other._untyped_storage,
        )

    def __hash__(self) -> int:
        return hash((self.dtype, self._untyped_storage))

    def __repr__(self) -> str:
        values = "\n".join(f" {value}" for value in self.tolist())
        return f"{values}\n[{self.type()}(dtype={self.dtype}, device={self.device}) of size {self.size()}]"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        return self._wrap(self._untyped_storage.__deepcopy__(memo))

    def __reduce__(self):
        return (_typed, (self._untyped_storage, self.dtype))


def _typed(untyped: UntypedStorage, dtype: _C.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _cast(name: str, dtype: _C.dtype):
    def cast(self: TypedStorage) -> TypedStorage:
        return self._to(dtype)

    cast.__name__, cast.__doc__ = name, f"The elements cast to {dtype}, in new memory."
    return cast


for _name, _dtype in _CASTS.items():
    setattr(TypedStorage, _name, _cast(_name, _dtype))


def _untyped_cast(name: str):
    def cast(self: UntypedStorage) -> TypedStorage:
        return getattr(TypedStorage(wrap_storage=self, dtype=_C.uint8), name)()

    cast.__name__, cast.__doc__ = name, "The bytes as numbers, cast to another dtype, as a TypedStorage in new memory."
    return cast


for _name in _CASTS:
    setattr(UntypedStorage, _name, _untyped_cast(_name))


class _LegacyStorageType(type):
    """Calling a legacy class makes a TypedStorage; isinstance() checks dtype and device type."""

    dtype: _C.dtype
    kind: str

    def __call__(cls, *args, wrap_storage=None, **kwargs):
        if set(kwargs) - {"_internal"}:
            raise RuntimeError(
                f"{cls.__module__}.{cls.__name__}.__new__ received an invalid combination of arguments: {sorted(kwargs)}"
            )
        if wrap_storage is not None:
            return TypedStorage(
                wrap_storage=wrap_storage,
                dtype=cls.dtype,
                device=wrap_storage.device if cls.kind == "cuda" else cls.kind,
            )
        return TypedStorage(*args, dtype=cls.dtype, device=cls.kind)

    def _from_buffer(cls, buffer, byte_order: str | None = None) -> TypedStorage:
        """A storage with a copy of the buffer's bytes."""
        return TypedStorage.from_buffer(buffer, byte_order, dtype=cls.dtype)

    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype and instance.device.type == cls.kind


StorageBase = UntypedStorage
_LegacyStorage, _StorageBase = TypedStorage, StorageBase  # the base classes in PyTorch, which programs import


def legacy_storages(kind: str) -> dict[str, type]:
    """The legacy classes of a device type by name."""
    module = {"cpu": "teletensor", "cuda": "teletensor.cuda"}[kind]
    return {
        name: _LegacyStorageType(
            name,
            (TypedStorage,),
            {"dtype": dtype, "kind": kind, "__doc__": f"Storages of {dtype} on {kind!r}.", "__module__": module},
        )
        for name, dtype in DTYPES.items()
    }


globals().update(legacy_storages("cpu"))
