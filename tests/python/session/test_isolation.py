"""Engines that serve each principal in a worker process: faults, keys, limits, revocation, and the ends of processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from concurrent import futures
from pathlib import Path

import grpc
import pytest

from tests.adversary.wire import ENGINE, message
from tests.conftest import BUILD, IN_PROCESS, client_environment, eventually, not_sanitized
from tests.python.session.test_principals import Engine, run, user
from tests.python.session.test_tls import Files, free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

# Evaluates lines; prints the result, or the error, as one line.
CLIENT = """
import sys, teletensor as torch
from tests.python.session.training_run import train
try:
    torch.connect(**{options!r})
    print("up", flush=True)
except ConnectionError as error:
    print(error, flush=True)
for line in sys.stdin:
    try:
        print(eval(line), flush=True)
    except Exception as error:
        print(type(error).__name__, str(error).replace(chr(10), " "), flush=True)
"""


class Client:
    """A Python process with a session."""

    def __init__(self, *, shared_memory: bool = True, **options: str):
        python = str(BUILD / "../.venv/bin/python")
        environment = client_environment(TELETENSOR_KNOWN_ENGINES="/dev/null", TELETENSOR_SHARED_MEMORY=str(int(shared_memory)))
        environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).resolve().parents[3])
        self.process = subprocess.Popen(
            [python, "-c", CLIENT.format(options=options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.greeting = self.process.stdout.readline().strip()

    def send(self, expression: str) -> None:
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()

    def receive(self) -> str:
        return self.process.stdout.readline().strip()

    def __call__(self, expression: str) -> str:
        self.send(expression)
        return self.receive()

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


class Isolated(Engine):
    """An engine with --isolate=principal and the principals alice and bob, on a unix socket and, with a port, TCP."""

    def __init__(self, folder, principals: Path, tokens: dict[str, str], *options: str):
        super().__init__(folder, "--isolate", "principal", "--grace", "4", *options)
        shutil.copy(principals, self.file)
        self.tokens = tokens
        self.clients: list[Client] = []

    def client(self, name: str, shared_memory: bool = True, **options: str) -> Client:
        made = Client(shared_memory=shared_memory, **{"address": self.address, "token": self.tokens[name], **options})
        self.clients.append(made)
        return made

    def status(self) -> dict:
        done = run("--address", self.address, "--admin-token", self.token("admin-token"), "status", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def workers(self) -> dict[str, int]:
        """The processes by principal."""
        return {each["principal"]: int(each["pid"]) for each in self.status()["workers"]}

    def close(self) -> None:
        for client in self.clients:
            client.stop()
        if self.process.poll() is None:
            self.stop()


@pytest.fixture(scope="module")
def principals(tmp_path_factory):
    """A file with the principals alice and bob, and their tokens: each test's engine gets a copy."""
    file = tmp_path_factory.mktemp("principals") / "principals.json"
    return file, {name: user(file, "add", name) for name in ("alice", "bob")}


@pytest.fixture
def start(tmp_path, principals):
    engines = []

    def make(*options: str) -> Isolated:
        folder = tmp_path / f"engine{len(engines)}"
        folder.mkdir()
        engines.append(Isolated(folder, *principals, *options))
        return engines[-1].start()

    yield make
    for engine in engines:
        engine.close()


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the second if it ends between open and read
        return False


@not_sanitized("the sanitizer handles SIGSEGV itself")
def test_a_fault_costs_one_principal(start):
    engine = start("--worker-idle", "60")
    alice, bob = engine.client("alice"), engine.client("bob")
    assert alice.greeting == bob.greeting == "up"
    before = bob("train(60)")
    assert alice("torch.ones(3).sum().item()") == "3.0"
    workers = engine.workers()
    assert set(workers) == {"alice", "bob"} and engine.process.pid not in workers.values()
    for pid in workers.values():
        status = Path(f"/proc/{pid}/status").read_text()
        assert "\nNoNewPrivs:\t1\n" in status and "\nSeccomp:\t2\n" in status

    devices = [each["device"]["device"] for each in engine.status()["devices"]]
    assert devices and len(devices) == len(set(devices))  # of both workers together

    bob.send("train(60)")
    os.kill(workers["alice"], signal.SIGSEGV)
    eventually(lambda: not is_running(workers["alice"]))  # until then it may still answer
    # A lease of 60 s: the client does not wait for it.
    lost = alice("torch.ones(3).sum().item()")
    assert lost.startswith("ConnectionError") and "ended" in lost
    assert bob.receive() == before
    assert engine.workers() == {"bob": workers["bob"]}
    again = engine.client("alice")
    assert again("torch.ones(3).sum().item()") == "3.0" and engine.workers()["alice"] != workers["alice"]
    assert "of alice ended by signal 11" in engine.text()

    sessions = {each["principal"]: int(each["id"]) for each in engine.status()["sessions"]}
    ended = run("--address", engine.address, "--admin-token", engine.token("admin-token"), "end-session", sessions["alice"])
    assert ended.returncode == 0, ended.stderr
    assert again("torch.ones(3).sum().item()").startswith("ConnectionError")
    assert bob("torch.ones(3).sum().item()") == "3.0"


@not_sanitized("the sanitizer handles SIGSEGV itself")
def test_without_shared_memory_the_engine_reports_the_fault(start):
    """Such a client cannot see that the worker's process has ended: it asks the engine."""
    engine = start("--listen", f"127.0.0.1:{(port := free_port())}")
    alice = engine.client("alice", address=f"127.0.0.1:{port}", shared_memory=False)
    assert alice("torch.ones(3).sum().item()") == "3.0"
    worker = engine.workers()["alice"]
    os.kill(worker, signal.SIGSEGV)
    eventually(lambda: not is_running(worker))
    lost = alice("torch.ones(3).sum().item()")
    assert "the worker process of alice has ended (signal 11" in lost


class Relay:
    """Passes the connections of a worker's socket on, until cut() breaks them."""

    def __init__(self, path: str):
        self.path, self.target, self.count = path, path + ".target", 0
        os.rename(path, self.target)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target)
            self.count += 1
            self.open += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self) -> None:
        for end in self.open:
            end.shutdown(socket.SHUT_RDWR)
        self.open = []


def test_a_session_outlives_its_connection_to_the_worker(start):
    engine = start()
    first = engine.client("alice")  # starts the worker, whose socket the relay then takes over
    (path,) = (each for each in engine.folder.glob("engine.sock.*"))
    relay = Relay(str(path))
    alice = engine.client("alice", shared_memory=False)
    assert alice("globals().update(x=torch.arange(5.)) or x.sum().item()") == "10.0"
    connections = relay.count
    for _ in range(3):
        relay.cut()
        assert alice("x.add_(1).sum().item() - x.numel()") in ("10.0", "15.0", "20.0")
    assert relay.count > connections and alice("x.sum().item()") == "25.0"  # each call was executed once
    assert len(engine.records("session.redirect")) == 2  # the engine had no part in it
    assert first("torch.ones(3).sum().item()") == "3.0"
    relay.listener.close()


def test_tls(tmp_path, start):
    files = Files(tmp_path / "tls", "127.0.0.1")
    port, ports = free_port(), free_port()
    engine = start("--listen", f"127.0.0.1:{port}", "--worker-ports", str(ports), *files.options)
    url = f"teletensors://127.0.0.1:{port}"
    eventually(lambda: "sha256:" in engine.text())
    fingerprint = next(word for word in engine.text().split() if word.startswith("sha256:"))
    for trust in ({"fingerprint": fingerprint}, {"ca": files.ca}):
        client = engine.client("alice", address=url, **trust)
        assert client.greeting == "up" and client("torch.ones(3).sum().item()") == "3.0"
    (line,) = (each for each in engine.records("session.open") if each["session"] == 1)
    assert line["principal"] == "alice" and line["peer"].startswith("ipv4:127.0.0.1")
    # The worker speaks TLS only, with the same certificate, and has no other way in.
    assert "requires TLS" in engine.client("alice", address=f"127.0.0.1:{ports}").greeting
    direct = engine.client("alice", address=f"teletensors://127.0.0.1:{ports}", ca=files.ca)
    assert "a session is opened here only with the key" in direct.greeting


def hello(address: str, *metadata: tuple[str, str], **fields):
    """The reply to a Hello with this metadata, or the code of its status."""
    with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        call = channel.unary_unary(ENGINE + "Hello", lambda m: m.SerializeToString(), message("HelloReply").FromString)
        try:
            return call(message("HelloRequest")(**fields), metadata=metadata, timeout=20)
        except grpc.RpcError as error:
            return error.code().name


def test_keys(start):
    engine = start()
    tokens = {name: ("authorization", f"Bearer {token}") for name, token in engine.tokens.items()}
    redirects = {name: hello(engine.address, token, follows_redirect=True).redirect for name, token in tokens.items()}
    alice, bob = redirects["alice"], redirects["bob"]
    key, place = ("teletensor-admission", alice.key.decode()), f"unix:{alice.socket}"

    assert hello(f"unix:{bob.socket}", key) == "UNAUTHENTICATED"  # of another principal
    assert hello(place, tokens["alice"]) == "UNAUTHENTICATED"  # a token opens nothing in a worker
    for wrong in (key[1][:-1], key[1] + "0", "0" * 64, key[1].upper(), ""):
        assert hello(place, ("teletensor-admission", wrong)) == "UNAUTHENTICATED"
    session = hello(place, key)
    assert len(session.session_key) == 64 and session.session_id == 1 and not session.HasField("redirect")
    assert hello(place, key) == "UNAUTHENTICATED"  # only once
    # The session is resumed with its key, and not by that of another session.
    other = hello(place, ("teletensor-admission", hello(engine.address, tokens["alice"], follows_redirect=True).redirect.key.decode()))
    own = ("teletensor-session", session.session_key.decode())
    assert hello(place, own, resume_key=session.session_key).session_id == session.session_id
    assert hello(place, own, resume_key=other.session_key) == "NOT_FOUND"
    assert hello(place, own) == "UNAUTHENTICATED"
    assert hello(place, ("teletensor-session", "0" * 64), resume_key=b"0" * 64) == "NOT_FOUND"

    # Hostile and old Hellos at the engine.
    assert hello(engine.address, tokens["alice"]) == "FAILED_PRECONDITION"
    located = hello(engine.address, tokens["alice"], resume_key=session.session_key, worker=alice.worker)
    assert located.redirect.socket == alice.socket and not located.redirect.key
    for worker in (bob.worker, 0, 1, 2**64 - 1):
        assert hello(engine.address, tokens["alice"], resume_key=session.session_key, worker=worker) == "NOT_FOUND"
    assert hello(engine.address, resume_key=session.session_key, worker=alice.worker) == "UNAUTHENTICATED"
    assert hello(engine.address, tokens["alice"], resume_key=b"\0" * 65536, worker=alice.worker) == "RESOURCE_EXHAUSTED"


class Impostor:
    """A server on loopback TCP that answers every Hello with `reply`, and records its metadata."""

    def __init__(self, reply):
        self.seen: list[dict[str, str]] = []

        def answer(request, context):
            self.seen.append({**dict(context.invocation_metadata())})
            return reply

        handler = grpc.unary_unary_rpc_method_handler(
            answer, message("HelloRequest").FromString, lambda m: m.SerializeToString()
        )
        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("teletensor.v1.Engine", {"Hello": handler})])
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()


def test_hostile_redirects(start):
    engine = start()
    redirect, key = message("Redirect"), b"0" * 64
    second = Impostor(message("HelloReply")(engine_version="0.1.0", redirect=redirect(worker=1, port=1, key=key)))
    cases = [
        (redirect(port=second.port, key=key), "got another redirect"),
        (redirect(port=0, key=key), "expected a port from 1 to 65535"),
        (redirect(port=70000, key=key), "expected a port from 1 to 65535"),
        # The client is connected by TCP: a socket, where another engine would believe it, is not for it.
        (redirect(socket=str(engine.socket), key=key), "expected a port from 1 to 65535"),
        (redirect(port=second.port, key=b"x" * 64), "expected a key of 64 hexadecimal digits"),
        (redirect(port=second.port, key=b"0\r\nauthorization: Bearer x"), "expected a key of 64 hexadecimal digits"),
        (redirect(port=second.port), "expected a key of 64 hexadecimal digits"),
        *((redirect(address=address, key=key), "expected the address of an engine")
          for address in (f"unix:{engine.socket}", "host", "teletensors://host:1", "a b:1", "a\n:1", "x" * 400 + ":1")),
        (redirect(address="host:0", key=key), "the engine's redirect is malformed"),
        (redirect(address="127.0.0.1:1", tls=True, fingerprint="12", key=key), "expected a fingerprint"),
    ]  # fmt: skip
    client = engine.client("alice", token="0" * 64)  # one process for all connections: starting it takes longer than they do
    for reply, why in cases:
        first = Impostor(message("HelloReply")(engine_version="0.1.0", redirect=reply))
        options = {"address": f"127.0.0.1:{first.port}", "token": engine.tokens["alice"]}
        assert why in client(f"torch.connect(**{options!r})")
        assert [each["authorization"] for each in first.seen] == [f"Bearer {engine.tokens['alice']}"]
        first.server.stop(None)
    # The one that was followed got the key, and no token.
    (seen,) = second.seen
    assert seen["teletensor-admission"] == key.decode() and "authorization" not in seen
    second.server.stop(None)


def test_revocation(start):
    engine = start()
    alice, bob = engine.client("alice"), engine.client("bob")
    assert alice("torch.ones(3).sum().item()") == "3.0"
    unused = hello(engine.address, ("authorization", f"Bearer {engine.tokens['alice']}"), follows_redirect=True).redirect
    user(engine.file, "revoke", "alice")
    eventually(lambda: engine.records("principal.revoked"))
    eventually(lambda: engine.records("session.end"))
    assert alice("torch.ones(3).sum().item()").startswith("ConnectionError")
    assert hello(f"unix:{unused.socket}", ("teletensor-admission", unused.key.decode())) == "UNAUTHENTICATED"
    assert bob("torch.ones(3).sum().item()") == "3.0"
    # Changed limits reach the sessions that exist.
    user(engine.file, "set", "bob", "--memory", "1MB")
    eventually(lambda: "bob" in bob("torch.ones(1 << 20).sum().item()"))
    assert "of their limit of 1 MiB" in bob("torch.ones(1 << 20).sum().item()")


@not_sanitized("it measures resident memory, to which shadow memory adds")
def test_memory(start):
    engine = start("--worker-memory", "256MB")
    alice, bob = engine.client("alice"), engine.client("bob")
    refused = alice("globals().update(y=torch.ones(150 << 20, dtype=torch.uint8)) or torch.ones(150 << 20, dtype=torch.uint8).sum().item()")
    assert "emory" in refused, refused
    assert bob("torch.ones(200 << 20, dtype=torch.uint8).numel()") == str(200 << 20)
    assert alice("torch.ones(3).sum().item()") == "3.0"
    for pid in engine.workers().values():
        (line,) = (each for each in Path(f"/proc/{pid}/limits").read_text().splitlines() if each.startswith("Max data size"))
        assert 256 << 20 < int(line.split()[3]) < 4 << 30


def test_workers_end(start):
    engine = start("--worker-idle", "0.5")
    alice = engine.client("alice")
    assert alice("torch.ones(3).sum().item()") == "3.0"
    (pid,) = engine.workers().values()
    time.sleep(1.5)
    assert engine.workers() == {"alice": pid}  # it has a session
    alice.stop()
    eventually(lambda: not engine.workers())
    eventually(lambda: not is_running(pid))
    assert not list(engine.folder.glob("engine.sock.*"))

    # An engine that is killed takes its workers with it; another one starts in its place.
    engine.client("alice"), engine.client("bob")
    workers = engine.workers()
    engine.process.kill()
    engine.process.wait()
    eventually(lambda: not any(is_running(pid) for pid in workers.values()))
    engine.socket.unlink()
    assert list(engine.folder.glob("engine.sock.*"))
    engine.start()
    assert not list(engine.folder.glob("engine.sock.*"))
    assert engine.client("alice")("torch.ones(3).sum().item()") == "3.0"
    # An engine that is stopped ends its workers.
    (pid,) = engine.workers().values()
    engine.stop()
    assert not is_running(pid) and not list(engine.folder.glob("engine.sock*"))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--isolate", "principal", "--no-auth"], "requires authentication"),
        (["--isolate", "principal", "--private"], "no effect with --private"),
        (["--isolate", "principal", "--memory-limit", "1GB"], "--worker-memory"),
        (["--isolate", "principal", "--worker-memory", "1MB"], "at least 64MB"),
        (["--worker-memory", "1GB"], "require --isolate=principal"),
        (["--isolate", "principal", "--worker-ports", "9-1"], "expected ports such as 7100-7199"),
    ],
)
def test_refused_options(options, why):
    done = subprocess.run([str(BUILD / "bin/teletensord"), *options], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and why in done.stderr
