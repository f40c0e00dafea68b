"""A shared engine contacts other hosts, and listens, only where its options allow it."""

import socket

import pytest

from tests.python.session.test_session import run_script

REFUSED = "expected an address that the engine's options --peer-networks and --peer-ports allow, got "

# Prints one line per attempt: what it returned, or its error without the address.
ATTEMPTS = """
import os, teletensor as torch
from teletensor import _C
closed, silent = os.environ["PORTS"].split()
def attempt(name, address, run):
    try:
        result = run().tolist()
        print(name, address, "ok")
    except RuntimeError as error:
        text = str(error)
        at = text.find("expected an address that")
        print(name, address, text[at:].split(" (")[0].splitlines()[0] if at >= 0 else "another error: " + text)

local = [f"127.0.0.1:{port}" for port in (22, 0, closed, silent)]
for address in (*local, "0.0.0.0:0", "10.255.255.1:80", "no-such-name.invalid:2000"):
    attempt("serve", address, lambda: _C.ops.store_serve(address, "token"))
    attempt("pull_serve", address.replace(":0", ":1"), lambda: _C.ops.pull_serve(address.replace(":0", ":1")))
    if not address.endswith(":0"):
        like = dict(size=[2], dtype=torch.float32, device="cpu")
        attempt("pull", address, lambda: _C.ops.pull(address, "token", "0" * 32, **like, timeout=0.2))
        rank = dict(name="g", rank=0, size=1, timeout=0.2, backend="")
        attempt("group", address, lambda: _C.ops.group_create(1, store=address, token="token", **rank))
"""


@pytest.fixture
def ports():
    """A port on which nothing listens, and one on which a socket accepts connections and is silent."""
    with socket.socket() as closed, socket.socket() as silent:
        closed.bind(("127.0.0.1", 0))
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        yield str(closed.getsockname()[1]), str(silent.getsockname()[1])


def lines(script, daemon, ports):
    done = run_script(script, daemon, PORTS=" ".join(ports))
    assert done.returncode == 0, done.stderr
    return [line.split(" ", 2) for line in done.stdout.splitlines()]


def test_shared_engine_refuses_all_addresses_by_default(own_daemon, ports):
    attempts = lines(ATTEMPTS, own_daemon(TELETENSOR_PEER_NETWORKS=""), ports)
    assert len(attempts) == 24
    for name, address, result in attempts:
        assert result == REFUSED + address, (name, address, result)


def test_options_allow_networks_and_ports(own_daemon, tmp_path, ports):
    config = tmp_path / "engine.conf"
    config.write_text("peer-networks = 127.0.0.0/8\npeer-ports = 20000-20999\n")
    attempts = lines(ATTEMPTS, own_daemon("--config", str(config), TELETENSOR_PEER_NETWORKS=""), ports)
    allowed = {(name, address) for name, address, result in attempts if not result.startswith(REFUSED)}
    # pull_serve names a network, whatever the port
    loopback = {address for _, address, _ in attempts if address.startswith("127.")} - {"127.0.0.1:0"}
    assert allowed == {("serve", "127.0.0.1:0"), *(("pull_serve", address) for address in loopback)}


def test_ports_are_drawn_from_the_list(own_daemon):
    script = """
import teletensor as torch, teletensor.distributed as dist
from teletensor import _C
store = dist.TCPStore("127.0.0.1", 0, 1, True)
assert 20000 <= store.port <= 20999, store.port
text = bytes(_C.ops.pull_serve("127.0.0.1:1").tolist()).rstrip(b"\\0").decode()
assert 20000 <= int(text.split()[0].rpartition(":")[2]) <= 20999, text
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
x = torch.ones(3)
dist.all_reduce(x)
assert x.tolist() == [1, 1, 1]
"""
    engine = own_daemon("--peer-networks", "127.0.0.1", "--peer-ports", "20000-20499,20500-20999")
    done = run_script(script, engine)
    assert done.returncode == 0, done.stderr


def test_private_engine_is_not_limited():
    done = run_script("import teletensor.distributed as dist; dist.TCPStore('127.0.0.1', 0, 1, True).set('k', 'v')")
    assert done.returncode == 0, done.stderr
