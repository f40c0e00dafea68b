"""Stores of torch.distributed, each against the behaviour of PyTorch's."""

from __future__ import annotations

import inspect
import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

import teletensor as torch
from teletensor.distributed import _serving, _store
from teletensor.distributed._errors import DistNetworkError, DistStoreError, QueueEmptyError
from teletensor.distributed._store import FileStore, HashStore, PrefixStore, Store, TCPStore
from tests.conftest import BUILD, client_environment

pytestmark = pytest.mark.slow

SOON = timedelta(milliseconds=50)
TOKEN = "a token for tests"


@pytest.fixture
def serve(monkeypatch):
    """Starts store servers, in the place of the engine's operator. Returns the port; `serve.stop()` ends them."""
    processes = []

    def start(host: str, port: int, token: str) -> int:
        command = [str(BUILD / "tests/store_server"), f"{host}:{port}", token]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return int(process.stdout.readline())

    def stop() -> None:
        for process in processes:
            process.stdin.close()
            process.wait()
        processes.clear()

    start.stop = stop
    monkeypatch.setattr(_serving, "serve", start)
    monkeypatch.setenv("TELETENSOR_GROUP_TOKEN", TOKEN)
    yield start
    stop()


@pytest.fixture(params=["tcp", "hash", "file", "prefix", "prefix of tcp"])
def store(request, tmp_path):
    """A store of each class."""
    if "tcp" in request.param:
        request.getfixturevalue("serve")
    made = {
        "tcp": lambda: TCPStore("localhost", 0, is_master=True),
        "hash": HashStore,
        "file": lambda: FileStore(str(tmp_path / "store"), 1),
        "prefix": lambda: PrefixStore("first", PrefixStore("second", HashStore())),
        "prefix of tcp": lambda: PrefixStore("first", TCPStore("localhost", 0, is_master=True)),
    }[request.param]()
    return made


def test_values(store):
    store.set("a", "1")
    assert store.get("a") == b"1"
    store.set("a", b"\x00\xff")
    assert store.get("a") == b"\x00\xff"
    store.set("é", "é")
    assert store.get("é") == "é".encode()
    store.set("empty", "")
    assert store.get("empty") == b""


def test_add_and_append(store):
    assert store.add("n", 2) == 2
    assert store.add("n", -5) == -3
    assert store.get("n") == b"-3"
    assert store.add("big", 2**63 - 1) == 2**63 - 1
    with pytest.raises(DistStoreError, match="exceeds 64 bits"):
        store.add("big", 1)
    store.set("text", "x")
    with pytest.raises(DistStoreError, match="expected an integer as the value of '.*text', got"):
        store.add("text", 1)
    store.append("s", "x")
    store.append("s", "yz")
    assert store.get("s") == b"xyz"


def test_compare_set(store):
    assert store.compare_set("k", "x", "y") == b"x"
    assert not store.check(["k"])
    assert store.compare_set("k", "", "y") == b"y"
    assert store.compare_set("k", "q", "z") == b"y"
    assert store.compare_set("k", "y", "z") == b"z"
    assert store.get("k") == b"z"


def test_check_and_delete(store):
    before = store.num_keys()
    store.set("a", "1")
    store.set("b", "2")
    assert store.check(["a", "b"]) and not store.check(["a", "none"]) and store.check([])
    assert store.num_keys() == before + 2
    assert store.delete_key("a") and not store.delete_key("a")
    assert not store.check(["a"]) and store.num_keys() == before + 1


def test_multiple_keys(store):
    store.multi_set(["a", "b"], ["1", b"2"])
    assert store.multi_get(["b", "a"]) == [b"2", b"1"]
    assert store.multi_get([]) == []
    with pytest.raises(DistStoreError, match="same size"):
        store.multi_set(["a"], ["1", "2"])


def test_timeouts_name_the_missing_keys(store):
    assert store.timeout == timedelta(seconds=300)
    store.set_timeout(SOON)
    assert store.timeout == SOON
    store.set("here", "1")
    store.wait(["here"])
    for call in (
        lambda: store.get("absent"),
        lambda: store.wait(["here", "absent"]),
        lambda: store.wait(["absent"], timedelta(milliseconds=1)),
        lambda: store.multi_get(["here", "absent"]),
    ):
        with pytest.raises(DistStoreError, match="absent'") as error:
            call()
        assert "here" not in str(error.value)
    with pytest.raises(TypeError, match="timedelta"):
        store.set_timeout(5)


def test_waits_for_another_thread(store):
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.multi_get, ["a", "b"])
        store.set("b", "2")
        store.add("a", 1)
        assert waiting.result() == [b"1", b"2"]


def test_barrier(store):
    with ThreadPoolExecutor(4) as pool:
        arrived = [pool.submit(store.barrier, "all", 4) for _ in range(3)]
        assert not any(call.done() for call in arrived)
        store.barrier("all", 4)
        for call in arrived:
            call.result()


def test_argument_types(store):
    for call in (
        lambda: store.get(3),
        lambda: store.set("a", 3),
        lambda: store.add("a", "1"),
        lambda: store.add("a", 2**63),
        lambda: store.wait("ab"),
    ):
        with pytest.raises(TypeError):
            call()


def test_clone(store):
    store.set("a", "1")
    copy = store.clone()
    copy.set("b", "2")
    assert copy.get("a") == b"1" and store.get("b") == b"2"


def test_prefixes():
    below = HashStore()
    store = PrefixStore("outer", PrefixStore("inner", below))
    store.set("a", "1")
    assert below.list_keys() == ["inner/outer/a"] and store.list_keys() == ["a"]
    assert store._underlying_non_prefix_store is below and store.underlying_store.underlying_store is below
    store.set_timeout(SOON)
    assert below.timeout == SOON
    with pytest.raises(TypeError):
        PrefixStore("p", {})


def test_queues():
    store = HashStore()
    store.set_timeout(SOON)
    store.queue_push("q", "v")
    store.queue_push("q", b"w")
    assert store.queue_len("q") == 2 and store.check(["q"]) and store.num_keys() == 0
    assert store.queue_pop("q") == b"v" and store.queue_pop("q", block=False) == b"w"
    with pytest.raises(QueueEmptyError, match="queue is empty"):
        store.queue_pop("q", block=False)
    with pytest.raises(DistStoreError):
        store.queue_pop("q")
    assert store.queue_len("q") == 0


def test_functions_that_are_left_out(serve, tmp_path):
    for store in (TCPStore("localhost", 0, is_master=True), FileStore(str(tmp_path / "store"))):
        for call in (lambda s: s.queue_push("q", "v"), lambda s: s.queue_pop("q"), lambda s: s.queue_len("q")):
            with pytest.raises(NotImplementedError, match="queue support"):
                call(store)
    with pytest.raises(NotImplementedError, match="list_keys"):
        TCPStore("localhost", 0, is_master=True).list_keys()


def test_python_subclass():
    class DictStore(Store):
        def __init__(self):
            self.pairs = {}

        def set(self, key, value):
            self.pairs[key] = value

        def get(self, key):
            return self.pairs[key]

    below = DictStore()
    store = PrefixStore("p", below)
    store.multi_set(["a"], ["1"])
    assert below.pairs == {"p/a": "1"} and store.get("a") == "1" and store.timeout == timedelta(seconds=300)
    with pytest.raises(NotImplementedError):
        store.add("a", 1)


def test_file_store_is_shared_and_removed(tmp_path):
    path = str(tmp_path / "store")
    first, second = FileStore(path, 2), FileStore(path, 2)
    first.set("a", "1")
    assert second.get("a") == b"1" and second.path == path and second.list_keys() == ["a"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    del first
    assert os.path.exists(path) and second.get("a") == b"1"
    second.set("b", "2")
    del second
    assert not os.path.exists(path)


def test_file_store_of_processes(tmp_path):
    """Processes that write at once lose no update; a record that a killed process left incomplete is ignored."""
    path = str(tmp_path / "store")
    code = (
        "import sys\n"
        "from teletensor.distributed._store import FileStore\n"
        "store = FileStore(sys.argv[1], 4)\n"
        "for _ in range(200): store.add('n', 1)\n"
        "store.wait(['done'])\n"
    )
    store = FileStore(path, 4)
    with open(path, "ab") as file:
        file.write(b"\x01\x00\x00\x00\xff\xff")
    processes = [
        subprocess.Popen([sys.executable, "-c", code, path], env=client_environment(), text=True) for _ in range(3)
    ]
    while store.add("n", 0) < 600:
        assert all(process.poll() is None for process in processes)
    store.set("done", "")
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert store.get("n") == b"600"
    del store
    assert not os.path.exists(path)


def test_file_store_without_a_folder():
    with pytest.raises(DistStoreError, match="No such file or directory"):
        FileStore("/nonexistent/store", 1)


def test_tcp_store_of_several_clients(serve):
    master = TCPStore("localhost", 0, is_master=True)
    other = TCPStore("localhost", master.port, timeout=timedelta(seconds=20))
    other.set("a", "1")
    assert master.get("a") == b"1" and other.num_keys() == 1
    assert (other.host, other.port, other.timeout) == ("localhost", master.port, timedelta(seconds=20))


def test_tcp_store_waits_for_its_processes(serve):
    port = serve("127.0.0.1", 0, TOKEN)
    with ThreadPoolExecutor(3) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_serving, "serve", lambda host, port, token: port)
        master = pool.submit(TCPStore, "localhost", port, 3, True)
        clients = [pool.submit(TCPStore, "localhost", port, 3) for _ in range(2)]
        for store in (master, *clients):
            store.result()
        assert master.result().num_keys() == 1  # as in PyTorch: the number of processes
    with pytest.raises(DistStoreError, match=r"Timed out after 1 seconds waiting for clients. 1/2 clients joined"):
        TCPStore("localhost", 0, 2, True, timedelta(seconds=1))  # includes connecting on a busy machine
    TCPStore("localhost", 0, 2, True, timedelta(seconds=1), wait_for_workers=False)


def test_tcp_store_starts_later_than_its_clients(serve):
    port = serve("127.0.0.1", 0, TOKEN)
    serve.stop()
    with ThreadPoolExecutor(1) as pool:
        client = pool.submit(TCPStore, "127.0.0.1", port)
        serve("127.0.0.1", port, TOKEN)
        client.result().set("a", "1")


def test_tcp_store_without_a_server(serve):
    port = serve("127.0.0.1", 0, TOKEN)
    store = TCPStore("127.0.0.1", port)
    serve.stop()
    with pytest.raises(DistNetworkError, match="cannot be reached|has stopped"):
        store.set("a", "1")
    with pytest.raises(DistNetworkError, match=f"127.0.0.1:{port} cannot be reached within 50 ms"):
        TCPStore("127.0.0.1", port, timeout=SOON)


def test_tcp_store_arguments(serve, monkeypatch):
    with pytest.raises(ValueError, match="world size cannot be 0"):
        TCPStore("localhost", 0, 0, True)
    for port in (-1, 70000, "80"):
        with pytest.raises(TypeError, match="port"):
            TCPStore("localhost", port)
    with pytest.raises(DistNetworkError, match="got 0"):
        TCPStore("localhost", 0)
    with pytest.raises(NotImplementedError, match="master_listen_fd"):
        TCPStore("localhost", 0, is_master=True, master_listen_fd=3)
    port = TCPStore("localhost", 0, is_master=True, multi_tenant=True, use_libuv=False).port
    monkeypatch.setenv("TELETENSOR_GROUP_TOKEN", "another token")
    with pytest.raises(DistNetworkError, match="the token does not belong to this store"):
        TCPStore("localhost", port)


def test_tcp_store_listens_on_loopback_only_for_local_names():
    expected = {"localhost": "127.0.0.1", "127.0.0.2": "127.0.0.2", "::1": "::1", "gpu-box": "0.0.0.0", "fd00::1": "::"}
    assert {host: _store._listening_host(host) for host in expected} == expected


def test_signatures():
    assert list(inspect.signature(TCPStore).parameters) == [
        "host_name", "port", "world_size", "is_master", "timeout", "wait_for_workers", "multi_tenant",
        "master_listen_fd", "use_libuv",
    ]  # fmt: skip
    assert list(inspect.signature(FileStore).parameters) == ["file_name", "world_size"]
    assert list(inspect.signature(PrefixStore).parameters) == ["prefix", "store"]
    assert torch.distributed.TCPStore is TCPStore


@pytest.mark.parametrize("store", ["tcp", "file"], indirect=True)
def test_waits_are_interruptible(store):
    def interrupt() -> None:
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()

    for wait in (lambda: store.get("never"), lambda: store.wait(["never"])):
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            wait()
        store.set("a", "1")
        assert store.get("a") == b"1"


def test_connecting_is_interruptible(serve):
    port = serve("127.0.0.1", 0, TOKEN)
    serve.stop()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        TCPStore("127.0.0.1", port)
