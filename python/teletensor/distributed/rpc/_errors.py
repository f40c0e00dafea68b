"""Conversion of exceptions to and from text, to send them to other workers."""

from __future__ import annotations

import builtins
import traceback

from .._errors import DistError

_MAX_TEXT = 64 << 10


def describe(error: BaseException) -> dict[str, str]:
    """Returns an exception as plain data: its nearest builtin type, its text and its traceback."""
    kind = next((c for c in type(error).__mro__ if getattr(builtins, c.__name__, None) is c), RuntimeError)
    trace = "".join(traceback.format_exception(error))
    return {"type": kind.__name__, "text": repr(error)[:_MAX_TEXT], "traceback": trace[-_MAX_TEXT:]}


def rebuild(description: object, worker: object) -> Exception:
    """Returns an exception of the same builtin type, whose message has the worker and the remote traceback."""
    if not isinstance(description, dict):
        return RuntimeError(f"On {worker}: an error that was not described")
    kind = getattr(builtins, str(description.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = RuntimeError
    text = f"On {worker}:\n{description.get('text')}\n{description.get('traceback')}"
    try:
        return kind(text)
    except TypeError:  # UnicodeDecodeError and others require further arguments
        return RuntimeError(text)


def lost(worker: object, reason: str, name: str = "") -> DistError:
    """The error of a call to a worker that was lost."""
    return DistError(f"[rpc] {worker} was lost{f' during the call of {name}' if name else ''}: {reason}")


def timed_out(seconds: float) -> RuntimeError:
    return RuntimeError(
        f"RPC ran for more than set timeout ({seconds * 1000:g} ms) and will now be marked with an error"
    )
