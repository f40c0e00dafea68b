"""What an engine with worker processes shows and exports, what is published in it, and sockets of a service manager."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time

import pytest

from tests.conftest import BUILD, IN_PROCESS, await_listener, eventually
from tests.python.session.otlp import Collector, attributes
from tests.python.session.test_activation import LAUNCHER
from tests.python.session.test_isolation import Isolated, is_running, principals, start  # noqa: F401 - fixtures
from tests.python.session.test_metrics import get, values
from tests.python.session.test_principals import run, user
from tests.python.session.test_tls import free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]


def test_the_engine_shows_what_its_workers_do(start):  # noqa: F811
    place = f"127.0.0.1:{free_port()}"
    engine = start("--http", place)
    await_listener(place)
    alice, bob = engine.client("alice"), engine.client("bob")
    assert alice("globals().update(x=torch.ones(1 << 20)) or x.sum().item()") == "1048576.0"
    assert bob("torch.ones(3).sum().item()") == "3.0"
    workers, admin = engine.workers(), engine.token("admin-token")

    metrics = values(get(f"http://{place}/metrics", admin)[1])
    for name in ("alice", "bob"):
        of = f'{{principal="{name}"}}'
        assert metrics["teletensor_worker_up" + of] == metrics["teletensor_sessions" + of] == 1
        assert metrics["teletensor_sessions_opened_total" + of] == 1 and metrics["teletensor_worker_resident_bytes" + of] > 1 << 20
    assert 4 << 20 <= metrics['teletensor_tensor_bytes{principal="alice"}'] < 5 << 20
    assert metrics['teletensor_device_memory_bytes{device="cpu",kind="allocated"}'] >= 4 << 20
    assert not any(name.startswith("teletensor_frame_seconds") for name in metrics)

    status = json.loads(get(f"http://{place}/api/status", admin)[1])["status"]
    assert {each["principal"]: int(each["pid"]) for each in status["workers"]} == workers
    assert {each["name"] for each in status["principals"]} == {each["principal"] for each in status["sessions"]} == {"alice", "bob"}

    def is_sampled() -> bool:
        bob("[torch.ones(1 << 22).sum().item() for _ in range(50)][0]")
        profile = json.loads(get(f"http://{place}/api/profile", admin)[1])
        return profile["rate"] > 0 and any(each["principal"] == "bob" for each in profile["entries"])

    eventually(is_sampled)
    # A user sees its own worker only.
    done = run("--address", engine.address, "--token", engine.tokens["bob"], "status", "--json")
    assert done.returncode == 0, done.stderr
    own = json.loads(done.stdout)
    assert [each["principal"] for each in own["workers"]] == [each["name"] for each in own["principals"]] == ["bob"]
    assert sorted(each["principal"] for each in own["sessions"]) == ["", "bob"]


def test_workers_log_json_and_export_their_spans(start):  # noqa: F811
    collector = Collector()
    engine = start("--log-format", "json", "--log-level", "debug", "--otlp", collector.place, "--otlp-ratio", "1")
    alice = engine.client("alice")
    assert alice("torch.ones(3).sum().item()") == "3.0"
    worker = engine.workers()["alice"]
    alice.stop()
    eventually(lambda: collector.named("session") and collector.named("frame") and collector.named("admin.status"))
    engine.stop()
    collector.stop()
    (session,) = collector.named("session")
    found = attributes(session)
    assert found["teletensor.principal"] == "alice" and found["teletensor.session"] == 1
    pids = {each["process.pid"] for each in collector.resources}
    assert pids == {worker, engine.process.pid}
    assert len({each["service.instance.id"] for each in collector.resources}) == 2
    lines = [json.loads(line) for line in engine.text().splitlines()]
    assert any("worker of alice listening" in str(line) for line in lines)  # the worker's own line


def test_tensors_are_published_to_own_sessions_only(start):  # noqa: F811
    engine = start("--worker-idle", "0.5")
    alice, bob, second = engine.client("alice"), engine.client("bob"), engine.client("alice")
    assert alice("torch.publish('own', torch.arange(4.))") == "16"
    assert second("torch.open('own').sum().item()") == second("torch.open('alice/own').sum().item()") == "6.0"
    for wrong in ("torch.publish('x', torch.ones(1), to=['bob'])", "torch.publish('x', torch.ones(1), to='*')"):
        assert "a process of its own (--isolate=principal), got" in alice(wrong)
    assert alice("torch.publish('named', torch.ones(1), to=['alice'])") == "4"
    for wrong in ("torch.open('alice/own')", "torch.open('own', principal='nobody')", "torch.unpublish('alice/own')"):
        assert "expected no other principal than bob" in bob(wrong)
    assert "bob has published nothing" in bob("torch.open('own')") and bob("torch.published()") == "[]"
    assert {line["outcome"] for line in engine.records("publication.open")} == {"ok", "not_found"}

    # What persists keeps the worker, until it is unpublished.
    assert alice("torch.publish('kept', torch.ones(2), persist=True)") == "8"
    pid = engine.workers()["alice"]
    for client in (alice, bob, second):
        client.stop()
    eventually(lambda: set(engine.workers()) == {"alice"})
    time.sleep(1.5)
    assert engine.workers() == {"alice": pid}
    third = engine.client("alice")
    assert third("[each['name'] for each in torch.published()]") == "['kept']"
    third("torch.unpublish('kept')")
    third.stop()
    eventually(lambda: not is_running(pid))


def test_revocation_ends_what_persists(start):  # noqa: F811
    engine = start("--worker-idle", "0.5")
    alice = engine.client("alice")
    assert alice("torch.publish('kept', torch.ones(2), persist=True)") == "8"
    pid = engine.workers()["alice"]
    user(engine.file, "revoke", "alice")
    eventually(lambda: not is_running(pid))


def inheriting(listener: socket.socket) -> tuple[list[str], dict]:
    """The beginning of a command whose process inherits the socket from a service manager, and options of Popen."""
    variables = {"LISTEN_PID": "PID", "LISTEN_FDS": "1"}
    return [sys.executable, "-c", LAUNCHER, repr([listener.fileno()]), repr(variables)], {"pass_fds": [listener.fileno()]}


def test_sockets_of_a_service_manager(tmp_path, principals):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as listener:
        engine = Isolated(tmp_path, *principals)
        prefix, options = inheriting(listener)
        engine.start(prefix, **options)
        alice = engine.client("alice", address=f"127.0.0.1:{listener.getsockname()[1]}")
        assert alice("torch.ones(3).sum().item()") == "3.0"
        engine.close()
    with socket.socket(socket.AF_UNIX) as listener:  # beside it the engine could not make workers' sockets
        listener.bind(str(tmp_path / "inherited.sock"))
        listener.listen()
        prefix, options = inheriting(listener)
        command = [*prefix, str(BUILD / "bin/teletensord"), "--isolate", "principal", "--token-file", str(tmp_path / "token")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 2 and "workers need sockets beside it" in done.stderr
