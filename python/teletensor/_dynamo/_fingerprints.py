"""Fingerprints of Python objects: equal in two processes where capturing a function that uses them does the same.

A guard compares objects by identity: what it compares cannot change without becoming another object, or is guarded itself.
Another process has other objects. Their fingerprints contain what a capture takes for granted once it knows the identity: the code
of functions with their defaults and closures, the bodies and bases of classes, names of builtin functions.
"""

from __future__ import annotations

import builtins
import enum
import importlib
import sys
import types
from struct import pack
from typing import Any

try:
    from _blake2 import blake2b  # hashlib imports OpenSSL
except ImportError:
    from hashlib import blake2b

from .. import _C

_OVERRIDABLE = type(_C.overridable(lambda: None, "teletensor", "f"))
_PACKAGE = __name__.partition(".")[0]
namespace = types.ModuleType.__dict__["__dict__"].__get__  # of a module; vars() would import what it exports lazily
_dict_of_type = type.__dict__["__dict__"].__get__
_module_of_type = type.__dict__["__module__"].__get__
_qualname_of_type = type.__dict__["__qualname__"].__get__
_HEAP = 1 << 9
_CACHED = 1 << 19  # whether a class has a valid version, which changes at any time
_PRIMITIVES = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
_BY_TEXT = (_C.dtype, _C.device, range, slice)
_DESCRIPTORS = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
)  # fmt: skip
_CHANGING = frozenset(("__dict__", "__weakref__", "__abstractmethods__", "_abc_impl", "__annotations__"))
_MAX_DEPTH = 40


class CannotCheck(Exception):  # noqa: N818 - a refusal
    """Another process could not find out whether an object is the same."""


class CopyNumber:
    """A constant of code that is a copy: it makes the code different from its original, in this process only."""


def digest(*parts: bytes) -> bytes:
    """A hash of parts, which does not depend on where they meet."""
    count = len(parts)
    return blake2b(pack(f"<{count + 1}Q", count, *map(len, parts)) + b"".join(parts), digest_size=16).digest()


_NOTHING = digest()


def module_of(cls: type) -> str:
    """The module of a class; empty if it is not known."""
    try:
        module = _module_of_type(cls)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def is_of_distribution(module: str) -> bool:
    """Whether a module belongs to Python or this package, of which the version is compared."""
    root = module.partition(".")[0]
    return root == _PACKAGE or root in sys.stdlib_module_names and root != "__main__"


def has_builtins(function: types.FunctionType) -> bool:
    """Whether a function finds Python's own module of builtin functions, of which captures compare the entries."""
    of = function.__globals__.get("__builtins__", builtins)
    return function.__builtins__ is vars(builtins) and (of is builtins or of is vars(builtins))


class Fingerprints:
    """Fingerprints of objects, each computed once."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        self._keep: list[Any] = []
        self._depth = 0

    def of(self, obj: Any) -> bytes:
        """The fingerprint of an object. Raises CannotCheck if it has none."""
        known = self._known.get(id(obj))
        if known is None:
            self._keep.append(obj)
            self._known[id(obj)] = b"recursion"
            self._depth += 1
            try:
                if self._depth > _MAX_DEPTH:
                    raise CannotCheck("deeply nested objects")
                known = self._compute(obj)
            except BaseException:
                del self._known[id(obj)]
                raise
            finally:
                self._depth -= 1
            self._known[id(obj)] = known
        return known

    def _compute(self, obj: Any) -> bytes:
        cls = type(obj)
        if cls in _PRIMITIVES:
            return digest(b"value", cls.__name__.encode(), repr(obj).encode("utf-8", "surrogatepass"))
        if cls is types.CodeType:
            return self._code(obj)
        if cls is types.FunctionType:
            return self._function(obj)
        if isinstance(obj, type):
            return self._type(obj)
        if cls is types.ModuleType or isinstance(obj, types.ModuleType):
            return digest(b"module", str(namespace(obj).get("__name__")).encode())
        if cls is types.BuiltinFunctionType:
            owner = obj.__self__
            if not (owner is None or isinstance(owner, (types.ModuleType, type))):
                raise CannotCheck("a method of an object")
            return digest(b"builtin", str(obj.__module__).encode(), obj.__qualname__.encode(), self.of(owner))
        if cls is _OVERRIDABLE:
            return digest(b"overridable", str(obj.__module__).encode(), obj.__qualname__.encode(), self.of(obj.__wrapped__))
        if cls in _DESCRIPTORS:
            return digest(b"descriptor", cls.__name__.encode(), obj.__name__.encode(), self.of(obj.__objclass__))
        if cls in (staticmethod, classmethod):
            return digest(b"method", cls.__name__.encode(), self.of(obj.__func__))
        if cls is property:
            return digest(b"property", *(self.of(f) for f in (obj.fget, obj.fset, obj.fdel)))
        if isinstance(obj, enum.Enum):
            return digest(b"member", self.of(cls), obj._name_.encode(), self.part(obj._value_))
        if cls is dict:  # global variables: what is read of them is guarded
            return digest(b"dict", str(obj.get("__name__")).encode())
        if cls in _BY_TEXT:
            return digest(b"text", cls.__name__.encode(), repr(obj).encode())
        if cls is tuple:
            return digest(b"tuple", *map(self.of, obj))
        if cls is frozenset:
            return digest(b"frozenset", *sorted(map(self.of, obj)))
        raise CannotCheck(f"an object of the class {cls.__qualname__}")

    def part(self, obj: Any) -> bytes:
        """The fingerprint of a part that the code of a capture reads only with a guard: other objects count by their class."""
        try:
            return self.of(obj)
        except CannotCheck:
            return digest(b"object", module_of(type(obj)).encode(), type(obj).__qualname__.encode())

    def _code(self, code: types.CodeType) -> bytes:
        consts = code.co_consts
        if consts and type(consts[-1]) is CopyNumber:
            consts = consts[:-1]
        # A tuple, which is none of the primitive objects, stands for each other constant.
        texts = repr((
            [() if type(c) not in _PRIMITIVES else c for c in consts], code.co_filename, code.co_firstlineno, code.co_name,
            code.co_qualname, code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_names,
            code.co_varnames, code.co_freevars, code.co_cellvars,
        ))  # fmt: skip
        parts = (texts.encode("utf-8", "surrogatepass"), code.co_code, code.co_linetable, code.co_exceptiontable)
        return digest(b"code", *parts, *[self.of(c) for c in consts if type(c) not in _PRIMITIVES])

    def _function(self, function: types.FunctionType) -> bytes:
        if not has_builtins(function):
            raise CannotCheck("other builtin functions")
        defaults = function.__defaults__ or ()
        named = function.__kwdefaults__
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(self.part(cell.cell_contents))
            except ValueError:
                cells.append(b"empty")
        own = function.__dict__
        return digest(
            b"function", str(function.__module__).encode(), function.__qualname__.encode(), self.of(function.__code__),
            digest(*map(self.part, defaults)) if defaults else _NOTHING, self._named(named) if named else _NOTHING,
            digest(*cells) if cells else _NOTHING, self._named(own) if own else _NOTHING,
        )  # fmt: skip

    def _named(self, values: dict[str, Any]) -> bytes:
        return digest(*sorted(digest(str(name).encode(), self.part(value)) for name, value in values.items()))

    def _type(self, cls: type) -> bytes:
        module = module_of(cls)
        name = digest(b"type", module.encode(), _qualname_of_type(cls).encode())
        if not cls.__flags__ & _HEAP or is_of_distribution(module):
            return name
        bases = [self.of(base) for base in (type(cls), *cls.__mro__[1:])]
        body = [
            digest(str(key).encode(), self.part(value)) for key, value in _dict_of_type(cls).items() if key not in _CHANGING
        ]
        return digest(name, str(cls.__flags__ & ~_CACHED).encode(), digest(*bases), *sorted(body))


def resolve(module: str, path: str) -> Any:
    """The object of a name in a module that is imported already, or is one of this package's; raises CannotCheck if there is none.

    Runs no code of users.
    """
    if module not in sys.modules and module.startswith(f"{_PACKAGE}."):
        try:
            importlib.import_module(module)
        except ImportError:
            raise CannotCheck(f"the module {module} does not exist") from None
    found: Any = sys.modules.get(module)
    if not isinstance(found, types.ModuleType):
        raise CannotCheck(f"the module {module} is not imported")
    if path == "__dict__":
        return namespace(found)
    for name in path.split(".") if path else ():
        if name == "__func__" and isinstance(found, (staticmethod, classmethod)):
            found = found.__func__
            continue
        if isinstance(found, types.ModuleType):
            values: Any = namespace(found)
        elif isinstance(found, type):
            values = _dict_of_type(found)
        else:
            raise CannotCheck(f"{module} has no {path}")
        if name not in values:
            raise CannotCheck(f"{module} has no {path}")
        found = values[name]
    return found
