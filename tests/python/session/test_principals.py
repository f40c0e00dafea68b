"""Principals: tokens and certificates of several people, their roles, limits, expiry and revocation; the audit log."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest

from tests.conftest import BUILD, IN_PROCESS, client_environment, eventually
from tests.python.session.test_tls import Files, connect, free_port
from tests.sockets import is_listening

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]
COMMAND = str(BUILD / "../.venv/bin/teletensor")


def run(*words: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [COMMAND, *map(str, words)], capture_output=True, text=True, timeout=60, env=client_environment(**environment)
    )


def user(file, *words: str) -> str:
    done = run("user", "--file", file, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Engine:
    """A teletensord with tokens, principals and an audit log."""

    def __init__(self, folder, *options: str):
        self.folder, self.file, self.audit = folder, folder / "principals.json", folder / "audit.jsonl"
        self.socket = folder / "engine.sock"
        self.address = f"unix:{self.socket}"
        self.log = open(folder / "engine.log", "w+")  # noqa: SIM115 - lives as long as the process
        self.options = options

    def start(self, prefix: Sequence[str] = (), **options) -> Engine:
        """Starts it by a command that begins with `prefix`, and with options of Popen."""
        command = [*prefix, str(BUILD / "bin/teletensord"), "--listen", self.address, "--token-file", str(self.folder / "token"),
                   "--principals", str(self.file), "--audit-log", str(self.audit), *self.options]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, **options)
        deadline = time.monotonic() + 20
        while not is_listening(self.socket):
            assert self.process.poll() is None and time.monotonic() < deadline, self.text()
            time.sleep(0.02)
        return self

    def text(self) -> str:
        return Path(self.log.name).read_text()  # the engine shares the position of self.log

    def resident(self) -> int:
        """Resident memory in bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    def records(self, event: str) -> list[dict]:
        return [each for each in map(json.loads, self.audit.read_text().splitlines()) if each["event"] == event]

    def token(self, name: str) -> str:
        return (self.folder / name).read_text().strip()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(20) == 0
        self.log.close()


@pytest.fixture
def engine(tmp_path):
    made = Engine(tmp_path)
    yield made
    made.stop()


def test_roles(tmp_path, engine):
    tokens = {name: user(engine.file, "add", name, "--role", role)
              for name, role in (("alice", "user"), ("bob", "user"), ("watcher", "observer"), ("root", "operator"))}  # fmt: skip
    assert "sha256" in engine.file.read_text() and not any(token in engine.file.read_text() for token in tokens.values())
    engine.start()
    options = [{"address": engine.address, "token": tokens[name]} for name in tokens]
    alice, bob, watcher, root, stranger = connect(tmp_path, *options, {"address": engine.address, "token": "0" * 64})
    assert alice == bob == root == "3.0"
    assert "this call requires the role user; watcher has the role observer" in watcher
    assert "the token does not belong to this engine" in stranger

    def status(name: str) -> dict:
        done = run("--address", engine.address, "--token", tokens[name], "--admin-token", tokens[name], "status", "--json")
        assert done.returncode == 0, done.stderr
        return {each["principal"]: each["client"] for each in json.loads(done.stdout)["sessions"]}

    script = "import teletensor as torch; x = torch.ones(2); torch.synchronize(); print('up', flush=True); input()"
    clients = [
        subprocess.Popen(
            [BUILD / "../.venv/bin/python", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=client_environment(TELETENSOR_ADDRESS=engine.address, TELETENSOR_TOKEN=tokens[name]),
        )
        for name in ("alice", "bob")
    ]  # fmt: skip
    for client in clients:
        assert client.stdout.readline() == "up\n"
    everybody = status("root")
    assert set(everybody) == {"alice", "bob"} and all("python" in client for client in everybody.values())
    assert status("watcher") == everybody
    assert status("alice") == {"alice": everybody["alice"], "": ""}  # bob's session without his name and program
    refused = run("--address", engine.address, "--admin-token", tokens["watcher"], "--token", tokens["watcher"], "end-session", "1")
    assert refused.returncode == 1 and "requires the role operator; watcher has the role observer" in refused.stderr
    for client in clients:
        client.communicate("\n", timeout=60)
    # Everything above is in the audit log, and no token.
    opened = [(each["principal"], each["outcome"]) for each in engine.records("session.open")]
    assert sorted(opened) == sorted([("alice", "ok")] * 2 + [("bob", "ok")] * 2 + [("root", "ok")])
    assert any("does not belong" in each["reason"] for each in engine.records("call.refused"))
    eventually(lambda: len(engine.records("session.end")) == 5)
    assert not any(token in engine.audit.read_text() + engine.text() for token in tokens.values())
    assert os.stat(engine.audit).st_mode & 0o777 == 0o600


def test_revocation_ends_sessions(tmp_path, engine):
    alice, bob = user(engine.file, "add", "alice"), user(engine.file, "add", "bob")
    engine.start()
    script = """
import sys, teletensor as torch
torch.connect({address!r}, token={token!r})
x = torch.ones(3)
print(x.sum().item(), flush=True)
for line in sys.stdin:
    try:
        print((x + 1).sum().item(), flush=True)
    except (ConnectionError, RuntimeError) as error:
        print(type(error).__name__, error, flush=True)
"""
    clients = [
        subprocess.Popen(
            [BUILD / "../.venv/bin/python", "-c", script.format(address=engine.address, token=token)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=client_environment(),
        )
        for token in (alice, bob)
    ]  # fmt: skip
    assert [client.stdout.readline() for client in clients] == ["3.0\n", "3.0\n"]
    assert user(engine.file, "revoke", "alice") == f"alice was removed from {engine.file}"
    eventually(lambda: engine.records("principal.revoked"))
    eventually(lambda: engine.records("session.end"))
    answers = []
    for client in clients:
        client.stdin.write("\n")
        client.stdin.flush()
        answers.append(client.stdout.readline())
        client.kill()
        client.communicate()
    assert "ConnectionError" in answers[0] and answers[1] == "6.0\n"
    assert "revoked" in answers[0] or "the token does not belong to this engine" in answers[0]
    (refused,) = connect(tmp_path, {"address": engine.address, "token": alice})
    assert "the token does not belong to this engine" in refused
    # A file that is damaged leaves the principals as they are.
    engine.file.write_text("{")
    eventually(lambda: "the principals stay as they were" in engine.text())
    assert connect(tmp_path, {"address": engine.address, "token": bob}) == ["3.0"]


@contextlib.contextmanager
def awaited_call(engine, method: str, token: str, request: bytes):
    """A call whose request is sent at the end of the context. Yields a function that returns its status then."""
    may_send = threading.Event()

    def requests():
        may_send.wait()
        yield request

    def status() -> str:
        may_send.set()
        try:
            call.result(timeout=20)
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"
        return "OK"

    with grpc.insecure_channel(engine.address) as channel:
        prepare = channel.stream_unary(f"/teletensor.v1.{method}", request_serializer=bytes, response_deserializer=bytes)
        call = prepare.future(requests(), metadata=[("authorization", f"Bearer {token}")], timeout=20)
        time.sleep(0.3)  # so that the engine has checked the token
        yield status
        may_send.set()


def test_rights_end_while_a_request_is_awaited(engine):
    names = ("alice", "root")
    tokens = {name: user(engine.file, "add", name, "--role", role) for name, role in zip(names, ("user", "operator"), strict=True)}
    engine.start()
    with (
        awaited_call(engine, "Engine/Hello", tokens["alice"], b"") as hello,
        awaited_call(engine, "Admin/EndSession", tokens["root"], b"\x08\x01") as end_session,
    ):
        engine.file.write_text(engine.file.read_text().replace('"user"', '"observer"').replace('"operator"', '"user"'))
        eventually(lambda: len(engine.records("principal.revoked")) == 2)
        assert hello() == "PERMISSION_DENIED: this call requires the role user; alice has the role observer"
        assert end_session() == "PERMISSION_DENIED: this call requires the role operator; root has the role user"
    assert not engine.records("session.open") and not engine.records("admin.end_session")


def test_audit_log_names_an_operator_who_was_revoked_meanwhile(engine):
    root = user(engine.file, "add", "root", "--role", "operator")
    engine.start()
    with awaited_call(engine, "Engine/Hello", engine.token("token"), b"") as hello:
        assert hello() == "OK"  # session 1, for which drain waits
    with awaited_call(engine, "Admin/Drain", root, struct.pack("<bd", 0x09, 60)) as drain:
        drained = []
        waiting = threading.Thread(target=lambda: drained.append(drain()))
        waiting.start()
        engine.file.write_text('{"principals": []}')
        eventually(lambda: engine.records("principal.revoked"))
        with awaited_call(engine, "Admin/EndSession", engine.token("admin-token"), b"\x08\x01") as end_session:
            assert end_session() == "OK"
        waiting.join()
        assert engine.process.wait(20) == 0
    assert drained == ["OK"] and [each["principal"] for each in engine.records("admin.drain")] == ["root"]


def test_expiry_and_sessions(tmp_path, engine):
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    past = soon - datetime.timedelta(hours=2)
    one = user(engine.file, "add", "one", "--sessions", "1", "--expires", f"{soon:%Y-%m-%dT%H:%M:%SZ}")
    old = user(engine.file, "add", "old", "--expires", f"{past:%Y-%m-%dT%H:%M:%SZ}")
    engine.start()
    script = f"""
import subprocess, sys, teletensor as torch
torch.connect({engine.address!r}, token={one!r})
done = subprocess.run([sys.executable, "-c", '''
import teletensor as torch
try: torch.connect({engine.address!r}, token={one!r})
except ConnectionError as error: print(error)
'''], capture_output=True, text=True)
print(done.stdout, done.stderr)
"""
    second = subprocess.run(
        [BUILD / "../.venv/bin/python", "-c", script], capture_output=True, text=True, env=client_environment(), timeout=60
    )
    assert "one may have 1 sessions at a time" in second.stdout, second.stderr
    again, expired = connect(tmp_path, {"address": engine.address, "token": one}, {"address": engine.address, "token": old})
    assert again == "3.0" and f"the access of old expired on {past:%Y-%m-%d}" in expired


def test_expiry_by_a_change_ends_sessions(tmp_path, engine):
    token = user(engine.file, "add", "alice")
    link, mode = tmp_path / "link.json", 0o640
    engine.file.chmod(mode)
    link.symlink_to(engine.file)
    engine.start()
    script = f"""
import teletensor as torch
torch.connect({engine.address!r}, token={token!r})
torch.ones(3).sum().item()
print("up", flush=True)
input()
"""
    client = subprocess.Popen(
        [BUILD / "../.venv/bin/python", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=client_environment()
    )
    assert client.stdout.readline() == "up\n"
    user(link, "set", "alice", "--expires", "1970-01-01T00:00:00Z")  # the time 0
    eventually(lambda: engine.records("principal.revoked"))
    eventually(lambda: engine.records("session.end"))
    client.kill()
    client.communicate()
    assert link.is_symlink() and os.stat(engine.file).st_mode & 0o777 == mode


def test_names_of_certificates(tmp_path):
    server, clients = Files(tmp_path / "a", "127.0.0.1"), Files(tmp_path / "b", "alice@example.org")
    place = f"127.0.0.1:{free_port()}"
    engine = Engine(tmp_path, "--listen", place, *server.options, "--tls-client-ca", clients.ca)
    user(engine.file, "add", "alice", "--certificate", "alice@example.org")
    engine.start()
    options = {"address": f"teletensors://{place}", "ca": server.ca, "certificate": clients.certificate, "key": clients.key}
    # A common name does not count beside an alternative name.
    other = Files(tmp_path / "c", "mallory@example.org", authority=clients.authority, common_name="alice@example.org")
    # TELETENSOR_TOKEN_FILE: without a token of this user.
    accepted, unknown = connect(
        tmp_path, options, {**options, "certificate": other.certificate, "key": other.key}, TELETENSOR_TOKEN_FILE="/nonexistent"
    )
    assert accepted == "3.0" and "missing bearer token" in unknown
    assert [each["principal"] for each in engine.records("session.open")] == ["alice"]
    # A revoked certificate opens nothing, although it is valid and its authority is accepted.
    user(engine.file, "revoke", "alice")
    eventually(lambda: engine.records("principal.revoked"))
    (refused,) = connect(tmp_path, options, TELETENSOR_TOKEN_FILE="/nonexistent")
    assert "missing bearer token" in refused
    engine.stop()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", 'expected an object with a list "principals"'),
        ('{"principals": [{"name": "../x", "token_sha256": ""}]}', "name: expected 1 to 64 letters"),
        ('{"principals": [{"name": "a"}]}', "a: expected token_sha256 or certificates"),
        ('{"principals": [{"name": "admin", "certificates": ["x"]}]}', "admin: is the principal of one of the engine's own tokens"),
        ('{"principals": [{"name": "a", "certificates": ["x"], "rol": "user"}]}', "a: expected fields name, role"),
        ('{"principals": [{"name": "a", "certificates": ["x"], "expires": "soon"}]}', "a: expires: expected a date"),
        ('{"principals": [{"name": "a", "certificates": ["x"]}, {"name": "b", "certificates": ["x"]}]}', "b: the certificate name x"),
    ],
)
def test_invalid_files(tmp_path, text, message):
    file = tmp_path / "principals.json"
    file.write_text(text)
    file.chmod(0o600)
    command = [str(BUILD / "bin/teletensord"), "--listen", f"unix:{tmp_path}/s", "--token-file", str(tmp_path / "t"), "--principals"]
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and message in done.stderr
    file.chmod(0o666)
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "writable by other users" in done.stderr


def test_environment_of_private_engines(tmp_path):
    """Options of shared engines in the environment are not for the engine that a program starts."""
    script = "import teletensor as torch; print(torch.ones(3).sum().item())"
    missing = str(tmp_path / "missing/file")
    variables = {"LISTEN": "0.0.0.0:7070", "HTTP": "127.0.0.1:1", "TLS_SELF_SIGNED": "1", "TOKEN_FILE": missing}
    variables |= dict.fromkeys(("PRINCIPALS", "AUDIT_LOG", "TLS_CLIENT_CA"), missing)
    environment = {**client_environment(**{f"TELETENSOR_{name}": value for name, value in variables.items()})}
    environment.pop("TELETENSOR_ADDRESS", None)
    python = BUILD / "../.venv/bin/python"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, timeout=60, env=environment)
    assert done.stdout == "3.0\n" and not (tmp_path / "missing").exists(), done.stderr
    command = [str(BUILD / "bin/teletensord"), "--private", "--http", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "--http has no effect with --private" in done.stderr


def test_command(tmp_path):
    file = tmp_path / "p.json"
    user(file, "add", "alice", "--role", "operator", "--sessions", "2")
    assert "alice" in user(file, "list") and "operator" in user(file, "list")
    for words, message in (
        (("add", "alice"), "alice exists"),
        (("add", "a/b"), "expected a name"),
        (("add", "admin"), "admin token"),
        (("add", "c", "--expires", "soon"), "expected a date"),
        (("add", "c", "--expires", "20270131"), "expected a date"),
        (("add", "c", "--expires", "2027-01-31T12:00:00"), "expected a date"),
        (("add", "c", "--certificate", ""), "names of certificates"),
        (("add", "c", "--memory", "9999999999GB"), "below 2**63"),
        (("revoke", "bob"), "no principal bob"),
    ):
        done = run("user", "--file", file, *words)
        assert done.returncode == 1 and message in done.stderr
    user(file, "revoke", "alice")
    assert json.loads(file.read_text()) == {"principals": []}


def test_audit_log_is_rotated(tmp_path, engine):
    token = user(engine.file, "add", "alice")
    engine.start()
    connect(tmp_path, {"address": engine.address, "token": token})
    eventually(lambda: engine.records("session.end"))
    engine.audit.rename(tmp_path / "audit.1")
    engine.process.send_signal(signal.SIGHUP)
    eventually(engine.audit.exists)
    connect(tmp_path, {"address": engine.address, "token": token})
    assert len(engine.records("session.open")) == 1
