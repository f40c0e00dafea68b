"""The bill of materials of the daemon. A wheel's is checked in test_wheel.py, and its format by `make deb-test`."""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from tests.conftest import BUILD, IN_PROCESS, ROOT

ENGINE = BUILD / "bin/teletensord"
COMPILED = {
    "type": "library",
    "name": "libx-dev",
    "version": "1",
    "purl": "pkg:deb/debian/libx-dev@1",
    "properties": [],
}
pytestmark = [
    pytest.mark.skipif(IN_PROCESS, reason="describes the daemon"),
    pytest.mark.skipif(not shutil.which("dpkg-query"), reason="packages are known on Debian only"),
]


def bill(*arguments, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, ROOT / "deploy/sbom.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


def test_bill_of_the_daemon(tmp_path):
    """Lists the packages of the libraries that it loads, with the files' hashes; the same each time."""
    compiled = tmp_path / "compiled.json"
    compiled.write_text(json.dumps({"version": "7", "components": [COMPILED]}))
    texts = []
    for name in ("a", "b"):
        done = bill("--compiled", compiled, "--out", tmp_path / name, ENGINE)
        assert done.returncode == 0, done.stderr
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
    document = json.loads(texts[0])
    assert document["metadata"]["component"]["version"] == "7"
    components = {component["name"]: component for component in document["components"]}
    uses = {
        name: [p["value"] for p in c["properties"] if p["name"] == "teletensor:use"] for name, c in components.items()
    }
    assert (
        uses["libx-dev"] == ["compiled"] and uses["libssl3"] == ["loaded"] and uses["libopenblas0-openmp"] == ["loaded"]
    )
    (file,) = (file for file in components["libzstd1"]["components"] if file["name"].startswith("libzstd"))
    library = next(Path("/usr/lib").glob(f"*/{file['name']}"))
    assert file["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(library.read_bytes()).hexdigest()}]
    assert components["libzstd1"]["purl"].startswith("pkg:deb/debian/libzstd1@")
    assert set(document["dependencies"][0]["dependsOn"]) == {
        component["bom-ref"] for component in document["components"]
    }


def test_library_of_no_package(tmp_path):
    library = next(Path("/usr/lib").glob("*/libzstd.so.1")).resolve()
    copy = tmp_path / "libzstd.so.1"
    shutil.copy(library, copy)
    done = bill("--out", tmp_path / "bill", ENGINE, LD_LIBRARY_PATH=str(tmp_path))
    assert done.returncode == 1 and f"expected {copy} to belong to a package" in done.stderr
    assert not (tmp_path / "bill").exists()


def test_nothing_to_describe(tmp_path):
    done = bill("--out", tmp_path / "bill")
    assert done.returncode == 2 and "expected either the programs and libraries" in done.stderr


def test_texts_of_licences(tmp_path):
    """Copyright files of Debian refer to common texts, which are copied; a name that there is not is ignored."""
    (tmp_path / "a").write_text("in /usr/share/common-licenses/Apache-2.0.\nand `/usr/share/common-licenses/GPL-3'")
    (tmp_path / "b").write_bytes(b"\xe9 /usr/share/common-licenses/none-1, /usr/share/common-licenses/../../passwd")
    runpy.run_path(str(ROOT / "deploy/sbom.py"))["copy_texts"](tmp_path)
    assert {path.name for path in (tmp_path / "common-licenses").iterdir()} == {"Apache-2.0", "GPL-3"}
    assert "Version 2.0, January 2004" in (tmp_path / "common-licenses/Apache-2.0").read_text()


def test_headers_of_a_python_package():
    """As pybind11's in the build of a wheel."""
    python_package = runpy.run_path(str(ROOT / "deploy/sbom.py"))["python_package"]
    component = python_package(f"{numpy.get_include()}/numpy/arrayobject.h")
    assert component["purl"] == f"pkg:pypi/numpy@{numpy.__version__}" and "BSD" in str(component["licenses"])
    assert python_package("/usr/include/stdio.h") is None
