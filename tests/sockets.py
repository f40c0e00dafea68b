"""Sockets of daemons under test."""

from __future__ import annotations

import contextlib
import random
import socket as sockets
from pathlib import Path

ACCEPTS = "00010000"  # __SO_ACCEPTCON of linux/net.h


def is_listening(socket: Path) -> bool:
    """Whether a process of this host listens on a unix socket.

    The file exists before: a client that connects between the daemon's bind() and listen() is refused.
    """
    for line in Path("/proc/net/unix").read_text().splitlines():
        fields = line.split()  # address, references, protocol, flags, type, state, inode and, if it has one, the path
        if fields[-1] == str(socket) and fields[3] == ACCEPTS:
            return True
    return False


def port_below_the_ephemeral_ones(count: int = 1) -> int:
    """Returns the first of `count` neighbouring TCP ports that no process listens on.

    A free port of bind(0) may become the local port of a connection before the program under test listens on it, and
    says nothing about the next port. The system chooses none of these ports by itself.
    """
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(1000):
        port = random.randrange(10000, first - count)  # noqa: S311 - no secret
        with contextlib.ExitStack() as probes:
            try:
                for each in range(port, port + count):
                    probes.enter_context(sockets.create_server(("", each)))
            except OSError:
                continue
        return port
    raise RuntimeError(f"no {count} free ports between 10000 and {first}")
