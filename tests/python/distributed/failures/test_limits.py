"""What groups and stores take is charged to the session that causes it."""

import contextlib
import os
import socket
import subprocess
import sys

from tests.conftest import client_environment
from tests.python.distributed.ranks import free_port
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
    assert "a group requires 1.25 MiB; " in str(error) and "the limit of 16 MiB is exceeded" in str(error), error
assert 5 < len(groups) < 20, groups
dist.destroy_process_group(groups.pop())
group = dist.new_group([0])
x = torch.ones(3)
dist.all_reduce(x, group=group)
assert x.tolist() == [1, 1, 1]
"""

THREADS = """
import json, os
import teletensor as torch, teletensor.distributed as dist

def used():
    status = json.loads(torch._C.Admin(os.environ["TELETENSOR_ADDRESS"]).status())
    return int(status["sessions"][0]["group_threads"])

dist.init_process_group("gloo", store=dist.TCPStore("127.0.0.1", 0, 1, True), rank=0, world_size=1)
assert used() == 5, used()  # a group, its store and the program's
groups = [dist.new_group([0]) for _ in range(2)]
assert used() == 11
for _ in range(2):
    try:
        dist.new_group([0])
        raise AssertionError("expected an error")
    except RuntimeError as error:
        expected = (
            "[init_process_group] expected at most 13 threads for a session's groups and stores "
            "(teletensord --session-group-threads), which use 11; a group requires 3 more threads"
        )
        assert expected in str(error), error
x = torch.ones(3)
dist.all_reduce(x, group=groups[1])
assert x.tolist() == [1, 1, 1]
dist.destroy_process_group(groups.pop())
group = dist.new_group([0])
dist.all_reduce(x, group=group)
assert x.tolist() == [1, 1, 1]
dist.destroy_process_group()
while used() > 2:  # the stores
    pass
"""

LANES = """
import sys
import teletensor as torch, teletensor.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{sys.argv[2]}", rank=rank, world_size=2)
x = torch.full((3,), float(rank))
if rank == 0:
    dist.send(x, 1)  # 5 of 5 threads: a store, a group, and a queue of messages
    try:
        dist.recv(x, 1)
        x.tolist()
        raise AssertionError("expected an error")
    except RuntimeError as error:
        assert "which use 5; a queue of messages requires 1 more" in str(error), error
    y = torch.ones(2)
    dist.all_reduce(y)
    assert y.tolist() == [2, 2]
else:
    dist.recv(x, 0)
    assert x.tolist() == [0, 0, 0]
    y = torch.ones(2)
    dist.all_reduce(y)
"""


def test_threads_of_groups_are_limited(own_daemon):
    done = run_script(THREADS, own_daemon("--session-group-threads", "13"))
    assert done.returncode == 0, done.stderr


def test_threads_of_messages_are_limited(own_daemon):
    engine, port = own_daemon("--session-group-threads", "5"), free_port()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", LANES, str(rank), str(port)], env=client_environment(TELETENSOR_ADDRESS=engine.address),
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    for rank in ranks:
        _, errors = rank.communicate(timeout=60)
        assert rank.returncode == 0, errors


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
