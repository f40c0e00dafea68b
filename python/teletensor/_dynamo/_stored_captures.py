"""Captures of earlier processes: what torch.compile finds in a folder of the user instead of executing a function symbolically.

A stored capture consists of its guards, the Program, and how the results are put together. It is used if everything that the capture
has read is the same in this process: the guards hold, objects that guards compare by identity have equal fingerprints
(_fingerprints.py), and Python, this package's files, settings, modes and the environment are those of the capture. Otherwise the
function is captured. _capture_store.py writes the files. See docs/compile.md, "Captures of earlier processes".

A file contains no code: numbers, names and a Program's definition, with a hash of all. The folder must belong to the user, and nobody
else may write to it.
"""

from __future__ import annotations

import itertools
import os
import stat
import struct
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import _C, _named_programs
from .._version import __version__
from ..nn import Module
from ..nn.parameter import Parameter
from . import _marks, config
from ._entries import program_name
from ._fingerprints import CannotCheck, Fingerprints, blake2b, digest, has_builtins, module_of, namespace, resolve
from ._logs import any_enabled as any_log_is_enabled
from ._logs import counters

MAGIC = b"TTCAPT02"
_HEADER = struct.Struct("<8s32s5I")  # MAGIC, a hash of the rest, sizes of the sections in bytes
MAX_FILE = 8 << 20
MAX_TEXTS = 32 << 20  # of guards, in bytes
MAX_FILES = 8  # of a key
SUFFIX = ".capture"
NAME = "stored captures"  # of the counters
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
_PREFIX = f"{__name__.partition('.')[0]}."
_WITHOUT_EFFECT = frozenset(("TELETENSOR_ADDRESS", "TELETENSOR_TOKEN", "TELETENSOR_STORED_CAPTURES", "TELETENSOR_DAEMON", "TORCH_HOME"))
UNKNOWN = object()
TENSOR_CLASSES: tuple[type, ...] = (_C.Tensor, Parameter)


class Stored(NamedTuple):
    """A capture that can be used in this process."""

    guards: Any
    function: Callable
    texts: Any
    program: Any


class Texts:
    """The texts of guards, which only messages need."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def _list(self) -> list[str]:
        import json
        import zlib

        return json.loads(zlib.decompressobj().decompress(self._data, MAX_TEXTS))

    def __getitem__(self, i: int) -> str:
        return self._list()[i]

    def __iter__(self) -> Iterator[str]:
        return iter(self._list())


class NamedProgram:
    """What torch.compiler.stats() needs of a Program: its name."""

    def __init__(self, program: Any, name: str) -> None:
        self._program, self.__name__ = program, name
        _named_programs.add(self)


# -- whether


def reason_against(compiler: Any, entry: Any, state: Any) -> str:
    """Why the capture of a function is neither looked for nor stored; empty if there is no reason."""
    from ._stance import current_stance

    if os.environ.get("TELETENSOR_STORED_CAPTURES", "1") in ("", "0"):
        return "switched off"
    if any(getattr(sys.modules.get(f"{_PREFIX}{name}.config"), "force_disable_caches", False) for name in ("compiler", "_inductor")):
        return "force_disable_caches"
    if compiler.backend not in ("inductor", "teletensor") or compiler.keywords or current_stance().force_backend is not None:
        return "another backend"
    if compiler.on_capture is not None or compiler.on_result is not None or any_log_is_enabled() or os.environ.get("TELETENSOR_LOG"):
        return "what a capture does is shown"
    if entry.target >= 0 or state.owner is not None:
        return "the rest of a function after a graph break"
    if state.compiled or not state.history.is_empty:
        return "captured before"
    if compiler.dynamic or not config.assume_static_by_default:
        return "sizes are symbols"
    if _marks.change_captures():
        return "functions or tensors are marked for compilation"
    if sys.exc_info()[1] is not None:
        return "called while an exception is handled"
    return ""


# -- the key

_process_facts: bytes | None = None


def _facts_of_process() -> bytes:
    global _process_facts
    if _process_facts is None:
        binding = os.stat(_C.__file__)
        _process_facts = digest(
            MAGIC, sys.version.encode(), sys.implementation.cache_tag.encode(), __version__.encode(), _PACKAGE.encode(),
            repr((binding.st_size, binding.st_mtime_ns, binding.st_ctime_ns, binding.st_ino, sys.flags)).encode(),
        )  # fmt: skip
    return _process_facts


def _settings() -> str:
    found = []
    for name in ("_dynamo", "_functorch", "_inductor", "compiler"):
        module = sys.modules.get(f"{_PREFIX}{name}.config")
        values = namespace(module) if module is not None else {}
        found.append(sorted((k, repr(v)) for k, v in values.items() if type(v) in (bool, int, float, str, type(None))))
    names = [k for k in os.environ if k.startswith(("TELETENSOR_", "TORCH", "PYTORCH_")) and k not in _WITHOUT_EFFECT]
    environment = sorted((k, os.environ.get(k)) for k in names)
    return repr((found, environment))


def modes() -> list[Any]:
    """The modes of the thread, as guards compare them."""
    return [
        _C.is_grad_enabled(), _C.is_inference_mode(), *(repr(_C.autocast_dtype(device)) for device in ("cpu", "cuda")),
        *(repr(_C.autocast_fast_dtype(device)) for device in ("cpu", "cuda")), _C.autocast_cache_enabled(),
        repr(_C.default_dtype()), repr(_C.default_devices()),
        getattr(sys.modules.get(f"{_PREFIX}cuda.device_index"), "_current", 0),  # the GPU that "cuda" denotes
    ]  # fmt: skip


def _describe_argument(value: Any) -> str:
    cls = type(value)
    if cls in TENSOR_CLASSES:
        return f"{TENSOR_CLASSES.index(cls)}{_C.FrameGuards.describe(value).hex()}"
    if cls in (int, float, bool, str, bytes, type(None)):
        return f"{cls.__name__} {value!r}"
    name = f"{module_of(cls)}.{cls.__qualname__}"
    return f"{name} {value.__dict__.get('training')!r}" if isinstance(value, Module) else name


def key_of(entry: Any, slots: tuple, prints: Fingerprints) -> str:
    """What files of a function's captures for such arguments are named for."""
    function, args, kwargs = slots
    if not has_builtins(function):
        raise CannotCheck("other builtin functions")
    texts = repr((
        _settings(), modes(), function.__module__, [_describe_argument(a) for a in args],
        [(k, _describe_argument(v)) for k, v in kwargs.items()], len(function.__closure__ or ()),
    ))  # fmt: skip
    return digest(_facts_of_process(), prints.of(entry.code), texts.encode("utf-8", "surrogatepass")).hex()


# -- the folder


def folder() -> str:
    """Where captures are stored: teletensor/captures in the user's cache folder; empty if there is none."""
    cache = _C.user_folder("cache")
    return os.path.join(cache, "teletensor", "captures") if cache else ""  # noqa: PTH118


def is_private(path: str) -> bool:
    """Whether a folder belongs to this user, and only this user may write to it."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def files_of(key: str, path: str) -> list[str]:
    """The files of a key in a folder: KEY-CONTENT.capture."""
    if not is_private(path):
        return []
    try:
        names = [name for name in os.listdir(path) if name.startswith(key) and name.endswith(SUFFIX)]  # noqa: PTH208
    except OSError:
        return []
    return [os.path.join(path, name) for name in sorted(names)]  # noqa: PTH118


def pack(sections: list[bytes]) -> bytes:
    """The bytes of a file."""
    rest = struct.pack("<5I", *map(len, sections)) + b"".join(sections)
    return MAGIC + blake2b(rest, digest_size=32).digest() + rest


def unpack(data: bytes) -> list[bytes] | None:
    """The sections of a file; None if it is damaged."""
    if len(data) < _HEADER.size or len(data) > MAX_FILE:
        return None
    magic, expected, *sizes = _HEADER.unpack_from(data)
    if magic != MAGIC or sum(sizes) != len(data) - _HEADER.size or blake2b(data[40:], digest_size=32).digest() != expected:
        return None
    ends = list(itertools.accumulate(sizes, initial=_HEADER.size))
    return [data[a:b] for a, b in itertools.pairwise(ends)]


_start: float | None = None


def _start_of_process() -> float:
    """When this process has begun, in seconds since the epoch, not later than it was."""
    global _start
    if _start is None:
        try:
            with open("/proc/self/stat") as file:  # noqa: PTH123
                ticks = int(file.read().rpartition(")")[2].split()[19])
            with open("/proc/uptime") as file:  # noqa: PTH123
                uptime = float(file.read().split()[0])
            import time

            _start = time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK") - 0.05
        except (OSError, ValueError, IndexError):
            _start = 0.0
    return _start


os.register_at_fork(before=_start_of_process)  # a child has the modules that this process has imported

_known_files: dict[str, bytes | None] = {}


def looking_up_files(names: str) -> Callable[[], bytes | None]:
    """Begins to look up this package's files, names separated by newlines, in another thread. The function that it returns waits,
    and returns a hash of their states; None if one has changed since the process began.
    """
    if names in _known_files:
        return lambda: _known_files[names]
    looked_up = _C.FileStates(_PACKAGE, names)

    def fingerprint() -> bytes | None:
        start = _start_of_process()
        states = looked_up.result()
        is_old = states is not None and states[1] < start * 1e9
        _known_files[names] = digest(names.encode(), states[0]) if states is not None and is_old else None
        return _known_files[names]

    return fingerprint


# -- looking up


def _parsed(text: str) -> Any:
    """The values of JSON. Without the module json, which compiles regular expressions for a millisecond when it is imported."""
    try:
        from _json import make_scanner
    except ImportError:
        from json import loads

        return loads(text)
    none = types.SimpleNamespace(
        strict=True, object_hook=None, object_pairs_hook=None, parse_float=float, parse_int=int, parse_constant=float
    )
    return make_scanner(none)(text, 0)[0]


def decoded(value: Any) -> Any:
    """The value that encoded() (_capture_store.py) has described. Raises CannotCheck if there is no such value here."""
    if not isinstance(value, list):
        return value
    kind, *rest = value
    if kind == "tuple":
        return tuple(map(decoded, rest))
    if kind == "frozenset":
        return frozenset(map(decoded, rest))
    if kind == "float":
        return float.fromhex(rest[0])
    if kind == "bytes":
        return bytes.fromhex(rest[0])
    if kind == "named":
        return resolve(rest[0], rest[1])
    if kind == "tensor":
        return TENSOR_CLASSES[rest[0]], bytes.fromhex(rest[1])
    if kind == "found":
        return UNKNOWN
    raise CannotCheck(f"a stored {kind}")


def _maker(shape: Any) -> Callable[[tuple], Any]:
    """What makes the function's result of the outputs of the Program."""
    kind, *rest = shape
    if kind == "output":
        index = rest[0]
        if type(index) is not int:
            raise CannotCheck("a stored result")
        return lambda g: g[index]
    if kind == "constant":
        value = decoded(rest[0])
        return lambda g: value
    parts = [_maker(part) for part in rest[-1]]
    if kind == "tuple":
        return lambda g: tuple(part(g) for part in parts)
    if kind == "list":
        return lambda g: [part(g) for part in parts]
    if kind == "dict":
        keys = rest[0]
        return lambda g: {key: part(g) for key, part in zip(keys, parts)}
    raise CannotCheck("a stored result")


def _running_or_calling(run: Callable, make: Callable[[tuple], Any]) -> Callable:
    """What runs a Program that writes to inputs, or where it does not fit calls the function, as after a capture."""

    def function(slots: tuple, inputs: tuple) -> Any:
        try:
            return make(run(inputs))
        except (RuntimeError, ValueError) as e:  # before anything has run
            if not str(e).startswith("[run_program] "):
                raise
        called, args, kwargs = slots
        return called(*args, **kwargs)

    return function


def _use(data: bytes, key: str, slots: tuple, prints: Fingerprints, state: Any, name: str) -> Stored:
    """Raises CannotCheck if the capture is not right for the call."""
    sections = unpack(data)
    if sections is None:
        raise CannotCheck("a damaged file")
    fingerprint_of_files = looking_up_files(sections[1].decode())
    header = _parsed(sections[0].decode())
    nodes, definition, texts = sections[2:]
    if header["key"] != key:
        raise CannotCheck("a file of another name")
    described, expected = header["objects"], header["fingerprints"]
    objects = [decoded(each) if type(each) is list else each for each in described]
    guards = _C.FrameGuards.stored(nodes, objects, header["inputs"], slots, UNKNOWN)
    if guards is None:
        raise CannotCheck("a guard")
    found_here = []
    for number, fingerprint in expected.items():
        obj = objects[int(number)]
        if obj is UNKNOWN or prints.of(obj).hex() != fingerprint:
            raise CannotCheck(f"another object: {getattr(obj, '__qualname__', type(obj).__name__)}")
        if described[int(number)][0] == "found":
            found_here.append(id(obj))
    if len(set(found_here)) != len(found_here):
        raise CannotCheck("one object instead of several")
    found = fingerprint_of_files()
    if found is None or found.hex() != header["package"]:
        raise CannotCheck("other files of this package")
    if not guards.check(slots):
        raise CannotCheck("a guard")
    inputs = guards.inputs()
    written = header["written"]
    program = _C.Program.restored(definition, header["order"], written, header["outputs"], header["exact"], inputs)
    run, shape = program.run, header["result"]
    if written:
        function = _running_or_calling(run, _maker(shape))
    elif shape == ["output", 0]:
        def function(_slots: tuple, inputs: tuple) -> Any:
            return run(inputs)[0]
    else:
        make = _maker(shape)

        def function(_slots: tuple, inputs: tuple) -> Any:
            return make(run(inputs))

    state.history.restore(header["sizes"], header["numbers"])
    counters["stats"]["unique_graphs"] += 1
    counters["stats"]["calls_captured"] += header["calls"]
    return Stored(guards, function, Texts(texts), NamedProgram(program, name))


def find(entry: Any, slots: tuple, state: Any) -> Stored | None:
    """A capture of an earlier process that is right for the call; None if there is none."""
    prints = Fingerprints()
    try:
        key = key_of(entry, slots, prints)
    except (CannotCheck, RecursionError, ValueError):  # ValueError: an int of more digits than a text may have
        return None
    for path in files_of(key, folder()):
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123
                data = file.read(min(os.fstat(file.fileno()).st_size, MAX_FILE + 1))
            stored = _use(data, key, slots, prints, state, program_name(entry, slots))
        except Exception as e:  # noqa: BLE001 - whatever is wrong with a file, the function can be captured
            reason = str(e) if isinstance(e, CannotCheck) else f"{type(e).__name__}: {e}"
            counters[NAME][f"not used: {reason}"] += 1
            continue
        try:
            os.utime(path)  # the files that were used last are kept
        except OSError:
            pass
        counters[NAME]["used"] += 1
        return stored
    return None
