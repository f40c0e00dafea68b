"""What tests use to await a daemon."""

from __future__ import annotations

import socket

from tests.sockets import is_listening


def test_a_bound_socket_is_not_a_listening_one(tmp_path):
    place = tmp_path / "s"
    assert not is_listening(place)
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(place))
        assert place.exists() and not is_listening(place)
        server.listen()
        assert is_listening(place)
        client.connect(str(place))
    assert not is_listening(place)
