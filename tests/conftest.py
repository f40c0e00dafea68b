"""Fixtures: the engine that the tests use.

Tests run against a real daemon, started for the run, with two GPUs: simulated ones (tests/cuda) or, if
TELETENSOR_TEST_GPU is set, the machine's. If TELETENSOR_IN_PROCESS is set (and the test build's package is on the
path), the same tests run against an engine in this process, without GPUs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sockets import is_listening

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build"))
IN_PROCESS = bool(os.environ.get("TELETENSOR_IN_PROCESS"))
# The sanitizer of the daemon's build, asan or tsan (deploy/run_tests.sh); empty in the ordinary build.
SANITIZER = os.environ.get("TELETENSOR_SANITIZER", "")


def not_sanitized(reason: str):
    """Skips a test in the runs of sanitizers, for a reason that has to do with them."""
    return pytest.mark.skipif(bool(SANITIZER), reason=f"in a sanitizer's build: {reason}")


SIMULATED = "" if os.environ.get("TELETENSOR_TEST_GPU") else str(BUILD / "tests/libteletensor_cuda_simulated.so")
DEVICES = ["cpu"] if IN_PROCESS else ["cpu", "cuda"]
# A process started in the background by a shell ignores SIGINT, and its children, which tests interrupt, would too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("TELETENSOR_STORED_CAPTURES", "0")  # tests do not depend on earlier runs
sys.path.insert(0, str(BUILD / ("tests/python" if IN_PROCESS else "python")))
sys.path.insert(1, str(ROOT))


def client_environment(**more: str) -> dict[str, str]:
    """The environment of a client in a separate process."""
    path = os.pathsep.join(filter(None, [str(BUILD / "python"), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "TELETENSOR_DAEMON": str(BUILD / "bin/teletensord"), **more}


def eventually(holds, seconds: float = 60) -> None:
    """Waits until ``holds()``; fails after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.05)


def await_listener(place: str) -> None:
    """Waits for an HTTP listener, which starts after the socket by which a test sees that the engine has started."""

    import socket

    def is_up() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(place.rpartition(":")[2]))) == 0

    eventually(is_up)


class Daemon:
    """A teletensord for a test, on a unix socket, without authentication, for peers on this host's loopback network.

    `environment` extends this process's.
    """

    def __init__(self, folder: Path, *options: str, **environment: str):
        self.socket = folder / "engine.sock"
        self.log = open(folder / "engine.log", "w+")  # noqa: SIM115 - lives as long as the process
        command = [str(BUILD / "bin/teletensord"), "--listen", f"unix:{self.socket}", "--no-auth", *options]
        environment = {
            "TELETENSOR_PEER_NETWORKS": "127.0.0.0/8,::1",
            **os.environ,
            "TELETENSOR_CUDA_PLUGIN": SIMULATED,
            **environment,
        }
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, env=environment)
        self.wait_until_up()

    @property
    def address(self) -> str:
        return f"unix:{self.socket}"

    def wait_until_up(self) -> None:
        import time

        for _ in range(500):
            if self.process.poll() is not None:
                self.log.seek(0)
                raise RuntimeError(f"teletensord exited with {self.process.returncode}: {self.log.read()}")
            if is_listening(self.socket):
                return
            time.sleep(0.02)
        raise RuntimeError("teletensord did not start within 10 s")

    def stop(self) -> int:
        """Stops the daemon with SIGTERM; returns its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.log.close()
        return status


@pytest.fixture
def daemon(tmp_path):
    """A new daemon with a lease of one second."""
    engine = Daemon(tmp_path, "--lease", "1")
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def _engine(tmp_path_factory):
    import teletensor
    from teletensor import _C, _connection

    if IN_PROCESS:
        _connection._current = _C.connect_in_process()
        _C.set_session(_connection._current)
        yield teletensor
        teletensor.disconnect()
        return
    engine = Daemon(tmp_path_factory.mktemp("engine"))
    teletensor.connect(engine.address)
    if not SIMULATED:  # results are compared with the CPU's
        teletensor.backends.cudnn.allow_tf32 = False
    yield teletensor
    teletensor.disconnect()
    assert engine.stop() == 0


@pytest.fixture(autouse=True)
def _the_session_stays():
    """Fails a test that leaves another session, or none: those that follow it would use an engine without GPUs."""

    def address() -> str | None:
        connection = sys.modules.get("teletensor._connection")
        current = None if connection is None or IN_PROCESS else connection._current
        return None if current is None else current.address

    before = address()
    yield
    assert before is None or address() == before, f"the session was {before}, and is {address()}"


@pytest.fixture
def torch(_engine):
    """The package, connected to the engine and reseeded."""
    _engine.manual_seed(0)
    return _engine


@pytest.fixture(params=DEVICES)
def device(torch, request):
    """Runs a test once per device, as the default device of new tensors. Modules apply it by `usefixtures("device")`."""
    torch.set_default_device(request.param)
    yield request.param
    torch.set_default_device(None)


@pytest.fixture
def own_daemon(tmp_path):
    """Starts daemons, which share nothing with other tests except a real GPU, and stops them."""
    engines = []

    def start(*options: str, **environment: str) -> Daemon:
        folder = tmp_path / str(len(engines))
        folder.mkdir()
        engines.append(Daemon(folder, "--lease", "1", *options, **environment))
        return engines[-1]

    yield start
    for engine in engines:
        assert engine.stop() == 0
