"""Device libraries that fail: an operation or the library is refused, and the engine and the session go on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import Daemon
from tests.python.devices.conftest import EXAMPLE, FAULTY, session

pytestmark = pytest.mark.slow

# The fault; a function of a tensor on the device that fails, the exception's name, and what it says. None: the CPU
# computes the value instead.
FAULTS = [
    ("kernel fails", "neg", "RuntimeError", "division by cucumber"),
    ("kernel throws", "neg", "RuntimeError", "thrown by a kernel"),
    ("kernel throws a number", "neg", "RuntimeError", "threw an exception"),
    ("kernel is full", "neg", "OutOfMemoryError", "faulty: kernel"),
    ("kernel is silent", "neg", "RuntimeError", "gives no reason"),
    ("kernel shouts", "neg", "RuntimeError", "AAAA"),
    ("kernel declines", "neg", None, ""),
]
ALLOCATIONS = [
    ("allocate fails", "RuntimeError", "the device is on fire"),
    ("allocate throws", "RuntimeError", "threw an exception"),
    ("allocate is full", "OutOfMemoryError", "faulty:0"),
    ("null address", "RuntimeError", "not usable"),
    ("odd address", "RuntimeError", "not usable"),
    ("address beyond", "RuntimeError", "not usable"),
    ("stream fails", "RuntimeError", "no streams today"),
    ("null stream", "RuntimeError", "no new stream"),
    ("copy fails", "RuntimeError", "the bus is broken"),
    ("work fails", "RuntimeError", "the work before this failed"),
]


@pytest.fixture
def faulty(tmp_path):
    """Starts an engine with the library and a fault."""
    started = []

    def start(fault: str) -> Daemon:
        started.append(Daemon(tmp_path, "--devices", f"{FAULTY},{EXAMPLE}", TELETENSOR_TEST_DEVICE_FAULT=fault))
        return started[-1]

    yield start
    for daemon in started:
        assert daemon.stop() == 0


def _goes_on(torch) -> None:
    assert (torch.ones(2) + 1).tolist() == [2, 2] and (torch.ones(2, device="example") + 1).tolist() == [2, 2]


@pytest.mark.parametrize(("fault", "operator", "kind", "text"), FAULTS, ids=[row[0] for row in FAULTS])
def test_kernel(_engine, faulty, fault, operator, kind, text):
    torch = _engine
    with session(faulty(fault).address):
        x = torch.ones(2, device="faulty")
        if kind is None:
            assert getattr(torch, operator)(x).tolist() == [-1, -1]
        else:
            with pytest.raises(RuntimeError, match=text) as raised:
                getattr(torch, operator)(x).tolist()
            assert type(raised.value).__name__ == kind
        assert x.tolist() == [1, 1]
        _goes_on(torch)


@pytest.mark.parametrize(("fault", "kind", "text"), ALLOCATIONS, ids=[row[0] for row in ALLOCATIONS])
def test_memory_and_streams(_engine, faulty, fault, kind, text):
    torch = _engine
    with session(faulty(fault).address):
        with pytest.raises(RuntimeError, match=text) as raised:
            torch.ones(2, device="faulty").tolist()
        assert type(raised.value).__name__ == kind
        _goes_on(torch)


def test_stores_keep_to_their_elements(_engine, faulty):
    """A write to a noncontiguous tensor copies its elements only: other sessions may be writing those between."""
    torch = _engine
    with session(faulty("parts end at 16 bytes").address):
        x = torch.zeros(24, device="faulty").reshape(2, 3, 4)  # 96 bytes, which may be copied together
        x[:, 1:, 1] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        x[1, :, 2:] = torch.tensor([5.0, 6.0])
        x.transpose(0, 2)[3, :2] = 7
        want = np.zeros((2, 3, 4))
        want[:, 1:, 1] = [[1, 2], [3, 4]]
        want[1, :, 2:] = [5, 6]
        want.transpose(2, 1, 0)[3, :2] = 7
        assert x.tolist() == want.tolist()
        with pytest.raises(RuntimeError, match="too many bytes"):
            x[0, :, :3] = torch.ones(3, 3)
            x.tolist()


@pytest.mark.parametrize("fault", ["another version", "count throws", "missing function"])
def test_refused_at_start(_engine, faulty, fault):
    """The engine starts without the library, and has the next one of --devices."""
    torch = _engine
    daemon = faulty(fault)
    with session(daemon.address):
        _goes_on(torch)
        assert [d["device"] for d in torch._connection.connection().engine()["devices"] if "faulty" in d["device"]] == []
    daemon.log.seek(0)
    assert "libfaulty_device.so is not used: " in daemon.log.read()
