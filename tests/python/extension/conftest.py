"""An engine with the operators of operators.cc, which are compiled once per run, and this process's session with it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import IN_PROCESS, ROOT, Daemon

HERE = Path(__file__).parent


def compile_library(source: Path, target: Path, *options: str) -> Path:
    """Builds a shared object with the header of this tree."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    command = [
        *compiler.split(),
        "-std=c++17",
        "-O1",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-I",
        str(ROOT / "engine/extension"),
    ]
    target.parent.mkdir(mode=0o755, exist_ok=True)
    subprocess.run([*command, *options, str(source), "-o", str(target)], check=True)
    target.chmod(0o755)
    return target


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    """The folder with check.so."""
    return compile_library(
        HERE / "operators.cc", tmp_path_factory.mktemp("libraries") / "operators" / "check.so"
    ).parent


@pytest.fixture(scope="session")
def operators_engine(library, tmp_path_factory):
    if IN_PROCESS:
        pytest.skip("requires an engine in another process")
    engine = Daemon(tmp_path_factory.mktemp("operators"), "--lease", "5", "--operators", str(library))
    yield engine
    assert engine.stop() == 0


@pytest.fixture
def torch(_engine, operators_engine):
    """The package, with a session of the engine that has the operators; afterwards with the run's engine."""
    from teletensor import _C, _connection

    before = _connection._current
    own = _connection._open(operators_engine.address, "", 0, "auto", False, {})
    _connection._current = own
    _engine.manual_seed(0)
    yield _engine
    _connection._current = before
    _C.set_session(before)
    own.close()
