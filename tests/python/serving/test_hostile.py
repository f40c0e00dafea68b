"""Requests of hostile clients, by raw sockets and tritonclient."""

from __future__ import annotations

import os
import socket
import time

import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS
from tests.python.distributed.ranks import free_port
from tests.python.serving.served import TIMEOUT, Served
from tests.python.session.test_principals import Engine, user

grpcclient = pytest.importorskip("tritonclient.grpc")
pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")


def talk(address: str, *parts: bytes) -> bytes:
    """Sends parts of requests, each after the answer to the one before; returns all that was received."""
    host, port = address.split(":")
    received = b""
    with socket.create_connection((host, int(port)), timeout=TIMEOUT) as connection:
        for part in parts:
            connection.sendall(part)
            chunk = connection.recv(1 << 16)
            received += chunk
            if not chunk:
                break
    return received


def answers(address: str) -> bool:
    try:
        return b" 200 " in talk(address, head("GET", "/v2/health/ready"))
    except OSError:
        return False


def head(method: str, path: str, *headers: str, length: int | None = None) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.fixture(scope="module")
def guarded(_engine, tmp_path_factory):
    """An engine with principals whose models anybody may call."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "models/m").mkdir(parents=True)
    serving.save(lambda x: x + 1, folder / "models/m/1", torch.ones(2, 3), output_names=["y"])
    http = f"127.0.0.1:{free_port()}"
    made = Engine(folder, "--models", str(folder / "models"), "--model-poll", "0", "--models-open", "--http", http)
    made.tokens = {role: user(made.file, "add", f"the-{role}", "--role", role) for role in ("user", "operator")}
    made.http = http
    made.start()
    until = time.monotonic() + TIMEOUT
    while not answers(http):
        assert time.monotonic() < until, made.text()
        time.sleep(0.02)
    yield made
    made.stop()


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path", ["repository/models/m/unload", "/repository/models/m/unload", "repository//models/m/load"]
)
@pytest.mark.parametrize("who", [None, "user"])
def test_only_operators_load_and_unload(guarded, method, path, who):
    headers = [f"Authorization: Bearer {guarded.tokens[who]}"] if who else []
    answer = talk(guarded.http, head(method, "/v2/" + path, *headers, length=0 if method == "POST" else None))
    assert answer.split()[1] in (b"401", b"403"), answer
    token = f"Authorization: Bearer {guarded.tokens['operator']}"
    assert b"200 OK" in talk(guarded.http, head("GET", "/v2/models/m/ready", token))


@pytest.fixture(scope="module")
def served(_engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    models = folder / "models"
    (models / "m").mkdir(parents=True)
    serving.save(lambda x: x + 1, models / "m/1", torch.ones(2, 3), output_names=["y"])
    server = Served(folder, models)
    yield server
    server.stop()


def test_pages_of_other_origins_change_nothing(served):
    for path in ("/v2/repository/models/m/unload", "/v2/systemsharedmemory/unregister"):
        assert b" 501 " in talk(served.http_address, head("GET", path, "Origin: http://evil.example"))
    assert served.grpc.is_model_ready("m")


def test_the_body_of_a_get_request_is_no_request(served):
    smuggled = head("GET", "/v2")
    answer = talk(served.http_address, head("GET", "/v2/health/live", length=len(smuggled)), smuggled)
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1") == 1
    assert talk(served.http_address, head("POST", "/v2/repository/index")).startswith(b"HTTP/1.1 200 ")  # has no body
    both = head("POST", "/v2/repository/index", "Transfer-Encoding: chunked", "Content-Encoding: identity", length=0)
    assert talk(served.http_address, both).startswith(b"HTTP/1.1 411 ")


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="requires POSIX shared memory")
def test_shared_memory_is_counted_before_it_is_read(served):
    """A sparse object of 8 GB takes no memory of its owner."""
    key = f"/teletensor-hostile-{os.getpid()}"
    object_ = os.open(f"/dev/shm{key}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.ftruncate(object_, 8 << 30)
        served.grpc.register_system_shared_memory("r", key, 8 << 30)
        wire = grpcclient.InferInput("x", [1, 3], "FP32")
        wire.set_shared_memory("r", 8 << 30)
        with pytest.raises(grpcclient.InferenceServerException, match="in shared memory of at most"):
            served.grpc.infer("m", [wire])
        wire.set_shared_memory("r", 12)
        assert served.grpc.infer("m", [wire]).as_numpy("y").tolist() == [[1, 1, 1]]
    finally:
        served.grpc.unregister_system_shared_memory()
        os.close(object_)
        os.unlink(f"/dev/shm{key}")


def test_withdrawn_models_are_forgotten(served):
    served.run("""
import teletensor as torch
from teletensor import serving
for i in range(3):
    torch.serve(lambda x: x + 1, f"short{i}", torch.ones(2))
    serving.withdraw(f"short{i}")
""")
    index = served.grpc.get_model_repository_index(as_json=True)
    assert sorted(each["name"] for each in index["models"]) == ["m"]
