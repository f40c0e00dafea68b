"""Clients and engines of different versions: which are accepted, and what must not change between versions.
``make skew-test`` runs a package that is built from an older commit."""

from __future__ import annotations

import subprocess
import sys

import grpc
import numpy as np
import pytest

from tests.adversary.wire import ENGINE, Peer, instruction, message
from tests.conftest import IN_PROCESS, client_environment
from tests.python.session.test_isolation import Impostor
from tests.skew.operators import changes, current, recorded

# Of a client of 0.1 without HelloRequest.version: its name and another digest of its operators.
OLDER_HELLO = b"\x0a\x20python 3.11.7 teletensor 0.1.0.a\x11\x01\x02\x03\x04\x05\x06\x07\x08"


def test_operators_keep_their_ids_and_parameters():
    """Clients of released versions send these operators."""
    assert len(recorded()) > 500
    assert changes(recorded(), current()) == []


@pytest.mark.parametrize(
    "old, new, found",
    [
        ("(Tensor a) -> Tensor", None, "operator 7 was removed"),
        ("(Tensor a) -> Tensor", "(Tensor a, int b=0) -> Tensor", None),
        ("(Tensor a) -> Tensor", "(Tensor a, int b) -> Tensor", "the new parameter b has no default"),
        ("(Tensor a, int b=0) -> Tensor", "(Tensor a, int b=1) -> Tensor", "parameter b changed"),
        ("(Tensor a, int b=0) -> Tensor", "(Tensor a) -> Tensor", "parameter b was removed"),
        ("(Tensor a, int b=0) -> Tensor", "(Tensor a, int c=5, int b=0) -> Tensor", "parameter c changed"),
        ("(Tensor a) -> Tensor", "(Tensor a) -> (Tensor x, Tensor y)", "another number of results"),
    ],
)
def test_changes_are_found(old, new, found):
    names = changes({7: ("op", old)}, {7: ("op", new)} if new else {})
    assert (found is None and names == []) or (len(names) == 1 and found in names[0])


def test_another_operator_with_an_id_is_found():
    assert "is now other" in changes({7: ("op", "() -> Tensor")}, {7: ("other", "() -> Tensor")})[0]


@pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")
def test_versions_of_clients(daemon):
    peer = Peer(daemon.address, "")
    for version in ("", "0.1.0", "0.1.7", "0.2.0", "7.0.0rc1"):
        assert peer.hello(version=version).engine_version
    with pytest.raises(grpc.RpcError) as old:
        peer.hello(version="0.0.9")
    assert old.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert "this client, version 0.0.9, is too old for the engine" in old.value.details()
    assert "from version 0.1 on: upgrade the client" in old.value.details()
    for version in ("new", "1", "1.", "-1.0", " 1.0", "1.x", "9999999.0", "1\n.0"):
        with pytest.raises(grpc.RpcError) as malformed:
            peer.hello(version=version)
        assert malformed.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "expected a version such as 0.1.0, got '" in malformed.value.details()
    peer.close()


@pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")
def test_session_of_a_client_without_version(daemon):
    """The Hello of an older client; its operators are a part of the engine's."""
    peer = Peer(daemon.address, "")
    call = peer.channel.unary_unary(ENGINE + "Hello", None, message("HelloReply").FromString)
    frame = message("Frame")(sequence=1)
    instruction(frame, "full", [2, 2], 3.0, result=1)
    frame.reads.add(request=5, handle=1)
    reply = call(OLDER_HELLO, metadata=[("authorization", "Bearer ")], timeout=20)
    (answer,) = next(iter(peer.session(reply.session_key, iter([frame])))).reads  # at once: the lease is a second
    table = dict(zip(reply.operators.ids, reply.operators.parameters))
    assert set(recorded()) <= set(table) and max(table) == reply.max_op_id
    assert not peer.hello(schema_digest=reply.schema_digest).HasField("operators")
    assert np.frombuffer(answer.data, np.float32).tolist() == [3.0] * 4
    peer.close()


@pytest.mark.skipif(IN_PROCESS, reason="connects to an engine in another process")
@pytest.mark.parametrize(
    "version, found", [("0.0.9", "is too old for this client"), ("nonsense", "expected a version such as")]
)
def test_versions_of_engines(version, found):
    script = """
import sys, teletensor
try:
    teletensor.connect(sys.argv[1], token="0" * 64)
except ConnectionError as error:
    print(error)
"""
    engine = Impostor(message("HelloReply")(engine_version=version, session_key=b"key"))
    address = f"127.0.0.1:{engine.port}"
    command = [sys.executable, "-c", script, address]
    done = subprocess.run(command, capture_output=True, text=True, env=client_environment(), timeout=60)
    engine.server.stop(None)
    assert done.returncode == 0, done.stderr
    assert found in done.stdout and address in done.stdout
    assert version != "0.0.9" or "upgrade the engine, or use an older client" in done.stdout
