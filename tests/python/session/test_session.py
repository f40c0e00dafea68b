"""Sessions from Python: waits, freed memory, and the death of an engine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import BUILD, IN_PROCESS, client_environment
from tests.sockets import is_listening

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]


def run_script(script: str, daemon=None, timeout: float = 60, **env) -> subprocess.CompletedProcess:
    """Runs Python code in a new process, against the daemon or a private engine."""
    environment = client_environment(**env)
    if daemon is not None:
        environment["TELETENSOR_ADDRESS"] = daemon.address
    return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=timeout)


def held_bytes(daemon) -> int:
    from teletensor import _C

    status = json.loads(_C.Admin(daemon.address).status())
    return sum(int(d["memory"]["allocated"]) for d in status["devices"])


def test_only_reads_wait(torch):
    before = torch.connection().counters()["waits"]
    x = torch.randn(8, 8, requires_grad=True)
    for _ in range(50):
        loss = (x @ x).relu().sum()
        loss.backward()
        assert x.grad is not None
        x.grad = None
    assert torch.connection().counters()["waits"] == before
    loss.item()
    assert torch.connection().counters()["waits"] == before + 1
    assert "test_session.py" in torch.sync_report(limit=10_000)


def test_memory_is_freed_with_its_tensors(daemon):
    script = """
import json, teletensor as torch
from teletensor import _C
admin = _C.Admin(torch.connection() and __import__("os").environ["TELETENSOR_ADDRESS"])
held = lambda: sum(int(d["memory"]["allocated"]) for d in json.loads(admin.status())["devices"])
torch.synchronize(); before = held()
x = torch.randn(100, 100, requires_grad=True)
y = (x * 2).exp().sum(); y.backward()
torch.synchronize(); assert held() > before
del x, y
torch.synchronize(); print(held() - before)
"""
    result = run_script(script, daemon)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "0"


def test_killed_client_frees_its_memory(daemon):
    before = held_bytes(daemon)
    script = (
        "import os, signal, teletensor as torch\nx = torch.randn(1000, 1000)\ntorch.synchronize()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert run_script(script, daemon).returncode == -signal.SIGKILL
    deadline = time.monotonic() + 15
    while held_bytes(daemon) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert held_bytes(daemon) == before


def test_killed_engine_raises_connection_error(daemon):
    script = """
import os, signal, sys, time, teletensor as torch
x = torch.ones(3); x.sum().item()
os.kill(int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ["ENGINE"]), signal.SIGKILL)
started = time.monotonic()
try:
    for _ in range(1000): x = x + 1
    x.sum().item()
except ConnectionError as e:
    print("error:", e)
print(time.monotonic() - started < 5)
"""
    result = run_script(script, daemon, ENGINE=str(daemon.process.pid))
    daemon.process.wait()
    assert result.returncode == 0, result.stderr
    assert "error: [connection]" in result.stdout and result.stdout.strip().endswith("True")


def test_private_engine_ends_with_its_client():
    script = (
        "import teletensor as torch\nprint(torch.ones(2).sum().item())\n"
        "print(torch.connection().engine()['session'])"
    )
    result = run_script(script, TELETENSOR_ADDRESS="")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "2.0"


def test_session_memory_limit(tmp_path):
    from tests.conftest import Daemon

    engine = Daemon(tmp_path, "--session-memory-limit", "64MiB")
    script = """
import teletensor as torch
kept = torch.ones(1 << 20)
try:
    torch.ones(1 << 26).sum().item()
except torch.OutOfMemoryError as e:
    print(e)
print(kept.sum().item())
"""
    result = run_script(script, engine)
    assert engine.stop() == 0
    assert result.returncode == 0, result.stderr
    assert "out of memory" in result.stdout and result.stdout.strip().endswith("1048576.0")


def test_status_command(daemon):
    command = [sys.executable, "-m", "teletensor.cli", "--address", daemon.address, "status"]
    environment = client_environment()
    text = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
    assert text.returncode == 0 and "sessions (" in text.stdout
    status = json.loads(subprocess.run([*command, "--json"], env=environment, capture_output=True, text=True, timeout=30).stdout)
    assert status["devices"][0]["device"]["name"]
    nowhere = [*command[:3], "--address", "unix:/nowhere", "status"]
    wrong = subprocess.run(nowhere, env=environment, capture_output=True, text=True, timeout=30)
    assert wrong.returncode == 1 and "no answer from the engine" in wrong.stderr
    assert "--address or TELETENSOR_ADDRESS" in wrong.stderr


def test_tokens_are_required(tmp_path):
    token = tmp_path / "config" / "token"
    socket = tmp_path / "guarded.sock"
    command = [str(BUILD / "bin/teletensord"), "--listen", f"unix:{socket}", "--token-file", str(token)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while not is_listening(socket) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert token.stat().st_mode & 0o777 == 0o600
        script = "import teletensor as torch\nprint(torch.ones(1).item())"
        refused = run_script(script, TELETENSOR_ADDRESS=f"unix:{socket}", TELETENSOR_TOKEN="wrong")
        assert refused.returncode != 0 and "ConnectionError" in refused.stderr
        accepted = run_script(script, TELETENSOR_ADDRESS=f"unix:{socket}", TELETENSOR_TOKEN=token.read_text().strip())
        assert accepted.stdout.strip() == "1.0", accepted.stderr
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_administration_requires_the_admin_token(tmp_path):
    socket = tmp_path / "guarded.sock"
    command = [str(BUILD / "bin/teletensord"), "--listen", f"unix:{socket}", "--token-file", str(tmp_path / "token")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def teletensor(*words: str, **env) -> subprocess.CompletedProcess:
        environment = client_environment(TELETENSOR_ADDRESS=f"unix:{socket}", TELETENSOR_TOKEN=user, **env)
        return subprocess.run([sys.executable, "-m", "teletensor.cli", *words], env=environment, capture_output=True, text=True, timeout=60)

    try:
        deadline = time.monotonic() + 10
        while not is_listening(socket) and time.monotonic() < deadline:
            time.sleep(0.02)
        user, admin = ((tmp_path / name).read_text().strip() for name in ("token", "admin-token"))
        assert (tmp_path / "admin-token").stat().st_mode & 0o777 == 0o600
        script = (
            "import sys, teletensor as torch\nx = torch.ones(1)\nx.item(); print('ready', flush=True); sys.stdin.read(1)\n"
            "try: x.item()\nexcept (RuntimeError, ConnectionError) as e: print(e)"
        )
        environment = client_environment(TELETENSOR_ADDRESS=f"unix:{socket}", TELETENSOR_TOKEN=user)
        session = subprocess.Popen(
            [sys.executable, "-c", script],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert session.stdout.readline() == "ready\n"
        nothing = str(tmp_path / "nothing")
        refused = teletensor("end-session", "1", TELETENSOR_ADMIN_TOKEN_FILE=nothing)
        assert refused.returncode == 1 and "TELETENSOR_ADMIN_TOKEN" in refused.stderr
        status = teletensor("status", "--json", TELETENSOR_ADMIN_TOKEN_FILE=nothing)
        assert [s["client"] for s in json.loads(status.stdout)["sessions"]] == [""]
        status = teletensor("status", "--json", TELETENSOR_ADMIN_TOKEN=admin)
        assert "python" in json.loads(status.stdout)["sessions"][0]["client"]
        # Another engine's admin token must not override a sufficient user token.
        assert teletensor("status", TELETENSOR_ADMIN_TOKEN="0" * 32).returncode == 0
        ended = teletensor("end-session", "1", TELETENSOR_ADMIN_TOKEN_FILE=str(tmp_path / "admin-token"))
        assert ended.returncode == 0, ended.stderr
        unknown = teletensor("--admin-token", admin, "end-session", "1")
        assert unknown.returncode == 1 and "no session has the id 1" in unknown.stderr
        said, _ = session.communicate("x", timeout=60)
        assert "ended" in said
    finally:
        process.terminate()
        assert process.wait(20) == 0
