"""`make test` installs optional packages; where that fails, it goes on without them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT


def install(folder: Path, **programs: str) -> subprocess.CompletedProcess:
    """Runs deploy/install_optional.sh with shell programs of these names, first in the PATH."""
    for name, code in programs.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{code}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:/usr/bin:/bin", "PYTHON": str(folder / "python")}
    return subprocess.run([ROOT / "deploy/install_optional.sh"], env=environment, text=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("apt", ["exit 100", "case $* in *update*) exit 0;; esac; exit 100"])
def test_failures_only_skip(tmp_path, apt):
    """No mirror, or one without the packages; no index."""
    done = install(tmp_path, dpkg_query="exit 1", sudo="shift; \"$@\"", apt_get=apt, python="exit 1")
    assert done.returncode == 0
    assert "packages: installing ruby ruby-grpc" in done.stdout
    assert "without Ruby" in done.stdout and "without Jupyter" in done.stdout


def test_sudo_does_not_ask(tmp_path):
    """A user without rights: `sudo -n` fails instead of asking."""
    sudo = '[ "$1" = -n ] || { echo "asked for a password"; exit 0; }; exit 1'
    done = install(tmp_path, dpkg_query="exit 1", sudo=sudo, apt_get='[ "$(id -u)" = 0 ] && exit 1', python="exit 0")
    assert done.returncode == 0 and "without Ruby" in done.stdout and "asked" not in done.stdout


def test_nothing_to_install(tmp_path):
    """Neither apt nor pip runs."""
    used = f"echo used >>{tmp_path}/used; exit 1"
    python = f'[ "$1" = -c ] && exit 0; {used}'
    done = install(tmp_path, dpkg_query="echo installed", sudo=used, apt_get=used, python=python)
    assert done.returncode == 0 and "without" not in done.stdout and not (tmp_path / "used").exists()
