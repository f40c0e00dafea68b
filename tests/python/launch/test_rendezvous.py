"""The launchers' store: the methods of PyTorch's Store, in this process and over TCP, and its authentication."""

import asyncio
import socket
import threading

import pytest

from teletensor.launch.rendezvous import LocalStore, StoreClient, StoreError, StoreServer


@pytest.fixture
def server():
    """A server with the token "secret" in a thread; yields its port."""
    loop, served, started = asyncio.new_event_loop(), StoreServer("secret"), threading.Event()
    port = []

    async def start():
        port.append(await served.start("127.0.0.1", 0))
        started.set()

    def run():
        loop.create_task(start())
        loop.run_forever()

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(60)
    yield port[0]

    async def end():
        await served.stop()
        for _ in range(3):
            await asyncio.sleep(0)
        loop.stop()

    asyncio.run_coroutine_threadsafe(end(), loop)
    thread.join()
    loop.close()


@pytest.fixture(params=["local", "tcp"])
def store(request):
    if request.param == "local":
        yield LocalStore(timeout=0.05)
        return
    client = StoreClient("127.0.0.1", request.getfixturevalue("server"), "secret", timeout=30)
    client._timeout = 0.05  # of get() and wait()
    yield client
    client.close()


def test_methods(store):
    assert not store.check(["a"]) and store.num_keys() == 0
    store.set("a", "text")
    store.set("b", b"\x00\xff")
    assert store.get("a") == b"text" and store.get("b") == b"\x00\xff"
    assert store.check(["a", "b"]) and not store.check(["a", "c"])
    assert store.add("n", 2) == 2 and store.add("n", -5) == -3 and store.get("n") == b"-3"
    assert store.num_keys() == 3
    assert store.delete_key("a") and not store.delete_key("a") and store.num_keys() == 2


def test_compare_set(store):
    assert store.compare_set("k", "x", "y") == b"x" and not store.check(["k"])
    assert store.compare_set("k", "", "1") == b"1"
    assert store.compare_set("k", "", "2") == b"1"
    assert store.compare_set("k", "0", "2") == b"1"
    assert store.compare_set("k", "1", "2") == b"2" and store.get("k") == b"2"


def test_get_and_wait_have_a_timeout(store):
    with pytest.raises(StoreError, match="missing"):
        store.get("missing")
    with pytest.raises(StoreError, match="missing"):
        store.wait(["missing"], 0.01)


def test_clients_share_the_values(server):
    one, two = (StoreClient("127.0.0.1", server, "secret") for _ in range(2))
    one.set("k", "v" * 100000)
    assert two.get("k") == b"v" * 100000
    assert [one.add("n", 1), two.add("n", 1), one.add("n", 1)] == [1, 2, 3]
    one.close()
    two.close()


def test_wrong_token(server):
    with pytest.raises(StoreError, match="a different TELETENSOR_GROUP_TOKEN"):
        StoreClient("127.0.0.1", server, "guess")


def test_server_without_the_token_is_rejected():
    """A server that answers without knowing the token."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"00\n")
                peer.recv(4096)
                peer.sendall(b"0" * 64 + b"\n")

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(StoreError, match="a different TELETENSOR_GROUP_TOKEN"):
            StoreClient("127.0.0.1", listener.getsockname()[1], "secret")
        thread.join()


@pytest.mark.parametrize(
    "message", [b"", b"\n", b"garbage\n", b"x" * 100 + b"\n", b"\xff\xfe\n", b'0 ["set", "a", "eA=="]\n']
)
def test_malformed_messages_do_not_stop_the_server(server, message):
    with socket.create_connection(("127.0.0.1", server)) as raw:
        raw.recv(100)
        raw.sendall(message)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(4096):
            pass
    client = StoreClient("127.0.0.1", server, "secret")
    assert not client.check(["a"])
    client.close()


@pytest.mark.parametrize("damage", ["replay", "change"])
def test_damaged_messages_are_rejected(server, damage):
    client = StoreClient("127.0.0.1", server, "secret")
    sealed = client._channel.seal(["add", "n", 1])
    if damage == "replay":
        client._send(sealed)
        client._channel.open(client._line())
        client._send(sealed)
    else:
        client._send(sealed.replace(b"1]", b"2]"))
    with pytest.raises(StoreError):
        client._line()
    client.close()
    other = StoreClient("127.0.0.1", server, "secret")
    assert other.add("n", 0) == (1 if damage == "replay" else 0)
    other.close()


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(StoreError, match="does not answer"):
        StoreClient("127.0.0.1", port, "secret")
