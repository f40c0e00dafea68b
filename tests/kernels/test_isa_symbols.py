"""Objects compiled for one instruction set must not define symbols that the linker merges.

An inline function in such an object is a weak symbol: the first copy linked is used everywhere, and an AVX-512 copy
would crash the daemon on a machine without AVX-512.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("TELETENSOR_BUILD", Path(__file__).resolve().parents[2] / "build"))
# Emitted by the compiler: data, identical in every copy.
HARMLESS = ("DW.ref.__gxx_personality_v0",)


def weak_symbols(text: str) -> list[str]:
    """The mergeable (weak) definitions in the output of `nm -C`."""
    rows = [line.split(maxsplit=2) for line in text.splitlines()]
    return [row[2] for row in rows if len(row) == 3 and row[1] in "WVu" and not row[2].startswith(HARMLESS)]


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_objects_define_no_mergeable_symbols(isa):
    commands = "\n".join(entry["command"] for entry in json.loads((BUILD / "compile_commands.json").read_text()))
    objects = [BUILD / path for path in re.findall(rf"-o (\S*tt_cpu_{isa}\.dir/\S+)", commands)]
    if not objects or not all(path.exists() for path in objects):
        pytest.skip("not an x86-64 build, or the kernels have not been built")
    text = subprocess.run(["nm", "-C", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    assert [s for s in weak_symbols(text) if f"tt::cpu::{isa}::" not in s] == []


def test_planted_leak_is_found():
    assert weak_symbols("00 W std::vector<int>::push_back(int&&)\n10 t local\n") == ["std::vector<int>::push_back(int&&)"]
