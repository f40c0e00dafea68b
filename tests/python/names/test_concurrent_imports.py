"""Modules that several threads import at the same moment, in an interpreter that has imported none of them."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import teletensor

PROGRAM = """
import sys, threading, teletensor
names, errors = sys.argv[1:], []
barrier = threading.Barrier(len(names))

def load(name):
    barrier.wait()
    try:
        __import__(name)
    except BaseException as e:
        errors.append(f"{name}: {type(e).__name__}: {e}")

threads = [threading.Thread(target=load, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("\\n".join(errors), end="")
"""
# Eight threads import all modules, each in an order of its own. Ends after WATCHDOG seconds, with the stacks of its threads.
ALL = """
import faulthandler, random, sys, threading, teletensor
watchdog, seed, names, errors = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:], []
faulthandler.dump_traceback_later(watchdog, exit=True)
barrier = threading.Barrier(8)

def load(order):
    barrier.wait()
    for name in order:
        try:
            __import__(name)
        except BaseException as e:
            errors.append(f"{name}: {type(e).__name__}: {e}")

draw = random.Random(seed)
threads = [threading.Thread(target=load, args=(draw.sample(names, len(names)),)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("\\n".join(sorted(set(errors))), end="")
"""
WATCHDOG = 120

# The kinds of a package's names: before the import of its modules, after it, or both.
KINDS = """
import importlib, json, sys
order, package, *modules = sys.argv[1:]
names = sorted(name for name in dir(importlib.import_module(package)) if not name.startswith("_"))

def kinds(names):
    found = importlib.import_module(package)
    return {name: type(getattr(found, name)).__name__ for name in names if hasattr(found, name)}

if "names, modules" in order:
    kinds(reversed(names) if "reversed" in order else names)
for module in reversed(modules) if order == "modules reversed" else modules:
    importlib.import_module(module)
print(json.dumps(kinds(names)))
"""
PACKAGES = (
    "ao.pruning", "ao.quantization", "ao.quantization.backend_config", "ao.quantization.pt2e", "ao.quantization.quantizer", "autograd",
    "compiler", "distributed", "distributed.checkpoint", "distributed.elastic.events", "distributed.rpc", "distributed.tensor",
    "distributions", "export", "fx", "nn", "nn.modules", "nn.parallel", "nn.utils", "onnx.importer.ops", "optim",
    "profiler", "torchao.quantization", "utils.data",
)  # fmt: skip


def modules() -> list[str]:
    """The public modules, and those packages with underscores that programs import."""
    root = Path(teletensor.__file__).resolve().parent  # a build has links to the sources
    paths = [file.relative_to(root).with_suffix("").parts for file in root.rglob("*.py")]
    names = {".".join(path).removesuffix("__init__").rstrip(".") for path in paths}
    public = {name for name in names if name and not any(part.startswith("_") for part in name.split("."))} | {"_dynamo", "_inductor"}
    return sorted(f"teletensor.{name}" for name in public - {"as_torch", "cli"} if _is_installed(name))


def _is_installed(name: str) -> bool:
    """Whether the library that a module needs is installed."""
    return not name.startswith("utils.tensorboard") or importlib.util.find_spec("tensorboard") is not None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_modules_are_imported_by_several_threads(seed):
    names = random.Random(seed).sample(modules(), 8)
    made = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, timeout=300)
    assert (made.returncode, made.stdout) == (0, ""), made.stderr


@pytest.mark.parametrize("seed", range(30))
def test_all_modules_are_imported_by_eight_threads(seed):
    command = [sys.executable, "-c", ALL, str(WATCHDOG), str(seed), *modules()]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (made.returncode, made.stdout) == (0, ""), made.stderr


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("package", ["distributed", "multiprocessing", "utils.data", "utils.tensorboard"])
def test_modules_of_a_package_are_imported_by_eight_threads(package, seed):
    names = [name for name in modules() if f"{name}.".startswith(f"teletensor.{package}.")]
    if not names:
        pytest.skip("the library that the package needs is not installed")
    command = [sys.executable, "-c", ALL, str(WATCHDOG), str(seed), *names]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (made.returncode, made.stdout) == (0, ""), made.stderr


@pytest.mark.parametrize(
    "package",
    [
        "compiler", "fx", "ao.quantization.quantizer", "ao.quantization.pt2e", "ao.quantization.backend_config", "distributions",
        "export", "nn", "nn.modules", "nn.utils", "onnx.importer.ops", "optim", "torchao.quantization", "utils.data",
    ],
)  # fmt: skip
def test_a_package_and_its_modules(package):
    inner = [name for name in modules() if name.startswith(f"teletensor.{package}.")]
    names = [f"teletensor.{package}", *inner[:7]]
    made = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, timeout=300)
    assert (made.returncode, made.stdout) == (0, ""), made.stderr


def test_the_compiler_and_its_packages():
    packages = ("_dynamo", "compiler", "export", "torchao.quantization", "jit", "onnx", "fx", "_dynamo.config")
    names = [f"teletensor.{name}" for name in packages]
    made = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, timeout=300)
    assert (made.returncode, made.stdout) == (0, ""), made.stderr


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_the_same_in_each_order_of_imports(package):
    """The import of a module does not replace a function that has its name."""
    inner = [name for name in modules() if name.startswith(f"teletensor.{package}.")]
    results = []
    for order in ("names, modules", "reversed names, modules", "modules, names", "modules reversed"):
        command = [sys.executable, "-c", KINDS, order, f"teletensor.{package}", *inner]
        made = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert made.returncode == 0, made.stderr
        results.append(json.loads(made.stdout))
    assert len(results[0]) > 1 and all(result == results[0] for result in results)
