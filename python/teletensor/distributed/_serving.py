"""Stores that this session's engine serves for the ranks of a run."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
from pathlib import Path

from .. import _C, _connection
from ._errors import DistStoreError

# Stores that the session's engine serves: the session, and the result of store_serve by host and port.
_served: tuple[object, dict[tuple[str, int], _C.Tensor]] = (None, {})
# The stores used by groups only, which can end when groups use another store.
of_groups: set[tuple[str, int]] = set()
_published: dict[
    str, tuple[object, int, str]
] = {}  # by host: a store's session, port and token, which rank 0 published

def serve(host: str, port: int, token: str) -> int:
    """Makes the engine serve a store, unless it serves this port; returns the port. Port 0 selects a free one."""
    global _served
    session = _connection.connection()
    if _served[0] is not session:
        _served = (session, {})
        of_groups.clear()
    ports = _served[1]
    if (host, port) in ports:
        return port
    bound = f"[{host}]" if ":" in host else host
    served = _C.ops.store_serve(f"{bound}:{port}", token)
    try:
        chosen = int(served.item())
    except RuntimeError as error:
        raise DistStoreError(str(error)) from None
    ports[host, chosen] = served
    return chosen


def serve_groups(host: str, port: int, token: str) -> None:
    """Like serve, for groups. Stores of earlier groups end when their last members have left."""
    same_session = _served[0] is _connection.connection()
    is_new = not same_session or (host, port) not in _served[1]
    if is_new:
        if same_session:
            for earlier in of_groups.intersection(_served[1]):
                _C.ops.store_release(_served[1].pop(earlier))
        of_groups.clear()
    serve(host, port, token)
    if is_new:
        of_groups.add((host, port))


def serve_published(host: str) -> tuple[int, str]:
    """Makes the engine serve a store with a random token, unless it does; returns its port and token."""
    session = _connection.connection()
    if host not in _published or _published[host][0] is not session:
        token = secrets.token_hex(32)
        _published[host] = (session, serve(host, 0, token), token)
    return _published[host][1:]


def is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def group_token() -> str:
    """Returns the secret that the ranks' engines share: ``TELETENSOR_GROUP_TOKEN``, else this user's, from a file."""
    if token := os.environ.get("TELETENSOR_GROUP_TOKEN"):
        return token
    if not (config := _C.user_folder("config")):
        raise ValueError(
            "[distributed] expected an absolute path in HOME, XDG_CONFIG_HOME or the password database for the group's token: "
            "set HOME or TELETENSOR_GROUP_TOKEN"
        )
    folder = Path(config) / "teletensor"
    path = folder / "group-token"
    with contextlib.suppress(FileNotFoundError):
        return path.read_text().strip()
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".group-token-{os.getpid()}-{secrets.token_hex(4)}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(32))
    with contextlib.suppress(FileExistsError):  # another rank was first
        os.link(temporary, path)
    temporary.unlink()
    return path.read_text().strip()
