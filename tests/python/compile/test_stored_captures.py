"""Captures that an earlier process has stored: used where a new capture would be the same, and nowhere else."""

# ruff: noqa: E501 - rows of small programs
from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import teletensor as torch
from teletensor import _C
from tests.conftest import IN_PROCESS, client_environment

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="needs several client processes")

# Prints what happened to the captures of `compiled`, called as `call(compiled)`, and compares with the function itself.
_MAIN = """
import contextlib, json, sys
sys.path.insert(0, {folder!r})
import teletensor as torch
torch.manual_seed(0)
import user
{before}
from user import *
if "function" not in vars(user):
    from user import make
    function = make()
compiled = torch.compile(function{options})
if "call" not in vars(user):
    def call(f):
        return f(torch.arange(12.0).reshape(3, 4))
def flat(result):
    if isinstance(result, dict):
        return [(key, flat(value)) for key, value in result.items()]
    if isinstance(result, (tuple, list)):
        return type(result)(flat(each) for each in result)
    return (result.tolist(), str(result.dtype), result.requires_grad) if isinstance(result, torch.Tensor) else result
with {context}:
    expected = flat(call(function))
    for _ in range(2):
        assert repr(flat(call(compiled))) == repr(expected), (flat(call(compiled)), expected)
import teletensor._dynamo.utils
from teletensor._dynamo import _background_stores
_background_stores.finish()
counters = teletensor._dynamo.utils.counters
print(json.dumps({{"captures": dict(counters["stored captures"]), "stats": dict(counters["stats"]), "modules": sorted(sys.modules)}}))
"""

_MLP = """
import teletensor as torch
from teletensor import nn

class Model(nn.Module):
    scale = 2.0
    def __init__(self, hidden=8):
        super().__init__()
        self.first, self.second, self.slope = nn.Linear(4, hidden), nn.Linear(hidden, 3), 0.5
        self.drop = nn.Dropout(0.0)
    def forward(self, x):
        y = torch.relu(self.first(x)) * self.slope * self.scale
        return self.second(self.drop(y)) if self.training else self.second(y) + 1
def make():
    return Model()
"""

_FUNCTION = """
import teletensor as torch
WEIGHT = 3
TABLE = {"a": 1.5, "b": (1, 2)}
def helper(x):
    return x * 2 + 1
def scaled(x, by=2.0, *, plus=1.0):
    return x * by + plus
def maker(k):
    def inner(x):
        return x ** k
    return inner
power = maker(2)
class Settings:
    factor = 4
    @staticmethod
    def apply(x):
        return x - 1
settings = Settings()
def function(x):
    y = helper(x) * WEIGHT + TABLE["a"]
    return {"y": scaled(y), "z": [power(x), Settings.apply(x) * settings.factor], "n": None, "pair": (x.sum(), 7)}
"""

_INTS = """
import teletensor as torch
def function(x, n, scale):
    for _ in range(n):
        x = x * scale
    return x
def call(f):
    return f(torch.ones(3), 3, 0.5)
"""


_SECONDS = itertools.count(1_700_000_000)


def _process(folder: Path, source: str, before: str = "", options: str = "", context: str = "contextlib.nullcontext()", **more: str) -> dict:
    (folder / "user.py").write_text(source)
    # The second of a source decides whether Python uses its bytecode, and two sources may be written within one.
    written = next(_SECONDS)
    os.utime(folder / "user.py", (written, written))
    main = folder / "main.py"
    main.write_text(_MAIN.format(folder=str(folder), before=before, options=options, context=context))
    environment = client_environment(TELETENSOR_ADDRESS=torch.connection().address, XDG_CACHE_HOME=str(folder / "cache"))
    environment.update({"TELETENSOR_STORED_CAPTURES": "1", **more})
    found = subprocess.run([sys.executable, str(main)], env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr[-3000:]
    return json.loads(found.stdout.splitlines()[-1])


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("cache/teletensor/captures/*.capture"))


_SEQUENTIAL = "from teletensor import nn\ndef make():\n    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))\n"
_GPT = """
import sys
sys.path.insert(0, {root!r})
import teletensor as torch
from benchmarks.{module} import *
def make():
    return {make}.eval()
def call(f):
    torch.manual_seed(1)
    with torch.no_grad():
        return f({argument})
"""
_ROOT = str(Path(__file__).resolve().parents[3])
# Programs that write to their inputs: an argument and buffers of a module.
_WRITES = """
import teletensor as torch
def function(x, y, n):
    z = x * n
    y.add_(z)
    x[0] = 5
    return z + y
def call(f):
    x, y = torch.arange(12.0).reshape(3, 4), torch.ones(3, 4)
    return f(x, y, 3), x, y, x._version, y._version
"""
_BATCH_NORM = """
import teletensor as torch
from teletensor import nn
def make():
    global model
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.BatchNorm2d(3))
    return model
def call(f):
    for norm in (model[1], model[3]):
        norm.reset_running_stats()
    model.zero_grad()
    x = torch.arange(64.0).reshape(2, 2, 4, 4).sin()
    first = f(x)
    (first * first).sum().backward()
    second = f(x + 1)
    return first, second, *(p.grad for p in model.parameters()), *(b.clone() for b in model.buffers())
"""
_USED = {
    "writes": _WRITES,
    "batch norm": _BATCH_NORM,
    "MLP": _MLP,
    "function": _FUNCTION,
    "ints": _INTS,
    "small constant tensor": "import teletensor as torch\ndef function(x):\n    return x + torch.tensor([1.0, 2.0, 3.0, 4.0])\n",
    "sequential": _SEQUENTIAL,
    "GPT": _GPT.format(root=_ROOT, module="gpt", make="make_gpt(torch, 65)", argument="torch.randint(0, 65, (1, 64))"),
    "ResNet-18": _GPT.format(root=_ROOT, module="vision", make="resnet18(torch)", argument="torch.randn(1, 3, 32, 32)"),
}


@pytest.mark.parametrize("name", _USED)
def test_second_process_uses_the_capture(name, tmp_path):
    first = _process(tmp_path, _USED[name])
    assert first["captures"] == {"stored": 1}
    second = _process(tmp_path, _USED[name])
    assert second["captures"] == {"used": 1}
    assert second["stats"] == first["stats"]


_VARIABLE = """
import os
def function(x):
    return x * int(os.environ.get("FACTOR", "2"))
"""
_LENGTH = """
def function(x):
    return x * len(oct(8))
"""
_OTHER_BUILTINS = """
import builtins
values = {**vars(user), "__builtins__": {**vars(builtins), "oct": lambda x: "abcde"}}
exec(compile(open(user.__file__).read(), user.__file__, "exec"), values)
user.function = values["function"]
"""
# By name: the source of the first process, and what the second one has in other ways.
_CHANGES: dict[str, tuple[str, dict]] = {
    "source": (_MLP, {"source": _MLP.replace("self.second(y) + 1", "self.second(y) + 2")}),
    "line": (_MLP, {"source": "\n" + _MLP}),
    "hyperparameter": (_MLP, {"before": "user.Model.__init__.__defaults__ = (16,)"}),
    "attribute of the instance": (_MLP, {"before": "old = user.make\ndef make():\n    m = old()\n    m.slope = 0.25\n    return m\nuser.make = make"}),
    "attribute of the class": (_MLP, {"before": "user.Model.scale = 3.0"}),
    "other method of the class": (_MLP, {"before": "user.Model.forward = lambda self, x: self.first(x)"}),
    "training": (_MLP, {"before": "old = user.make\nuser.make = lambda: old().eval()"}),
    "frozen": (_MLP, {"before": "old = user.make\nuser.make = lambda: old().requires_grad_(False)"}),
    "no_grad": (_MLP, {"context": "torch.no_grad()"}),
    "inference_mode": (_MLP, {"context": "torch.inference_mode()"}),
    "autocast": (_MLP, {"context": "torch.autocast('cpu', torch.bfloat16)"}),
    "default dtype": (_FUNCTION, {"before": "torch.set_default_dtype(torch.float64)"}),
    "deterministic": (_FUNCTION, {"before": "torch.use_deterministic_algorithms(True, warn_only=True)"}),
    "dtype of the parameters": (_MLP, {"before": "old = user.make\nuser.make = lambda: old().double()\nuser.call = lambda f: f(torch.ones(3, 4).double())"}),
    "shape": (_MLP, {"before": "user.call = lambda f: f(torch.ones(5, 4))"}),
    "strides": (_MLP, {"before": "user.call = lambda f: f(torch.ones(4, 3).t())"}),
    "global": (_FUNCTION, {"before": "user.WEIGHT = 4"}),
    "element of a global": (_FUNCTION, {"before": "user.TABLE['a'] = 2.5"}),
    "inlined function": (_FUNCTION, {"before": "user.helper = lambda x: x * 5"}),
    "code of an inlined function": (_FUNCTION, {"before": "def f(x):\n    return x * 7\nuser.helper.__code__ = f.__code__"}),
    "default argument": (_FUNCTION, {"before": "user.scaled.__defaults__ = (3.0,)"}),
    "keyword default": (_FUNCTION, {"before": "user.scaled.__kwdefaults__['plus'] = 5.0"}),
    "closure": (_FUNCTION, {"before": "user.power = user.maker(3)"}),
    "static method": (_FUNCTION, {"before": "user.Settings.apply = staticmethod(lambda x: x - 9)"}),
    "attribute of an object": (_FUNCTION, {"before": "user.settings.factor = 5"}),
    "function of the package": (_SEQUENTIAL, {"before": "old = torch.nn.functional.linear\ntorch.nn.functional.linear = lambda x, w, b=None: old(x, w, b) * 2"}),
    "method of a class of the package": (_SEQUENTIAL, {"before": "old = torch.nn.ReLU.forward\ntorch.nn.ReLU.forward = lambda self, x: x.abs()"}),
    "int": (_INTS, {"before": "user.call = lambda f: f(torch.ones(3), 4, 0.5)"}),
    "float": (_INTS, {"before": "user.call = lambda f: f(torch.ones(3), 3, 0.25)"}),
    "bool instead of an int": (_INTS, {"before": "user.call = lambda f: f(torch.ones(3), True, 0.5)"}),
    "argument by name": (_INTS, {"before": "user.call = lambda f: f(torch.ones(3), n=3, scale=0.5)"}),
    "setting": (_INTS, {"before": "torch._dynamo.config.specialize_int = True"}),
    "number of layers": (_SEQUENTIAL, {"source": _SEQUENTIAL.replace("nn.Linear(5, 2))", "nn.Linear(5, 2), nn.Tanh())")}),
    "current GPU": (_INTS, {"before": "torch.cuda.set_device(1)"}),
    "cache of autocast": (_INTS, {"before": "torch.set_autocast_cache_enabled(False)"}),
    "variable of the environment": (_VARIABLE, {"FACTOR": "3"}),
    "builtin function": (_LENGTH, {"before": "import builtins\nbuiltins.oct = lambda x: 'abcde'"}),
    "other builtin functions": (_LENGTH, {"before": "import builtins\nvars(user)['__builtins__'] = {**vars(builtins), 'oct': lambda x: 'abcde'}"}),
    "builtin functions of a function": (_LENGTH, {"before": _OTHER_BUILTINS}),
    "builtin functions of an inlined function": (_LENGTH.replace("function", "inner") + "def function(x):\n    return inner(x) + 1\n", {"before": _OTHER_BUILTINS.replace("function", "inner")}),
    "environment": (_INTS, {"TELETENSOR_EXACT_PROGRAMS": "1"}),
}  # fmt: skip


@pytest.mark.parametrize("name", _CHANGES)
def test_change_captures_anew(name, tmp_path):
    source, change = _CHANGES[name]
    assert _process(tmp_path, source)["captures"] == {"stored": 1}
    found = _process(tmp_path, change.pop("source", source), **change)["captures"]
    assert "used" not in found
    if name in ("source", "training", "global"):  # what was stored first is still right
        assert _process(tmp_path, source)["captures"].get("used") == 1


# Captures that must not be stored, or looked for: what the source adds, and the reason that is counted.
_HOOK = "old = user.make\ndef make():\n    m = old()\n    m[0].register_forward_hook(lambda m, i, o: o * 2)\n    return m\nuser.make = make"
_REFUSED = {
    "graph break": ("import teletensor as torch\ndef function(x):\n    y = x + 1\n    torch._dynamo.graph_break()\n    return y * 2\n", {}, "a graph break"),
    "side effect": ("seen = []\ndef function(x):\n    seen.append(1)\n    return x + 1\n", {}, "side effects"),
    "random number": ("import random\ndef function(x):\n    return x * (random.random() < 2)\n", {}, "random numbers or prints"),
    "unused random number": ("import random\ndef function(x):\n    random.seed(3)\n    return x + 1\n", {}, "random numbers or prints"),
    "print": ("import teletensor as torch\ntorch._dynamo.config.reorderable_logging_functions.add(print)\ndef function(x):\n    print(end='')\n    return x + 1\n", {}, "random numbers or prints"),
    "argument as result": ("def function(x):\n    return x, x + 1\n", {}, "a result that existed before"),
    "symbols": (_MLP, {"options": ", dynamic=True"}, ""),
    "other backend": (_MLP, {"options": ", backend='eager'"}, ""),
    "allowed function": ("import teletensor as torch\n@torch.compiler.allow_in_graph\ndef g(x):\n    return x + 1\ndef function(x):\n    return g(x)\n", {}, ""),
    "mark": (_MLP, {"before": "t = torch.ones(3, 4)\ntorch._dynamo.mark_dynamic(t, 0)\nuser.call = lambda f: f(t)"}, ""),
    "switched off": (_MLP, {"TELETENSOR_STORED_CAPTURES": "0"}, ""),
    "setting": (_MLP, {"before": "torch.compiler.config.force_disable_caches = True"}, ""),
    "custom operator": ("import teletensor as torch\n@torch.library.custom_op('mine::f', mutates_args=())\ndef f(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n@f.register_fake\ndef _(x):\n    return torch.empty_like(x)\ndef function(x):\n    return torch.ops.mine.f(x)\n", {}, "the graph is no Program"),
}  # fmt: skip


@pytest.mark.parametrize("name", _REFUSED)
def test_is_not_stored(name, tmp_path):
    source, change, reason = _REFUSED[name]
    for _ in range(2):
        found = _process(tmp_path, source, **change)["captures"]
        assert not {"stored", "used"} & found.keys()
        assert not reason or any(key.startswith(f"refused: {reason}") for key in found), found
    assert not _files(tmp_path)


def test_hooks_are_found(tmp_path):
    assert _process(tmp_path, _SEQUENTIAL)["captures"] == {"stored": 1}
    assert "used" not in _process(tmp_path, _SEQUENTIAL, before=_HOOK)["captures"]


def test_damaged_files_are_not_used(tmp_path):
    assert _process(tmp_path, _MLP)["captures"] == {"stored": 1}
    (file,) = _files(tmp_path)
    whole = file.read_bytes()
    at = len(whole) // 2
    for damaged in (b"", whole[:-1], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], whole + b"x"):
        file.write_bytes(damaged)
        found = _process(tmp_path, _MLP)["captures"]
        assert found == {"not used: a damaged file": 1, "stored": 1}
    assert _files(tmp_path) == [file]
    assert _process(tmp_path, _MLP)["captures"] == {"used": 1}  # it was replaced


def test_folder_that_others_may_write_to_is_not_used(tmp_path):
    assert _process(tmp_path, _MLP)["captures"] == {"stored": 1}
    folder = tmp_path / "cache/teletensor/captures"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in _files(tmp_path))
    folder.chmod(0o777)
    found = _process(tmp_path, _MLP)["captures"]
    assert found == {"refused: a folder that others may change": 1}


def test_sizes_become_symbols_as_without_stored_captures(tmp_path):
    calls = "user.call = lambda f: [f(torch.ones(n, 4)) for n in (3, 5, 6, 7)]"
    first = _process(tmp_path, _MLP, before=calls)
    second = _process(tmp_path, _MLP, before=calls)
    assert first["captures"] == {"stored": 1} and second["captures"] == {"used": 1}
    assert first["stats"] == second["stats"]
    assert second["stats"]["unique_graphs"] == 2


def test_oldest_captures_are_removed(tmp_path):
    for i in range(10):
        _process(tmp_path, _FUNCTION, before=f"user.WEIGHT = {10 + i}")
    files = _files(tmp_path)
    assert len(files) == 8
    assert _process(tmp_path, _FUNCTION, before="user.WEIGHT = 19")["captures"]["used"] == 1
    assert "used" not in _process(tmp_path, _FUNCTION, before="user.WEIGHT = 10")["captures"]


def test_gradients_and_options(tmp_path):
    source = _MLP + """
def call(f):
    x = torch.ones(3, 4, requires_grad=True)
    f(x).square().sum().backward()
    return x.grad
"""
    assert _process(tmp_path, source)["captures"] == {"stored": 1}
    assert _process(tmp_path, source, options=", fullgraph=True")["captures"] == {"used": 1}
    assert _process(tmp_path, source, options=", dynamic=False")["captures"] == {"used": 1}
    assert _process(tmp_path, source, options=", mode='max-autotune'")["captures"] == {"used": 1}


def test_reset_and_stances(tmp_path):
    source = _MLP + """
def call(f):
    with torch.compiler.set_stance("default"):
        first = f(torch.ones(3, 4))
    torch.compiler.reset()
    second = f(torch.ones(3, 4))
    with torch.compiler.set_stance("fail_on_recompile"):
        third = f(torch.ones(3, 4))
        try:
            f(torch.ones(6, 4))
        except Exception as e:
            assert "RecompileError" in type(e).__name__, e
    return first, second, third, len(torch.compiler.stats()) >= 0
"""
    _process(tmp_path, source)
    assert _process(tmp_path, source)["captures"]["used"] == 1


def test_logs_show_a_capture(tmp_path):
    assert _process(tmp_path, _MLP)["captures"] == {"stored": 1}
    assert _process(tmp_path, _MLP, TORCH_LOGS="graph_code")["captures"] == {}
    assert os.path.exists(_files(tmp_path)[0])


# Compiles each function of `rows`, compares it with itself, and prints what happened to the capture.
_ROWS_MAIN = """
import json, sys, warnings
sys.path.insert(0, {folder!r})
import teletensor as torch
import user
import teletensor._dynamo.utils
from teletensor._dynamo import _background_stores
counters = teletensor._dynamo.utils.counters["stored captures"]
found = {{}}
for name, function in user.rows.items():
    counters.clear()
    x = torch.arange(12.0).reshape(3, 4)
    expected = function(x)
    is_equal = torch.compile(function)(x).tolist() == expected.tolist()
    assert is_equal, (name, dict(counters))
    _background_stores.finish()
    found[name] = dict(counters)
print(json.dumps(found))
"""

# What differs between two processes although everything that guards compare is equal.
_OF_A_PROCESS = {
    "hash of a text": "x + hash('abc') % 1000",
    "hash of bytes": "x + hash(b'abc') % 1000",
    "hash of None": "x + hash(None) % 100003",
    "hash of a tuple": "x + hash(('abc', 1)) % 1000",
    "hash of a nested tuple": "x + hash((1, (2, 'abc'))) % 1000",
    "method __hash__": "x + 'abc'.__hash__() % 1000",
    "method __hash__ of str": "x + str.__hash__('abc') % 1000",
    "method __hash__ of a tuple": "x + ('abc', 1).__hash__() % 1000",
    "set of hashes": "x + len({hash('a') % 4, hash('b') % 4, hash('c') % 4})",
    "order of hashes": "x + ord(sorted(['a', 'b', 'c', 'd', 'e', 'f', 'g'], key=hash)[0])",
    "hash of an object": "x + hash(PAIR) % 1000",
    "hash of a type": "x + hash(int) % 100003",
    "hash of a plain object": "x + hash(PLAIN) % 100003",
    "hash of NaN": "x + hash(NAN) % 100003",
    "hash of a member": "x + hash(Color.RED) % 1000",
    "method __hash__ of a member": "x + Color.RED.__hash__() % 1000",
    "address": "x + id(PLAIN) % 100003",
    "text of an address": "x + len(str(id(PLAIN))) + ord(str(id(PLAIN))[5])",
    "order of addresses": "x + sorted(OBJECTS, key=id)[0].number",
    "text of an object": "x + sum(map(ord, repr(PLAIN)))",
    "text of a function": "x + sum(map(ord, f'{helper}'))",
    "text of a method": "x + sum(map(ord, '%s' % PLAIN.method))",
    "order of a set": "x + ord(list(SET)[0])",
    "order of a frozenset": "x + ord(list(FROZEN)[0])",
    "order of a new set": "x + len(list({'a', 'b', 'c', 'd', 'e', 'f'}))",
    "order of a constant set": "x + sum(i * ord(c) for i, c in enumerate(FROZEN))",
    "element of a set": "x + (ord(set(SET).pop()) > 0)",
    "text of a set": "x + ord(str(SET)[2])",
    "joined set": "x + ord(''.join(SET)[0])",
    "format of the locale": "x + len(f'{1234567:n}')",
    "format method of the locale": "x + len('{:n}'.format(1234567))",
    "format() of the locale": "x + len(format(1234567, 'n'))",
    "processors": "x + os.cpu_count()",
    "process": "x + os.getpid() % 1000",
    "working directory": "x + len(os.getcwd())",
    "file": "x + len(open(__file__).read())",
    "file that exists": "x + os.path.exists('.')",
    "time": "x + (time.time() > 0)",
    "time zone": "x + len(time.strftime('%z'))",
    "threads": "x + torch.get_num_threads()",
    "thread": "x + (threading.get_ident() > 0)",
    "recursion limit": "x + sys.getrecursionlimit()",
    "seed": "x + torch.initial_seed() % 7",
    "dtype of autocast": "x + (torch.get_autocast_dtype('cpu') == torch.bfloat16)",
    "locale": "x + len(str(locale.getlocale()))",
    "warning of a function": "F.softmax(x)",
    "the same warning again": "F.softmax(x) + 1",
    "warning about sizes": "F.mse_loss(x, x[:1])",
    "warning of C++": "x[torch.tensor([1, 0, 1], dtype=torch.uint8)]",
}  # fmt: skip
_SAME = {  # which may be stored
    "hash of a number": "x + hash((1, 2.5, True)) % 1000",
    "platform": "x + len(sys.platform)",
    "format": "x + len(f'{1.5:.3f}')",
}
_ROWS = """
import enum, locale, os, sys, threading, time
import teletensor as torch
import teletensor.nn.functional as F
class Pair:
    def __init__(self):
        self.name = "pair"
    def __hash__(self):
        return hash(("Pair", self.name))
class Plain:
    number = 1
    def method(self):
        pass
class Color(enum.Enum):
    RED = "red"
PAIR, PLAIN, NAN = Pair(), Plain(), float("nan")
OBJECTS = [Plain() for _ in range(9)]
for i, each in enumerate(OBJECTS):
    each.number = i
SET = {"a", "b", "c", "d", "e", "f"}
FROZEN = frozenset(SET)
def helper(x):
    return x
rows = {}
"""


def _rows(folder: Path, expressions: dict[str, str], before: str = "", **more: str) -> dict[str, dict]:
    lines = [f"def row{i}(x):\n    return {text}\nrows[{name!r}] = row{i}\n" for i, (name, text) in enumerate(expressions.items())]
    (folder / "user.py").write_text(_ROWS + "".join(lines))
    main = folder / "main.py"
    main.write_text(before + _ROWS_MAIN.format(folder=str(folder)))
    environment = client_environment(TELETENSOR_ADDRESS=torch.connection().address, XDG_CACHE_HOME=str(folder / "cache"))
    environment.update({"TELETENSOR_STORED_CAPTURES": "1", **more})
    found = subprocess.run([sys.executable, str(main)], env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr[-3000:]
    return json.loads(found.stdout.splitlines()[-1])


def test_values_of_a_process_are_not_stored(tmp_path):
    for seed in ("1", "2"):
        found = _rows(tmp_path, _OF_A_PROCESS, PYTHONHASHSEED=seed)
        wrong = {name: captures for name, captures in found.items() if {"stored", "used"} & captures.keys()}
        assert found.keys() == _OF_A_PROCESS.keys() and not wrong
    assert found["warning of a function"] == found["the same warning again"] == {"refused: warnings": 1}
    assert found["hash of a text"] == {"refused: a hash that differs between processes": 1}


def test_values_that_all_processes_share_are_stored(tmp_path):
    first, second = (_rows(tmp_path, _SAME, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert set(map(str, first.values())) == {"{'stored': 1}"} and set(map(str, second.values())) == {"{'used': 1}"}


def test_relative_folders_are_not_used(tmp_path):
    for more in ({"XDG_CACHE_HOME": "cache"}, {"XDG_CACHE_HOME": "", "HOME": "home"}):
        assert _process(tmp_path, _INTS, before=f"import os\nos.chdir({str(tmp_path)!r})", **more)["captures"] == {"refused: no folder": 1}
    assert not (tmp_path / "cache").exists() and not (tmp_path / "home").exists()


def test_folders_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    for more in ({"XDG_CACHE_HOME": "/proc/none"}, {"XDG_CACHE_HOME": "", "HOME": "/proc"}, {"XDG_CACHE_HOME": str(tmp_path / "file")}):
        (key,) = _process(tmp_path, _INTS, **more)["captures"]
        assert key.startswith("refused: ") and "Error" in key


def test_full_disk(tmp_path):
    full = "import os, errno\ndef replace(a, b):\n    raise OSError(errno.ENOSPC, 'full')\nos.replace = replace"
    (key,) = _process(tmp_path, _INTS, before=full)["captures"]
    assert key.startswith("refused: OSError")
    assert os.listdir(tmp_path / "cache/teletensor/captures") == []


def test_number_of_files_is_limited(tmp_path):
    folder = tmp_path / "cache/teletensor/captures"
    folder.mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    for i in range(2100):
        name = folder / f"{i:032x}-{i:032x}.capture"
        name.write_text("")
        os.utime(name, (1e9 + i, 1e9 + i))
    (folder / "new.unfinished").write_text("")
    (folder / "old.unfinished").write_text("")
    os.utime(folder / "old.unfinished", (1e9, 1e9))
    assert _process(tmp_path, _INTS)["captures"] == {"stored": 1}
    names = {file.name for file in folder.iterdir()}
    assert len(names) == 2049 and "new.unfinished" in names
    assert f"{52:032x}-{52:032x}.capture" not in names and f"{53:032x}-{53:032x}.capture" in names
    assert _process(tmp_path, _INTS)["captures"] == {"used": 1}


def test_folder_is_tidied_without_the_lock(tmp_path):
    before = """
import json, sys
from teletensor._dynamo import _capture_store, eval_frame
def tidy(folder):
    with open({path!r}, "a") as file:
        file.write(f"{{eval_frame._lock._is_owned()}} ")
_capture_store.tidy = tidy
""".format(path=str(tmp_path / "tidied"))
    assert _process(tmp_path, _INTS, before=before)["captures"] == {"stored": 1}
    assert (tmp_path / "tidied").read_text() == "False "


def test_processes_that_store_at_once(tmp_path):
    assert _process(tmp_path, _FUNCTION, TELETENSOR_STORED_CAPTURES="0")["captures"] == {}
    environment = client_environment(TELETENSOR_ADDRESS=torch.connection().address, XDG_CACHE_HOME=str(tmp_path / "cache"))
    environment["TELETENSOR_STORED_CAPTURES"] = "1"
    command = [sys.executable, str(tmp_path / "main.py")]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for each in running:
        output, _ = each.communicate(timeout=300)
        assert each.returncode == 0
        assert json.loads(output.splitlines()[-1])["captures"] in ({"stored": 1}, {"used": 1})
    assert len(os.listdir(tmp_path / "cache/teletensor/captures")) == len(_files(tmp_path)) == 1
    assert _process(tmp_path, _FUNCTION)["captures"] == {"used": 1}


_THREADS = _INTS + """
from concurrent.futures import ThreadPoolExecutor
def call(f):
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: f(torch.ones(3), 3, 0.5), range(16)))
"""


def test_threads(tmp_path):
    assert _process(tmp_path, _THREADS)["captures"] == {"stored": 1}
    assert _process(tmp_path, _THREADS)["captures"] == {"used": 1}


@pytest.mark.slow
@pytest.mark.parametrize("file", ["test_typical_functions.py", "test_user_programs.py", "test_modules.py", "test_frames.py"])
def test_suite_passes_with_captures_of_another_run(file, tmp_path):
    path = Path(__file__).with_name(file)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(path)]
    for seed in ("1", "2"):
        environment = client_environment(TELETENSOR_STORED_CAPTURES="1", XDG_CACHE_HOME=str(tmp_path), PYTHONHASHSEED=seed)
        found = subprocess.run(command, env=environment, cwd=_ROOT, capture_output=True, text=True, timeout=900)
        assert found.returncode == 0, found.stdout[-3000:]
    assert list(tmp_path.glob("teletensor/captures/*.capture"))


def test_fork_after_use(tmp_path):
    # The child opens no session: gRPC's epoll set belongs to both processes, so that a connection of the child's breaks the parent's.
    source = _INTS + """
import os, sys, threading
from teletensor._dynamo import _background_stores
def call(f):
    result = f(torch.ones(3), 3, 0.5)
    child = os.fork()
    if not child:
        try:
            written = []
            _background_stores.add(lambda: written.append(threading.current_thread()))
            _background_stores.finish()
            assert len(written) == 1 and written[0] is not threading.main_thread()
            assert not _background_stores._stores._waiting  # the capture is the parent's to store
        except BaseException as e:
            print(repr(e), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return result
"""
    assert _process(tmp_path, source)["captures"] == {"stored": 1}
    assert _process(tmp_path, source)["captures"] == {"used": 1}


def test_start_of_a_process_that_forks(tmp_path):
    forks = """
import os
from teletensor._dynamo import _stored_captures
assert _stored_captures._start is None
child = os.fork()
if not child:
    os._exit(_stored_captures._start is None)
assert os.waitpid(child, 0)[1] == 0
"""
    assert _process(tmp_path, _INTS, before=forks)["captures"] == {"stored": 1}


def test_warnings_that_are_errors(tmp_path):
    source = "import teletensor as torch, warnings\nimport teletensor.nn.functional as F\ndef function(x):\n    return F.softmax(x)\n"
    assert _process(tmp_path, source)["captures"] == {"refused: warnings": 1}
    raises = """
warnings = user.warnings
def call(f):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            f(torch.ones(3, 4))
        except UserWarning as e:
            return str(e)
    return "no warning"
user.call = call
"""
    assert "used" not in _process(tmp_path, source, before=raises)["captures"]
    seen = """
warnings = user.warnings
def call(f):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        f(torch.ones(3, 4))
        torch.compiler.reset()
    return len(found) > 0
user.call = call
"""
    assert "used" not in _process(tmp_path, source, before=seen)["captures"]


# Programs that do not wait until a capture is stored.
_AT_ONCE = """
import os, sys
sys.path.insert(0, {folder!r})
import teletensor as torch
import user
{program}
"""


def _program(folder: Path, text: str) -> str:
    main = folder / "program.py"
    main.write_text(_AT_ONCE.format(folder=str(folder), program=text))
    environment = client_environment(TELETENSOR_ADDRESS=torch.connection().address, XDG_CACHE_HOME=str(folder / "cache"))
    found = subprocess.run(
        [sys.executable, str(main)], env={**environment, "TELETENSOR_STORED_CAPTURES": "1"}, capture_output=True, text=True, timeout=300
    )
    assert found.returncode == 0, found.stderr[-3000:]
    assert not found.stderr, found.stderr
    return found.stdout


_CALL = "torch.compile(user.function)(torch.ones(3), 3, 0.5)"
_USES = f"""
assert {_CALL}.tolist() == [0.125] * 3
print(dict(torch._dynamo.utils.counters["stored captures"]))
"""


@pytest.mark.parametrize(
    "program",
    [
        _CALL,
        f"{_CALL}\nsys.exit(0)",
        f"import threading\nthreading.Thread(target=lambda: {_CALL}).start()",
        f"import atexit\natexit.register(lambda: {_CALL})",
        f"import multiprocessing\nmultiprocessing.get_context('fork').Process(target=lambda: {_CALL}).start()",
    ],
    ids=["end", "exit", "thread", "atexit", "process"],
)
def test_program_that_ends_at_once_stores(program, tmp_path):
    (tmp_path / "user.py").write_text(_INTS)
    _program(tmp_path, program)
    assert len(os.listdir(tmp_path / "cache/teletensor/captures")) == len(_files(tmp_path)) == 1
    assert _program(tmp_path, _USES) == "{'used': 1}\n"


def test_child_that_is_forked_at_once_stores_its_own_captures(tmp_path):
    (tmp_path / "user.py").write_text(_INTS + "def other(x):\n    return x + 7\n")
    _program(tmp_path, """
x = torch.ones(3)
torch.compile(user.function)(x, 3, 0.5)
torch.disconnect()
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    from teletensor._dynamo import _background_stores
    assert not _background_stores._stores._waiting and _background_stores._stores._thread is None
    os._exit(0)
""")
    assert len(_files(tmp_path)) == 1
    assert _program(tmp_path, _USES) == "{'used': 1}\n"


# What changes between the first call and the end of its process, where the capture is stored.
_LATER = {
    "default argument": "user.scaled.__defaults__ = (3.0,)",
    "keyword default": "user.scaled.__kwdefaults__['plus'] = 5.0",
    "code": "def f(x):\n    return x * 7\nuser.helper.__code__ = f.__code__",
    "function": "user.helper = lambda x: x * 5",
    "static method": "user.Settings.apply = staticmethod(lambda x: x - 9)",
    "global": "user.WEIGHT = 4",
    "element": "user.TABLE['a'] = 2.5",
    "attribute": "user.settings.factor = 5",
    "mode": "torch.set_grad_enabled(False)",
    "default dtype": "torch.set_default_dtype(torch.float64)",
    "variable": "os.environ['TELETENSOR_EXACT_PROGRAMS'] = '1'",
    "folder": "os.environ['XDG_CACHE_HOME'] = '/none'",
    "module": "del sys.modules['user']",
}


@pytest.mark.parametrize("name", _LATER)
def test_capture_is_stored_as_it_was_at_the_call(name, tmp_path):
    (tmp_path / "user.py").write_text(_FUNCTION)
    call = """
def flat(found):
    return [found["y"].tolist(), [z.tolist() for z in found["z"]], found["pair"][0].item()]
def call():
    return flat(torch.compile(user.function)(torch.arange(12.0).reshape(3, 4)))
"""
    check = call + """
assert call() == flat(user.function(torch.arange(12.0).reshape(3, 4)))
print(*torch._dynamo.utils.counters["stored captures"], sep="\\n")
"""
    _program(tmp_path, f"{call}\ncall()\n{_LATER[name]}")
    if name not in ("folder", "module"):
        assert "used" not in _program(tmp_path, f"{_LATER[name]}\n{check}").splitlines()
    if _files(tmp_path) and name != "module":
        assert "used" in _program(tmp_path, check).splitlines()


def test_constant_of_many_digits(tmp_path):
    source = f"N = 0x{'f' * 5000}\ndef function(x):\n    n = 0x{'f' * 5000}\n    return x + n % 7\n"
    for _ in range(2):
        assert "used" not in _process(tmp_path, source)["captures"]


def test_definitions_of_other_programs_are_refused():
    def function(x, y):
        x.add_(y)
        return x * 2, y + 1

    tensors = torch.ones(3), torch.full((3,), 2.0)
    program = torch.compiler.trace(function, *tensors)._program
    assert program.can_be_stored and list(program.order) == [1, 0] and program.written == 1
    definition = program.definition

    def restored(definition=definition, order=(1, 0), written=1, outputs=(0, 1), inputs=tensors):
        return _C.Program.restored(definition, list(order), written, list(outputs), False, list(inputs))

    first, second = restored().run(tensors)
    assert first.tolist() == [6.0] * 3 and second.tolist() == [3.0] * 3 and tensors[0].tolist() == [3.0] * 3
    invalid = [
        {"definition": b""}, {"definition": definition[:-1]}, {"definition": b"\xff" * 64}, {"order": (0, 0)}, {"order": (0,)},
        {"order": (1, 2)}, {"order": (1, 0, 1)}, {"written": 3}, {"outputs": (0, 2)}, {"inputs": tensors[:1]},
        {"inputs": (torch.ones(3), torch.ones(5))}, {"inputs": ()},
    ]  # fmt: skip
    for change in invalid:
        with pytest.raises((ValueError, NotImplementedError, RuntimeError)):
            restored(**change)
    for i in range(len(definition)):
        for bit in (1, 16, 128):
            damaged = definition[:i] + bytes([definition[i] ^ bit]) + definition[i + 1 :]
            try:
                restored(definition=damaged)
            except (ValueError, NotImplementedError, RuntimeError, IndexError, TypeError):
                pass
    with pytest.raises(RuntimeError):  # the engine finds a write to what must not be written
        found = restored(order=(1, 0), written=0).run(tensors)
        found[0].tolist()


def test_texts_of_classes_that_were_edited(tmp_path):
    source = "import teletensor as torch\nclass K:\n    'doc'\ndef function(x):\n    return x * len(K.__doc__)\n"
    assert _process(tmp_path, source)["captures"] == {"stored": 1}
    assert _process(tmp_path, source)["captures"] == {"used": 1}
    assert "used" not in _process(tmp_path, source.replace("'doc'", "'docdoc'"))["captures"]
    named = "import teletensor as torch\nclass K: pass\nK.__name__ = 'Kind'\ndef function(x):\n    return x * len(K.__name__)\n"
    for source in (named, named.replace("'Kind'", "'Kinds'")):  # guards on names are not stored
        assert "used" not in _process(tmp_path, source)["captures"]
