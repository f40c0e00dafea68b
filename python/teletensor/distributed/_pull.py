"""Copies of tensors from one engine to another, whose bytes pass through no client.

    ticket = offer(tensor)              # in one session
    copy = pull(ticket)                 # in another session, of this process or of another one

A ticket is plain data, which can be sent as JSON. Any process that has it can pull the tensor, once: keep it secret, and do not log
it. Neither call waits: `offer` stores the tensor's value at that point of its session, `pull` suspends its session until
the bytes have arrived, and the copy is read like any tensor. If the offered tensor's computation fails, so does the copy.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

from .. import _C, _connection
from ._run_store import run_store

_LOOPBACK = "127.0.0.1:1"
_MAX_DIMENSIONS = 64
_KEPT_ENDPOINTS = 256

# By the session's id and `towards`: the session, so that it outlives its entry, and the address and token of its server.
_endpoints: dict[tuple[int, str], tuple[_C.Connection, str, str]] = {}


@contextlib.contextmanager
def _session(connection: _C.Connection | None) -> Iterator[_C.Connection]:
    """Within the context, calls without a tensor argument use this session; None: the process's."""
    if connection is None:
        yield _connection.connection()
        return
    _C.set_session(connection)
    try:
        yield connection
    finally:
        _C.set_session(_connection._current)


def endpoint(towards: str = "", connection: _C.Connection | None = None) -> tuple[str, str]:
    """Returns the address and the token at which an engine serves its offers; waits for the engine at the first call.

    Args:
        towards: "host:port" of an engine that pulls, or of another process on its network: the engine serves the
            interface through which it reaches this address. By default that of the default group's store, or the loopback
            interface if there is no default group.
    """
    towards = towards or run_store.address or _LOOPBACK
    with _session(connection) as session:
        found = _endpoints.get((id(session), towards))
        if found is None:
            text = bytes(_C.ops.pull_serve(towards).tolist()).rstrip(b"\0").decode()
            if len(_endpoints) >= _KEPT_ENDPOINTS:
                _endpoints.clear()
            found = _endpoints[id(session), towards] = (session, *text.split(" "))
    return found[1:]


def new_capability() -> str:
    """Returns 128 random bits."""
    return secrets.token_hex(16)


def offer_under(capability: str, tensor: _C.Tensor, timeout: float, connection: _C.Connection | None = None) -> None:
    """Offers a tensor under a capability. The instruction is sent now, so that a pull does not wait for this process."""
    _C.ops.pull_offer(tensor.detach(), capability=capability, timeout=timeout)
    (connection or _connection.connection()).flush()


def offer(
    tensor: _C.Tensor, *, towards: str = "", timeout: float = 600.0, connection: _C.Connection | None = None
) -> dict:
    """Offers a tensor's present value to other engines; returns the ticket.

    Args:
        towards: see endpoint().
        timeout: seconds after which the engine frees the value if nobody has pulled it.
        connection: the tensor's session; None: the process's.
    """
    address, token = endpoint(towards, connection)
    capability = new_capability()
    offer_under(capability, tensor, timeout, connection)
    return {
        "address": address,
        "token": token,
        "capability": capability,
        "sizes": list(tensor.shape),
        "dtype": dtype_name(tensor.dtype),
    }


def pull(ticket: dict, *, device=None, timeout: float = 60.0, connection: _C.Connection | None = None) -> _C.Tensor:
    """Returns a copy of an offered tensor, in this session.

    Args:
        device: of the copy; by default the CPU.
        timeout: seconds until the copy fails if the tensor is not offered, or if no bytes arrive.
        connection: the session of the copy; None: the process's.

    Raises:
        ValueError: the ticket is malformed. Other errors are raised where the copy is read.
    """
    try:
        address, token, capability = ticket["address"], ticket["token"], ticket["capability"]
        sizes, dtype = checked_sizes(ticket["sizes"]), dtype_of(ticket["dtype"])
    except (KeyError, TypeError) as error:
        raise ValueError("[pull] expected a ticket that offer() returned") from error
    return pull_from(address, token, capability, sizes, dtype, device=device, timeout=timeout, connection=connection)


def pull_from(
    address: str, token: str, capability: str, sizes: list[int], dtype: _C.dtype, *, device=None, timeout: float = 60.0,
    connection: _C.Connection | None = None,
) -> _C.Tensor:  # fmt: skip
    """Same as pull(), with the parts of a valid ticket."""
    if not (isinstance(address, str) and isinstance(token, str) and isinstance(capability, str)):
        raise ValueError("[pull] expected a ticket that offer() returned")
    with _session(connection):
        return _C.ops.pull(
            address, token, capability, size=sizes, dtype=dtype, device=_C.placed(device or "cpu"), timeout=timeout
        )


def withdraw(capability: str, connection: _C.Connection | None = None) -> None:
    """Frees an offered value that nobody has pulled."""
    with _session(connection):
        _C.ops.pull_withdraw(capability)


def dtype_name(dtype: _C.dtype) -> str:
    """Returns "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


def dtype_of(name: object) -> _C.dtype:
    """The inverse of dtype_name(). Raises ValueError for other names."""
    dtype = getattr(_C, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, _C.dtype):
        raise ValueError(f"[pull] expected the name of a dtype, got {name!r:.100}")
    return dtype


def checked_sizes(sizes: object) -> list[int]:
    """Returns the sizes. Raises ValueError unless they are a list of integers from 0."""
    valid = isinstance(sizes, list) and len(sizes) <= _MAX_DIMENSIONS
    if not valid or any(type(size) is not int or not 0 <= size < 2**63 for size in sizes):
        raise ValueError(f"[pull] expected a list of at most {_MAX_DIMENSIONS} sizes, got {sizes!r:.100}")
    return sizes
