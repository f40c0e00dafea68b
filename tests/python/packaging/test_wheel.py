"""A wheel is self-contained: it includes the engine and all libraries except glibc."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build"))
GLIBC = re.compile(r"(ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|nss_.*))\.so.*")
# Prints its results, the engine it started, and the libraries mapped by both processes.
PROGRAM = """
import json, os, pathlib
import teletensor as torch

def mapped(pid):
    rows = (line.split(None, 5) for line in open(f"/proc/{pid}/maps"))
    return sorted({row[5].strip() for row in rows if len(row) == 6 and ".so" in row[5]})

x = torch.arange(6.0).reshape(2, 3).requires_grad_()
(x @ x.T).sum().backward()
children = pathlib.Path("/proc/self/task").glob("*/children")
engine, = (int(pid) for file in children for pid in file.read_text().split())
print(json.dumps({
    "gradient": x.grad.tolist(), "engine": os.readlink(f"/proc/{engine}/exe"),
    "client_maps": mapped("self"), "engine_maps": mapped(engine),
}))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A copy of the folder `teletensor` as in a wheel, outside the build."""
    folder = tmp_path_factory.mktemp("site") / "teletensor"
    shutil.copytree(ROOT / "python/teletensor", folder, ignore=shutil.ignore_patterns("__pycache__"))
    command = ["cmake", "--install", str(BUILD), "--component", "wheel", "--prefix", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def report(package, tmp_path_factory) -> dict:
    """The output of PROGRAM, run with the copied package and NumPy only."""
    paths = f"{package.parent}:{Path(numpy.__file__).resolve().parents[1]}"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={"PYTHONPATH": paths, "PATH": "/usr/bin:/bin"}, text=True, check=True,
        capture_output=True, cwd=tmp_path_factory.mktemp("elsewhere"),
    )  # fmt: skip
    return json.loads(ended.stdout)


@pytest.mark.slow
def test_wheel_computes_with_its_own_engine(package, report):
    assert report["gradient"] == [[6.0, 10.0, 14.0], [6.0, 10.0, 14.0]]
    assert report["engine"] == str(package / "bin/teletensord")


@pytest.mark.slow
def test_engine_loads_bundled_libraries(package, report):
    foreign = [Path(path) for path in report["engine_maps"] if not path.startswith(str(package))]
    assert [path for path in foreign if not GLIBC.fullmatch(path.name)] == []


@pytest.mark.slow
def test_module_loads_bundled_libraries(package, report):
    names = {path.name for path in (package / "lib").glob("*.so*")}
    assert len(names) > 10
    inside = {Path(path).name for path in report["client_maps"] if path.startswith(str(package / "lib"))}
    assert {"libgrpc++.so.1.51", "libprotobuf.so.32", "libstdc++.so.6"} <= inside
    assert [p for p in report["client_maps"] if Path(p).name in names and not p.startswith(str(package / "lib"))] == []


@pytest.mark.slow
def test_wheel_contains_library_licences(package):
    licences = {path.name for path in (package / "lib/licenses").iterdir()}
    assert {"libgrpc++1.51", "libprotobuf32", "libdnnl2", "libssl3", "libstdc++6"} <= licences


@pytest.mark.slow
def test_wheel_contains_its_bill_of_materials(package):
    """Every copied library is listed, with its hash, in a package; so is what is compiled in, whose licences are copied."""
    bill = json.loads((package / "lib/sbom.cdx.json").read_text())
    listed = {
        file["hashes"][0]["content"] for component in bill["components"] for file in component.get("components", ())
    }
    libraries = list((package / "lib").glob("*.so*"))
    assert [path.name for path in libraries if hashlib.sha256(path.read_bytes()).hexdigest() not in listed] == []
    compiled = {
        component["name"]
        for component in bill["components"]
        if {"name": "teletensor:use", "value": "compiled"} in component["properties"]
    }
    assert {"libcli11-dev", "nlohmann-json3-dev", "libspdlog-dev"} <= compiled
    assert {"libcli11-dev", "nlohmann-json3-dev"} <= {path.name for path in (package / "lib/licenses").iterdir()}
    assert all(component["version"] and component["licenses"] for component in bill["components"])
