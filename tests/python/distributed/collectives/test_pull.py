"""Copies of tensors between engines by ticket."""

from __future__ import annotations

import json
import secrets
import time

import pytest

from ....conftest import IN_PROCESS
from ..values import DTYPES
from . import pull_cases as cases

pytestmark = pytest.mark.slow


def connect(engine, **options):
    """Opens a session beside the process's own."""
    from teletensor import _C

    options = {"address": engine.address, "token": "", "client_name": "test", "memory_limit": 0, **options}
    for _ in range(100):
        try:
            return _C.connect(**options, compression="none", content_addressed=False)
        except ConnectionError:  # the socket exists before the engine listens
            time.sleep(0.02)
    return _C.connect(**options, compression="none", content_addressed=False)


@pytest.fixture
def two_sessions(torch, own_daemon):
    """Sessions with two engines."""
    if IN_PROCESS:
        pytest.skip("needs two engines")
    sessions = [connect(own_daemon()), connect(own_daemon())]
    yield sessions
    for session in sessions:
        session.close()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(torch, device, dtype):
    from teletensor.distributed._pull import offer, pull

    tensor = torch.arange(24).remainder(2).reshape(2, 3, 4).to(getattr(torch, dtype))
    for layout in (tensor, tensor.transpose(0, 2), tensor[:, 1], tensor[0, 0, 1], tensor[:0]):
        ticket = json.loads(json.dumps(offer(layout)))
        for target in ("cpu", device):
            copy = pull(ticket, device=target)
            assert copy.dtype == layout.dtype and copy.shape == layout.shape and copy.device.type == target
            assert copy.to(torch.float32).tolist() == layout.to(torch.float32).tolist()
            ticket = offer(layout)


def test_later_writes_do_not_change_an_offer(torch):
    from teletensor.distributed._pull import offer, pull

    tensor = torch.arange(4)
    ticket = offer(tensor)
    tensor.add_(10)
    copy = pull(ticket)
    tensor.zero_()
    copy[0] = 7
    assert copy.tolist() == [7, 1, 2, 3] and tensor.tolist() == [0, 0, 0, 0]


def test_the_copy_requires_no_gradient(torch):
    from teletensor.distributed._pull import offer, pull

    copy = pull(offer(torch.ones(2, requires_grad=True) * 2))
    assert not copy.requires_grad and copy.is_leaf


def test_between_engines(torch, two_sessions):
    from teletensor.distributed._pull import _session, offer, pull

    first, second = two_sessions
    with _session(first):
        tensor = torch.randn(300, 1000)
    expected = tensor.tolist()
    copy = pull(offer(tensor, connection=first), connection=second)
    with _session(second):
        again = offer(copy * 2, connection=second)
    back = pull(again, connection=first)
    assert copy.tolist() == expected
    assert (back == tensor * 2).all().item()


def test_a_pull_waits_for_its_offer_and_blocks_no_other_session(torch, own_daemon):
    from teletensor.distributed import _pull

    if IN_PROCESS:
        pytest.skip("needs two engines")
    offering, pulling = own_daemon(), own_daemon()
    first, second, other = connect(offering), connect(pulling), connect(pulling)
    address, token = _pull.endpoint(connection=first)
    capability = _pull.new_capability()
    copy = _pull.pull_from(address, token, capability, [3], torch.float32, connection=second)
    second.flush()
    with _pull._session(other):
        assert torch.ones(3).sum().item() == 3
    with _pull._session(first):
        tensor = torch.full((3,), 5.0)
    _pull.offer_under(capability, tensor, 60, first)
    assert (copy + 1).tolist() == [6, 6, 6]
    for session in (first, second, other):
        session.close()


def test_an_error_is_pulled(torch, two_sessions):
    from teletensor.distributed._pull import _session, offer, pull

    first, second = two_sessions
    with _session(first):
        failed = torch.ones(3).gather(0, torch.tensor([7]))
        ticket = offer(failed, connection=first)
    with pytest.raises(IndexError, match="offered tensor failed: .*index 7 is out of bounds.*test_pull.py"):
        pull(ticket, connection=second).tolist()
    with _session(second):
        assert torch.ones(2).tolist() == [1, 1], "the session goes on"


def test_an_offer_without_memory_for_its_copy_is_an_error_of_the_pull(torch, own_daemon):
    from teletensor.distributed._pull import _session, offer, pull

    if IN_PROCESS:
        pytest.skip("needs a session with a limit")
    session = connect(own_daemon(), memory_limit=64 << 20)
    with _session(session):
        tensor = torch.ones(10 << 20)
    with pytest.raises(torch.OutOfMemoryError):
        pull(offer(tensor, connection=session), connection=session).tolist()
    session.close()


def test_a_ticket_is_used_once(torch):
    from teletensor.distributed._pull import offer, pull, withdraw

    ticket = offer(torch.ones(2))
    assert pull(ticket).tolist() == [1, 1]
    withdrawn = offer(torch.ones(2))
    withdraw(withdrawn["capability"])
    for used in (ticket, withdrawn):
        with pytest.raises(RuntimeError, match="it is wrong, or it was used or withdrawn or has expired"):
            pull(used).tolist()
    with pytest.raises(RuntimeError, match=r"timed out after 50 ms: no tensor was offered"):
        pull({**ticket, "capability": secrets.token_hex(16)}, timeout=0.05).tolist()
    with pytest.raises(ValueError, match="expected a new capability"):
        torch._C.ops.pull_offer(torch.ones(2), capability=ticket["capability"], timeout=1.0).item()


def test_an_offer_expires(torch):
    from teletensor.distributed._pull import offer, pull

    ticket = offer(torch.ones(2), timeout=0.01)
    torch.synchronize()
    time.sleep(0.3)
    with pytest.raises(RuntimeError, match="no tensor is offered"):
        pull(ticket).tolist()


def test_a_session_that_ends_frees_its_offers(torch, own_daemon):
    from teletensor.distributed._pull import _session, endpoint, offer, pull

    if IN_PROCESS:
        pytest.skip("needs several sessions")
    engine = own_daemon()
    first, kept = connect(engine), connect(engine)
    with _session(first):
        ticket = offer(torch.ones(2), connection=first)
    assert endpoint(connection=kept) == (ticket["address"], ticket["token"]), "one server per engine"
    first.synchronize()
    first.close()
    with pytest.raises(RuntimeError, match="no tensor is offered"):
        pull(ticket, connection=kept).tolist()
    kept.close()
    with pytest.raises(RuntimeError, match="cannot be reached"):
        pull(ticket).tolist()


def test_a_lost_engine_is_an_error_of_the_pull(torch, two_sessions, own_daemon):
    from teletensor.distributed import _pull

    engine = own_daemon()
    lost = connect(engine)
    address, token = _pull.endpoint(connection=lost)
    copy = _pull.pull_from(address, token, _pull.new_capability(), [3], torch.float32, connection=two_sessions[0])
    two_sessions[0].flush()
    lost.close()
    engine.stop()
    with pytest.raises(RuntimeError, match="cannot be reached, or was lost|ended the transfer"):
        copy.tolist()
    engine.log = open(engine.log.name, "w+")  # noqa: SIM115 - the fixture stops the engine again


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": [-1]}, {"sizes": "2"}, {"sizes": [1] * 65}, {"sizes": [2**63]}, {"sizes": [True]}, {"dtype": "Tensor"},
        {"dtype": 3}, {"dtype": "__name__"}, {"address": None}, {"token": 5}, {"capability": b"x"},
    ],
)  # fmt: skip
def test_malformed_tickets_are_refused_at_once(torch, change):
    from teletensor.distributed._pull import offer, pull

    ticket = offer(torch.ones(2))
    with pytest.raises(ValueError, match="expected"):
        pull({**ticket, **change})
    for missing in ticket:
        with pytest.raises(ValueError, match="expected a ticket"):
            pull({key: value for key, value in ticket.items() if key != missing})


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"sizes": [3]}, "the offered tensor has the sizes [2]"),
        ({"dtype": "int32"}, "another dtype"),
        ({"capability": "short"}, "expected a capability of 22 to 128"),
        ({"capability": "x" * 1000}, "expected a capability of 22 to 128"),
        ({"token": "\n"}, "expected a token of printable ASCII"),
        ({"token": "wrong"}, "the token does not belong"),
        ({"address": "nonsense"}, "expected an address"),
        ({"address": "127.0.0.1:65534"}, "cannot be reached"),
    ],
)
def test_wrong_tickets_are_errors_of_the_copy(torch, change, error):
    from teletensor.distributed._pull import offer, pull

    ticket = offer(torch.ones(2))
    with pytest.raises((RuntimeError, ValueError)) as raised:
        pull({**ticket, **change}, timeout=5).tolist()
    assert error in str(raised.value)
    assert ticket["capability"] not in str(raised.value)


def test_between_ranks(ranks):
    ranks.run(3, cases.exchange)
