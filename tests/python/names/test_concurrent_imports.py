"""Modules that several threads import at the same moment, in an interpreter that has imported none of them."""

from __future__ import annotations

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
# Packages that import their modules: torch.distributed and its parts, and classes that register their names.
EAGER = ("distributed", "utils.data.datapipes", "utils.tensorboard")


def modules() -> list[str]:
    """The public modules, and those packages with underscores that programs import."""
    root = Path(teletensor.__file__).parent
    paths = [file.relative_to(root).with_suffix("").parts for file in root.rglob("*.py")]
    names = {".".join(path).removesuffix("__init__").rstrip(".") for path in paths}
    public = {name for name in names if name and not any(part.startswith("_") for part in name.split("."))} | {"_dynamo", "_inductor"}
    return sorted(f"teletensor.{name}" for name in public - {"as_torch", "cli"} if not f"{name}.".startswith(tuple(f"{e}." for e in EAGER)))


@pytest.mark.parametrize("seed", range(6))
def test_modules_are_imported_by_several_threads(seed):
    names = random.Random(seed).sample(modules(), 8)
    made = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, timeout=300)
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
