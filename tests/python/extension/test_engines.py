"""Libraries and engines: refused files, sessions, restarts, upgrades, workers, status, and the example's own build."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.conftest import BUILD, IN_PROCESS, ROOT, await_listener, client_environment
from tests.python.extension.conftest import HERE, compile_library
from tests.python.session import test_isolation
from tests.python.session.replaced_engine import replaced_engine
from tests.python.session.test_metrics import get, values
from tests.python.session.test_tls import free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]


def client(address: str, code: str) -> str:
    """The output of a program with `torch` and `ops`, in a session with the engine."""
    begin = f"import teletensor as torch\ntorch.connect({address!r})\nops = torch.ops.check\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + textwrap.dedent(code)],
        env=client_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(folder: Path, *more: str) -> subprocess.CompletedProcess:
    """A daemon that is expected to end at once."""
    command = [
        str(BUILD / "bin/teletensord"),
        "--listen",
        f"unix:{folder.parent}/refused.sock",
        "--no-auth",
        "--operators",
        str(folder),
    ]
    return subprocess.run(
        [*command, *more], capture_output=True, text=True, timeout=30, env={**os.environ, "TELETENSOR_CUDA_PLUGIN": ""}
    )


HEAD = '#include "teletensor_operator.h"\nstatic int ok(const teletensor_host*, teletensor_call*) { return 0; }\n'
ENTRY = "const teletensor_library* teletensor_operators(const teletensor_host*)"


def library_of(
    rows: str, count: int = 1, abi: str = "TELETENSOR_OPERATOR_ABI", size: str = "sizeof(teletensor_operator)"
) -> str:
    return (
        f"{HEAD}static const teletensor_operator rows[] = {{{rows}}};\n"
        f'static const teletensor_library all = {{{abi}, {size}, "bad", rows, {count}}};\n{ENTRY} {{ return &all; }}\n'
    )


def row(schema: str, shape: str = '"same(x)"', body: str = "0", gradient: str = "0", kernel: str = "ok") -> str:
    return f'{{"{schema}", 0, {shape}, 0, 0, {kernel}, 0, {body}, {gradient}, 0}}'


GOOD = row("bad::f(Tensor x) -> Tensor")
REFUSED = {
    "version": (library_of(GOOD, abi="2"), "built for version 2 of the interface, this daemon has version 1"),
    "symbol": (HEAD + "int unrelated() { return ok(0, 0); }\n", "exports no function teletensor_operators"),
    "null": (HEAD + ENTRY + " { ok(0, 0); return nullptr; }\n", "refuses this daemon"),
    "throws": (HEAD + ENTRY + " { ok(0, 0); throw 1; }\n", "throws an exception"),
    "size": (library_of(GOOD, size="8"), "entries of 8 bytes"),
    "none": (library_of(GOOD, count=0), "it has 0 operators"),
    "twice": (library_of(f"{GOOD}, {GOOD}", count=2), "bad::f. is declared twice"),
    "schema": (library_of(row("bad f(Tensor x) -> Tensor")), "expected a name such as mylib::scale"),
    "type": (library_of(row("bad::f(Tensor x, Stream s) -> Tensor")), "type 'Stream' is not supported"),
    "mutable": (library_of(row("bad::f(Tensor(a!) x) -> Tensor")), "do not change their arguments"),
    "default": (library_of(row("bad::f(Tensor x, int n=0.5) -> Tensor")), "default of 'n' has another type"),
    "reserved": (library_of(row("aten::f(Tensor x) -> Tensor")), "namespace aten is reserved"),
    "shape": (
        library_of(row("bad::f(Tensor x) -> Tensor", shape='"same(y)"')),
        "names neither a parameter nor a dtype: y",
    ),
    "rule": (library_of(row("bad::f(Tensor x) -> Tensor", shape="0")), "expected shape, a rule function or a body"),
    "formula": (library_of(row("bad::f(Tensor x) -> Tensor", shape='"[x.size(0"')), "expected '\\)'"),
    "kernels": (
        library_of(row("bad::f(Tensor x) -> Tensor", kernel="0")),
        "expected either kernels or a body, got neither",
    ),
    "body": (
        library_of(row("bad::f(Tensor x) -> Tensor", shape="0", body='"matmul(x, x)"', kernel="0")),
        "no pointwise operator",
    ),
    "gradient": (
        library_of(row("bad::f(Tensor x) -> Tensor", gradient='"x: bad::missing(g)"')),
        "calls 'bad::missing'",
    ),
    "incomplete": (
        library_of(row("bad::f(Tensor x, Tensor y) -> Tensor", gradient='"x: g"')),
        "expected a gradient for 'y'",
    ),
}


@pytest.fixture(scope="module")
def build_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("refused")


@pytest.mark.parametrize("name", REFUSED)
def test_refused_library(build_folder, name):
    source, message = REFUSED[name]
    folder = build_folder / name
    file = build_folder / f"{name}.cc"
    file.write_text(source)
    compile_library(file, folder / f"{name}.so", "-O0")
    ended = start(folder)
    assert ended.returncode == 1
    assert re.search(message, ended.stderr), ended.stderr
    assert f"{name}.so" in ended.stderr


def test_refused_files(library, tmp_path):
    folder = tmp_path / "operators"
    folder.mkdir(mode=0o755)
    assert "expected at least one shared object" in start(folder).stderr
    target = folder / "check.so"
    target.write_bytes(b"not a shared object")
    target.chmod(0o755)
    assert "cannot load the operators" in start(folder).stderr
    shutil.copy(library / "check.so", target)
    target.chmod(0o777)
    assert "other users may change this file" in start(folder).stderr
    target.chmod(0o755)
    folder.chmod(0o777)
    assert "other users may change this folder" in start(folder).stderr
    folder.chmod(0o755)
    shutil.copy(target, folder / "second.so")
    assert "is an operator of" in start(folder).stderr
    assert start(tmp_path / "missing").returncode != 0


def test_folders_that_others_may_replace(library, tmp_path):
    """Between the checks and the load: refused. A sticky folder, like /tmp, keeps others from it."""
    shared = tmp_path / "shared"
    folder = shared / "operators"
    folder.mkdir(mode=0o755, parents=True)
    (folder / "bad.so").write_bytes(b"not a shared object")
    (folder / "bad.so").chmod(0o755)
    shared.chmod(0o1777)
    assert "cannot load the operators" in start(folder).stderr
    shared.chmod(0o777)
    assert f"because they may change {shared}" in start(folder).stderr
    own = tmp_path / "own"
    own.mkdir(mode=0o755)
    (own / "link.so").symlink_to(folder / "bad.so")
    assert f"because they may change {shared}" in start(own).stderr
    shared.chmod(0o755)
    assert "cannot load the operators" in start(own).stderr
    if os.geteuid() == 0:  # may give files to another user
        os.chown(folder / "bad.so", 12345, 12345)
        assert "other users may change this file" in start(own).stderr


def test_texts_are_utf8(tmp_path):
    folder = tmp_path / "operators"
    source = tmp_path / "texts.cc"
    source.write_text(library_of(GOOD.replace("0", '"caf\\xe9"', 1)))
    compile_library(source, folder / "texts.so", "-O0")
    assert "not UTF-8" in start(folder).stderr


def test_sessions_share_the_operators(operators_engine):
    code = "print(ops.scaled_add(torch.ones(2), torch.ones(2), scale=2.0).tolist())"
    assert client(operators_engine.address, code) == client(operators_engine.address, code) == "[3.0, 3.0]\n"


def test_engine_without_the_operators(own_daemon, operators_engine):
    plain = own_daemon()
    code = f"""
        add = ops.scaled_add
        torch.connect({plain.address!r})
        try:
            add(torch.ones(2), torch.ones(2))
        except NotImplementedError as error:
            print("does not have this operator" in str(error), hasattr(torch.ops.check, "scaled_add"))
        print(torch.ones(2).sum().item())
    """
    assert client(operators_engine.address, code) == "True False\n2.0\n"


def test_status_and_metrics(own_daemon, library):
    from teletensor import _C

    place = f"127.0.0.1:{free_port()}"
    engine = own_daemon("--operators", str(library), "--http", place)
    await_listener(place)
    rows = values(get(f"http://{place}/metrics")[1])
    count = [value for name, value in rows.items() if name.startswith("teletensor_library_operators{")]
    assert count == [(HERE / "operators.cc").read_text().count('"check::')]
    status = json.loads(_C.Admin(engine.address).status())
    libraries = [library for device in status["devices"] for library in device["libraries"]]
    assert any(each["name"] == "check.so" and "check::scaled_add" in each["version"] for each in libraries)


# Fixtures of an engine with a process per principal.
principals, start_isolated = test_isolation.principals, test_isolation.start


def test_workers_load_the_operators(start_isolated, library):
    engine = start_isolated("--operators", str(library))
    alice = engine.client("alice")
    assert alice("torch.ones(1).item()") == "1.0"  # a session
    assert alice("torch.ops.check.softsign(torch.tensor([1.0])).tolist()") == "[0.5]"


def test_upgrade_keeps_the_operators(tmp_path, library):
    code = """
        import json, sys, warnings
        warnings.simplefilter("ignore")  # of the interruption
        x = torch.arange(3.0, dtype=torch.float64, requires_grad=True)
        y = ops.cube(x)
        compiled = torch.compile(lambda t: ops.scaled_add(t, t, scale=2.0))
        compiled(torch.ones(2)).tolist()
        reply = json.loads(torch._C.Admin(ADDRESS, deadline_seconds=60).upgrade(10, False))
        y.sum().backward()
        print(reply["sessions"], x.grad.tolist(), compiled(torch.ones(2)).tolist())
    """
    with replaced_engine(tmp_path, "--operators", str(library), "--lease", "20") as engine:
        assert "1 [0.0, 3.0, 12.0] [3.0, 3.0]" in client(engine.address, code.replace("ADDRESS", repr(engine.address)))


def test_restart_from_an_image(tmp_path, library):
    code = """
        import sys, warnings
        warnings.simplefilter("ignore")
        torch.persist(0.05, wait=30)
        x = torch.arange(3.0, dtype=torch.float64, requires_grad=True)
        y = ops.cube(x)
        y.tolist()
        print("ready", flush=True)
        sys.stdin.readline()
        y.sum().backward()
        print(x.grad.tolist(), ops.cube(x).tolist(), flush=True)
    """
    options = ["--operators", str(library), "--lease", "30", "--state-dir", str(tmp_path / "state")]
    with replaced_engine(tmp_path, *options) as engine:
        begin = f"import teletensor as torch\ntorch.connect({engine.address!r})\nops = torch.ops.check\n"
        program = subprocess.Popen(
            [sys.executable, "-c", begin + textwrap.dedent(code)], env=client_environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert program.stdout.readline() == "ready\n"
        engine.kill()
        engine.start()
        output, _ = program.communicate("go\n", timeout=60)
        assert output == "[0.0, 3.0, 12.0] [0.0, 1.0, 8.0]\n"


def replace_library(folder: Path) -> None:
    (folder / "check.so").unlink()
    source = folder.parent / "other.cc"
    source.write_text(library_of(row("other::f(Tensor x) -> Tensor")))
    compile_library(source, folder / "other.so")


def change_bytes(folder: Path) -> None:
    """The same declarations; but rules that are functions belong to the file's bytes."""
    changed = folder / "changed"
    changed.write_bytes((folder / "check.so").read_bytes() + b"more")
    changed.chmod(0o755)
    changed.replace(folder / "check.so")


@pytest.mark.parametrize("change", [replace_library, change_bytes])
def test_upgrade_without_the_operators_is_refused(tmp_path, library, change):
    folder = tmp_path / "changing"
    folder.mkdir(mode=0o755)
    shutil.copy(library / "check.so", folder / "check.so")
    with replaced_engine(tmp_path, "--operators", str(folder), "--lease", "20") as engine:
        change(folder)
        code = f"""
            try:
                torch._C.Admin({engine.address!r}, deadline_seconds=60).upgrade(10, False)
            except Exception as error:
                print("has not the operator check::" in str(error))
            print(ops.scaled_add(torch.ones(1), torch.ones(1)).tolist())
        """
        assert client(engine.address, code) == "True\n[2.0]\n"


def test_example(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("requires cmake")
    source = ROOT / "examples/cpp_operator"
    assert len((source / "swiglu.cc").read_text().splitlines()) < 60
    build = tmp_path / "build"
    subprocess.run(["cmake", "-S", str(source), "-B", str(build)], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(build)], check=True, capture_output=True)
    done = subprocess.run(
        [sys.executable, str(source / "test_swiglu.py"), str(build)], env=client_environment(TELETENSOR_CUDA_PLUGIN=""),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and "swiglu: ok" in done.stdout, done.stderr


def test_header_is_c99(tmp_path):
    source = tmp_path / "plain.c"
    source.write_text('#include "teletensor_operator.h"\nint main(void) { return TELETENSOR_OPERATOR_ABI - 1; }\n')
    compiler = shutil.which("cc") or shutil.which("gcc")
    options = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", str(ROOT / "engine/extension")]
    subprocess.run([compiler, *options, str(source), "-o", str(tmp_path / "plain")], check=True)
    assert subprocess.run([str(tmp_path / "plain")], check=False).returncode == 0
