"""Stores captures for other processes (_stored_captures.py reads them).

A capture is stored only if each fact that it depends on can be compared in another process: otherwise the reason is counted
(torch._dynamo.utils.counters["stored captures"]). The call that captures reads whatever may change afterwards (fingerprints,
metadata of tensors, the Program); _background_stores.py writes the file after the call.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import json
import os
import struct
import sys
import tempfile
import time
import types
import zlib
from collections.abc import Iterator
from typing import Any

from .. import _C
from . import _background_stores
from ._fingerprints import CannotCheck, Fingerprints, digest, module_of, namespace, resolve
from ._logs import counters
from ._source import (
    ATTRIBUTE,
    CALL,
    CHECK_DYNAMIC_INT,
    CHECK_DYNAMIC_TENSOR,
    CHECK_IS,
    CHECK_MODES,
    CHECK_SIZES,
    CHECK_TENSOR,
    CHECK_TYPE,
    CONSTANT,
)  # fmt: skip
from ._stored_captures import (
    MAX_FILE,
    MAX_FILES,
    MAX_TEXTS,
    NAME,
    SUFFIX,
    TENSOR_CLASSES,
    files_of,
    folder,
    is_private,
    key_of,
    looking_up_files,
    pack,
)  # fmt: skip
from ._values import Constant, DictValue, SequenceValue, TensorValue, Value

MAX_BYTES = 64 << 20  # of all files
MAX_FILES_OF_ALL = 2048
_STORES_UNTIL_TIDY = 64  # in a process; the first one tidies, too
_stores = itertools.count()
_UNFINISHED = ".unfinished"  # the end of a file's name until it is whole
_SECONDS_TO_WRITE = 3600
_NODES_WITH_LOCK = 64  # nodes of guards that are encoded without a pause for other threads
_ROW = struct.Struct("<iiii")
_IDENTITIES = (CHECK_IS, CHECK_TYPE, CONSTANT)
_REFUSED = {
    CALL: "a function that guards call", ATTRIBUTE: "an attribute of an object in C", CHECK_DYNAMIC_INT: "sizes that are symbols",
    CHECK_DYNAMIC_TENSOR: "sizes that are symbols", CHECK_SIZES: "sizes that are symbols",
}  # fmt: skip
_PACKAGE = f"{__name__.partition('.')[0]}"


def refuse(reason: str) -> None:
    """Counts why a capture is not stored."""
    counters[NAME][f"refused: {reason}"] += 1


# -- results


class Results:
    """What the function returns, in a form that does not refer to the capture.

    Raises CannotCheck if another process cannot make it.
    """

    def __init__(self, ex: Any, code: Any, result: Value | None, modes_change: bool, broken: Any) -> None:
        if result is None or broken is not None:
            raise CannotCheck("a graph break")
        if ex.written or ex.globals or ex.classes or ex.releases or code.releases:
            raise CannotCheck("side effects")
        if ex.draws or ex.prints:
            raise CannotCheck("random numbers or prints")
        if modes_change:
            raise CannotCheck("changes of the thread's modes")
        if ex.computed or any(not isinstance(value, TensorValue) for value in ex.inputs):
            raise CannotCheck("inputs that are numbers")
        if ex.of_this_process:
            raise CannotCheck(ex.of_this_process)
        if ex.needs_seed:
            raise CannotCheck("seeds of random numbers")
        if not ex.inputs:
            raise CannotCheck("no inputs")
        self._code, self._seen = code, set()
        self.shape = self._shape(result)
        self.calls = ex.calls

    def _shape(self, value: Value) -> list[Any]:
        if isinstance(value, Constant) and value.source is None and type(value.value) in (type(None), bool, int, float, str):
            return ["constant", encoded(value.value)]
        if value.source is not None:
            raise CannotCheck("a result that existed before")
        if isinstance(value, TensorValue):
            return ["output", next(i for i, output in enumerate(self._code.outputs) if output is value)]
        if id(value) in self._seen:
            raise CannotCheck("an object that occurs twice in the result")
        self._seen.add(id(value))
        if type(value) is SequenceValue and value.cls in (tuple, list):
            return [value.cls.__name__, [self._shape(item) for item in value.items]]
        if type(value) is DictValue and value.cls is dict and value.default_factory is None:
            pairs = list(value.items.values())
            if all(isinstance(k, Constant) and type(k.value) is str for k, _ in pairs):
                return ["dict", [k.value for k, _ in pairs], [self._shape(v) for _, v in pairs]]
        raise CannotCheck(f"a result of the kind {type(value).__name__}")


def reason_against_graph(module: Any) -> str:
    """Why the calls of a graph may depend on more than this package; empty if they do not."""
    if any(True for _ in module.modules() if _ is not module):
        return "functions that operators call"
    for node in module.graph.nodes:
        if node.op in ("placeholder", "call_method", "output"):
            continue
        if node.op != "call_function":
            return f"a node {node.op}"
        target = node.target
        name = getattr(target, "__module__", None)
        name = name if isinstance(name, str) else getattr(getattr(target, "__self__", None), "__name__", "")
        is_own = name == _PACKAGE or name.startswith(f"{_PACKAGE}.")
        if not is_own and name not in ("_operator", "operator", "math", "builtins"):
            return f"a call of {getattr(target, '__qualname__', target)}"
        code = getattr(getattr(target, "__wrapped__", target), "__code__", None)
        if code is not None and not code.co_filename.startswith(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))):  # noqa: PTH100, PTH120
            return f"a call of {getattr(target, '__qualname__', target)}"
    return ""


# -- objects


def _modules_of_package() -> list[str]:
    return [n for n, m in sorted(sys.modules.items()) if n.startswith(f"{_PACKAGE}.") and isinstance(m, types.ModuleType)]


def _name_of(obj: Any, modules: list[str] | None = None) -> tuple[str, str] | None:
    """The module and the name by which another process finds the object; None if there is none."""
    candidates: list[tuple[Any, Any]] = []
    if isinstance(obj, types.ModuleType):
        candidates = [(namespace(obj).get("__name__"), "")]
    elif type(obj) is dict:
        candidates = [(dict.get(obj, "__name__"), "__dict__")]
    elif isinstance(obj, type):
        name = obj.__qualname__
        modules = modules or _modules_of_package()
        candidates = [(module_of(obj), name), *((m, name) for m in modules if name in namespace(sys.modules[m]))]
    elif isinstance(obj, enum.Enum):
        cls = _name_of(type(obj), modules)
        candidates = [] if cls is None else [(cls[0], f"{cls[1]}.{obj._name_}")]
    elif isinstance(obj, _C.dtype):
        candidates = [(_PACKAGE, repr(obj).rpartition(".")[2])]
    else:
        module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
        candidates = [(module, name), (_PACKAGE, name), (f"{_PACKAGE}.nn.functional", name)]
    for module, name in candidates:
        if not isinstance(module, str) or not isinstance(name, str) or module not in sys.modules:
            continue
        with contextlib.suppress(CannotCheck):
            found = resolve(module, name)
            if isinstance(found, (staticmethod, classmethod)) and found.__func__ is obj:
                return module, f"{name}.__func__"
            if found is obj:
                return module, name
    return None


def encoded(value: Any) -> Any:
    """A value of builtin immutable types in JSON. Raises CannotCheck for others."""
    cls = type(value)
    if cls in (type(None), bool, str):
        return value
    if cls is int:
        return value if abs(value) < 1 << 60 else _no(value)
    if cls is float:
        return ["float", value.hex()]
    if cls is bytes:
        return ["bytes", value.hex()]
    if cls is tuple:
        return ["tuple", *map(encoded, value)]
    if cls is frozenset:
        return ["frozenset", *map(encoded, value)]
    if isinstance(value, enum.Enum) or cls is _C.dtype or isinstance(value, type):
        name = _name_of(value)
        if name is not None:
            return ["named", *name]
    return _no(value)


def _no(value: Any) -> Any:
    raise CannotCheck(f"a value of the class {type(value).__qualname__}")


class _Objects:
    """The table of objects to which the nodes of guards refer."""

    def __init__(self, prints: Fingerprints) -> None:
        self._prints = prints
        self._modules = _modules_of_package()
        self.described: list[Any] = []
        self.fingerprints: dict[int, str] = {}
        self._numbers: dict[Any, int] = {}
        self._keep: list[Any] = []

    def _add(self, key: Any, description: Any, obj: Any = None) -> int:
        number = self._numbers.setdefault(key, len(self.described))
        if number == len(self.described):
            self.described.append(description)
            self._keep.append(obj)
        return number

    def value(self, obj: Any) -> int:
        """A value that is compared, or a key."""
        described = encoded(obj)
        return self._add((type(described), json.dumps(described) if type(described) is list else described), described)

    def tensor(self, cls: int, description: bytes) -> int:
        """The metadata of a tensor."""
        return self._add((cls, description), ["tensor", cls, description.hex()])

    def identity(self, obj: Any, can_be_found: bool) -> int:
        """An object that is compared by its identity. `can_be_found`: the node finds it in the slots."""
        if obj is None or obj is True or obj is False:
            return self.value(obj)
        key = ("object", id(obj))
        if key in self._numbers:
            return self._numbers[key]
        name = _name_of(obj, self._modules)
        if name is None and not can_be_found:
            raise CannotCheck(f"{_text(obj)}, which has no name")
        number = self._add(key, ["found"] if name is None else ["named", *name], obj)
        self.fingerprints[number] = self._prints.of(obj).hex()
        return number


def _text(obj: Any) -> str:
    return str(getattr(obj, "__qualname__", None) or f"an object of the class {type(obj).__qualname__}")


# -- files


def _files_of(modules: list[str]) -> str:
    """The names of the files of modules of this package, except the bindings."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120
    found = set()
    for name in modules:
        module = sys.modules.get(name)
        file = namespace(module).get("__file__") if isinstance(module, types.ModuleType) else None
        if isinstance(file, str) and file.startswith(root) and file.endswith(".py"):
            found.add(file.removeprefix(root))
    return "\n".join(sorted(found))


class _Facts:
    """What a capture depends on, as it was at the call. Refers to no tensor.

    Raises CannotCheck if another process could not compare it.
    """

    def __init__(self, entry: Any, captured: Any, slots: tuple, history: Any) -> None:
        results, made = captured.results, captured.made
        if isinstance(results, str):
            raise CannotCheck(results)
        reason = "the graph is no Program" if made is None else made.reason_not_to_store()
        if reason:
            raise CannotCheck(reason)
        program = made.program._program
        if not program.can_be_stored:
            raise CannotCheck("a Program that depends on more than its inputs")
        self.prints = Fingerprints()
        self.key = key_of(entry, slots, self.prints)
        self.nodes = [self._node(*node) for node in captured.guards.nodes]
        self.texts = captured.guards.texts
        self.definition = program.definition
        sizes, numbers = history.content()
        self.header = {
            "key": self.key, "inputs": captured.inputs, "order": list(program.order), "written": program.written,
            "outputs": [index for _, index in program.outputs], "exact": program.is_exact, "result": results.shape,
            "calls": results.calls, "sizes": sizes, "numbers": numbers,
        }  # fmt: skip
        self.folder = folder()
        self.modules = [name for name in sys.modules if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]

    def _node(self, kind: int, parent: int, obj: Any, index: int) -> tuple[int, int, Any, int]:
        if kind == CHECK_TENSOR:
            if type(obj) not in TENSOR_CLASSES:
                raise CannotCheck("a subclass of Tensor")
            if obj.device.type not in ("cpu", "cuda"):
                raise CannotCheck(f"a tensor on {obj.device.type}")
            return kind, parent, (TENSOR_CLASSES.index(type(obj)), _C.FrameGuards.describe(obj)), index
        if kind in _REFUSED:
            raise CannotCheck(_REFUSED[kind])
        if kind in _IDENTITIES:
            self.prints.of(obj)
        return kind, parent, obj, index


def sections_of(facts: _Facts) -> list[bytes]:
    """The sections of a file."""
    objects, rows = _Objects(facts.prints), []
    for i, (kind, parent, obj, index) in enumerate(facts.nodes):
        if kind == CHECK_TENSOR:
            number = objects.tensor(*obj)
        elif kind in _IDENTITIES:
            number = objects.identity(obj, can_be_found=kind != CONSTANT)
        elif kind == CHECK_MODES:
            number = objects.value(None)
        else:
            number = objects.value(obj)
        rows.append(_ROW.pack(kind, parent, number, index))
        if i % _NODES_WITH_LOCK == 0:
            _background_stores.let_others_run()
    files = _files_of(facts.modules)
    package = looking_up_files(files)()
    if package is None:
        raise CannotCheck("files of this package that have changed since the process began")
    _background_stores.let_others_run()
    fingerprints = {str(number): text for number, text in objects.fingerprints.items()}
    header = {**facts.header, "package": package.hex(), "objects": objects.described, "fingerprints": fingerprints}
    texts = json.dumps(facts.texts).encode()
    if len(texts) > MAX_TEXTS:
        raise CannotCheck("a large capture")
    return [json.dumps(header).encode(), files.encode(), b"".join(rows), facts.definition, zlib.compress(texts, 1)]


def store(entry: Any, captured: Any, slots: tuple, history: Any) -> None:
    """Has a capture stored after the call, before whose Program runs this must be called. Never fails: counts why a capture is
    not stored.
    """
    with _counting_refusals():
        facts = _Facts(entry, captured, slots, history)
        _background_stores.add(lambda: _store(facts))


def _store(facts: _Facts) -> None:
    with _counting_refusals():
        sections = sections_of(facts)
        data = pack(sections)
        if len(data) > MAX_FILE:
            raise CannotCheck("a large capture")
        _background_stores.let_others_run()
        _write(facts.folder, facts.key, digest(*sections[:-1]).hex(), data)  # the texts contain addresses
        counters[NAME]["stored"] += 1
        if next(_stores) % _STORES_UNTIL_TIDY == 0:
            tidy(facts.folder)


@contextlib.contextmanager
def _counting_refusals() -> Iterator[None]:
    try:
        yield
    except CannotCheck as e:
        refuse(str(e))
    except Exception as e:  # noqa: BLE001 - a full disk, say; the function is compiled already
        refuse(f"{type(e).__name__}: {e}")


def _write(root: str, key: str, content: str, data: bytes) -> None:
    if not root:
        raise CannotCheck("no folder")
    os.makedirs(os.path.dirname(root), exist_ok=True)  # noqa: PTH103, PTH120
    with contextlib.suppress(FileExistsError):
        os.mkdir(root, 0o700)  # noqa: PTH102
    if not is_private(root):
        raise CannotCheck("a folder that others may change")
    handle, temporary = tempfile.mkstemp(_UNFINISHED, dir=root)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, os.path.join(root, f"{key}-{content}{SUFFIX}"))  # noqa: PTH105, PTH118
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    of_key = files_of(key, root)
    if len(of_key) > MAX_FILES:
        _remove_oldest(of_key, MAX_FILES, MAX_BYTES)


def tidy(root: str) -> None:
    """Removes the files of a folder that were not used for the longest time, beyond its limits."""
    with contextlib.suppress(OSError):
        if is_private(root):
            _remove_oldest([os.path.join(root, name) for name in os.listdir(root)], MAX_FILES_OF_ALL, MAX_BYTES)  # noqa: PTH118, PTH208


def _remove_oldest(paths: list[str], count: int, size: int) -> None:
    states, now = [], time.time()
    for path in paths:
        with contextlib.suppress(OSError):
            found = os.lstat(path)
            if path.endswith(SUFFIX):
                states.append((found.st_mtime_ns, found.st_size, path))
            elif path.endswith(_UNFINISHED) and now - found.st_mtime > _SECONDS_TO_WRITE:
                os.unlink(path)  # noqa: PTH108 - of a process that has ended
    total = 0
    for i, (_, bytes_, path) in enumerate(sorted(states, reverse=True)):
        total += bytes_
        if i >= count or total > size:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
