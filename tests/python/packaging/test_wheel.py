"""The wheels are self-contained: the client's has no engine, the engine's has all libraries except glibc."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build"))
GLIBC = re.compile(r"(ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|nss_.*))\.so.*")
RUNTIME = re.compile(r"lib(stdc\+\+|gcc_s|python3.*)\.so.*")  # the client's, besides glibc
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


def install(component: str, folder: Path) -> None:
    """Installs a wheel's component from the build, stripped as in the wheel."""
    command = ["cmake", "--install", str(BUILD), "--strip", "--component", component, "--prefix", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Path:
    """The folder `teletensor` as in its wheel, outside the build."""
    folder = tmp_path_factory.mktemp("site") / "teletensor"
    shutil.copytree(ROOT / "python/teletensor", folder, ignore=shutil.ignore_patterns("__pycache__"))
    install("wheel", folder)
    return folder


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Path:
    """The folder `teletensor_engine` as in its wheel, in another folder of sys.path than the client."""
    folder = tmp_path_factory.mktemp("other") / "teletensor_engine"
    shutil.copytree(ROOT / "deploy/engine_wheel/teletensor_engine", folder, ignore=shutil.ignore_patterns("__pycache__"))
    install("wheel-engine", folder)
    return folder


def run(code: str, *packages: Path, cwd: Path, **more: str) -> subprocess.CompletedProcess:
    """Runs code with NumPy and the given packages only."""
    paths = os.pathsep.join(str(path.parent) for path in (*packages, Path(numpy.__file__).resolve().parent))
    environment = {"PYTHONPATH": paths, "PATH": "/usr/bin:/bin", **more}
    return subprocess.run([sys.executable, "-c", code], env=environment, text=True, capture_output=True, cwd=cwd, timeout=300)


@pytest.fixture(scope="module")
def report(client, engine, tmp_path_factory) -> dict:
    """The output of PROGRAM."""
    ended = run(PROGRAM, client, engine, cwd=tmp_path_factory.mktemp("elsewhere"))
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.slow
def test_client_starts_the_engine_of_the_other_wheel(engine, report):
    assert report["gradient"] == [[6.0, 10.0, 14.0], [6.0, 10.0, 14.0]]
    assert report["engine"] == str(engine / "bin/teletensord")


@pytest.mark.slow
def test_engine_loads_bundled_libraries(engine, report):
    foreign = [Path(path) for path in report["engine_maps"] if not path.startswith(str(engine))]
    assert [path for path in foreign if not GLIBC.fullmatch(path.name)] == []


@pytest.mark.slow
def test_module_loads_bundled_libraries(client, report):
    """gRPC, OpenSSL and zstd are in the module; other libraries are those of lib/."""
    names = {path.name for path in (client / "lib").glob("*.so*")}
    assert "libprotobuf.so.32" in names and not [name for name in names if name.startswith(("libgrpc", "libssl", "libzstd"))]
    inside = {Path(path).name for path in report["client_maps"] if path.startswith(str(client / "lib"))}
    assert "libprotobuf.so.32" in inside
    assert [p for p in report["client_maps"] if Path(p).name in names and not p.startswith(str(client / "lib"))] == []
    module = next(client.glob("_C.*.so"))
    needed = re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(["readelf", "-d", module], capture_output=True, text=True).stdout)
    assert [n for n in needed if n not in names and not GLIBC.fullmatch(n) and not RUNTIME.fullmatch(n)] == []


@pytest.mark.slow
def test_client_has_no_engine(client, tmp_path):
    """Nothing of it, and the error says how to install one."""
    assert not list(client.rglob("teletensord*")) and not list(client.rglob("libdnnl*")) + list(client.rglob("libopenblas*"))
    ended = run("import teletensor; teletensor.ones(1)", client, cwd=tmp_path)
    assert ended.returncode == 1 and "ConnectionError" in ended.stderr
    assert "`pip install teletensor[engine]` installs it" in ended.stderr


@pytest.mark.slow
def test_client_exports_only_its_entry(client):
    """Another copy of gRPC or OpenSSL in the process, as grpcio's, does not meet this one's."""
    module = next(client.glob("_C.*.so"))
    text = subprocess.run(["nm", "-D", "--defined-only", module], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in text.splitlines()}
    assert "PyInit__C" in names
    assert [name for name in names if re.match(r"(grpc_|SSL_|EVP_|ZSTD_|_ZN4grpc|_ZN9grpc_core|deflate|inflate)", name)] == []


@pytest.mark.slow
def test_client_with_grpcio_in_the_process(client, engine, tmp_path):
    """Their gRPC, TLS and compression are separate."""
    grpcio = pytest.importorskip("grpc")
    code = """
import grpc, teletensor as torch
server = grpc.server(__import__("concurrent.futures").futures.ThreadPoolExecutor(1))
port = server.add_insecure_port("127.0.0.1:0"); server.start()
x = torch.ones(3)
grpc.channel_ready_future(grpc.insecure_channel(f"127.0.0.1:{port}")).result(10)
print(x.sum().item()); server.stop(None)
"""
    ended = run(code, client, engine, Path(grpcio.__file__).resolve().parent, cwd=tmp_path)
    assert ended.stdout.strip() == "3.0", ended.stderr


@pytest.mark.slow
def test_size_of_the_client(client, tmp_path):
    """10 MB is the limit of the packed wheel (deploy/build_wheels.sh), of which 0.1 are dist-info; zopfli packs it 3.3 % smaller."""
    with zipfile.ZipFile(tmp_path / "wheel.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for path in sorted(client.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":  # of other tests
                file.write(path, path.relative_to(client.parent))
    assert (tmp_path / "wheel.zip").stat().st_size < 9.9e6 / 0.967


@pytest.mark.slow
def test_wheels_contain_library_licences(client, engine):
    licences = {path.name for path in (engine / "lib/licenses").iterdir()}
    assert {"libgrpc++1.51", "libprotobuf32", "libdnnl2", "libssl3", "libstdc++6", "teletensor"} <= licences
    licences = {path.name for path in (client / "lib/licenses").iterdir()}
    assert {"libprotobuf32", "libgrpc-dev", "libssl-dev", "libzstd-dev", "zlib1g-dev"} <= licences
    for package in client, engine:  # also the texts to which they refer, of which Apache's and LGPL's must be passed on
        texts = {path.name for path in (package / "lib/licenses/common-licenses").iterdir()}
        assert ({"Apache-2.0", "GPL-3", "LGPL-2.1"} if package == engine else {"Apache-2.0"}) <= texts


def used(bill: dict, use: str) -> set[str]:
    """The packages that a bill lists for a reason."""
    value = {"name": "teletensor:use", "value": use}
    return {component["name"] for component in bill["components"] if value in component["properties"]}


@pytest.mark.slow
def test_wheels_contain_their_bills_of_materials(client, engine):
    """Every copied library is listed, with its hash, in a package; so is what is compiled and linked in, whose licences are copied."""
    for package in client, engine:
        bill = json.loads((package / "lib/sbom.cdx.json").read_text())
        listed = {
            file["hashes"][0]["content"] for component in bill["components"] for file in component.get("components", ())
        }
        libraries = list((package / "lib").glob("*.so*"))
        assert [path.name for path in libraries if hashlib.sha256(path.read_bytes()).hexdigest() not in listed] == []
        assert all(component["version"] and component["licenses"] for component in bill["components"])
        compiled = {"libcli11-dev", "libspdlog-dev", "libdnnl-dev"} if package == engine else {"pybind11-dev", "libprotobuf-dev"}
        assert compiled <= used(bill, "compiled")
        assert compiled <= {path.name for path in (package / "lib/licenses").iterdir()}
    bill = json.loads((client / "lib/sbom.cdx.json").read_text())
    assert {"libgrpc-dev", "libgrpc++-dev", "libssl-dev", "libzstd-dev"} <= used(bill, "linked")
    assert "libgrpc29" not in used(bill, "loaded")


def test_versions_of_the_wheels_agree():
    """The extra `engine` admits the engine of this version."""
    version = re.search(r'"(.*)"', (ROOT / "python/teletensor/_version.py").read_text().rpartition("__version__")[2])[1]
    major, minor, _ = version.split(".")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"]["engine"] == [f"teletensor-engine>={version},<{major}.{int(minor) + 1}"]
    assert "version" in tomllib.loads((ROOT / "deploy/engine_wheel/pyproject.toml").read_text())["project"]["dynamic"]


def pack(wheel: Path, out: Path, limit: str = "1", *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, ROOT / "deploy/pack_wheel.py", "--limit", limit, *options, "--out", out, wheel]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})


def small_wheel(path: Path, names: list[str], content: bytes = b"x" * 100) -> Path:
    """A wheel with these files, in this order."""
    digest = "sha256=" + __import__("base64").urlsafe_b64encode(hashlib.sha256(b"x" * 100).digest()).rstrip(b"=").decode()
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, content)
        file.writestr("a-1.dist-info/RECORD", "".join(f"{name},{digest},100\n" for name in names) + "a-1.dist-info/RECORD,,\n")
    return path


def test_equal_contents_give_equal_wheels(tmp_path):
    for folder, names in ("1", ["a/b.py", "a/a.py"]), ("2", ["a/a.py", "a/b.py"]):
        (tmp_path / folder).mkdir()
        done = pack(small_wheel(tmp_path / folder / "a-1-py3-none-any.whl", names), tmp_path / f"out{folder}")
        assert done.returncode == 0, done.stderr
    first, second = ((tmp_path / f"out{i}/a-1-py3-none-any.whl").read_bytes() for i in (1, 2))
    assert first == second
    with zipfile.ZipFile(tmp_path / "out1/a-1-py3-none-any.whl") as file:
        assert file.namelist() == ["a/a.py", "a/b.py", "a-1.dist-info/RECORD"]
        assert {info.date_time[0] for info in file.infolist()} == {2023}


def test_packing_with_zopfli(tmp_path):
    pytest.importorskip("zopfli", reason="make wheel installs it")
    wheel = small_wheel(tmp_path / "a-1-py3-none-any.whl", ["a/a.py"])
    done = pack(wheel, tmp_path / "out", "1", "--zopfli")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "out" / wheel.name) as file:
        assert file.testzip() is None and file.read("a/a.py") == b"x" * 100


def test_packing_refuses_what_does_not_agree(tmp_path):
    wheel = small_wheel(tmp_path / "a-1-py3-none-any.whl", ["a/a.py"], b"other")
    done = pack(wheel, tmp_path / "out")
    assert done.returncode == 1 and "to agree with its RECORD" in done.stderr
    wheel = small_wheel(tmp_path / "a-1-py3-none-any.whl", ["a/a.py"])
    done = pack(wheel, tmp_path / "out", "0.0001")
    assert done.returncode == 1 and "expected at most 0.0001 MB" in done.stderr
