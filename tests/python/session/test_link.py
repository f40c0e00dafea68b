"""Training over bad links computes the same bits as over a good one."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import pytest

from tests.conftest import IN_PROCESS, Daemon, client_environment
from tests.python.session.network import UnavailableError, network
from tests.relay.process import RelayProcess

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

# Uploads a batch in each step, requests each loss without waiting, and waits for some. Prints a digest of the losses
# and parameters.
TRAINING = """
import hashlib, sys
import numpy as np
import teletensor as torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
random = np.random.default_rng(0)
losses = []
print("begin", flush=True)
for step in range(int(sys.argv[1])):
    batch = random.standard_normal((96, 256), dtype=np.float32)  # 98 kB: sent in the background
    labels = random.integers(0, 10, 96)                          # part of the frame
    loss = torch.nn.functional.cross_entropy(model(torch.from_numpy(batch)), torch.from_numpy(labels))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item_async())
    if step % 25 == 0:
        losses[-1].wait()
digest = hashlib.sha256(np.array([loss.wait() for loss in losses]).tobytes())
for parameter in model.parameters():
    digest.update(parameter.detach().numpy().tobytes())
print(digest.hexdigest())
"""


def train(address: str, steps: int, meanwhile=lambda: None, prefix: Sequence[str] = ()) -> str:
    """Trains in a new process; returns the digest. Calls `meanwhile` repeatedly during the training.

    `prefix` is a command that runs the process.
    """
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", TRAINING, str(steps)],
        env=client_environment(TELETENSOR_ADDRESS=address, TELETENSOR_SHARED_MEMORY="0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "begin\n", process.stderr.read()
    ended = threading.Event()

    def repeat() -> None:
        while not ended.is_set():
            meanwhile()
            ended.wait(0.05)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        ended.set()
        thread.join()
    assert process.returncode == 0, errors
    return output.strip()


STEPS = 200


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    daemon = Daemon(tmp_path_factory.mktemp("engine"))
    yield daemon.address
    assert daemon.stop() == 0


@pytest.fixture(scope="module")
def expected(engine):
    """The digest without a relay."""
    return train(engine, STEPS)


def test_delay_and_jitter(engine, expected):
    with RelayProcess(engine, delay=5, jitter=10) as relay:
        assert train(relay.address, STEPS) == expected
        assert relay.stats()["bytes"][0] > STEPS * 96 * 256 * 2  # the batches passed the relay; on a slow link they are compressed


def test_reordered_connections(engine, expected):
    with RelayProcess(engine, connection_delay=60, seed=2) as relay:
        assert train(relay.address, STEPS) == expected


def test_limited_rate(engine, expected):
    with RelayProcess(engine, delay=10, rate=(200, 20)) as relay:
        assert train(relay.address, STEPS) == expected


@pytest.mark.parametrize("seed", [1, 2])
def test_cuts_at_random_bytes(engine, expected, seed):
    with RelayProcess(engine, delay=1, seed=seed) as relay:
        relay.command("cut-every 400000")
        assert train(relay.address, STEPS) == expected
        assert relay.stats()["connections"] > 10


def test_stalls(engine, expected):
    with RelayProcess(engine, delay=2) as relay:

        def stall() -> None:
            relay.command("stall")
            time.sleep(1)
            relay.command("resume")
            time.sleep(0.2)

        assert train(relay.address, STEPS, stall) == expected
        # one for frames, one for uploads: short stalls do not break a connection
        assert relay.stats()["connections"] == 2


# A read, and issuing calls until the window is full. Each waits for 3 s; warnings are shown once per interruption.
INTERRUPTED = """
import sys, warnings
import teletensor as torch
warnings.simplefilter("always")
x = torch.ones(4)
torch.synchronize()
def read():
    print((x + 1).sum().item())
def issue():
    for _ in range(50_000):
        y = x + 1
    print(y.sum().item())
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for wait in read, issue:
        print("ready", flush=True)
        sys.stdin.readline()
        wait()
    print(*(w.message for w in caught), sep="|", flush=True)
warnings.simplefilter("error", UserWarning)
print("ready", flush=True)
sys.stdin.readline()
try:
    read()
except UserWarning:
    print("raised", flush=True)
sys.stdin.readline()
read()
"""


def forward(source: socket.socket, target: socket.socket) -> None:
    """Sends what one socket receives through the other, until either is closed."""
    with contextlib.suppress(OSError):
        while received := source.recv(65536):
            target.sendall(received)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("closed", [1, 7, 8])
def test_connection_closed_before_the_engine_answers(engine, tmp_path, closed):
    """A session is opened if at most seven connections are closed at their beginning."""
    accepted = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "relay.sock"))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                accepted.append(client)
                client.recv(16, socket.MSG_PEEK)
                if len(accepted) <= closed:
                    client.close()
                    continue
                target = socket.socket(socket.AF_UNIX)
                target.connect(engine.removeprefix("unix:"))
                for ends in ((client, target), (target, client)):
                    threading.Thread(target=forward, args=ends).start()

        server = threading.Thread(target=serve)
        server.start()
        program = "import teletensor as torch; print(torch.ones(3).sum().item())"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=client_environment(TELETENSOR_ADDRESS=f"unix:{tmp_path / 'relay.sock'}", TELETENSOR_SHARED_MEMORY="0"),
            capture_output=True,
            text=True,
        )
        listener.shutdown(socket.SHUT_RDWR)
        server.join()
    if closed < 8:
        assert done.stdout == "3.0\n", done.stderr
    else:
        assert "ConnectionError" in done.stderr and len(accepted) == 8


def test_refused_link_is_waited_for_with_a_warning(engine):
    with RelayProcess(engine) as relay:
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED],
            env=client_environment(TELETENSOR_ADDRESS=relay.address, TELETENSOR_SHARED_MEMORY="0"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:

            def refuse() -> None:
                assert process.stdout.readline() == "ready\n"
                relay.command("refuse")
                relay.command("cut")

            def proceed() -> None:
                process.stdin.write("\n")
                process.stdin.flush()

            def wait_while_refused() -> str:
                refuse()
                proceed()
                time.sleep(3)
                relay.command("accept")
                return process.stdout.readline().strip()

            assert wait_while_refused() == "8.0"
            assert wait_while_refused() == "8.0"
            caught = process.stdout.readline().strip().split("|")
            assert len(caught) == 2
            assert all("[connection] the connection to the engine at" in message for message in caught)
            # The client knows that the connection is broken when it reads, so the interrupted read is not sent, and the
            # instructions of the next one, which drop its tensor, are in the same frame.
            refuse()
            time.sleep(3.5)  # an idle client looks at its connection every second
            proceed()
            assert process.stdout.readline() == "raised\n"
            proceed()
            time.sleep(0.5)
            relay.command("accept")
            output, _ = process.communicate(timeout=60)
            assert output == "8.0\n"
            assert process.returncode == 0
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def lossy_network():
    """A link of 50 Mbit/s that loses one of a hundred packets, between this process and a network namespace."""
    with contextlib.ExitStack() as stack:
        try:
            link = stack.enter_context(network("50mbit", 0.01))
        except UnavailableError as reason:
            pytest.skip(f"this machine does not allow network namespaces: {reason}")
        yield link


def test_lost_packets(engine, expected, lossy_network):
    with RelayProcess(engine, listen=f"{lossy_network.address}:0") as relay:
        assert train(relay.address, STEPS, prefix=lossy_network.inside) == expected
        assert relay.stats()["bytes"][0] > STEPS * 96 * 256 * 4 * 0.8  # some of them compressed
    assert lossy_network.dropped() > 0


@pytest.mark.slow
def test_silent_connections(engine, expected):
    with RelayProcess(engine, delay=2) as relay:
        lost = []

        def lose() -> None:
            if len(lost) < 2 and relay.stats()["bytes"][0] > (len(lost) + 1) * 3_000_000:
                lost.append(relay.command("lose"))

        assert train(relay.address, STEPS, lose) == expected
        assert len(lost) == 2
        assert relay.stats()["connections"] > 2


@pytest.mark.slow
def test_interrupted_network(engine, expected):
    """The network is gone for longer than an upload waits for its continuation if the session is connected."""
    with RelayProcess(engine, delay=2) as relay:
        stalls = []

        def stall() -> None:
            if not stalls:
                time.sleep(0.2)
                stalls.append(relay.command("stall"))
                time.sleep(20)
                relay.command("resume")

        assert train(relay.address, STEPS, stall) == expected
        assert relay.stats()["connections"] >= 2
