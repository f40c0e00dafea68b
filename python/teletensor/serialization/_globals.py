"""The functions and classes that a file may name.

A file contains names such as ``torch._utils._rebuild_tensor_v2``. Names are looked up in the tables here and nowhere
else: nothing is imported. Users add their own with add_safe_globals().
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter, OrderedDict
from typing import Any

from .. import _C, _quantized_names, _small_integers
from .._lazy import set_module
from ..storage import DTYPES, QUANTIZED
from . import _nested, _program
from . import _rebuild as r
from ._constructor import Constructor, _of_package, _registered, is_registered, of_package, torch_name
from ._errors import LoadError, damaged, require

_BLOCKED_MODULES = ("sys", "os", "posix", "nt")  # not even if a user adds their functions
_PYTHON2_MODULES = {
    "__builtin__": "builtins",
    "copy_reg": "copyreg",
    "UserDict": "collections",
    "UserList": "collections",
}
# other codecs may decompress data, among other things
_ENCODINGS = ("latin1", "latin-1", "iso-8859-1", "utf-8", "utf8", "ascii")

_LAYOUTS = ("torch.strided", "torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc")


def _name_and_object(entry) -> tuple[str, Any]:
    if isinstance(entry, tuple):
        if len(entry) != 2:
            raise ValueError(
                f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(entry)}"
            )
        if not isinstance(entry[1], str):
            raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}")
        return entry[1], entry[0]
    return f"{entry.__module__}.{entry.__qualname__}", entry


def add_safe_globals(safe_globals: list) -> None:
    """Allows load to create objects of these classes, and to call these functions. They run with arguments from the
    file.

    Args:
        safe_globals: classes and functions, or pairs of a class or function and its full name in files.
    """
    for entry in safe_globals:
        name, value = _name_and_object(entry)
        _registered[name] = (entry, value)


def clear_safe_globals() -> None:
    """Removes everything that add_safe_globals() added."""
    _registered.clear()


def get_safe_globals() -> list:
    """What add_safe_globals() added."""
    return [entry for entry, _ in _registered.values()]


class safe_globals:  # noqa: N801 - PyTorch's name
    """add_safe_globals() for the duration of a block."""

    def __init__(self, safe_globals: list) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self._previous = dict(_registered)
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception) -> None:
        _registered.clear()
        _registered.update(self._previous)


_QUANTIZED_NAMES = (_quantized_names.QuantizedDType, _quantized_names.qscheme)


class StorageType:
    """A legacy storage class in a file, such as ``torch.FloatStorage``: its dtype."""

    def __init__(self, name: str) -> None:
        self._name, self._dtype = name, _C.uint8
        if name != "UntypedStorage":
            found = QUANTIZED.get(name)
            # Only the storage says that bytes are integers of 4 or 2 bits.
            self._dtype = DTYPES[name] if found is None else found if found.per_byte > 1 else found.stored

    @property
    def dtype(self) -> _C.dtype:
        """The dtype of the elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def _encode(text="", encoding="utf-8") -> bytes:
    require(
        isinstance(text, str) and isinstance(encoding, str) and encoding.lower() in _ENCODINGS,
        "a text and its encoding",
        encoding,
    )
    return text.encode(encoding)


def _bytearray(*args) -> bytearray:
    if len(args) == 2:
        return bytearray(_encode(*args))
    require(not args or (len(args) == 1 and isinstance(args[0], (bytes, bytearray))), "bytes for a bytearray", args)
    return bytearray(*args)


def _bytes(*args) -> bytes:
    return bytes(_bytearray(*args))


def _complex(*args) -> complex:
    require(1 <= len(args) <= 2 and all(type(x) in (int, float) for x in args), "two numbers for a complex", args)
    return complex(*args)


def _size(*args) -> _C.Size:
    sizes = args[0] if args else ()
    valid = (
        len(args) < 2
        and isinstance(sizes, (tuple, list))
        and all(type(n) is int and -(2**63) <= n < 2**63 for n in sizes)
    )
    require(valid, "a tuple of integers for a Size", args)
    return _C.Size(sizes)


def _device(*args) -> _C.device:
    require(1 <= len(args) <= 2 and isinstance(args[0], str), "a device's type and index", args)
    try:
        return _C.device(*args)
    except RuntimeError as error:
        raise damaged(str(error)[:200]) from None


def _layout(name="") -> str:
    from .. import _layouts

    if name == "torch.jagged":
        raise NotImplementedError(f"[load] the file contains a tensor of layout {name}: nested tensors are not implemented")
    require(name in _LAYOUTS, "a layout", name)
    return getattr(_layouts, name.removeprefix("torch."))


def _table(keys) -> dict[str, Any]:
    """The table of allowed names. `keys`: the check of a hash table's keys (``Keys``)."""
    def pairs(kind):
        def make(*args):
            items = args[0] if args else ()
            is_dict = isinstance(items, dict)
            valid = len(args) < 2 and (is_dict or (kind is OrderedDict and isinstance(items, (list, tuple))))
            require(valid, f"pairs for a {kind.__name__}", args)
            if not is_dict:
                require(all(isinstance(item, (list, tuple)) and len(item) == 2 for item in items), "pairs", items)
                for key, _ in items:
                    keys.check(key)
            return kind(items)

        return make

    def elements(kind):
        def make(*args):
            require(
                len(args) < 2 and isinstance(args[0] if args else (), (list, tuple, set, frozenset)),
                f"the elements of a {kind.__name__}",
                args,
            )
            for element in args[0] if args else ():
                keys.check(element)
            return kind(*args)

        return make

    names = {
        "collections.OrderedDict": (pairs(OrderedDict), OrderedDict), "collections.Counter": (pairs(Counter), Counter),
        "builtins.set": (elements(set), set), "builtins.frozenset": (elements(frozenset), frozenset),
        "builtins.bytearray": (_bytearray, bytearray), "builtins.bytes": (_bytes, bytes),
        "builtins.complex": (_complex, complex), "_codecs.encode": (_encode, None),
        "torch.Size": (_size, _C.Size), "torch.device": (_device, _C.device), "torch.serialization._get_layout": (_layout, None),
        "torch._utils._rebuild_tensor": (r.rebuild_tensor, None), "torch._utils._rebuild_tensor_v2": (r.rebuild_tensor, None),
        "torch._utils._rebuild_tensor_v3": (r.rebuild_tensor_v3, None),
        "torch._utils._rebuild_parameter": (r.rebuild_parameter, None),
        "torch._utils._rebuild_parameter_with_state": (r.rebuild_parameter_with_state, None),
        "torch._utils._rebuild_meta_tensor_no_storage": (r.rebuild_meta_tensor, None),
        "torch._utils._rebuild_device_tensor_from_cpu_tensor": (r.rebuild_device_tensor, None),
        "torch._utils._rebuild_sparse_tensor": (r.rebuild_sparse_tensor, None),
        "torch._utils._rebuild_qtensor": (r.rebuild_qtensor, None),
        "torch._utils._rebuild_wrapper_subclass": (r.rebuild_wrapper, None),
        "torch._tensor._rebuild_from_type_v2": (r.rebuild_from_type, None),
        "torch.nn.parameter.Parameter": (r.make_parameter, r.parameter_class()),
        "torch.nn.parameter.UninitializedParameter": (r.make_uninitialized("UninitializedParameter"), None),
        "torch.nn.parameter.UninitializedBuffer": (r.make_uninitialized("UninitializedBuffer"), None),
        "torch.Tensor": (r.make_tensor, _C.Tensor), **_nested.NAMES,
    }  # fmt: skip
    missing = "_rebuild_device_tensor_from_numpy"
    names[f"torch._utils.{missing}"] = (r.not_implemented(missing), None)
    table: dict[str, Any] = {name: Constructor(name, function, creates) for name, (function, creates) in names.items()}
    for name, value in vars(_C).items():
        if isinstance(value, _C.dtype):
            table[f"torch.{name}"] = value
    table.update({f"torch.{kind}": StorageType(kind) for kind in QUANTIZED})
    table.update({repr(value): value for value in vars(_quantized_names).values() if isinstance(value, _QUANTIZED_NAMES)})
    for name, value in vars(_small_integers).items():
        if isinstance(value, _small_integers.SmallIntegerDType):
            table[f"torch.{name}"] = value
    for kind in DTYPES:
        table[f"torch.{kind}"] = table[f"torch.cuda.{kind}"] = StorageType(kind)
        tensor_class = kind.replace("Storage", "Tensor")
        for prefix in ("torch", "torch.cuda"):
            table[f"{prefix}.{tensor_class}"] = Constructor(f"{prefix}.{tensor_class}", r.make_tensor, _C.Tensor)
    table["torch.storage.UntypedStorage"] = table["torch.UntypedStorage"] = StorageType("UntypedStorage")
    return table


def full_name(module: str, name: str) -> str:
    """The full name of a global in a file, in PyTorch's spelling."""
    module = _PYTHON2_MODULES.get(module, module)
    module = torch_name(module)
    return f"{'torch._tensor' if module == 'torch.tensor' else module}.{name}"


# PyTorch's names of MaskedTensor
_MASKED = ("torch.masked.maskedtensor.core.MaskedTensor", "torch.masked.MaskedTensor")


def registered(path: str) -> Any:
    """The object that a user added under a name, or None."""
    ours = "teletensor" + path[len("torch") :] if path.startswith("torch.") else path
    if path in _MASKED and path not in _of_package:
        from ..masked import MaskedTensor

        _of_package.update(dict.fromkeys(_MASKED, MaskedTensor))
    found = _registered.get(path) or _registered.get(ours)
    return found[1] if found else of_package(path)


class _Scope(threading.local):
    of_program = False  # whether the thread's load allows the classes of the program


_scope = _Scope()


@contextlib.contextmanager
def classes_of_program(allowed: bool):
    """Whether loads in a block allow the calling program's own classes (``_program``): ``weights_only=False``."""
    before, _scope.of_program = _scope.of_program, allowed
    try:
        yield
    finally:
        _scope.of_program = before


class Globals:
    """The allowed names during one load."""

    def __init__(self, keys) -> None:
        self._table = _table(keys)
        self._of_program = _scope.of_program

    def may_call(self, value: object) -> bool:
        """Whether a file may call a value that find() has returned."""
        return isinstance(value, Constructor) or is_registered(value) or (self._of_program and _program.may_construct(value))

    def may_create(self, kind: object) -> bool:
        """Whether a file may create objects of a class and set their attributes."""
        return is_registered(kind) or (self._of_program and _program.may_create(kind))

    def __contains__(self, path: str) -> bool:
        return path in self._table or registered(path) is not None

    def find(self, module: str, name: str) -> Any:
        """The object of a name.

        Raises:
            LoadError: the name is not allowed.
        """
        path = full_name(module, name)
        if module in _BLOCKED_MODULES:
            raise LoadError(f"[load] Trying to load unsupported GLOBAL {path[:200]} whose module {module} is blocked.")
        found = self._table.get(path)
        if found is None:
            found = registered(path)
        if found is None and self._of_program:
            found = _program.find(path[: -len(name) - 1], name)
        if found is None:
            short = path.removeprefix("builtins.")[:200]
            raise LoadError(
                f"[load] Weights only load failed. Unsupported global: GLOBAL {short} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{short}])` or the `torch.serialization.safe_globals([{short}])` context "
                "manager to allowlist this global if you trust this class/function. weights_only=False allows the classes that the "
                "program itself has defined or imported; code in files is never run"
            )
        return found


set_module("teletensor.serialization", StorageType, safe_globals)
