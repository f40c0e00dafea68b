"""Places of the engine that one principal takes: others, and operators, find one in every service."""

from __future__ import annotations

import grpc
import numpy as np
import pytest

from tests.adversary.attacks import UNFINISHED
from tests.adversary.wire import Peer, UnfinishedCalls
from tests.conftest import IN_PROCESS
from tests.python.serving.test_unread_answers import infer, serve, until
from tests.python.session.test_principals import user

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]
MOST_SESSIONS = 1024  # server/session/sessions.h


def is_known(peer: Peer) -> bool:
    try:
        peer.status()
    except grpc.RpcError:
        return False
    return True


@pytest.fixture(params=[False, True], ids=["unix", "tcp"])
def engine(tmp_path, request):
    made = serve(tmp_path, 600, over_tcp=request.param)
    user(made.file, "set", "hostile", "--sessions", str(MOST_SESSIONS))
    made.tokens["root"] = user(made.file, "add", "root", "--role", "operator")
    peer = Peer(made.address, made.tokens["root"])
    until(lambda: is_known(peer), made)  # the engine reads the file again
    peer.close()
    yield made
    made.stop()


@pytest.mark.parametrize("method, count", [*UNFINISHED, ("all", 1)])
def test_unfinished_calls_give_way(engine, method, count):
    """Every call of another principal succeeds at once, without a repetition."""
    held = UnfinishedCalls(engine.address, engine.tokens["hostile"])
    for each, number in UNFINISHED if method == "all" else [(method, count)]:
        held.open(each, number)
    ones = np.ones(2, "float32")
    for name in ("other", "root", "hostile"):
        peer = Peer(engine.address, engine.tokens[name])
        try:
            assert peer.hello(client="honest").session_key
            assert peer.status().sessions is not None
        finally:
            peer.close()
        if name != "hostile":  # its own calls do not give way if their requests may be large
            assert infer(engine, name, "small", x=ones).tolist() == [2, 2]
    held.close()


def test_sessions_of_one_principal_leave_some_to_others(engine):
    hostile = Peer(engine.address, engine.tokens["hostile"])
    with pytest.raises(grpc.RpcError, match="its share of 1024"):
        for _ in range(MOST_SESSIONS):
            hostile.hello(client="hostile")
    for name in ("other", "root"):
        peer = Peer(engine.address, engine.tokens[name])
        assert all(peer.hello(client="honest").session_key for _ in range(8))
        peer.close()
    hostile.close()
