"""`teletensor models`, `teletensor serve`, and the example that serves a decoder."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS, ROOT, client_environment
from tests.python.distributed.ranks import free_port
from tests.python.examples.data import write_text
from tests.python.serving.served import TIMEOUT, Served

pytest.importorskip("tritonclient.grpc")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]


def write_model(folder):
    folder.mkdir(parents=True)
    serving.save(lambda x: x + 1, folder / "1", torch.ones(2, 3))


@pytest.fixture(scope="module")
def served(_engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    write_model(folder / "models/plus")
    write_model(folder / "models/other")
    server = Served(folder, folder / "models")
    yield server
    server.stop()


def command(*arguments: str, address: str = "", **more) -> subprocess.CompletedProcess:
    environment = client_environment(TELETENSOR_ADDRESS=address, COLUMNS="160")
    return subprocess.run(
        [sys.executable, "-m", "teletensor", *arguments], env=environment, capture_output=True, text=True, timeout=TIMEOUT,
        check=False, **more,
    )  # fmt: skip


def test_models(served):
    listed = command("models", address=served.address)
    assert listed.returncode == 0, listed.stderr
    assert re.search(r"plus +1 +READY", listed.stdout) and re.search(r"other +1 +READY", listed.stdout)
    found = json.loads(command("models", "list", "--json", address=served.address).stdout)["models"]
    assert {(m["name"], m["state"]) for m in found} == {("plus", "READY"), ("other", "READY")}
    shown = json.loads(command("models", "show", "plus", address=served.address).stdout)
    assert shown["metadata"]["inputs"][0]["datatype"] == "FP32" and shown["config"]["name"] == "plus"


def test_load_and_unload(served):
    assert "unloaded" in command("models", "unload", "other", address=served.address).stdout
    failed = command("models", "show", "other", address=served.address)
    assert failed.returncode == 1 and "other" in failed.stderr
    assert "loaded" in command("models", "load", "other", address=served.address).stdout
    assert command("models", "load", "missing", address=served.address).returncode == 1


def test_serve_starts_an_engine_for_one_model(tmp_path):
    write_model(tmp_path / "net")
    address, http = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    arguments = ["serve", str(tmp_path / "net/1"), "--name", "net", "--listen", address, "--http", http, "--once", "--option=--no-auth"]
    process = subprocess.Popen(
        [sys.executable, "-m", "teletensor.cli", *arguments], env=client_environment(COLUMNS="160"), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        lines = []
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            lines.append(process.stdout.readline())
            if re.search(r"net +1 +READY", lines[-1]) or not lines[-1]:
                break
        assert re.search(r"net +1 +READY", lines[-1]), lines
        assert torch.models("net", address=address)([[1.0, 2.0, 3.0]]).tolist() == [[2, 3, 4]]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 0


@pytest.mark.parametrize("path", ["missing", "text.txt"])
def test_serve_refuses_other_files(tmp_path, path):
    (tmp_path / "text.txt").write_text("no model")
    refused = command("serve", str(tmp_path / path))
    assert refused.returncode == 1 and "expected" in refused.stderr


def test_example_of_a_decoder(tmp_path):
    options = ["--steps=2", "--width=32", "--layers=1", "--clients=3", "--tokens=6", f"--data={write_text(tmp_path, 2000)}"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/serve_llama.py"), *options], env=client_environment(TELETENSOR_ADDRESS=""),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"tokens per second: \d+ for one client, \d+ for 3", done.stdout)
