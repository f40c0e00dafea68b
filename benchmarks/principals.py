"""Calls of 63 principals while another one holds every place that it can, compared with the same calls alone.

Usage: ``python -m benchmarks.principals [--rounds 2]``. The holder opens sessions until it is refused, renews unfinished
calls of Hello, Status and ModelInfer, and publishes models whose warm-up takes minutes. Each of the others opens a session,
reads the status and infers, without repetitions, and some publish a model. Prints the share of calls that succeed, and their
times in milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import grpc
import numpy as np

from tests.adversary.attacks import UNFINISHED
from tests.adversary.wire import Peer, UnfinishedCalls
from tests.conftest import client_environment
from tests.python.serving.test_slow_models import SLOW
from tests.python.serving.test_unread_answers import infer, serve
from tests.python.session.test_principals import user

PRINCIPALS, PUBLISHERS = 64, 8
PUBLISH = """
import time
import teletensor as torch
torch.ones(1).item()
began = time.perf_counter()
torch.serve(lambda x: x + 1, "NAME", torch.ones(2))
print(time.perf_counter() - began)
"""


def hold_calls(engine, stopped: threading.Event) -> None:
    """Renews unfinished calls before their deadline of 5 seconds."""
    while not stopped.is_set():
        held = UnfinishedCalls(engine.address, engine.tokens["hostile"])
        for method, count in UNFINISHED:
            with contextlib.suppress(OSError):
                held.open(method, count)
        stopped.wait(4)
        held.close()


def client(engine, name: str, program: str) -> subprocess.Popen:
    """A process of a principal."""
    environment = client_environment(TELETENSOR_ADDRESS=engine.address, TELETENSOR_TOKEN=engine.tokens[name])
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)


def publish(engine, name: str, model: str) -> float | None:
    """The seconds in which a principal publishes a model; None: it failed."""
    process = client(engine, name, PUBLISH.replace("NAME", model))
    text = process.communicate()[0]
    return float(text) if process.returncode == 0 else None


def measure(engine, names: list[str], rounds: int) -> dict[str, list[float | None]]:
    """The seconds of each call; None: it failed."""
    times: dict[str, list[float | None]] = {"session": [], "status": [], "inference": [], "publish": []}
    ones = np.ones(2, "float32")
    for _ in range(rounds):
        for name in names:
            peer = Peer(engine.address, engine.tokens[name])
            calls = {"session": peer.hello, "status": peer.status, "inference": lambda name=name: infer(engine, name, "small", x=ones)}
            for what, call in calls.items():
                began = time.perf_counter()
                try:
                    call()
                    times[what].append(time.perf_counter() - began)
                except Exception:  # noqa: BLE001 - of two gRPC libraries
                    times[what].append(None)
            peer.close()
            time.sleep(0.02)
        times["publish"] += [publish(engine, name, f"of-{name}") for name in names[:PUBLISHERS]]
    return times


def main() -> None:
    """Prints one line per kind of call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        engine = serve(Path(folder), 600, over_tcp=True)
        names = [f"p{i}" for i in range(1, PRINCIPALS)]
        engine.tokens |= {name: user(engine.file, "add", name, "--role", "user") for name in names}
        time.sleep(3)  # until the engine has read the file
        alone = measure(engine, names, rounds)
        slow = [client(engine, "hostile", SLOW.replace('"aaa"', f'"slow{i}"')) for i in range(5)]
        time.sleep(20)  # until four of them warm up
        hostile, stopped = Peer(engine.address, engine.tokens["hostile"]), threading.Event()
        with contextlib.suppress(grpc.RpcError):
            while True:
                hostile.hello(client="hostile")
        holder = threading.Thread(target=hold_calls, args=(engine, stopped))
        holder.start()
        time.sleep(1)
        beside = measure(engine, names, rounds)
        stopped.set()
        for process in slow:
            process.kill()
        holder.join()
        hostile.close()
        engine.stop()
    print(f"{'call':10} {'succeed':>8} {'alone p50':>10} {'p95':>8} {'held p50':>10} {'p95':>8} {'p50 ratio':>10}")
    for what, each in beside.items():
        before = np.array([1e3 * t for t in alone[what] if t is not None])
        now = np.array([1e3 * t for t in each if t is not None])
        (a50, a95), (h50, h95) = np.percentile(before, [50, 95]), np.percentile(now, [50, 95])
        print(f"{what:10} {len(now) / len(each):8.1%} {a50:10.1f} {a95:8.1f} {h50:10.1f} {h95:8.1f} {h50 / a50:10.2f}")


if __name__ == "__main__":
    main()
