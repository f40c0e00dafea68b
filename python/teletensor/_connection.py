"""Which engine this process talks to.

With nothing said, the first tensor starts a private engine beside the process, or joins the one
that ``TELETENSOR_ADDRESS`` names.
"""

from __future__ import annotations

import atexit
import platform

from . import _C
from ._version import __version__

_current: _C.Connection | None = None
_settings: dict[str, tuple] = {}  # operators that say how a session computes, which every one of ours is told


def connect(address: str = "", *, token: str = "", memory_limit: int = 0) -> _C.Connection:
    """Opens a session with an engine and makes it this process's.

    Args:
        address: ``"host:port"`` or ``"unix:PATH"``. Empty: ``TELETENSOR_ADDRESS``; where that is
            empty too, a private engine is started and ends with this process.
        token: the engine's secret. Empty: ``TELETENSOR_TOKEN``, then the token file.
        memory_limit: bytes this session asks to be held to; 0: the engine's default.

    Raises:
        ConnectionError: nobody answers there, the token is wrong, or no engine can be started.
    """
    global _current
    disconnect()
    name = f"python {platform.python_version()} teletensor {__version__}"
    _current = _C.connect(address=address, token=token, client_name=name, memory_limit=memory_limit)
    _C.set_session(_current)
    for operator, arguments in _settings.items():
        getattr(_C.ops, operator)(*arguments)
    return _current


def set_for_sessions(operator: str, *arguments) -> None:
    """Issues an operator that sets how a session computes: in the open one, and in those opened later."""
    _settings[operator] = arguments
    if _current is not None:
        getattr(_C.ops, operator)(*arguments)


def connection() -> _C.Connection:
    """The open session, opened now if there is none."""
    return _current or connect()


def disconnect() -> None:
    """Ends the session; its tensors are freed in the engine and cannot be used any more."""
    global _current
    if _current is not None:
        session, _current = _current, None
        _C.set_session(None)
        session.close()


def synchronize() -> None:
    """Waits until everything issued so far has been executed."""
    connection().synchronize()


def sync_report(most: int = 20) -> str:
    """Where this script waited for the engine: a table of lines, counts and seconds, the `most` costly ones."""
    rows = connection().wait_report()
    if not rows:
        return "no round trips were waited for"
    total, seconds = sum(r[1] for r in rows), sum(r[2] for r in rows)
    lines = [f"{total} round trips waited for, {seconds:.3f} s in all"]
    lines += [f"{count:8d} x  {spent:9.3f} s  {where or '(unknown)'}" for where, count, spent in rows[:most]]
    return "\n".join(lines)


atexit.register(disconnect)
