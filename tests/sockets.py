"""Sockets of daemons under test."""

from __future__ import annotations

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
