"""Models that take long to load: they delay nobody, and their load ends with what it is for."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from tests.adversary.models import Caller, description
from tests.conftest import IN_PROCESS, eventually
from tests.python.distributed.ranks import free_port
from tests.python.session.test_principals import Engine, user

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

QUICK, SLOW = description(2, [4, 4]), description(4000, [1500, 1500])
DELAYED = json.dumps({
    "max_batch_size": 4,
    "dynamic_batching": {"max_queue_delay_microseconds": 60_000_000},
    "model_warmup": [{"name": "w", "batch_size": 1, "inputs": {"x": {"data_type": "TYPE_FP32", "dims": [4], "zero_data": True}}}],
})  # fmt: skip


class Models(Engine):
    """An engine with a repository and the principals alice, bob and root."""

    def __init__(self, folder: Path, *options: str):
        self.models = folder / "models"
        self.models.mkdir()
        self.http = f"127.0.0.1:{free_port()}"
        super().__init__(folder, "--models", str(self.models), "--http", self.http, *options)
        roles = {"alice": "user", "bob": "user", "root": "operator"}
        self.tokens = {name: user(self.file, "add", name, "--role", role) for name, role in roles.items()}

    def put(self, name: str, model: bytes, owner: str | None = None, file: str = "program.pb") -> None:
        """Puts a model into the repository's folder."""
        (self.models / name / "1").mkdir(parents=True)
        (self.models / name / "1" / file).write_bytes(model)
        if owner is not None:
            (self.models / name / ".owner").write_text(owner)

    def caller(self, name: str) -> Caller:
        return Caller(self.address, self.tokens[name])

    def children(self) -> list[str]:
        return [pid for each in Path(f"/proc/{self.process.pid}/task").glob("*/children") for pid in each.read_text().split()]

    def unfinished(self) -> list[Path]:
        return list(self.models.glob(".*/*/program.pb"))

    def processor_seconds(self) -> float:
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def is_idle(self) -> bool:
        """Whether it takes less than a twentieth of a core, so that a busy machine does not make it look idle."""
        before = self.processor_seconds()
        time.sleep(0.5)
        return self.processor_seconds() - before <= 0.02

    def start_slow(self, **options):
        """Starts to publish a slow model as alice; returns when it is being warmed up."""
        call = self.caller("alice").start("slow", SLOW, **options)
        eventually(lambda: self.unfinished())
        eventually(lambda: not self.is_idle())
        return call


@pytest.fixture
def engine(tmp_path):
    made = Models(tmp_path, "--model-poll", "1")
    made.put("fixed", QUICK)
    made.start()
    root = made.caller("root")
    eventually(root.is_server_ready)
    yield made
    made.stop()


def test_a_slow_model_delays_nobody(engine):
    bob, root = engine.caller("bob"), engine.caller("root")
    slow = engine.start_slow()
    bob.publish("his", QUICK)
    assert bob.is_ready("his") and bob.infer("his", 4) and bob.infer("fixed", 4)
    bob.withdraw("his")
    engine.caller("alice").publish("another", QUICK)
    root.unload("fixed")
    root.load("fixed")
    (engine.models / "fixed").rename(engine.models / "renamed")
    eventually(lambda: root.is_ready("renamed"))
    assert root.is_server_ready() and not slow.done()
    slow.cancel()
    eventually(engine.is_idle)


def revoke(engine, call):
    user(engine.file, "revoke", "alice")


def unload(engine, call):
    with pytest.raises(grpc.RpcError):  # nothing of that name serves
        engine.caller("root").unload("slow")


ENDS = {
    "cancel": ({}, lambda engine, call: call.cancel(), grpc.StatusCode.CANCELLED),
    "deadline": ({"timeout": 3}, lambda engine, call: None, grpc.StatusCode.DEADLINE_EXCEEDED),
    "revoke": ({}, revoke, None),
    "unload": ({}, unload, grpc.StatusCode.CANCELLED),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_load_ends_early(engine, end):
    options, act, code = ENDS[end]
    call = engine.start_slow(**options)
    act(engine, call)
    eventually(call.done)
    assert code is None or call.code() == code
    eventually(engine.is_idle)
    eventually(lambda: not engine.unfinished())
    assert not (engine.models / "slow").exists()
    engine.caller("bob").publish("slow", QUICK)  # the name is free


@pytest.mark.parametrize("owners", [[None], ["alice"], [f"user{i}" for i in range(16)]], ids=["none", "one", "many"])
def test_a_model_behind_slow_ones_serves_after_a_start(tmp_path, owners):
    engine = Models(tmp_path)
    for i in range(16):
        engine.put(f"a{i}", SLOW, owners[i % len(owners)])
    engine.put("zz", QUICK)
    engine.start()
    try:
        root = engine.caller("root")
        eventually(lambda: root.is_ready("zz"))
        assert root.is_server_ready() or owners == [None]
        root.load("zz")
    finally:
        engine.stop()


def test_a_warm_up_that_waits_for_others_ends(engine):
    """A batch of warm-up waits for a minute for requests that do not come."""
    call = engine.caller("alice").start("slow", description(1, [-1, 4]), DELAYED)
    eventually(lambda: engine.unfinished())
    call.cancel()
    eventually(lambda: not engine.unfinished(), 30)


def grpc_load(engine) -> Callable[[], object]:
    return engine.caller("root").start_load("slow").cancel


def http_load(engine) -> Callable[[], object]:
    connection = http.client.HTTPConnection(engine.http)
    connection.request("POST", "/v2/repository/models/slow/load", headers={"Authorization": f"Bearer {engine.tokens['root']}"})
    return connection.close


@pytest.mark.parametrize("load", [grpc_load, http_load])
@pytest.mark.parametrize("way", ["leave", "revoke"])
@pytest.mark.parametrize("work", ["warm-up", "conversion"])
def test_a_requested_load_ends_with_its_caller(tmp_path, load, way, work):
    converter = tmp_path / "convert.sh"
    converter.write_text("#!/bin/sh\nsleep 1000\n")
    converter.chmod(0o755)
    # Without polling, which would load the model again.
    engine = Models(tmp_path, "--model-poll", "0", "--model-converter", str(converter), "--model-cache", str(tmp_path / "cache"))
    engine.start()
    eventually(engine.caller("root").is_server_ready)
    engine.put("slow", SLOW, file="program.pb" if work == "warm-up" else "model.onnx")
    leave = load(engine)
    eventually(lambda: engine.children() if work == "conversion" else not engine.is_idle())
    leave() if way == "leave" else user(engine.file, "revoke", "root")
    eventually(lambda: engine.records("model.load"))
    assert engine.records("model.load")[0]["outcome"] == "cancelled"
    eventually(engine.is_idle)
    assert not engine.children()
    engine.stop()


def test_equal_files_are_converted_at_the_same_time(tmp_path):
    (tmp_path / "quick.pb").write_bytes(QUICK)
    converter = tmp_path / "convert.sh"
    converter.write_text(f'#!/bin/sh\nsleep 1\ncp {tmp_path}/quick.pb "$2/program.pb"\n')
    converter.chmod(0o755)
    engine = Models(tmp_path, "--model-poll", "0", "--model-converter", str(converter), "--model-cache", str(tmp_path / "cache"))
    for i in range(4):
        engine.put(f"m{i}", b"equal", file="model.onnx")
        os.utime(engine.models / f"m{i}/1/model.onnx", (1, 1))
    engine.start()
    root = engine.caller("root")
    eventually(root.is_server_ready)
    assert all(root.is_ready(f"m{i}") for i in range(4)), engine.text()
    engine.stop()
