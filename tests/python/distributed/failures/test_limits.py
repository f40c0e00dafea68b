"""What groups and stores take is charged to the session that causes it."""

import contextlib
import os
import socket
import subprocess
import sys

from tests.conftest import client_environment
from tests.python.session.test_session import run_script

STORE = """
import teletensor as torch, teletensor.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, 1, True)
stored = []
try:
    for i in range(40):
        store.set(f"k{i}", "x" * (1 << 20))
        stored.append(i)
except RuntimeError as error:
    assert "memory limit of the session that serves the store" in str(error), error
assert 10 < len(stored) < 24, stored
store.delete_key("k0")
store.set("k1", "small")  # a smaller value fits
assert torch.ones(3).sum().item() == 3
"""

GROUPS = """
import teletensor as torch, teletensor.distributed as dist
dist.init_process_group("gloo", store=dist.TCPStore("127.0.0.1", 0, 1, True), rank=0, world_size=1)
groups = []
try:
    for i in range(40):
        groups.append(dist.new_group([0]))
except torch.OutOfMemoryError as error:
    assert "a group requires 1.25 MiB; the session has a limit of 16 MiB" in str(error), error
assert 5 < len(groups) < 20, groups
dist.destroy_process_group(groups.pop())
group = dist.new_group([0])
x = torch.ones(3)
dist.all_reduce(x, group=group)
assert x.tolist() == [1, 1, 1]
"""


def test_store_is_charged(own_daemon):
    done = run_script(STORE, own_daemon("--session-memory-limit", "16MB"))
    assert done.returncode == 0, done.stderr


def test_groups_are_charged(own_daemon):
    done = run_script(GROUPS, own_daemon("--session-memory-limit", "16MB"))
    assert done.returncode == 0, done.stderr

SERVE = """
import sys, teletensor.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, 1, True)
print(store.port, flush=True)
sys.stdin.readline()
client = dist.TCPStore("127.0.0.1", store.port, 1, False)
client.set("k", "v")
assert store.get("k") == b"v"
"""


def test_silent_connections_to_a_store(own_daemon):
    """They take few of the engine's descriptors, and no place of a client with the token."""
    engine = own_daemon()
    before = len(os.listdir(f"/proc/{engine.process.pid}/fd"))
    environment = client_environment(TELETENSOR_ADDRESS=engine.address)
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", SERVE]
    with contextlib.ExitStack() as silent, subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as server:
        port = int(server.stdout.readline())
        for _ in range(800):
            silent.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert len(os.listdir(f"/proc/{engine.process.pid}/fd")) < before + 450
        server.communicate("go on\n", timeout=60)
        assert server.returncode == 0
