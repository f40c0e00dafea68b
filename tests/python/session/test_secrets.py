"""Tokens, session keys and the private key of TLS are in nothing that an engine writes or shows, and in no core file."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess

import grpc
import pytest

from tests.adversary.wire import Peer
from tests.conftest import BUILD, IN_PROCESS, await_listener, client_environment, eventually, not_sanitized
from tests.python.session.test_metrics import get
from tests.python.session.test_principals import Engine, run, user
from tests.python.session.test_tls import free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]
PLANTED = "planted-" + "7" * 56  # a token of nobody

# Opens a session that is stored, publishes, and ends with an error of the engine.
CLIENT = """
import sys, teletensor as torch
torch.connect(sys.argv[1])
torch.persist(every=0.1)
torch.publish(f"weights{len(sys.argv[1])}", torch.ones(3), persist=True)
print(torch.ones(3).sum().item())
try:
    torch.ones(2)[torch.tensor([5])].tolist()
except IndexError as error:
    print(error)
"""


@pytest.fixture
def make_engine(tmp_path):
    """Makes an engine, which is killed at the end if the test has failed before its stop."""
    made: list[Engine] = []

    def make(*options: str) -> Engine:
        made.append(Engine(tmp_path, *options))
        return made[-1]

    yield make
    for each in made:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


def test_nothing_that_is_written_or_shown_has_a_secret(tmp_path, make_engine):
    home, state, place = tmp_path / "home", tmp_path / "state", f"127.0.0.1:{free_port()}"
    home.mkdir()
    state.mkdir(mode=0o700)
    options = ("--listen", f"127.0.0.1:{free_port()}", "--tls-self-signed", "--http", place, "--state-dir", str(state),
               "--log-level", "trace")  # fmt: skip
    engine = make_engine(*options)
    alice, watcher = user(engine.file, "add", "alice"), user(engine.file, "add", "watcher", "--role", "observer")
    engine.start()
    await_listener(place)
    admin = engine.token("admin-token")
    shown = []
    eventually(lambda: "sha256:" in engine.text())  # logged after the sockets are open
    fingerprint = next(word for word in engine.text().split() if word.startswith("sha256:"))
    for address in (engine.address, f"teletensors://{options[1]}"):
        done = subprocess.run(
            [BUILD / "../.venv/bin/python", "-c", CLIENT, address], capture_output=True, text=True, timeout=60,
            env=client_environment(TELETENSOR_TOKEN=alice, HOME=str(home), TELETENSOR_TLS_FINGERPRINT=fingerprint),
        )  # fmt: skip
        assert done.stdout.startswith("3.0\n"), done.stderr
        shown += [done.stdout, done.stderr]
    peer = Peer(engine.address, alice)
    key = peer.hello(client="probe").session_key
    with pytest.raises(grpc.RpcError, match="does not belong") as refused:
        Peer(engine.address, PLANTED).hello()
    shown.append(str(refused.value))
    with pytest.raises(grpc.RpcError) as refused:
        next(peer.session(key[:-1] + b"!", iter([b""])))
    shown.append(str(refused.value))
    for path in ("/", "/page.js", "/metrics", "/api/status", "/api/profile"):
        for token in (admin, watcher, alice, PLANTED):
            shown.append(get(f"http://{place}{path}", token)[1])
    for command in (("status", "--json"), ("status", "--wide"), ("profile",), ("published",), ("end-session", "1000")):
        done = run("--address", engine.address, "--token", alice, "--admin-token", admin, *command)
        shown += [done.stdout, done.stderr]
    shown.append(run("user", "--file", str(engine.file), "list").stdout)
    stored = [path for folder in (state, home) for path in folder.rglob("*") if path.is_file()]
    assert stored, "no image was stored"
    private = (tmp_path / "tls-key.pem").read_text().splitlines()[1]
    secrets = [each.encode() for each in (alice, watcher, admin, engine.token("token"), PLANTED, private)] + [key]
    seen = {f"output {number}": text.encode() for number, text in enumerate(shown)}
    seen |= {str(path): path.read_bytes() for path in (*stored, engine.file, engine.audit, tmp_path / "engine.log")}
    assert len(engine.records("call.refused")) >= 1 and b"session" in seen[str(engine.audit)]
    assert [(name, number) for name, text in seen.items() for number, secret in enumerate(secrets) if secret in text] == []
    peer.close()
    engine.stop()
    assert not [number for number, secret in enumerate(secrets) if secret in (tmp_path / "engine.log").read_bytes()]


@not_sanitized("the sanitizer handles SIGSEGV itself")
@pytest.mark.parametrize(("options", "has_core"), [((), False), (("--core-files",), True)])
def test_a_crash_leaves_no_core_file_unless_it_is_asked_for(tmp_path, options, has_core):
    """The kernel says in the exit status whether it has written one."""
    engine = Engine(tmp_path, *options)
    engine.file.write_text('{"principals": []}')
    engine.file.chmod(0o600)
    engine.start(cwd=tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
    engine.process.send_signal(signal.SIGSEGV)
    _, status = os.waitpid(engine.process.pid, 0)
    assert os.WTERMSIG(status) == signal.SIGSEGV
    with contextlib.suppress(FileNotFoundError):
        (tmp_path / "core").unlink()
    assert not os.WCOREDUMP(status) if not has_core else core_files_are_possible(tmp_path) == os.WCOREDUMP(status)
    engine.log.close()


def core_files_are_possible(folder) -> bool:
    """Whether this system writes core files at all."""
    process = subprocess.Popen(
        ["sleep", "60"], cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
    )
    process.send_signal(signal.SIGSEGV)
    _, status = os.waitpid(process.pid, 0)
    return os.WCOREDUMP(status)
