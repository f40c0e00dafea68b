"""session_info(): what the engine reports about this process's session, and what its principal uses."""

from __future__ import annotations

import json
from typing import Any

from .. import _C, _connection

_USAGE = ("sessions", "held_bytes", "bookkeeping_bytes", "handles", "transfers", "cpu_seconds")
_LIMITS = (
    "memory_limit",
    "host_memory_limit",
    "gpu_memory_limit",
    "handle_limit",
    "transfer_limit",
    "checkpoint_limit",
)


def _why(session: dict, principal: dict | None) -> str | None:
    """What the session waits for."""
    if session["state"] == "suspended":
        return "an upload, other engines or a file"
    if session["state"] != "queued":
        return None
    before = session["queue_position"] - 1
    others = "one session precedes" if before == 1 else f"{before} sessions precede"
    why = f"a turn of the processors: all are in use, and {others} this one"
    is_batch = principal is not None and principal["priority"] == "batch"
    return f"{why}; interactive principals precede those of the class batch" if is_batch else why


def session_info() -> dict[str, Any]:
    """What this process's session holds and waits for, as the engine reports it now. Costs a round trip.

    Another thread may call it while a read waits. Returns a dict with

    - ``session`` (its number), ``principal``, ``connected``, ``age_seconds``;
    - ``state`` (``"idle"``, ``"prepare"``, ``"execute"``, ``"reply"``, ``"queued"`` or ``"suspended"``), ``waits_for`` (the
      reason as a sentence, or None), ``queue_position`` (1: the next to have a turn; 0: not queued) and ``waited_seconds``
      (for turns of processors and GPUs, since the session was opened);
    - ``frames``, ``instructions`` and ``failed`` (instructions), ``handles``, ``held_bytes``, ``peak_bytes``, ``limit_bytes`` (0:
      none) and ``offloaded_bytes``;
    - ``usage``: what all sessions of the principal hold together, its ``limits`` (those that it has), ``weight`` and
      ``priority``; None if the engine does not report it.

    Raises:
        RuntimeError: the session is in an engine whose status this client cannot request: one in this process, or one to
            which a front engine (``--engines``) has sent it.
        ConnectionError: the engine does not answer within seconds.
    """
    connection = _connection.connection()
    number = connection.engine()["session"]
    if not connection.address:
        raise RuntimeError("[session_info] expected an engine in another process, got one in this process")
    given = _connection.environment
    trust = {
        name: given.get(f"TELETENSOR_TLS_{name.upper()}", "") for name in ("fingerprint", "ca", "certificate", "key")
    }
    status = json.loads(_C.Admin(connection.address, given.get("TELETENSOR_TOKEN", ""), **trust).status())
    session = next((each for each in status["sessions"] if int(each["id"]) == number), None)
    if session is None or status.get("engines"):
        raise RuntimeError(
            "[session_info] expected a session in the engine that it was opened with, got one that a front engine "
            f"({connection.address}) has placed in another engine"
        )
    # Without its own name in the status, as with the user token, a session's principal is the only one that is listed.
    listed = status.get("principals", [])
    principal = next((each for each in listed if each["name"] == session["principal"]), None)
    if principal is None and len(listed) == 1:
        principal = listed[0]
    info: dict[str, Any] = {
        "session": number,
        "principal": session["principal"] or (principal or {}).get("name", ""),
        "connected": session["connected"],
        "age_seconds": session["age_seconds"],
        "state": session["state"],
        "waits_for": _why(session, principal),
        "queue_position": session["queue_position"],
        "waited_seconds": session["waited_seconds"],
    }
    for name in (
        "frames",
        "instructions",
        "failed",
        "handles",
        "held_bytes",
        "peak_bytes",
        "limit_bytes",
        "offloaded_bytes",
    ):
        info[name] = int(session[name])
    info["usage"] = None
    if principal is not None:
        info["usage"] = {name: float(principal[name]) if "seconds" in name else int(principal[name]) for name in _USAGE}
        info["usage"] |= {"weight": principal["weight"], "priority": principal["priority"]}
        info["usage"]["limits"] = {name: int(principal[name]) for name in _LIMITS if int(principal[name])}
    return info
