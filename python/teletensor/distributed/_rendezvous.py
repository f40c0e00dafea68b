"""Rendezvous: how the ranks of a run find the store through which their engines form groups.

The engine of rank 0 serves the store. With ``env://`` and ``tcp://`` its address is known to all ranks. With ``file://``
or a given store, rank 0 publishes the address there, with a random token and the name of the run.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from ._errors import DistStoreError
from ._serving import group_token, is_loopback, serve_groups, serve_published
from ._store import FileStore, TCPStore
from ._world import cluster, default_pg_timeout

_GRACE = timedelta(seconds=5)


@dataclasses.dataclass
class RunStore:
    """The store through which the engines of a run form groups."""

    address: str  # host:port
    token: str
    run: str  # prefix of the groups' names in the store
    rank: int
    world_size: int
    store: object = None  # the store given by the user


# Number of initialisations by address, run and world size. All ranks of a group have initialised it equally often.
_runs: collections.Counter[tuple[str, str, int]] = collections.Counter()


def _error(text: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {text}")


def _query(url) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in url.query.split("&") if "=" in pair)


def _rank_and_size(url, scheme: str, rank: int, world_size: int) -> tuple[int, int]:
    """Returns the rank and the size that the arguments or the URL contain."""
    query = _query(url)
    if (rank != -1 or world_size != -1) and ("rank" in query or "world_size" in query):
        raise AssertionError(f"The url: {url.geturl()} has node-specific arguments(rank, world_size) already.")
    rank, world_size = int(query.get("rank", rank)), int(query.get("world_size", world_size))
    if rank == -1:
        raise _error(f"{scheme}:// rendezvous: rank parameter missing")
    if world_size == -1:
        raise _error(f"{scheme}:// rendezvous: world size parameter missing")
    return rank, world_size


def _from_environment(url, rank: int, world_size: int) -> tuple[str, int, int, int, str]:
    """Returns MASTER_ADDR, MASTER_PORT, the rank, the size, and the name of the run."""
    query = _query(url)
    rank, world_size = int(query.get("rank", rank)), int(query.get("world_size", world_size))
    run = os.environ.get("TELETENSOR_GROUP_RUN", "")

    def variable(name: str) -> str:
        value = os.environ.get(name)
        if not value:
            raise _error(f"env:// rendezvous: environment variable {name} expected, but not set")
        return value

    needs_rank = (rank == -1 and not os.environ.get("RANK")) or (world_size == -1 and not os.environ.get("WORLD_SIZE"))
    found = cluster() if needs_rank else None
    if found is not None:
        rank = found.rank if rank == -1 else rank
        world_size = found.world_size if world_size == -1 else world_size
        return found.master_addr, found.master_port, rank, world_size, run or found.run_id
    rank = int(variable("RANK")) if rank == -1 else rank
    world_size = int(variable("WORLD_SIZE")) if world_size == -1 else world_size
    return variable("MASTER_ADDR"), int(variable("MASTER_PORT")), rank, world_size, run


def _store_at(host: str, port: int, rank: int, world_size: int, run: str) -> RunStore:
    """Rendezvous at an address that all ranks know."""
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    token = group_token()
    if rank == 0:
        # A host's name may resolve to another interface on the host itself, so all interfaces are served.
        everywhere = "::" if ":" in host else "0.0.0.0"  # noqa: S104 - the token protects the store
        serve_groups("127.0.0.1" if host == "localhost" else host if is_loopback(host) else everywhere, port, token)
    bracketed = f"[{host}]" if ":" in host else host
    address = f"{bracketed}:{port}"
    _runs[address, run, world_size] += 1
    name = f"{run or 'run'}/{world_size}-{_runs[address, run, world_size]}"
    return RunStore(address, token, name, rank, world_size)


def _own_host() -> dict[str, str]:
    """Describes where this process's engine runs, for the other ranks."""
    remote = os.environ.get("TELETENSOR_ADDRESS", "")
    if remote and not remote.startswith("unix:"):
        host = remote.rpartition(":")[0] or remote
        if not is_loopback(host):
            return {"network": host, "host": host}
    boot = Path("/proc/sys/kernel/random/boot_id")
    network = f"{boot.read_text().strip() if boot.exists() else ''} {os.stat('/proc/self/ns/net').st_ino}"
    return {"network": network, "host": socket.gethostname()}


def _address_towards(host: str) -> str:
    """Returns the address of the interface through which this host reaches another one."""
    if own := os.environ.get("TELETENSOR_GROUP_HOST"):
        return own
    try:
        for family, kind, _, _, address in socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind) as probe:
                probe.connect(address)  # sends nothing; selects the route
                return probe.getsockname()[0]
    except OSError:
        pass
    return socket.gethostbyname(socket.gethostname())


def _store_from(store, rank: int, world_size: int, timeout: timedelta) -> RunStore:
    """Rendezvous at an address that rank 0 publishes in the user's store."""
    prefix = f"teletensor/init/{store.add(f'teletensor/init/{rank}', 1)}"
    if rank != 0:
        store.set(f"{prefix}/{rank}", json.dumps(_own_host()))
        # If a rank is missing, rank 0 publishes an error that names it after the timeout.
        _wait(store, [f"{prefix}/address"], timeout + _GRACE, lambda _: "rank 0")
        published = json.loads(store.get(f"{prefix}/address"))
        if "error" in published:
            raise DistStoreError(published["error"])
        return RunStore(published["address"], published["token"], published["run"], rank, world_size, store)
    keys = {f"{prefix}/{r}": r for r in range(1, world_size)}
    try:
        _wait(store, list(keys), timeout, lambda key: f"rank {keys[key]}")
    except DistStoreError as error:
        store.set(f"{prefix}/address", json.dumps({"error": str(error)}))
        raise
    own, others = _own_host(), [json.loads(store.get(key)) for key in keys]
    distant = next((other["host"] for other in others if other["network"] != own["network"]), None)
    host = (
        "127.0.0.1" if distant is None else own["host"] if own["host"] == own["network"] else _address_towards(distant)
    )
    port, token = serve_published(host)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    run = uuid.uuid4().hex
    store.set(f"{prefix}/address", json.dumps({"address": address, "token": token, "run": run}))
    return RunStore(address, token, run, rank, world_size, store)


def _wait(store, keys: list[str], timeout: timedelta, describe: Callable[[str], str]) -> None:
    """Waits for keys. Raises DistStoreError that names those which are missing after the timeout."""
    if not keys:
        return
    try:
        store.wait(keys, timeout)
    except RuntimeError as error:
        missing = [describe(key) for key in keys if not store.check([key])]
        if not missing:
            raise
        raise DistStoreError(
            f"[init_process_group] timed out after {timeout.total_seconds():g} s, missing: {', '.join(missing)}"
        ) from error


def _open_file(url, rank: int, world_size: int):
    if not url.path:
        raise _error("file:// rendezvous: path missing")
    rank, world_size = _rank_and_size(url, "file", rank, world_size)
    return FileStore(url.path, world_size), rank, world_size


def find_store(init_method: str | None, store, rank: int, world_size: int, timeout: timedelta) -> RunStore:
    """Returns the store through which the engines form groups. On rank 0, makes the engine serve it.

    Raises:
        ValueError: the rank, the size or the address is missing.
        DistStoreError: the store cannot be served, or ranks are missing after the timeout.
    """
    if store is not None:
        return _store_from(store, rank, world_size, timeout)
    check_url(init_method, rank, world_size)
    url = urlsplit(init_method)
    if url.scheme == "env":
        return _store_at(*_from_environment(url, rank, world_size))
    if url.scheme == "tcp":
        host, port = _host_and_port(url)
        return _store_at(
            host, port, *_rank_and_size(url, "tcp", rank, world_size), os.environ.get("TELETENSOR_GROUP_RUN", "")
        )
    store, rank, world_size = next(rendezvous(init_method, rank, world_size, timeout=timeout))
    return _store_from(store, rank, world_size, timeout)


def check_url(url, rank, world_size) -> None:
    """Raises RuntimeError as PyTorch does."""
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, int):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")


def _host_and_port(url) -> tuple[str, int]:
    if url.port is None:
        raise _error("tcp:// rendezvous: port number missing")
    if not url.hostname:
        raise _error("tcp:// rendezvous: host name missing")
    return url.hostname, url.port


def _file_handler(url: str, **options) -> Iterator[tuple]:
    yield _open_file(urlsplit(url), -1, -1)
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _tcp_store(host: str, port: int, rank: int, world_size: int, timeout: timedelta):
    return TCPStore(host, port, world_size, is_master=rank == 0, timeout=timeout), rank, world_size


def _tcp_handler(url: str, timeout: timedelta = default_pg_timeout, **options) -> Iterator[tuple]:
    parts = urlsplit(url)
    yield _tcp_store(*_host_and_port(parts), *_rank_and_size(parts, "tcp", -1, -1), timeout)
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _env_handler(url: str, timeout: timedelta = default_pg_timeout, **options) -> Iterator[tuple]:
    host, port, rank, world_size, _ = _from_environment(urlsplit(url), -1, -1)
    yield _tcp_store(host, port, rank, world_size, timeout)
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


_handlers: dict[str, Callable[..., Iterator[tuple]]] = {"file": _file_handler, "tcp": _tcp_handler, "env": _env_handler}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[tuple]]) -> None:
    """Registers a function that opens a store for URLs with a scheme: a generator of (store, rank, world_size).

    Raises:
        RuntimeError: the scheme has a handler.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **options) -> Iterator[tuple]:
    """Returns an iterator with one element: the store that a URL describes, the rank and the world size.

    The store of ``tcp://`` and ``env://`` is a TCPStore, served by the process of rank 0.
    """
    check_url(url, rank, world_size)
    parts = urlsplit(url)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    query = _query(parts)
    if (rank != -1 or world_size != -1) and ("rank" in query or "world_size" in query):
        raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
    query |= {name: str(value) for name, value in (("rank", rank), ("world_size", world_size)) if value != -1}
    return _handlers[parts.scheme](
        parts._replace(query="&".join(f"{k}={v}" for k, v in query.items())).geturl(), **options
    )
