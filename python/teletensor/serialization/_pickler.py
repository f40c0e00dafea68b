"""Writes an object as a pickle with PyTorch's names, and collects the storages whose bytes follow it."""

from __future__ import annotations

import io
import pickle
import types
from collections import OrderedDict
from collections.abc import Callable

import teletensor

from .. import _C
from .._C import Tensor
from .._layouts import layout
from .._quantized_names import QuantizedDType, qscheme
from .._small_integers import SmallIntegerDType
from .._storage import UntypedStorage
from ..storage import NAMES, QUANTIZED, TypedStorage
from ._constructor import is_registered, torch_name
from ._nested import reduce_nested
from ._rebuild import reduce_tensor

_MODULE_ADVICE = (
    "[save] cannot save an object of type {kind}: its code is not saved, and load does not run code. Save {what}, and load "
    "it into an object that the program has created"
)


class Name:
    """A name in a file that need not exist here, such as ``torch._utils._rebuild_tensor_v2``."""

    _all: dict[str, Name] = {}

    def __init__(self, text: str) -> None:
        self.module, self.name = text.split(" ")

    def __call__(self):
        raise AssertionError("a name is written, not called")

    @classmethod
    def of(cls, text: str) -> Name:
        """The only object for a module and a name, separated by a space."""
        return cls._all.setdefault(text, cls(text))


_PLAIN = frozenset((
    type(None), bool, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset, OrderedDict, type, Name, _C.dtype,
))  # fmt: skip


class StorageRecord:
    """A storage to write: its key in the file, and the dtype as which it is written."""

    def __init__(self, key: str, storage: UntypedStorage, location: str) -> None:
        self.key, self.storage, self.location = key, storage, location
        self.dtype: _C.dtype | None = None


class _StorageReference:
    """The object that a pickle contains in place of a storage."""

    def __init__(self, record: StorageRecord, dtype: _C.dtype | None) -> None:
        self.record, self.dtype = record, dtype


class Storages:
    """The storages of an object, in the order of their first use."""

    def __init__(self, location_tag: Callable, key_of: Callable[[int], str] = str) -> None:
        self._location_tag, self._key_of = location_tag, key_of
        self._by_storage: dict[UntypedStorage, StorageRecord] = {}
        self._references: dict[tuple, _StorageReference] = {}

    def reference(self, storage: UntypedStorage, dtype: _C.dtype | None) -> _StorageReference:
        """The placeholder for a storage of elements of a dtype, or of bytes if `dtype` is None."""
        record = self._by_storage.get(storage)
        if record is None:
            record = StorageRecord(self._key_of(len(self._by_storage)), storage, self._location_tag(storage))
            self._by_storage[storage] = record
        kept = dtype or _C.uint8
        if storage.nbytes() and storage.device.type != "meta":
            if record.dtype is not None and record.dtype is not kept:
                raise RuntimeError(
                    "Cannot save multiple tensors or storages that view the same data as different types"
                )
            record.dtype = kept
        return self._references.setdefault((record.key, dtype), _StorageReference(record, dtype))

    def of_tensor(self, tensor: Tensor, dtype: _C.dtype | None) -> _StorageReference:
        """The placeholder for the storage of a tensor."""
        return self.reference(UntypedStorage._of(tensor), dtype)

    def records(self) -> list[StorageRecord]:
        """All storages."""
        return list(self._by_storage.values())


def _storage_class(dtype) -> str:
    """The class of a storage with this dtype."""
    return NAMES[dtype] if dtype in NAMES else next(name for name, kind in QUANTIZED.items() if kind is dtype)


class Pickler(pickle._Pickler):  # type: ignore[name-defined]  # the pickler in Python, whose methods can be overridden
    """Writes an object.

    Args:
        file: a binary file.
        protocol: 1 to 5, or None for pickle's default.
        storages: collects the object's storages.
        has_views: whether persistent ids have the legacy format's sixth element.
    """

    def __init__(self, file, protocol: int | None, storages: Storages, has_views: bool = False) -> None:
        super().__init__(file, protocol)
        if self.proto < 1:
            raise NotImplementedError(
                f"[save] expected a pickle_protocol from 1 to {pickle.HIGHEST_PROTOCOL}, got 0: it has no ids of storages"
            )
        self._storages, self._has_views = storages, has_views

    def persistent_id(self, obj):
        """The id of a storage."""
        if isinstance(obj, TypedStorage):
            obj = self._storages.reference(obj._untyped_storage, obj.dtype if obj.dtype in NAMES else None)
        elif isinstance(obj, UntypedStorage):
            obj = self._storages.reference(obj, None)
        if not isinstance(obj, _StorageReference):
            return None
        record = obj.record
        kind = Name.of("torch.storage UntypedStorage" if obj.dtype is None else f"torch {_storage_class(obj.dtype)}")
        count = record.storage.nbytes() // (obj.dtype.itemsize if obj.dtype else 1)
        return ("storage", kind, record.key, record.location, count, *((None,) if self._has_views else ()))

    def reducer_override(self, obj):
        """How objects of this package are written."""
        if type(obj) in _PLAIN:
            return NotImplemented
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, _C.device):
            return Name.of("torch device"), (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, _C.Size):
            return Name.of("torch Size"), (tuple(obj),)
        if isinstance(obj, layout):
            return Name.of("torch.serialization _get_layout"), (str(obj),)
        if isinstance(obj, type):
            return NotImplemented
        if isinstance(obj, SmallIntegerDType):
            return str(obj).removeprefix("torch.")
        if (function := _function_name(obj)) is not None:
            return function
        _reject_code(obj)
        return NotImplemented

    def _reduce_tensor(self, tensor: Tensor):
        from ..nn.parameter import Parameter, is_lazy

        if is_lazy(tensor):
            kind = "Parameter" if isinstance(tensor, Parameter) else "Buffer"
            return Name.of(f"torch.nn.parameter Uninitialized{kind}"), (tensor.requires_grad,)
        if tensor.is_nested:
            function, kind, args = reduce_nested(tensor)
            if kind is None:
                return Name.of(function), args
            return Name.of("torch._tensor _rebuild_from_type_v2"), (Name.of(function), Name.of(kind), args, {})
        attributes = {k: v for k, v in vars(tensor).items() if k != "_parameter_type"}
        if getattr(type(tensor), "_saved_with_state", False):
            attributes = tensor._file_state()
        if isinstance(tensor, Parameter) and not _C._is_wrapper(tensor):
            # The values as a tensor with the parameter's requires_grad, as PyTorch writes them: a plain one, or of the program's class.
            kind = Tensor if issubclass(type(tensor), Parameter) else type(tensor)
            data = (Tensor.__new__(kind, tensor.detach()), tensor.requires_grad, OrderedDict())
            name = "_rebuild_parameter_with_state" if attributes else "_rebuild_parameter"
            return Name.of(f"torch._utils {name}"), (*data, attributes) if attributes else data
        function, args = reduce_tensor(tensor, self._storages.of_tensor)
        kind = type(tensor)
        is_ours = kind.__module__.partition(".")[0] in ("teletensor", "torch")
        if is_ours and (tensor.is_quantized or str(tensor.layout) != "torch.strided"):
            return Name.of(function), args
        is_plain = is_ours and not _C._is_wrapper(tensor)  # Tensor and Buffer
        if is_plain and not attributes:
            return Name.of(function), args
        written = Name.of("torch Tensor") if is_plain else kind
        return Name.of("torch._tensor _rebuild_from_type_v2"), (Name.of(function), written, args, attributes)

    def _write_name(self, name: Name) -> None:
        if self.proto >= 4:
            self.save(name.module)
            self.save(name.name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode())
        self.memoize(name)

    def _write_dtype(self, dtype: _C.dtype) -> None:
        name = Name.of(f"torch {str(dtype).removeprefix('torch.')}")
        if id(name) in self.memo:
            self.write(self.get(self.memo[id(name)][0]))
        else:
            self._write_name(name)

    def save_global(self, obj, name=None) -> None:
        """Writes the name of a class or function; those of this package under PyTorch's names."""
        module = getattr(obj, "__module__", None) or ""
        if module == "teletensor" or module.startswith("teletensor."):
            place = "torch" if isinstance(obj, SmallIntegerDType) else torch_name(module)
            text = _function_name(obj) or getattr(obj, "_file_name", None) or f"{place} {name or obj.__qualname__}"
            place = self.memo.get(id(Name.of(text)))
            return self.write(self.get(place[0])) if place else self._write_name(Name.of(text))
        super().save_global(obj, name)

    dispatch = {**pickle._Pickler.dispatch, Name: _write_name, _C.dtype: _write_dtype, types.FunctionType: save_global}  # type: ignore[attr-defined]


def _function_name(obj) -> str | None:
    """The module and name of a function of torch or torch.nn.functional, which load finds there; None for other objects."""
    from ..nn import functional

    name = getattr(obj, "__name__", None)
    if isinstance(obj, type) or not callable(obj) or not isinstance(name, str):
        return None
    if vars(functional).get(name) is obj:
        return f"torch.nn.functional {name}"
    return f"torch {name}" if vars(teletensor).get(name) is obj else None


def _reject_code(obj) -> None:
    """Raises NotImplementedError for objects of this package that load cannot create, such as generators."""
    from ._program import may_create

    kind = type(obj)
    if may_create(kind) or is_registered(kind) or kind in (QuantizedDType, qscheme):
        return
    if kind.__module__ == "teletensor" or kind.__module__.startswith("teletensor."):
        what = (
            "its state_dict()"
            if hasattr(obj, "state_dict")
            else "its get_state()"
            if hasattr(obj, "get_state")
            else "its values"
        )
    else:
        return
    raise NotImplementedError(_MODULE_ADVICE.format(kind=f"{kind.__module__}.{kind.__qualname__}", what=what))


def dumps(obj, protocol: int | None, storages: Storages) -> bytes:
    """The pickle of an object."""
    buffer = io.BytesIO()
    Pickler(buffer, protocol, storages).dump(obj)
    return buffer.getvalue()
