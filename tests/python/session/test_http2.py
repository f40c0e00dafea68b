"""Limits of HTTP/2 frames: floods end their connection, over TCP, unix sockets and TLS, and well-behaved clients go on."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adversary.http2 import FLOODS, send
from tests.adversary.wire import ENGINE, Peer, message
from tests.conftest import IN_PROCESS, Daemon, eventually
from tests.python.session.test_tls import Files, free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

REASONS = {
    "unfinished_string": "bytes of a header block",
    "unfinished_block": "frames of a header block",
    "small_continuations": "frames of a header block",
    "rapid_resets": "rate of cancelled calls",
    "many_settings": "rate of SETTINGS and PING frames",
}
MOST = 64 << 20  # bytes that a flood sends if nothing ends it


@pytest.fixture(scope="module", params=["plain", "tls"])
def engine(request, tmp_path_factory):
    """An engine on a TCP address, with or without TLS, and on a unix socket."""
    folder = tmp_path_factory.mktemp(request.param)
    files = Files(folder / "files", "127.0.0.1")
    place = f"127.0.0.1:{free_port()}"
    started = Daemon(folder, "--listen", place, *(files.options if request.param == "tls" else ()))
    started.place, started.ca = place, files.ca if request.param == "tls" else None
    yield started
    started.stop()


def connect(engine: Daemon, is_unix: bool) -> socket.socket:
    if is_unix:
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(engine.socket))
        return link
    host, port = engine.place.split(":")
    link = socket.create_connection((host, int(port)), timeout=20)
    if engine.ca is None:
        return link
    context = ssl.create_default_context(cafile=engine.ca)
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(link, server_hostname=host)


@pytest.mark.parametrize("is_unix", [False, True], ids=["tcp", "unix"])
@pytest.mark.parametrize("flood", list(FLOODS))
def test_floods_end_their_connection(engine, flood, is_unix):
    if is_unix and engine.ca is not None:
        pytest.skip("the unix socket does not use TLS")
    log = Path(engine.log.name)
    # A TCP peer without a token may have to wait before it has sent so many resets or settings, and is closed for that.
    is_logged = is_unix or flood not in ("rapid_resets", "many_settings")
    before = log.read_text().count(REASONS[flood])
    with connect(engine, is_unix) as link:
        sent = send(link, FLOODS[flood](ENGINE + "Hello"), MOST)
    assert sent < MOST
    if is_logged:
        eventually(lambda: log.read_text().count(REASONS[flood]) > before)
    peer = Peer(engine.address, "")
    assert peer.hello(client="after the flood").session_key
    peer.close()


def chunks(transfer: int) -> Iterator:
    """An upload of 4 MiB."""
    chunk = message("UploadChunk")
    yield chunk(transfer=transfer, total_bytes=4 << 20, data=bytes(1 << 20))
    for _ in range(3):
        yield chunk(data=bytes(1 << 20))


def test_first_calls_may_be_large(tmp_path):
    """The first calls of a connection send megabytes before the engine has seen a token."""
    place = f"127.0.0.1:{free_port()}"
    engine = Daemon(tmp_path, "--listen", place)
    try:
        first = Peer(place, "")
        key = first.hello(client="uploads").session_key
        for attempt in range(3):
            peer = Peer(place, "")
            calls = [peer.upload(key, chunks(8 * attempt + number)) for number in range(1, 9)]
            errors = [str(call.exception(60)) for call in calls if call.exception(60)]
            assert not errors, errors
            assert peer.hello(client="after").session_key
            peer.close()
        first.close()
    finally:
        engine.stop()
    assert "without a token" not in (tmp_path / "engine.log").read_text()
