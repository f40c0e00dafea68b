"""Packages of graphs and quantization, whose modules several threads import at the same moment."""

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
FOLDERS = ["fx", "ao/quantization", "torchao/quantization/pt2e"]


def modules() -> list[str]:
    root = Path(teletensor.__file__).parent
    files = [file.relative_to(root.parent) for folder in FOLDERS for file in (root / folder).rglob("*.py")]
    return sorted({".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files})


@pytest.mark.parametrize("seed", range(6))
def test_modules_are_imported_by_several_threads(seed):
    names = random.Random(seed).sample(modules(), 8)
    made = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, timeout=300)
    assert (made.returncode, made.stdout) == (0, ""), made.stderr


@pytest.mark.parametrize("package", ["fx", "ao.quantization.quantizer", "ao.quantization.pt2e", "ao.quantization.backend_config"])
def test_a_package_and_its_modules(package):
    inner = [name for name in modules() if name.startswith(f"teletensor.{package}.")]
    names = [f"teletensor.{package}", *inner[:7]]
    made = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, timeout=300)
    assert (made.returncode, made.stdout) == (0, ""), made.stderr
