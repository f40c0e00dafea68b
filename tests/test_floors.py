"""Includes point down only: the house of the design, checked file by file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("engine", "kernels", "autograd", "distributed", "proto", "server", "client", "python")
# folder -> the folders that its files may include, besides itself
MAY_INCLUDE = {
    "engine/rules": {"engine/rules"},
    "engine": {"engine"},
    "kernels/common": {"kernels/common", "engine"},
    "kernels/cpu": {"kernels/cpu", "kernels/common", "engine"},
    "kernels/cpu/linear": {"kernels/cpu/linear", "kernels/cpu/walks", "kernels/cpu/loops", "kernels/common", "engine"},
    "kernels/cpu/walks": {"kernels/cpu/walks", "kernels/cpu/loops", "kernels/common", "engine"},
    "kernels/cpu/loops": {"kernels/cpu/loops", "kernels/common", "engine"},
    "kernels/cpu/isa": {"kernels/cpu/isa", "kernels/cpu/walks", "kernels/common", "engine"},
    "kernels/cuda": {"kernels/cuda", "kernels/common", "engine"},
    "kernels/cuda/launch": {"kernels/cuda/launch", "kernels/cuda/runtime", "kernels/common", "engine"},
    "kernels/cuda/runtime": {"kernels/cuda/runtime", "kernels/common", "engine"},
    "kernels/cuda/libraries": {"kernels/cuda/libraries", "kernels/cuda/runtime", "kernels/common", "engine"},
    "autograd": {"autograd", "engine"},
    "distributed": {"distributed", "engine"},
    "proto": {"proto"},
    "server": {"server", "proto", "autograd", "kernels", "distributed", "engine"},
    "client": {"client", "proto", "engine/rules"},
    "python": {"python", "client", "proto", "engine/rules"},
}
# Generated headers that a lower floor's declarations yield: nothing but constants.
GENERATED = {"engine/op_ids.h": "engine/rules"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def floor_of(path: str) -> str | None:
    """The most specific folder of MAY_INCLUDE that holds the path."""
    holding = [floor for floor in MAY_INCLUDE if path.startswith(floor + "/")]
    return max(holding, key=len, default=None)


def violations() -> list[str]:
    """`file: include` of every include that points up or sideways."""
    found = []
    for folder in FLOORS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cc", ".cu", ".cuh"):
                continue
            name = str(path.relative_to(ROOT))
            allowed = MAY_INCLUDE[floor_of(name)]
            for include in INCLUDE.findall(path.read_text()):
                target = GENERATED.get(include) or floor_of(include)
                if target is not None and not any(target == a or target.startswith(a + "/") for a in allowed):
                    found.append(f"{name}: {include}")
    return found


def test_includes_point_down():
    assert violations() == []


def test_a_violation_would_be_found():
    assert floor_of("engine/rules/op.h") == "engine/rules"
    assert floor_of("engine/tensor.h") == "engine"
    assert "engine" not in MAY_INCLUDE["client"]


def test_every_floor_says_what_it_is():
    folders = (*FLOORS, "deploy", "tests", "docs", "examples", "benchmarks")
    missing = [f for f in folders if not (ROOT / f / "README.md").exists()]
    assert missing == []


if __name__ == "__main__":
    wrong = violations()
    print("\n".join(wrong) or "includes point down")
    sys.exit(bool(wrong))
