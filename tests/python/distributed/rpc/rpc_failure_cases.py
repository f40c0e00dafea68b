"""Workers that are lost or send invalid messages. Each function runs on one worker, whose agent lives until `end`."""

from __future__ import annotations

import random
import time

import teletensor as torch
from teletensor.distributed import rpc
from teletensor.distributed._object_encoding import encode

from ..failures.failure_cases import engine_pid  # noqa: F401 - called by the tests
from .rpc_cases import Counter, counter_of, echo, never, raised, scaled


def begin(rank: int, size: int, port: int, name: str = "", timeout: float = 60.0, host: str = "127.0.0.1") -> list[str]:
    """Returns the error's type and message."""
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://{host}:{port}", rpc_timeout=timeout)
    return raised(rpc.init_rpc, name or f"worker{rank}", rank=rank, world_size=size, rpc_backend_options=options)


def call_never(to: int) -> list[str]:
    return raised(rpc.rpc_sync, to, never)


def call_echo(to: int, timeout: float = 30.0) -> list[str]:
    """Sends a tensor to a worker and back."""
    x = torch.arange(1000.0)
    found = raised(rpc.rpc_sync, to, echo, args=(x,), timeout=timeout)
    if found[0] == "":
        assert torch.equal(rpc.rpc_sync(to, echo, args=(x,))[0][0], x)
    return found


def traffic(rank: int, size: int, seed: int) -> list[str]:
    """Makes random calls until one fails, at most for 20 s. Returns the error's type and message."""
    choose, end = random.Random(100 * seed + rank), time.monotonic() + 20
    found = ["", ""]
    while found[0] == "" and time.monotonic() < end:
        to, third = choose.randrange(size), choose.randrange(size)
        x = torch.ones(choose.choice([1, 1000, 500_000]))
        found = raised(
            choose.choice(
                [
                    lambda: rpc.rpc_sync(to, scaled, args=(x,)).sum().item(),
                    lambda: rpc.remote(to, torch.add, args=(x, 1)).to_here().sum().item(),
                    lambda: rpc.rpc_sync(third, counter_of, args=(rpc.remote(to, Counter, args=(1,)),)),
                    lambda: [future.wait() for future in [rpc.rpc_async(to, echo, args=(x, i)) for i in range(5)]],
                ]
            )  # fmt: skip
        )
    return found


def fetch(to: int) -> list[str]:
    return raised(lambda: rpc.remote(to, never).to_here())


def end(graceful: bool = True, timeout: float = 0.0) -> list[str]:
    return raised(rpc.shutdown, graceful=graceful, timeout=timeout)


def send_malformed(to: int, kind: int) -> None:
    """Sends a message that no worker would send."""
    agent = rpc.api._get_current_rpc_agent()
    messages = [
        b"", b"\xff" * 100, encode([]), encode(["unknown"]), encode({"a": 1}), encode(["call", 1]),
        encode(["call", "1", "torch:add", None, None, b""]), encode(["reply", 1, 1, None, "x"]), encode(["notice", "no", b""]),
        encode(["call", 1, "torch:add", None, [-1, "x"], encode([[], {}])]), encode(["notice", "rref.confirmed", encode([3])]),
    ]  # fmt: skip
    agent._outbox.send(to, messages[kind])


def is_lost(peer: int) -> str:
    """Waits until a worker is lost; returns the reason."""
    agent = rpc.api._get_current_rpc_agent()
    for _ in range(1000):
        if agent.peers[peer].lost:
            break
        time.sleep(0.01)
    return agent.peers[peer].lost


def damaged_messages(peer: int) -> int:
    """Handles valid messages with random damage, as if a worker had sent them. Returns the number of those refused."""
    agent = rpc.api._get_current_rpc_agent()
    sender, choose, refused = agent.peers[peer], random.Random(5), 0
    tensor = ["short", [2], "float32", "cpu", False]  # a capability that the engine refuses at once
    arguments = [[{"tensor": tensor}, {"rref": [peer, [peer, 5], [peer, 6]]}, {"function": "torch:add"}], {"dict": []}]
    inner = encode([1]).replace(b"[1]", repr(arguments).replace("'", '"').replace("False", "false").encode())
    inner = (len(inner) - 8).to_bytes(8, "little") + inner[8:]
    messages = [
        encode(["call", 10**6, "torch:add", None, [(peer << 48) + 1, (peer << 48) + 2], inner]),
        encode(["call", 10**6, ".rref.fetch", ((peer, 7), (peer, 8)), None, encode([[[peer, 7]], {}])]),
        encode(["reply", 10**6, True, None, encode([1])]),
        encode(["notice", "rref.drop_fork", encode([[0, 1], [1, 1]])]),
        encode(["notice", "autograd.release", encode([5])]),
    ]
    for _ in range(1500):
        damaged = bytearray(choose.choice(messages))
        for _ in range(choose.randint(0, 4)):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        if choose.random() < 0.2:
            del damaged[choose.randrange(len(damaged)) :]
        try:
            agent._receive(sender, bytes(damaged))
        except ValueError:
            refused += 1
    return refused
