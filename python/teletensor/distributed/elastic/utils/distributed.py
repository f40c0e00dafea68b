"""Free ports, and stores of launchers."""

from __future__ import annotations

import socket
from datetime import timedelta

from ..._errors import DistNetworkError
from ..._store import TCPStore

__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]


def get_socket_with_port() -> socket.socket:
    """Returns a socket that is bound to a port which is free on all interfaces, and does not listen."""
    for family, host in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):  # noqa: S104
        try:
            bound = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue
        try:
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            bound.bind((host, 0))
            return bound
        except OSError:
            bound.close()
    raise RuntimeError("Failed to create a socket")


def get_free_port() -> int:
    """Returns a port that is free on all interfaces at the moment."""
    with get_socket_with_port() as bound:
        return bound.getsockname()[1]


def create_c10d_store(
    is_server: bool,
    server_addr: str,
    server_port: int = -1,
    world_size: int = 1,
    timeout: float = 600,
    wait_for_workers: bool = True,
    retries: int = 3,
    use_libuv: bool | None = None,
) -> TCPStore:
    """Returns a TCPStore.

    Args:
        is_server: whether this process's engine serves it.
        server_addr, server_port: the server's address; without a port, which only a store of one member may leave out, a
            free one is used.
        world_size: the number of members.
        timeout: of the store's calls, in seconds.
        wait_for_workers: whether to wait until all members have connected.
        retries: how many free ports are tried.
        use_libuv: PyTorch's implementations of its server; has no effect, because an engine serves the store.

    Raises:
        DistNetworkError: the store cannot be served, or its server does not answer.
    """
    if server_port == -1 and world_size > 1:
        raise ValueError(
            f"server_port must be specified when world_size > 1, got server_port={server_port}, world_size={world_size}"
        )
    for attempt in range(1, retries + 1):
        port = get_free_port() if server_port == -1 else server_port
        try:
            return TCPStore(
                server_addr, port, world_size, is_server, timedelta(seconds=timeout), wait_for_workers=wait_for_workers
            )
        except DistNetworkError:
            # Another process may have taken the free port meanwhile.
            if server_port != -1 or attempt == retries:
                raise
    raise ValueError(f"[create_c10d_store] expected a positive number of retries, got {retries}")
