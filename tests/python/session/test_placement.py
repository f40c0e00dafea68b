"""A front engine that opens its principals' sessions in other engines: the least loaded one, keys, resuming, engines that end
and start again, revocation, TLS, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import grpc
import pytest

from tests.adversary.wire import Peer
from tests.conftest import BUILD, IN_PROCESS, eventually
from tests.python.session.test_isolation import Client
from tests.python.session.test_principals import run, user
from tests.python.session.test_tls import free_port
from tests.relay.process import RelayProcess

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires engines in other processes")]


class Engine:
    """A teletensord on a TCP port, with tokens."""

    def __init__(self, folder: Path, *options: str, place: str = ""):
        folder.mkdir(exist_ok=True)
        self.folder, self.options = folder, options
        self.place = place or f"127.0.0.1:{free_port()}"
        self.start()

    def start(self) -> None:
        """Starts the process, again at the same address."""
        self.log = open(self.folder / "log", "a+")  # noqa: SIM115 - lives as long as the process
        command = [BUILD / "bin/teletensord", "--listen", self.place, "--token-file", self.folder / "token",
                   "--audit-log", self.folder / "audit", "--grace", "2", "--lease", "20", *self.options]  # fmt: skip
        # Without the simulated GPUs, whose memory is the same for all processes.
        environment = {**os.environ, "TELETENSOR_CUDA_PLUGIN": ""}
        self.process = subprocess.Popen(command, stderr=self.log, env=environment)
        eventually(lambda: self.process.poll() is not None or "listening on" in self.text()[self.log_start() :])
        assert self.process.poll() is None, self.text()

    def log_start(self) -> int:
        return getattr(self, "_log_start", 0)

    def text(self) -> str:
        return (self.folder / "log").read_text()

    def token(self, name: str = "token") -> str:
        return (self.folder / name).read_text().strip()

    def events(self, event: str) -> list[dict]:
        records = map(json.loads, (self.folder / "audit").read_text().splitlines())
        return [each for each in records if each["event"] == event]

    def status(self) -> dict:
        done = run("--address", self.address, "--admin-token", self.token("admin-token"), "status", "--json",
                   **getattr(self, "trust", {}))  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @property
    def address(self) -> str:
        return self.place

    def kill(self) -> None:
        self._log_start = len(self.text())
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            assert self.process.wait(30) == 0, self.text()
        self.log.close()


class Front(Engine):
    """An engine with the principals alice and bob, which places their sessions in `engines`."""

    def __init__(self, folder: Path, *engines: str, token: str, options: tuple[str, ...] = ()):
        folder.mkdir()
        self.file = folder / "principals.json"
        self.tokens = {name: user(self.file, "add", name) for name in ("alice", "bob")}
        (folder / "engines-token").write_text(token)
        (folder / "engines-token").chmod(0o600)
        super().__init__(folder, "--engines", ",".join(engines), "--engines-token-file", folder / "engines-token",
                         "--principals", self.file, *options)  # fmt: skip

    def engines(self) -> dict[str, dict]:
        return {each["address"]: each for each in self.status()["engines"]}


@pytest.fixture
def cluster(tmp_path):
    """Returns two engines, and a function that starts a front engine and one that connects a client."""
    stops = []

    def engine(name: str, *options: str, **more) -> Engine:
        made = Engine(tmp_path / name, "--placed-by", "admin", *options, **more)
        stops.append(made.stop)
        return made

    def front(*engines: Engine, options: tuple[str, ...] = (), places: tuple[str, ...] = ()) -> Front:
        # The admin token of the first engine is that of all.
        made = Front(tmp_path / "front", *(places or [each.place for each in engines]),
                     token=engines[0].token("admin-token"), options=options)  # fmt: skip
        stops.append(made.stop)
        return made

    def client(front: Front, name: str = "alice", **options) -> Client:
        made = Client(**{"address": front.address, "token": front.tokens[name], "shared_memory": False, **options})
        stops.append(made.stop)
        return made

    yield engine, front, client
    for stop in reversed(stops):
        stop()


def two(engine) -> tuple[Engine, Engine]:
    """Two engines with the same admin token."""
    first = engine("first")
    (first.folder.parent / "second").mkdir()
    (first.folder.parent / "second/admin-token").write_text(first.token("admin-token"))
    (first.folder.parent / "second/admin-token").chmod(0o600)
    return first, engine("second")


def test_sessions_are_placed_in_the_least_loaded_engine(cluster):
    engine, front, client = cluster
    first, second = two(engine)
    placed = front(first, second)
    clients = [client(placed, name) for name in ("alice", "bob", "alice", "alice")]
    assert [each.greeting for each in clients] == ["up"] * 4
    assert [each("torch.ones(3).sum().item()") for each in clients] == ["3.0"] * 4
    # Of engines that are equally loaded, the one with fewer sessions.
    assert [len(each.status()["sessions"]) for each in (first, second)] == [2, 2]
    assert len(placed.status()["sessions"]) == 0 and not placed.status()["devices"]
    names = {each["principal"] for one in (first, second) for each in one.status()["sessions"]}
    assert names == {"alice", "bob"}
    # The engines never saw a token of a principal, and no log has a key.
    for each in (first, second):
        opened = each.events("session.open")
        assert len(opened) == 2 and all("key" not in json.dumps(record) for record in each.events("admin.admit"))
    assert len(placed.events("session.redirect")) == 4
    listed = placed.engines()
    assert {each["placed"] for each in listed.values()} == {"2"} and all(each["answers"] for each in listed.values())
    shown = run("--address", placed.address, "--admin-token", placed.token("admin-token"), "status")
    assert f"engine at {first.place}: " in shown.stdout and f"engine at {second.place}: " in shown.stdout
    as_user = run("--address", placed.address, "--token", placed.tokens["bob"], "--admin-token", placed.tokens["bob"],
                  "status", "--json")  # fmt: skip
    assert json.loads(as_user.stdout).get("engines", []) == []


def test_full_device_is_avoided(cluster):
    engine, front, client = cluster
    first = engine("first", "--memory-limit", "256MB")
    (first.folder.parent / "second").mkdir()
    (first.folder.parent / "second/admin-token").write_text(first.token("admin-token"))
    (first.folder.parent / "second/admin-token").chmod(0o600)
    second = engine("second", "--memory-limit", "256MB")
    own = Client(address=first.place, token=first.token(), shared_memory=False)
    try:
        assert own("exec('big = torch.ones(48 << 20, dtype=torch.uint8)') or torch.synchronize()") == "None"
        placed = front(first, second)
        clients = [client(placed) for _ in range(3)]
        assert [each.greeting for each in clients] == ["up"] * 3
        assert [len(each.status()["sessions"]) for each in (first, second)] == [1, 3]
    finally:
        own.stop()


def test_resume_in_the_same_engine(cluster):
    engine, front, client = cluster
    first = engine("first")
    with RelayProcess(first.place) as relay:
        placed = front(first, places=(relay.address,))
        one = client(placed)
        assert one("exec('x = torch.ones(3)', globals())") == "None"
        placed.kill()  # not needed by a session that exists
        relay.command("cut")
        assert one("x.add_(1).sum().item()") == "6.0"
        assert len(first.events("session.resume")) >= 1 and len(first.events("session.open")) == 1
        placed.start()
        relay.command("cut")
        assert one("x.add_(1).sum().item()") == "9.0"


def test_engine_that_ends_is_skipped_and_tried_again(cluster):
    engine, front, client = cluster
    first, second = two(engine)
    placed = front(first, second)
    before = [client(placed) for _ in range(2)]
    assert [each.greeting for each in before] == ["up"] * 2
    first.kill()
    lost = [each("torch.ones(3).sum().item()") for each in before]
    assert sorted(each.split()[0] for each in lost) == ["3.0", "ConnectionError"]
    after = [client(placed) for _ in range(2)]
    assert [each.greeting for each in after] == ["up"] * 2
    assert len(second.status()["sessions"]) == 3
    eventually(lambda: not placed.engines()[first.place]["answers"])
    assert placed.engines()[first.place]["failure"]
    first.start()
    eventually(lambda: placed.engines()[first.place]["answers"])
    assert client(placed).greeting == "up" and len(first.status()["sessions"]) == 1
    # None left: an error that names them.
    first.kill()
    second.kill()
    refused = client(placed).greeting
    assert "no engine can open a session" in refused and first.place in refused and second.place in refused


def test_revocation_ends_sessions_in_all_engines(cluster):
    engine, front, client = cluster
    first, second = two(engine)
    placed = front(first, second)
    alice, other, bob = client(placed), client(placed), client(placed, "bob")
    assert [each.greeting for each in (alice, other, bob)] == ["up"] * 3
    second.process.send_signal(signal.SIGSTOP)  # is revoked there once it answers
    user(placed.file, "revoke", "alice")
    eventually(lambda: [each["principal"] for each in first.status()["sessions"]].count("alice") == 0)
    second.process.send_signal(signal.SIGCONT)
    eventually(lambda: [each["principal"] for each in second.status()["sessions"]].count("alice") == 0)
    assert bob("torch.ones(3).sum().item()") == "3.0"
    assert "ConnectionError" in alice("torch.ones(3).sum().item()")
    assert "ConnectionError" in other("torch.ones(3).sum().item()")


def test_limits_hold_in_the_engine(cluster):
    engine, front, client = cluster
    first = engine("first")
    placed = front(first)
    user(placed.file, "set", "alice", "--memory", "16MB", "--sessions", "1")
    time.sleep(1.2)  # the file is read again within a second
    alice = client(placed)
    assert alice.greeting == "up"
    assert (
        "OutOfMemoryError" in alice("torch.ones(8 << 20).sum().item()") and alice("torch.ones(3).sum().item()") == "3.0"
    )
    assert "alice may have 1 sessions at a time" in client(placed).greeting
    assert client(placed, "bob").greeting == "up"


def test_tls_with_fingerprints(cluster, tmp_path):
    engine, front, client = cluster
    first = engine("first", "--tls-self-signed")
    fingerprint = next(word for word in first.text().split() if word.startswith("sha256:"))
    place = f"teletensors://{first.place}#{fingerprint}"
    placed = front(first, places=(place,), options=("--tls-self-signed",))
    own = next(word for word in placed.text().split() if word.startswith("sha256:"))
    one = client(placed, address=f"teletensors://{placed.place}", fingerprint=own)
    assert one.greeting == "up" and one("torch.ones(3).sum().item()") == "3.0"
    assert own != fingerprint
    # Another certificate: neither the front engine nor a client talks to it.
    placed.kill()
    first.kill()
    for name in ("tls-cert.pem", "tls-key.pem"):
        (first.folder / name).unlink()
    first.start()
    placed.start()
    refused = client(placed, address=f"teletensors://{placed.place}", fingerprint=own).greeting
    assert "no engine can open a session" in refused and first.events("session.open")[1:] == []


def test_admission_requires_the_principal_of_placed_by(cluster, tmp_path):
    engine, front, client = cluster
    first = engine("first")
    other = Engine(tmp_path / "other")  # without --placed-by
    try:
        for target, token in ((first, first.token()), (other, other.token("admin-token"))):
            peer = Peer(target.place, token)
            call = peer.channel.unary_unary("/teletensor.v1.Admin/Admit", None, None)
            request = b"\x0a\x40" + b"a" * 64 + b"\x18\x90\x4e" + b"\x2a\x05alice"
            with pytest.raises(grpc.RpcError) as refused:
                call(request, metadata=[("authorization", f"Bearer {token}")], timeout=20)
            assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
            peer.close()
        # A key that nobody has issued, and one that is used twice.
        peer = Peer(first.place, first.token("admin-token"))
        call = peer.channel.unary_unary("/teletensor.v1.Admin/Admit", None, None)
        call(b"\x0a\x40" + b"a" * 64 + b"\x18\x90\x4e" + b"\x2a\x05alice",
             metadata=[("authorization", f"Bearer {peer.token}")], timeout=20)  # fmt: skip
        hello = peer.channel.unary_unary("/teletensor.v1.Engine/Hello", None, None)
        assert hello(b"", metadata=[("teletensor-admission", "a" * 64)], timeout=20)
        for key in ("a" * 64, "b" * 64, ""):
            with pytest.raises(grpc.RpcError) as refused:
                hello(b"", metadata=[("teletensor-admission", key)], timeout=20)
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
        # A session's key resumes only sessions that were opened by a key of the front engine.
        key = peer.hello().session_key
        with pytest.raises(grpc.RpcError) as refused:
            hello(b"\x1a" + bytes([len(key)]) + key, metadata=[("teletensor-session", key)], timeout=20)
        assert refused.value.code() == grpc.StatusCode.NOT_FOUND
        peer.close()
    finally:
        other.stop()


@pytest.mark.parametrize(
    "options, found",
    [
        (("--engines", "a:1"), "--engines requires --engines-token-file"),
        (("--engines-ca", "/etc/hostname"), "require --engines"),
        (("--engines", "nonsense", "--engines-token-file", "t"), "expected HOST:PORT"),
        (("--engines", "teletensors://a:1#12", "--engines-token-file", "t"), "expected a fingerprint"),
        (("--engines", "10.0.0.1:1", "--engines-token-file", "t"), "requires TLS"),
        (("--engines", "127.0.0.1:1", "--engines-token-file", "t", "--tls-self-signed"), "with TLS only"),
        (("--engines", "127.0.0.1:1", "--engines-token-file", "t", "--no-auth"), "requires authentication"),
        (
            ("--engines", "127.0.0.1:1", "--engines-token-file", "t", "--isolate", "principal"),
            "no session is opened here",
        ),
        (
            ("--engines", "127.0.0.1:1", "--engines-token-file", "t", "--memory-limit", "1GB"),
            "no session is opened here",
        ),
        (("--placed-by", "admin", "--no-auth"), "--placed-by requires authentication"),
        (("--placed-by", "admin", "--isolate", "principal"), "one redirect only"),
    ],
)
def test_refused_options(options, found):
    done = subprocess.run(
        [BUILD / "bin/teletensord", "--check-config", *options], capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0 and found in done.stderr, done.stderr
