"""--hosts: starts one launcher per host and serves their store.

The calling process runs no ranks itself. A launcher on another host is started by ssh, on this one directly. It
receives its options and environment, with the token, in one line on standard input, so that neither is visible in the
process list. The end of standard input ends it: when this process is killed or the connection breaks, no rank keeps
running.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys

from .launcher import Signals, new_leader, report
from .logs import Output, Stream
from .options import STDERR, STDOUT, Options, is_this_host
from .rendezvous import StoreServer

# Variables that are passed to other hosts.
_PREFIXES = ("TELETENSOR_", "OMP_", "MKL_", "OPENBLAS_", "NCCL_", "GLOO_", "CUDA_", "PYTHON")
_FLUSH_SECONDS = 5.0


def _address(options: Options) -> str:
    """Returns this machine's address for the other hosts."""
    if options.endpoint[0] or options.local_address:
        return options.endpoint[0] or options.local_address
    others = [name for name, _ in options.hosts if not is_this_host(name)]
    if not others:
        return "127.0.0.1"
    first = options.hosts[0][0]
    if first not in others and not first.startswith(("localhost", "127.")):
        return first
    for name in others:
        try:  # the source address of packets to that host; nothing is sent
            family, _, _, _, address = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(address)
                return probe.getsockname()[0]
        except OSError:
            continue
    return socket.getfqdn()


def _command(options: Options, host: str) -> list[str]:
    """Returns the command that starts the launcher on a host."""
    launcher = [sys.executable, "-m", "teletensor.launch.remote"]
    if is_this_host(host):
        return launcher
    path = os.environ.get("PYTHONPATH")
    words = ["env", f"PYTHONPATH={path}", *launcher] if path else launcher
    command = f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(words)}"
    return [word.replace("{host}", host).replace("{command}", command) for word in options.ssh]


class _Remote:
    """The launcher of one host, as a child of this process."""

    def __init__(self, options: Options, index: int, endpoint: tuple[str, int], token: str, output: Output):
        self.host, ranks = options.hosts[index]
        own = dataclasses.replace(
            options, hosts=(), endpoint=endpoint, hosts_store=False, node_rank=index, ranks=ranks, token=token, rendezvous="c10d",
            local_address=None,
        )  # fmt: skip
        environment = {k: v for k, v in os.environ.items() if k.startswith(_PREFIXES)}
        shown = None if own.ranks_shown is None else sorted(own.ranks_shown)
        values = {**dataclasses.asdict(own), "ranks_shown": shown}
        call = {"options": values, "environment": environment, "host": self.host, "colors": output.colors}
        self._process = subprocess.Popen(
            _command(options, self.host), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        self._streams = [
            Stream(os.dup(pipe.fileno()), output, stream, b"", None)
            for stream, pipe in ((STDOUT, self._process.stdout), (STDERR, self._process.stderr))
        ]
        self._process.stdout.close()
        self._process.stderr.close()
        try:
            self._process.stdin.write(json.dumps(call).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it has ended already

    @property
    def code(self) -> int | None:
        return self._process.poll()

    def disconnect(self) -> None:
        """Closes the launcher's standard input, which ends it and its ranks."""
        try:
            self._process.stdin.close()
        except OSError:
            pass

    def kill(self) -> None:
        """Kills the child. The launcher ends because its standard input does."""
        self.disconnect()
        if self.code is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def finish(self) -> None:
        for stream in self._streams:
            stream.finish()


async def run(options: Options, output: Output) -> int:
    """Runs the command on all hosts and returns the exit code."""
    signals = Signals(options.signals)
    token = options.token or secrets.token_hex(32)
    server = StoreServer(token)
    address = _address(options)
    endpoint = (address, await server.start(address, options.endpoint[1]))
    leader = new_leader(server.store, options, options.run_id, replaceable=False)
    remotes: list[_Remote] = []
    try:
        for index in range(len(options.hosts)):
            remotes.append(_Remote(options, index, endpoint, token, output))
        await _supervise(options, leader, remotes, signals, output)
    finally:
        for remote in remotes:
            remote.disconnect()
        # A launcher ends its ranks within the grace period; a second signal does not wait for that.
        end = asyncio.get_running_loop().time() + options.grace + 5
        while (
            any(r.code is None for r in remotes)
            and asyncio.get_running_loop().time() < end
            and len(signals.received) < 2
        ):
            await signals.wait(0.2)
        for remote in remotes:
            remote.kill()
            remote.finish()
        await server.stop()
        if leader.state.phase == "closed" and leader.state.code:
            report(leader.state, output)
        await output.flush(_FLUSH_SECONDS)
    return leader.state.code


async def _supervise(options: Options, leader, remotes: list[_Remote], signals: Signals, output: Output) -> None:
    """Leads the run until it is closed and the launchers have ended or had the time to."""
    described = 0
    lost: set[int] = set()
    while leader.state.phase != "closed":
        if signals.received:
            number = signals.received[0]
            leader.close(128 + number, f"stopped by {signal.Signals(number).name}")
            break
        for index, remote in enumerate(remotes):
            if remote.code is not None and index not in lost:
                lost.add(index)
                leader.lose(index, f"the launcher on {remote.host} ended with exit code {remote.code}")
        leader.step()
        state = leader.state
        if state.round != described and state.phase != "closed":
            described = state.round
            why = state.message or f"rank {state.failure['rank']} failed with exit code {state.failure['code']}"
            output.message(f"{why}; all ranks restart (restart {state.restarts} of {options.max_restarts})")
        await signals.wait(options.monitor_interval)
    end = asyncio.get_running_loop().time() + options.grace + 5
    while (
        any(r.code is None for r in remotes) and asyncio.get_running_loop().time() < end and len(signals.received) < 2
    ):
        await signals.wait(options.monitor_interval)
