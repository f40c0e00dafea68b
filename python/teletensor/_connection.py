"""The process's connection to an engine.

Unless connect() is called first, creating the first tensor connects to ``TELETENSOR_ADDRESS`` or, if that is not set,
starts a private engine.
"""

from __future__ import annotations

import atexit
import platform

from . import _C
from ._version import __version__

_current: _C.Connection | None = None
_settings: dict[str, tuple] = {}  # arguments by operator name; issued again in every new session


def connect(address: str = "", *, token: str = "", memory_limit: int = 0) -> _C.Connection:
    """Opens a session with an engine and makes it this process's session. Closes the previous one.

    Args:
        address: ``"host:port"`` or ``"unix:PATH"``. If empty, ``TELETENSOR_ADDRESS`` is used. If that variable is not
            set either, a private engine is started, which ends with this process.
        token: the engine's token. If empty, it is read from ``TELETENSOR_TOKEN`` or else from the token file.
        memory_limit: the memory limit to request for this session, in bytes; 0 requests the engine's default.

    Raises:
        ConnectionError: the engine does not answer, the token is wrong, or no engine can be started.
    """
    global _current
    disconnect()
    name = f"python {platform.python_version()} teletensor {__version__}"
    _current = _C.connect(address=address, token=token, client_name=name, memory_limit=memory_limit)
    _C.set_session(_current)
    for operator, arguments in _settings.items():
        getattr(_C.ops, operator)(*arguments)
    return _current


def configure_sessions(operator: str, *arguments) -> None:
    """Issues an operator that configures a session, in the open session and in every later session."""
    _settings[operator] = arguments
    if _current is not None:
        getattr(_C.ops, operator)(*arguments)


def connection() -> _C.Connection:
    """Returns the open session; opens one if there is none."""
    return _current or connect()


def disconnect() -> None:
    """Ends the session. Its tensors are freed in the engine and become unusable."""
    global _current
    if _current is not None:
        session, _current = _current, None
        _C.set_session(None)
        session.close()


def synchronize() -> None:
    """Waits until everything issued so far has been executed."""
    connection().synchronize()


def sync_report(limit: int = 20) -> str:
    """Returns a table of the source lines that waited for the engine, with counts and seconds.

    The costliest lines are first; `limit` is the maximum number of lines.
    """
    rows = connection().wait_report()
    if not rows:
        return "no round trips"
    total, seconds = sum(r[1] for r in rows), sum(r[2] for r in rows)
    lines = [f"waited for {total} round trips, {seconds:.3f} s in total"]
    lines += [f"{count:8d} x  {spent:9.3f} s  {where or '(unknown)'}" for where, count, spent in rows[:limit]]
    return "\n".join(lines)


atexit.register(disconnect)
