"""The client finds the engine of the wheel teletensor-engine in any folder of sys.path."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from teletensor import _engine_package
from tests.conftest import BUILD, IN_PROCESS, ROOT, client_environment


@pytest.fixture
def installed(tmp_path) -> Path:
    """A folder with the package, whose program notes that it was started, and then is the build's engine."""
    package = tmp_path / "site/teletensor_engine"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('must not be imported')\n")
    program = package / "bin/teletensord"
    program.write_text(f'#!/bin/sh\ntouch "{tmp_path}/started"\nexec "{BUILD}/bin/teletensord" "$@"\n')
    program.chmod(0o755)
    return tmp_path / "site"


def binary(monkeypatch, *folders: Path) -> str:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, *map(str, folders)])
        importlib.invalidate_caches()
        return _engine_package.binary()


def test_path(monkeypatch, installed, tmp_path):
    program = installed / "teletensor_engine/bin/teletensord"
    assert binary(monkeypatch) == "" and binary(monkeypatch, tmp_path) == ""
    assert binary(monkeypatch, installed) == str(program)
    program.chmod(0o644)
    assert binary(monkeypatch, installed) == ""


def test_module_without_a_folder(monkeypatch, tmp_path):
    (tmp_path / "teletensor_engine.py").write_text("")
    assert binary(monkeypatch, tmp_path) == ""


@pytest.mark.skipif(IN_PROCESS, reason="starts an engine")
def test_client_starts_it(installed, tmp_path):
    """Before the engine of the build tree and that on the PATH, but after TELETENSOR_DAEMON."""
    environment = client_environment(PYTHONPATH=f"{BUILD / 'python'}{os.pathsep}{installed}")
    environment.pop("TELETENSOR_ADDRESS", None)
    command = [sys.executable, "-c", "import teletensor; print(teletensor.ones(2).sum().item())"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "2.0\n" and not (tmp_path / "started").exists()
    del environment["TELETENSOR_DAEMON"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "2.0\n" and (tmp_path / "started").exists(), done.stderr


def test_command_of_the_package(installed, tmp_path):
    """`teletensord` passes its arguments on."""
    package = installed / "teletensor_engine"
    (package / "__init__.py").write_text((ROOT / "deploy/engine_wheel/teletensor_engine/__init__.py").read_text())
    (package / "bin/teletensord").write_text('#!/bin/sh\necho "$@"\n')
    code = "import sys, teletensor_engine; sys.argv = ['teletensord', '--listen', 'unix:a b']; teletensor_engine.main()"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(installed)}, capture_output=True, text=True)
    assert done.stdout == "--listen unix:a b\n", done.stderr
