"""An interpreter of pickles that runs no code: it creates plain data, and calls the functions of a table (`Globals`).

It reads protocols 1 to 5. Every instruction takes time and memory proportional to its own length, so that reading takes
time and memory proportional to the pickle's length. Errors are LoadErrors.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any, Callable

from .. import _C
from . import _numpy_values
from ._constructor import is_registered
from ._errors import damaged, require, shown
from ._globals import Constructor, Globals, StorageType

_MAX_LINE = 1 << 16  # bytes of a name
_MAX_DIGITS = 4300  # of a number in decimal notation, whose conversion takes quadratic time


class Keys:
    """Checks of the keys of dicts and the elements of sets, so that a file cannot choose keys with equal hashes.

    Hashes of texts contain a random number. Hashes of numbers and tuples do not: many of them may be equal, and inserting
    them would take quadratic time.
    """

    MAX_COMPOSITE = 8192  # limit for composite keys in a file
    MAX_NODES = 1024  # elements of one key

    def __init__(self) -> None:
        self._composite = 0

    def check(self, key: object) -> None:
        """Raises LoadError if the key must not be inserted."""
        kind = type(key)
        if kind is str or kind is bytes:
            return
        if kind is int:
            require(-(2**63) <= key < 2**64, "a key of at most 64 bits", "a longer integer")
        elif isinstance(key, (tuple, frozenset, complex)):
            self._check_composite(key)
        else:
            require(type(key).__hash__ is not None, "a hashable key", key)

    def _check_composite(self, key) -> None:
        pending, nodes, plain = [key], 0, False
        while pending:
            value = pending.pop()
            nodes += 1
            require(nodes <= self.MAX_NODES, f"a key of at most {self.MAX_NODES} elements", "a larger one")
            if isinstance(value, (tuple, frozenset)):
                require(len(value) <= self.MAX_NODES, f"a key of at most {self.MAX_NODES} elements", "a larger one")
                pending.extend(value)
            else:
                plain |= type(value) not in (str, bytes)
                require(type(value).__hash__ is not None, "a hashable key", value)
        if plain or nodes == 1:
            self._composite += 1
            require(
                self._composite <= self.MAX_COMPOSITE,
                f"at most {self.MAX_COMPOSITE} tuples with numbers as keys",
                "more",
            )


class Input:
    """The bytes of a pickle: checks that there are as many as an instruction needs before it reads them.

    Args:
        file: a binary file at the pickle's start.
        size: how many bytes the file has from there on.
    """

    def __init__(self, file, size: int) -> None:
        self._read, self._readline, self.left = file.read, file.readline, size

    def read(self, size: int) -> bytes:
        """Reads exactly `size` bytes."""
        if size > self.left:
            raise damaged(f"expected {size} more bytes, got {self.left}")
        self.left -= size
        data = self._read(size)
        if len(data) != size:
            raise damaged(f"expected {size} more bytes, got {len(data)}")
        return data

    def line(self, limit: int = _MAX_LINE) -> str:
        """Reads a line of ASCII or UTF-8 text."""
        data = self._readline(min(limit, self.left))
        self.left -= len(data)
        require(data.endswith(b"\n"), f"a line of at most {limit} bytes", data)
        return data[:-1].decode("utf-8")


class Unpickler:
    """Reads one pickle.

    Args:
        source: the pickle.
        names: the names that it may contain.
        persistent_load: called with each persistent id; returns the object.
        keys: the check of keys.
        encoding: of texts of Python 2; "bytes" returns bytes.
        errors: how texts of Python 2 are decoded, as in bytes.decode().
    """

    def __init__(
        self, source: Input, names: Globals, persistent_load: Callable, keys: Keys, encoding: str = "utf-8", errors: str = "strict",
    ) -> None:  # fmt: skip
        self._in, self._names, self._persistent_load, self._keys = source, names, persistent_load, keys
        self._encoding, self._errors = encoding, errors
        self._memo: dict[int, Any] = {}
        self._stack: list = []
        self._marks: list[list] = []

    def load(self) -> Any:
        """Runs the pickle and returns its object."""
        read, table = self._in.read, _INSTRUCTIONS
        while True:
            code = read(1)[0]
            if code == _STOP:
                require(
                    len(self._stack) == 1 and not self._marks, "one object at the end", f"{len(self._stack)} objects"
                )
                return self._stack.pop()
            run = table.get(code)
            if run is None:
                raise damaged(f"Unsupported operand {code}")
            run(self)

    def _push(self, value) -> None:
        self._stack.append(value)

    def _pop(self):
        if not self._stack:
            raise damaged("an instruction lacks its operand")
        return self._stack.pop()

    def _top(self):
        if not self._stack:
            raise damaged("an instruction lacks its operand")
        return self._stack[-1]

    def _pop_mark(self) -> list:
        if not self._marks:
            raise damaged("an instruction lacks its mark")
        items, self._stack = self._stack, self._marks.pop()
        return items

    def mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def unpack(self, form: str):
        return struct.unpack(form, self._in.read(struct.calcsize(form)))[0]

    # Numbers and texts.

    def text(self, size: int) -> None:
        self._push(str(self._in.read(size), "utf-8", "surrogatepass"))

    def python2_text(self, size: int) -> None:
        data = self._in.read(size)
        self._push(data if self._encoding == "bytes" else data.decode(self._encoding, self._errors))

    def bytearray(self) -> None:
        self._push(bytearray(self._in.read(self.unpack("<Q"))))

    def long(self, size: int) -> None:
        require(size >= 0, "a length", size)
        self._push(int.from_bytes(self._in.read(size), "little", signed=True))

    def decimal(self) -> None:
        line = self._in.line(_MAX_DIGITS)
        if line in ("00", "01"):
            return self._push(line == "01")
        self._push(int(line.removesuffix("L")))

    # Containers.

    def tuple(self, size: int) -> None:
        require(len(self._stack) >= size, "the elements of a tuple", "fewer")
        self._stack[-size:] = [tuple(self._stack[-size:])]

    def list_of_mark(self) -> None:
        self._push(self._pop_mark())

    def tuple_of_mark(self) -> None:
        self._push(tuple(self._pop_mark()))

    def dict_of_mark(self) -> None:
        items = self._pop_mark()
        self._push({})
        self._set_items(items)

    def frozenset(self) -> None:
        self._push(frozenset(self._checked(self._pop_mark())))

    def _checked(self, elements: list) -> list:
        for element in elements:
            self._keys.check(element)
        return elements

    def extend(self, items: list) -> None:
        target = self._top()
        if type(target) is deque:
            target.extend(items)
        elif isinstance(target, list) and self._is_created(target):
            list.extend(target, items)
        else:
            raise damaged(f"expected a list to append to, got {shown(target)}")

    def _is_created(self, target: object) -> bool:
        """Whether the target of an instruction is a plain list or dict, or an object of a subclass that a file may create.

        Elements are set by the methods of list and dict, so that the object gets the elements that were stored.
        """
        return type(target) in (list, dict, OrderedDict, Counter, defaultdict) or self._names.may_create(type(target))

    def add_items(self) -> None:
        items = self._checked(self._pop_mark())
        require(type(self._top()) is set, "a set to add to", self._top())
        self._top().update(items)

    def set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set_items([key, value])

    def _set_items(self, items: list) -> None:
        target = self._top()
        require(isinstance(target, dict) and self._is_created(target) and len(items) % 2 == 0, "a dict and pairs", target)
        set_item = OrderedDict.__setitem__ if isinstance(target, OrderedDict) else dict.__setitem__
        for i in range(0, len(items), 2):
            self._keys.check(items[i])
            set_item(target, items[i], items[i + 1])

    # The memo.

    def put(self, place: int) -> None:
        self._memo[place] = self._top()

    def get(self, place: int) -> None:
        if place not in self._memo:
            raise damaged(f"Memo value not found at index {place}")
        self._push(self._memo[place])

    # Objects.

    def global_name(self) -> None:
        module = self._in.line()
        self._push(self._names.find(module, self._in.line()))

    def stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        require(type(name) is str and type(module) is str and len(name) + len(module) < _MAX_LINE, "a name", name)
        self._push(self._names.find(module, name))

    def _arguments(self) -> tuple:
        args = self._pop()
        require(type(args) is tuple, "a tuple of arguments", args)
        return args

    def reduce(self) -> None:
        args, function = self._arguments(), self._pop()
        if isinstance(function, type) and issubclass(function, OrderedDict) and not args and self._names.may_create(function):
            return self._push(function.__new__(function))
        if not self._names.may_call(function) or not callable(function):
            raise damaged(f"Trying to call reduce for unrecognized function {shown(function)}")
        self._push(function(*args))

    def new_object(self, options: dict | None = None) -> None:
        args, kind = self._arguments(), self._pop()
        if isinstance(kind, Constructor) and kind.creates is not None and not options:
            return self._push(kind(*args))
        if not isinstance(kind, type) or not self._names.may_create(kind):
            raise damaged(
                f"Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got {shown(kind)}"
            )
        self._push(kind.__new__(kind, *args, **(options or {})))

    def new_object_with_options(self) -> None:
        options = self._pop()
        require(type(options) is dict and all(type(key) is str for key in options), "keyword arguments", options)
        self.new_object(options)

    def build(self) -> None:
        state, value = self._pop(), self._top()
        if type(value) is _C.Tensor:
            from ._rebuild import set_tensor_state

            return set_tensor_state(value, state)
        if type(value) is OrderedDict:
            require(type(state) is dict and all(type(key) is str for key in state), "attributes", state)
            value.__dict__.update(state)
        elif _numpy_values.is_value(value) and not is_registered(type(value)):
            _numpy_values.set_state(value, state)
        elif not self._names.may_create(type(value)):
            raise damaged(
                f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got {type(value)}"
            )
        elif hasattr(value, "__setstate__"):
            value.__setstate__(state)
        else:
            _set_attributes(value, state)

    def persistent(self) -> None:
        identity = self._pop()
        require(type(identity) in (tuple, int, str), "the id of a storage", identity)
        self._push(self._persistent_load(identity))


def _set_attributes(value, state) -> None:
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    for attributes in (state, slots):
        require(
            not attributes or (isinstance(attributes, dict) and all(type(key) is str for key in attributes)),
            "attributes",
            attributes,
        )
    if state:
        value.__dict__.update(state)
    for name, content in (slots or {}).items():
        setattr(value, name, content)


_STOP = ord(".")
# By code. The names are those of the module pickletools.
_INSTRUCTIONS: dict[int, Callable[[Unpickler], Any]] = {
    ord(code) if isinstance(code, str) else code: run
    for code, run in {
        0x80: lambda u: require(u.unpack("B") <= 5, "a protocol of at most 5", "a later one"),  # PROTO
        0x95: lambda u: u.unpack("<Q"),  # FRAME
        "(": Unpickler.mark,
        "0": lambda u: u._pop() if u._stack else u._pop_mark(),  # POP
        "1": lambda u: u._pop_mark(),  # POP_MARK
        "2": lambda u: u._push(u._top()),  # DUP
        "N": lambda u: u._push(None),
        0x88: lambda u: u._push(True),
        0x89: lambda u: u._push(False),
        "J": lambda u: u._push(u.unpack("<i")),  # BININT
        "K": lambda u: u._push(u.unpack("B")),  # BININT1
        "M": lambda u: u._push(u.unpack("<H")),  # BININT2
        "I": Unpickler.decimal,  # INT
        "L": Unpickler.decimal,  # LONG
        0x8A: lambda u: u.long(u.unpack("B")),  # LONG1
        0x8B: lambda u: u.long(u.unpack("<i")),  # LONG4
        "F": lambda u: u._push(float(u._in.line(_MAX_DIGITS))),  # FLOAT
        "G": lambda u: u._push(u.unpack(">d")),  # BINFLOAT
        "X": lambda u: u.text(u.unpack("<I")),  # BINUNICODE
        0x8C: lambda u: u.text(u.unpack("B")),  # SHORT_BINUNICODE
        0x8D: lambda u: u.text(u.unpack("<Q")),  # BINUNICODE8
        "T": lambda u: u.python2_text(u.unpack("<I")),  # BINSTRING
        "U": lambda u: u.python2_text(u.unpack("B")),  # SHORT_BINSTRING
        "B": lambda u: u._push(u._in.read(u.unpack("<I"))),  # BINBYTES
        "C": lambda u: u._push(u._in.read(u.unpack("B"))),  # SHORT_BINBYTES
        0x8E: lambda u: u._push(u._in.read(u.unpack("<Q"))),  # BINBYTES8
        0x96: Unpickler.bytearray,  # BYTEARRAY8
        ")": lambda u: u._push(()),
        "]": lambda u: u._push([]),
        "}": lambda u: u._push({}),
        0x8F: lambda u: u._push(set()),
        "t": Unpickler.tuple_of_mark,
        0x85: lambda u: u.tuple(1),
        0x86: lambda u: u.tuple(2),
        0x87: lambda u: u.tuple(3),
        "l": Unpickler.list_of_mark,
        "d": Unpickler.dict_of_mark,
        0x91: Unpickler.frozenset,
        "a": lambda u: u.extend([u._pop()]),  # APPEND
        "e": lambda u: u.extend(u._pop_mark()),  # APPENDS
        "s": Unpickler.set_item,
        "u": lambda u: u._set_items(u._pop_mark()),
        0x90: lambda u: u.add_items(),
        "q": lambda u: u.put(u.unpack("B")),  # BINPUT
        "r": lambda u: u.put(u.unpack("<I")),  # LONG_BINPUT
        0x94: lambda u: u.put(len(u._memo)),  # MEMOIZE
        "h": lambda u: u.get(u.unpack("B")),  # BINGET
        "j": lambda u: u.get(u.unpack("<I")),  # LONG_BINGET
        "c": Unpickler.global_name,
        0x93: Unpickler.stack_global,
        "R": lambda u: u.reduce(),
        0x81: lambda u: u.new_object(),
        0x92: Unpickler.new_object_with_options,
        "b": lambda u: u.build(),
        "Q": Unpickler.persistent,
    }.items()
}


class _Skipped:
    """Placeholder for an object that is not created."""

    def __call__(self, *args):
        return self


class Scanner(Unpickler):
    """Reads a pickle without creating its objects: collects the names and persistent ids that it contains."""

    def __init__(self, source: Input, persistent_load: Callable | None = None) -> None:
        super().__init__(source, None, persistent_load or (lambda identity: _SKIPPED), Keys(), "bytes")
        self.names: list[tuple[str, str]] = []

    def _skip(self, name: str, module: str):
        self.names.append((module, name))
        if name.endswith("Storage"):
            try:
                return StorageType(name)
            except KeyError:
                pass
        return _SKIPPED

    def load(self) -> Any:
        """Runs the pickle; objects are replaced by a placeholder."""
        self._names = self
        return super().load()

    def find(self, module: str, name: str):
        """Records a name."""
        return self._skip(name, module)

    def _set_items(self, items: list) -> None:
        self._top()

    def _checked(self, elements: list) -> list:
        return []

    def extend(self, items: list) -> None:
        self._top()

    def add_items(self) -> None:
        self._pop_mark()

    def reduce(self) -> None:
        self._pop()
        self._pop()
        self._push(_SKIPPED)

    def new_object(self, options: dict | None = None) -> None:
        self.reduce()

    def build(self) -> None:
        self._pop()


_SKIPPED = _Skipped()
