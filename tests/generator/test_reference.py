"""The operator reference lists the backends of each operator, and is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codegen import reference
from engine.codegen.declaration import load

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
    """A source tree of two backends, one of which has the kernel of `extremes`."""
    for backend, source in (("cpu", "void find_extremes(const Tensor& input) {}\n"), ("other", "")):
        (tmp_path / "kernels" / backend).mkdir(parents=True, exist_ok=True)
        (tmp_path / "kernels" / backend / "CMakeLists.txt").touch()
        (tmp_path / "kernels" / backend / "extremes.cc").write_text(source)
    (tmp_path / "kernels/common").mkdir(exist_ok=True)
    for file in reference.SESSION_SOURCES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path


def test_missing_kernels_of_a_backend_are_listed(tree):
    probes = load(Path(__file__).parent / "ops")
    everything = {op.name for op in probes}
    assert reference.backends(probes, tree / "kernels") == {"cpu": everything, "other": everything - {"extremes"}}


def test_common_operators_belong_to_every_backend(tree):
    probes = load(Path(__file__).parent / "ops")
    (tree / "kernels/common/operators").mkdir(exist_ok=True)
    (tree / "kernels/common/operators/extremes.cc").write_text("void find_extremes(const Tensor& input) {}\n")
    assert reference.backends(probes, tree / "kernels")["other"] == {op.name for op in probes}


def test_session_operators_are_not_missing_kernels(tree):
    probes = load(Path(__file__).parent / "ops")
    (tree / "server/daemon/backends.cc").write_text("dispatcher.set(op_id::kExtremes, Key::kCPU, &extremes);")
    assert reference.backends(probes, tree / "kernels")["other"] == {op.name for op in probes}


def test_every_operator_has_a_section():
    operators = load(ROOT / "engine/ops")
    page = reference.emit(operators, reference.backends(operators, ROOT / "kernels"))
    sections = [line.removeprefix("### ") for line in page.splitlines() if line.startswith("### ")]
    assert sorted(sections) == sorted(op.name for op in operators)
