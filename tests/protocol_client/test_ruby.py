"""A client in another language, written from proto/ alone, with a real engine: examples/protocol-client.

Requires the packages of deploy/packages_protocol.txt, and skips without them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import BUILD, IN_PROCESS, ROOT, Daemon, client_environment
from tests.relay.process import RelayProcess
from tests.sockets import is_listening

EXAMPLE = ROOT / "examples/protocol-client"


def _lacking() -> str:
    """What the tests need and this machine lacks; "" if nothing."""
    tools = [name for name in ("ruby", "protoc", "grpc_ruby_plugin") if not shutil.which(name)]
    if tools:
        return f"needs {', '.join(tools)}: deploy/packages_protocol.txt"
    found = subprocess.run(["ruby", "-e", 'require "grpc"'], capture_output=True, text=True)
    return "" if found.returncode == 0 else "needs Ruby's gRPC: deploy/packages_protocol.txt"


pytestmark = [
    pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process"),
    pytest.mark.skipif(bool(lacking := _lacking()), reason=lacking),
]


@pytest.fixture(scope="module")
def generated(tmp_path_factory) -> Path:
    """A folder with the code that protoc generates, and operators.json."""
    folder = tmp_path_factory.mktemp("protocol")
    plugin = f"--plugin=protoc-gen-grpc={shutil.which('grpc_ruby_plugin')}"
    command = ["protoc", "-I", ROOT / "proto", f"--ruby_out={folder}", f"--grpc_out={folder}", plugin, "teletensor/v1/engine.proto"]
    subprocess.run(command, check=True)
    command = [sys.executable, "-m", "teletensor.cli", "operators", "--json"]
    text = subprocess.run(command, env=client_environment(), capture_output=True, text=True, check=True).stdout
    (folder / "operators.json").write_text(text)
    return folder


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("engine"))
    yield started
    started.stop()


def ruby(generated: Path, *words: str | Path, **environment: str) -> subprocess.CompletedProcess:
    command = ["ruby", "-W0", "-I", generated, "-I", EXAMPLE, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


def script(generated: Path, address: str, code: str, **environment: str) -> list[str]:
    """Runs code with `session`; returns the lines that it prints."""
    text = f'require "client"\noperators = Teletensor::Operators.new("{generated}/operators.json")\n'
    text += f'session = Teletensor::Session.new("{address}", operators)\n{code}\nsession.close\n'
    done = ruby(generated, "-e", text, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


DEMO = """\
add: float32 [2, 2] [24.0, 42.0, 42.0, 87.0]
sum: [66.0, 129.0]
large: [300000] 89999700000
parts: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
error: RUNTIME [matmul] mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)
still: [21.0]
"""


def test_demo(generated, engine):
    done = ruby(generated, EXAMPLE / "demo.rb", engine.address, generated / "operators.json")
    first, _, rest = done.stdout.partition("\n")
    assert done.returncode == 0, done.stderr
    assert first.startswith("engine 0.1.0, session ") and rest == DEMO + "closed\n"


def test_session_continues_after_its_connection_broke(generated, engine):
    with RelayProcess(engine.address) as relay:
        command = ["ruby", "-W0", "-I", generated, EXAMPLE / "demo.rb", relay.address, generated / "operators.json", "--pause"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            while (line := process.stdout.readline()) != "ready\n":
                assert line, process.stderr.read()
            relay.command("cut")
            output, errors = process.communicate("\n", timeout=60)
        finally:
            process.kill()
        assert process.returncode == 0, errors
        after, closed = output.splitlines()
        assert after.startswith("after: [21.0], resumed ") and not after.endswith(" 0 times") and closed == "closed"
        assert relay.stats()["connections"] >= 2


def test_invalid_frame_ends_the_session(generated, engine):
    code = """
session.instance_variable_get(:@instructions) << Teletensor::V1::Instruction.new(op: 65_000, result: 1)
begin
  session.synchronize
rescue Teletensor::SessionEnded => error
  puts error.message
  exit!(0)
end
puts "accepted"
"""
    (line,) = script(generated, engine.address, f"$stdout.sync = true\n{code}")
    assert "65000" in line


@pytest.mark.parametrize("call, values", [
    ("session.call(:where, session.call(:gt, x, 1.5), x, 0.0)", "[0.0, 2.0, 3.0]"),
    ("session.call(:cat, [x, x], -1)", "[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]"),
    ("session.call(:sum, x, dtype: 'int64')", "[6]"),
    ("session.call(:add, x, x, alpha: -0.5)", "[0.5, 1.0, 1.5]"),
    ("session.call(:reshape, session.call(:ones, [2, 2], dtype: 'bool'), [4])", "[1, 1, 1, 1]"),
])  # fmt: skip
def test_arguments(generated, engine, call, values):
    """A tensor, a number for a tensor, a list of tensors, a dtype, a keyword with its positional ones omitted."""
    assert script(generated, engine.address, f"x = session.tensor([1, 2, 3], [3])\np session.read({call}).values") == [values]


def test_written_in_place(generated, engine):
    """As x.add_(y): `into` instead of a name."""
    code = """
x = session.tensor([1, 2], [2])
view = session.call(:reshape, x, [2, 1])
session.call(:add, x, x)
session.instance_variable_get(:@instructions)[-1].tap do |add|
  add.result = 0
  add.into << x.id
end
p session.read(view).values
"""
    assert script(generated, engine.address, code) == ["[2.0, 4.0]"]


def test_token(generated, tmp_path):
    (tmp_path / "token").write_text("a" * 64)
    (tmp_path / "token").chmod(0o600)
    address = f"unix:{tmp_path}/engine.sock"
    command = [BUILD / "bin/teletensord", "--listen", address, "--token-file", tmp_path / "token"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as engine:
        try:
            while not is_listening(tmp_path / "engine.sock"):
                assert engine.poll() is None
                time.sleep(0.02)
            code = "p session.read(session.call(:ones, [1])).values"
            assert script(generated, address, code, TELETENSOR_TOKEN="a" * 64) == ["[1.0]"]
            done = ruby(generated, EXAMPLE / "demo.rb", address, generated / "operators.json", TELETENSOR_TOKEN="b")
            assert done.returncode == 1 and "Unauthenticated" in done.stderr
        finally:
            engine.terminate()


def test_table_is_that_of_the_engine(generated, engine, tmp_path):
    """Equal digests: the engine sends no table. With another digest it sends one, and the client refuses other operators."""
    assert script(generated, engine.address, "p session.hello.operators") == ["nil"]
    table = json.loads((generated / "operators.json").read_text())
    table["schema_digest"] = f"{int(table['schema_digest'], 16) ^ 1:016x}"
    table["operators"].append({"id": 65000, "name": "newer", "parameters": [], "results": 1})
    (tmp_path / "operators.json").write_text(json.dumps(table))
    code = f"""
other = Teletensor::Session.new("{engine.address}", Teletensor::Operators.new("{tmp_path}/operators.json"))
p other.hello.operators.ids.length
p other.read(other.call(:ones, [1])).values
begin
  other.call(:newer)
rescue ArgumentError => error
  puts error.message
end
other.close
"""
    count, values, refused = script(generated, engine.address, code)
    assert int(count) == len(table["operators"]) - 1 and values == "[1.0]" and refused == "newer: unknown to this engine"
