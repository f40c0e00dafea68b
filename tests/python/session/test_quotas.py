"""Limits that a principal's sessions have together: memory, handles, checkpoints; changed while they run."""

from __future__ import annotations

import json
import subprocess

import grpc
import pytest

from tests.adversary.attacks import hold_small_tensors
from tests.adversary.wire import Peer
from tests.conftest import BUILD, IN_PROCESS, client_environment, eventually
from tests.python.session.test_principals import Engine, engine, run, user  # noqa: F401 - a fixture

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

# Executes each line of its input and prints the result as JSON, or the error.
CLIENT = """
import json, sys, teletensor as torch
names = {"torch": torch}
for line in sys.stdin:
    try:
        try:
            code = compile(line.strip(), "<line>", "eval")
        except SyntaxError:
            code = compile(line.strip(), "<line>", "exec")
        print(json.dumps(eval(code, names)), flush=True)
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
"""


class Client:
    """A program that connects with a token and executes lines."""

    def __init__(self, of: Engine, token: str):
        self.process = subprocess.Popen(
            [BUILD / "../.venv/bin/python", "-c", CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=client_environment(TELETENSOR_ADDRESS=of.address, TELETENSOR_TOKEN=token),
        )  # fmt: skip

    def __call__(self, line: str):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0


@pytest.fixture
def clients():
    made: list[Client] = []

    def make(*arguments) -> Client:
        made.append(Client(*arguments))
        return made[-1]

    yield make
    for each in made:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


ALLOCATE = "x = torch.ones({}, dtype=torch.uint8); torch.synchronize()"
SUM = "x.sum().item()"
MIB = 1 << 20


def limits_of(of: Engine, token: str) -> dict[str, dict]:
    done = run("--address", of.address, "--token", token, "status", "--json")
    assert done.returncode == 0, done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)["principals"]}


def test_memory_is_limited_together(engine, clients):  # noqa: F811
    alice, bob = user(engine.file, "add", "alice", "--memory", "96MB"), user(engine.file, "add", "bob")
    engine.start()
    first, second, other = clients(engine, alice), clients(engine, alice), clients(engine, bob)
    first(ALLOCATE.format(40 * MIB))
    assert first(SUM) == 40 * MIB
    second(ALLOCATE.format(60 * MIB))
    refused = second(SUM)
    assert refused.startswith("OutOfMemoryError") and "the sessions of alice hold " in refused and "of their limit of 96 MiB" in refused
    second(ALLOCATE.format(10 * MIB))  # the session goes on
    assert second(SUM) == 10 * MIB
    other(ALLOCATE.format(100 * MIB))
    assert other(SUM) == 100 * MIB
    # The owner sees the usage and the limit, and nobody else's.
    (own,) = limits_of(engine, alice).items()
    assert own[0] == "alice" and own[1]["memory_limit"] == str(96 * MIB) and own[1]["sessions"] == "2"
    assert 50 * MIB <= int(own[1]["held_bytes"]) <= 96 * MIB  # with the memory that clients and engine share
    shown = run("--address", engine.address, "--token", alice, "status").stdout
    assert "limits: 96.0 MiB" in " ".join(shown.split())
    # A higher limit holds within a second, and the sessions go on.
    user(engine.file, "set", "alice", "--memory", "160MB")
    eventually(lambda: limits_of(engine, alice)["alice"]["memory_limit"] == str(160 * MIB))
    second(ALLOCATE.format(60 * MIB))
    assert second(SUM) == 60 * MIB
    # A lower one takes nothing away.
    user(engine.file, "set", "alice", "--memory", "64MB")
    eventually(lambda: limits_of(engine, alice)["alice"]["memory_limit"] == str(64 * MIB))
    assert first(SUM).startswith("OutOfMemoryError")
    first("del x; torch.synchronize()")
    second("y = x[:9]; del x; y = y.clone(); torch.synchronize()")
    first(ALLOCATE.format(20 * MIB))
    assert first(SUM) == 20 * MIB
    # What an ended session held is free.
    first.end()
    eventually(lambda: limits_of(engine, alice)["alice"]["sessions"] == "1")
    second(ALLOCATE.format(30 * MIB))
    assert second(SUM) == 30 * MIB
    second.end()
    eventually(lambda: limits_of(engine, alice)["alice"]["sessions"] == "0")
    ended = limits_of(engine, alice)["alice"]
    assert [ended[field] for field in ("held_bytes", "bookkeeping_bytes", "handles", "transfers")] == ["0"] * 4


def test_sessions_have_a_default_limit(engine):  # noqa: F811
    token, more = user(engine.file, "add", "alice"), user(engine.file, "add", "bob", "--sessions", "65")
    engine.start()
    peer, other = Peer(engine.address, token), Peer(engine.address, more)
    for _ in range(64):
        peer.hello(), other.hello()
    with pytest.raises(grpc.RpcError, match="alice may have 64 sessions at a time"):
        peer.hello()
    other.hello()


def test_bookkeeping_is_limited_together(engine):  # noqa: F811
    """Tensors of one element in many sessions: one free allowance for all, and the engine's memory follows the account."""
    token = user(engine.file, "add", "alice", "--memory", "20MB", "--sessions", "101")
    engine.start()
    warm = [hold_small_tensors(engine.address, engine.token("token"))]
    before, peers, refused = engine.resident(), [], None
    while refused is None and len(peers) < 101:
        try:
            peers.append(hold_small_tensors(engine.address, token))
        except grpc.RpcError as error:
            refused = error.details()
    grown = engine.resident() - before
    (own,) = limits_of(engine, token).values()
    assert "no memory for another session" in refused and "the sessions of alice hold" in refused
    assert 18 * MIB < int(own["held_bytes"]) + int(own["bookkeeping_bytes"]) < 24 * MIB
    assert grown < 48 * MIB  # 20, 6 of the allowance, 2 of the overdraft, connections; 540 if each session has an allowance
    for peer, _replies in peers + warm:
        peer.close()


def test_handles_are_limited_together(engine, clients):  # noqa: F811
    token = user(engine.file, "add", "alice", "--handles", "2000")
    engine.start()
    first, second = clients(engine, token), clients(engine, token)
    first("a = [torch.zeros(()) for _ in range(1800)]; torch.synchronize()")
    second("b = [torch.zeros(()) for _ in range(1500)]; torch.synchronize()")
    refused = second("b[-1].item()")
    assert refused.startswith("OutOfMemoryError") and "the sessions of alice have" in refused and "of at most 2000" in refused
    second("b = 0; torch.synchronize()")
    first("a = 0; torch.synchronize()")
    assert second("torch.ones(3).sum().item()") == 3


def test_checkpoints_are_limited(tmp_path, engine, clients):  # noqa: F811
    alice = user(engine.file, "add", "alice", "--checkpoints", "3MB")
    bob = user(engine.file, "add", "bob")
    (tmp_path / "files").mkdir()
    engine.options = ("--checkpoint-root", str(tmp_path / "files"))
    engine.start()
    first, other = clients(engine, alice), clients(engine, bob)
    save = "import teletensor.checkpoint; torch.checkpoint.save({{'x': torch.ones({0}, dtype=torch.uint8)}}, {1!r})"
    assert first(save.format(2 * MIB, "a.safetensors")) is None
    refused = first(save.format(MIB, "b.safetensors"))
    assert "RuntimeError" in refused and "the checkpoints of alice take 2" in refused and "limit of 3 MiB" in refused
    # Replacing a file needs room for the difference only.
    assert first(save.format(2 * MIB + MIB // 2, "a.safetensors")) is None
    assert not list((tmp_path / "files" / "alice").glob(".checkpoint-*"))
    assert other(save.format(8 * MIB, "b.safetensors")) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--memory", "much"), "expected memory as bytes, such as 8GB, got 'much'"),
        (("--handles", "1GB"), "expected handles as a number, got '1GB'"),
        (("--sessions", "-1"), "expected a number of sessions, got -1"),
    ],
)
def test_command(tmp_path, words, message):
    file = tmp_path / "p.json"
    user(file, "add", "alice", "--memory", "8GB", "--transfers", "4")
    done = run("user", "--file", file, "set", "alice", *words)
    assert done.returncode == 1 and message in done.stderr
    assert "memory 8.0 GiB" in " ".join(user(file, "list").split()) or "8.0 GiB" in user(file, "list")
    user(file, "set", "alice", "--memory", "0", "--expires", "2099-01-31", "--checkpoints", "1TB")
    (entry,) = json.loads(file.read_text())["principals"]
    assert "memory" not in entry and entry["transfers"] == 4 and entry["expires"] == "2099-01-31" and entry["checkpoints"] == 1 << 40
    assert run("user", "--file", file, "set", "bob", "--memory", "1").returncode == 1
