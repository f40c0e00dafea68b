"""Checks, file by file, that includes point down only, between floors and within each floor."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("base", "engine", "kernels", "autograd", "distributed", "proto", "formats", "server", "client", "python")
# Subfolders of both backends' kernels.
SUBJECTS = (
    "pointwise", "shape", "reduce", "index", "sort", "random", "norm", "linalg", "fft", "nn", "quantized", "sparse", "nested",
)  # fmt: skip


def subjects(backend: str) -> tuple[str, ...]:
    """The folders of a backend's kernels, lowest first."""
    return tuple(f"kernels/{backend}/{subject}" for subject in SUBJECTS)


# The folders of kernels/common, lowest first: shared folders, the same subjects as in the backends, operators.
COMMON = tuple(f"kernels/common/{subject}" for subject in ("math", "iteration", *SUBJECTS, "operators"))

# Stacks of folders, lowest first. A file may include files of its own folder and of the folders before it in its stack.
STACKS = (
    ("base",),
    (
        "engine/symbolic",
        "engine/schema",
        "engine/schema/rules",
        "engine/device",
        "engine/memory",
        "engine/tensor",
        "engine/dispatch",
        "engine/program",
        "engine/program/passes",
        "engine/session",
        "engine/composites",
        "engine/extension",
    ),
    ("engine/schema/rules", "engine/schema"),  # an operator names its rules
    (
        *COMMON,
        "kernels/common",
        "kernels/cpu/compiled",
        "kernels/cpu/loops",
        "kernels/cpu/iteration",
        "kernels/cpu/blas",
        "kernels/cpu/lapack",
        *subjects("cpu"),
        "kernels/cpu",
    ),
    (*COMMON, "kernels/common", "kernels/cpu/iteration", "kernels/cpu/isa"),
    (
        *COMMON,
        "kernels/common",
        "kernels/cuda/runtime",
        "kernels/cuda/launch",
        "kernels/cuda/libraries",
        "kernels/cuda/iteration",
        *subjects("cuda"),
        "kernels/cuda",
    ),
    ("kernels/plugin",),
    ("autograd/formulas", "autograd/nodes", "autograd"),
    (
        "distributed/peers",
        "distributed/store",
        "distributed/group",
        "distributed/shm",
        "distributed/gloo/compat/gloo/common",  # a header that the packaged Gloo lacks
        "distributed/gloo",
        "distributed/nccl",
        "distributed/reducer",
        "distributed/pull",
        "distributed",
    ),
    ("proto",),
    ("formats",),
    (
        "server",
        "server/trace",
        "server/transfer",
        "server/checkpoint",
        "server/session",
        "server/rpc",
        "server/workers",
        "server/serving/scheduler",
        "server/serving",
        "server/serving/generation",
        "server/admin",
        "server/http",
        "server/daemon",
    ),
    (
        "client/connection",
        "client/transport",
        "client/link",
        "client/session",
        "client/autograd",
        "client",
        "client/api",
        "client/serialize",
        "client/nn",
        "client/optim",
        "client/data",
        "client/include/teletensor",
    ),
    ("python", "python/bindings/tensor", "python/bindings/autograd", "python/bindings"),
)
# The other floors whose folders a floor's folders may include. A folder's own entry takes precedence over its floor's.
BELOW = {
    "base": set(),
    "engine": {"base"},
    "kernels": {"base", "engine"},
    "autograd": {"base", "engine"},
    "distributed": {"base", "engine", "proto"},
    "distributed/store": {"base", "proto"},  # clients link it
    "proto": {"base"},
    "formats": {"base", "engine/schema", "proto"},
    "server": {"base", "proto", "autograd", "kernels", "distributed", "engine", "formats"},
    "client": {"base", "proto", "engine/schema", "engine/symbolic", "distributed/store", "formats"},
    "python": {"base", "client", "proto", "engine/schema", "engine/symbolic", "distributed/store"},
}
FOLDERS = {folder for stack in STACKS for folder in stack}


def allowed_for(folder: str) -> set[str]:
    """The folders whose files may be included by files in `folder`."""
    floors = BELOW[folder if folder in BELOW else folder.split("/")[0]]
    below = {f for f in FOLDERS for floor in floors if f == floor or f.startswith(floor + "/")}
    return below.union(*(stack[: stack.index(folder) + 1] for stack in STACKS if folder in stack))


# Generated headers: constants, the kernels' declarations, and the build's instruction sets.
GENERATED = {
    "engine/schema/op_ids.h": "engine/schema",
    "kernels/cpu/iteration/instruction_sets.h": "kernels/common",
    "kernels/cpu/kernels.h": "kernels/common",
    "kernels/cuda/kernels.h": "kernels/common",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def folder_of(path: str) -> str | None:
    """The longest folder of FOLDERS that contains the path; None if there is none."""
    holding = [folder for folder in FOLDERS if path.startswith(folder + "/")]
    return max(holding, key=len, default=None)


def violations(root: Path = ROOT) -> list[str]:
    """Returns a line for each include that points up or sideways, and for each file that belongs to no stack."""
    found = []
    for floor in FLOORS:
        for path in sorted((root / floor).rglob("*")):
            if path.suffix not in (".h", ".cc", ".cu", ".cuh"):
                continue
            name = str(path.relative_to(root))
            if path.parent.relative_to(root).as_posix() not in FOLDERS:
                found.append(f"{name}: in a folder that belongs to no stack")
                continue
            allowed = allowed_for(folder_of(name))
            for include in INCLUDE.findall(path.read_text()):
                target = GENERATED.get(include) or folder_of(include)
                if target is not None and target not in allowed:
                    found.append(f"{name}: {include}")
    return found


def test_includes_point_down():
    assert violations() == []


@pytest.mark.parametrize(
    ("file", "include"),
    [
        ("engine/schema/op.h", "engine/program/executor.h"),  # up, within the engine
        ("engine/memory/allocator.h", "engine/session/context.h"),  # nothing below session/ knows Context
        ("server/transfer/transfer.h", "server/rpc/call_admission.h"),  # up, within the server
        ("autograd/nodes/tape.h", "kernels/common/reduce/reduce_plan.h"),  # sideways
        ("base/mutex.h", "engine/schema/error.h"),  # up, from the lowest floor
        ("client/link/link.h", "engine/program/executor.h"),  # the client links rules only
        ("client/link/link.h", "client/session/session.h"),  # up, within the client
        ("kernels/cpu/iteration/space.h", "kernels/cpu/blas/gemm.h"),  # up, within the kernels
        ("server/log.h", "server/session/session.h"),  # between the files of one floor
        ("distributed/store/store.h", "engine/schema/error.h"),  # clients link the store without the engine
        ("distributed/store/store.h", "distributed/group/collective.h"),  # up, within distributed
        ("client/session/session.h", "distributed/group/collective.h"),  # the client links the store only
    ],
)
def test_a_planted_violation_is_found(tmp_path, file, include):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(f'#include "{include}"\n')
    assert violations(tmp_path) == [f"{file}: {include}"]


def test_unlisted_folder_is_found(tmp_path):
    (tmp_path / "server/misc").mkdir(parents=True)
    (tmp_path / "server/misc/a.cc").write_text("")
    assert violations(tmp_path) == ["server/misc/a.cc: in a folder that belongs to no stack"]


def test_every_floor_has_a_readme():
    stacked = (f for f in FOLDERS if f.startswith(("server", "engine/")) and f.count("/") == 1)
    folders = (*FLOORS, *stacked, "deploy", "tests", "docs", "examples", "benchmarks")
    missing = [f for f in folders if not (ROOT / f / "README.md").exists()]
    assert missing == []


if __name__ == "__main__":
    wrong = violations()
    print("\n".join(wrong) or "includes point down")
    sys.exit(bool(wrong))
