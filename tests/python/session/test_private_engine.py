"""Private engines end with their client, however it ends, and leave no folder behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import IN_PROCESS, client_environment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

# Prints the engine's process id and folder, then runs `then`.
SCRIPT = """
import os, signal, sys, time
import teletensor as torch
torch.ones(2).sum().item()
me = os.getpid()
for name in os.listdir("/proc"):
    if name.isdigit():
        try:
            parent = int(open(f"/proc/{{name}}/stat").read().rsplit(")", 1)[1].split()[1])
            if parent == me:
                print(name, flush=True)
        except OSError:
            pass
{then}
"""


def start(runtime: Path, then: str) -> tuple[subprocess.Popen, int]:
    """A client, and its engine's process id."""
    environment = client_environment(TELETENSOR_ADDRESS="", XDG_RUNTIME_DIR=str(runtime))
    command = [sys.executable, "-c", SCRIPT.format(then=then)]
    client = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    return client, int(client.stdout.readline())


def folders(runtime: Path) -> list[Path]:
    return sorted(runtime.glob("teletensor-*"))


def eventually(condition, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def runtime(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    folder.chmod(0o700)
    return folder


@pytest.mark.parametrize("then", ["", "raise SystemExit(3)", "os._exit(0)", "os.kill(me, signal.SIGKILL)"])
def test_engine_and_folder_end_with_the_client(runtime, then):
    client, engine = start(runtime, then)
    client.wait(30)
    assert eventually(lambda: is_gone(engine))
    assert eventually(lambda: not folders(runtime)), folders(runtime)


def test_running_work_does_not_keep_the_engine(runtime):
    then = "x = torch.rand(2048, 2048)\nfor _ in range(300): x = x @ x\ntorch.connection().flush()\nos.kill(me, signal.SIGKILL)"
    client, engine = start(runtime, then)
    client.wait(30)
    assert eventually(lambda: is_gone(engine)) and not folders(runtime)


@pytest.mark.parametrize("fork", ["os.fork()", "ctypes.CDLL(None).syscall(57)"], ids=["fork", "without fork handlers"])
def test_forked_child_does_not_keep_the_engine(runtime, fork):
    if "57" in fork and os.uname().machine != "x86_64":
        pytest.skip("requires x86-64, where system call 57 is fork")
    then = f"import ctypes\nif {fork} == 0:\n    time.sleep(600)\n    os._exit(0)\nprint('forked', flush=True)\ntime.sleep(600)"
    client, engine = start(runtime, then)
    assert client.stdout.readline() == "forked\n"
    child = int(Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text().split()[-1])
    try:
        client.kill()
        client.wait(30)
        assert eventually(lambda: is_gone(engine)) and not folders(runtime)
        assert not is_gone(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_exec_ends_the_engine(runtime):
    client, engine = start(runtime, "os.execv('/bin/sleep', ['sleep', '600'])")
    try:
        assert eventually(lambda: is_gone(engine)) and not folders(runtime)
        assert client.poll() is None
    finally:
        client.kill()


def test_client_removes_the_folder_of_a_killed_engine(runtime):
    client, engine = start(runtime, "time.sleep(1)\ntorch.disconnect()\nprint('over', flush=True)\ntime.sleep(600)")
    os.kill(engine, signal.SIGKILL)
    assert client.stdout.readline() == "over\n"
    assert not folders(runtime)
    client.kill()


def test_next_start_removes_unlocked_folders(runtime):
    client, engine = start(runtime, "time.sleep(600)")
    (in_use,) = folders(runtime)
    left = runtime / "teletensor-private-left00"
    young = runtime / "teletensor-private-young0"
    full = runtime / "teletensor-private-full00"
    other = runtime / "teletensor-mine"
    for folder in (left, young, full, other):
        folder.mkdir(0o700)
    (left / "engine.sock").touch()
    (full / "notes.txt").touch()
    past = time.time() - 3600
    for folder in (in_use, left, full, other):
        os.utime(folder, (past, past))
    try:
        second, _ = start(runtime, "")
        second.wait(30)
        assert folders(runtime) == sorted([in_use, young, full, other])
    finally:
        client.kill()
        client.wait(30)


def test_engine_inherits_no_file_descriptors(runtime):
    then = (
        "r, w = os.pipe()\nos.set_inheritable(w, True)\ntorch.disconnect()\ntorch.connect()\ntorch.ones(1).item()\n"
        "os.close(w)\nprint('eof' if os.read(r, 1) == b'' else '', flush=True)"
    )
    client, _ = start(runtime, then)
    assert client.stdout.readline() == "eof\n"
    client.wait(30)
