"""A rank's failure file: when and why the rank failed.

The launcher names a file per rank in TORCHELASTIC_ERROR_FILE. A rank writes it once, at its first uncaught exception or when
its interpreter begins to exit, that is, before its peers can notice that it is gone. The launcher reads it to find the
rank that failed first; the order in which processes end does not show that. The format is that of PyTorch's
``torch.distributed.elastic``, with two more keys.
"""

from __future__ import annotations

import atexit
import json
import os
import time
import traceback

from ._errors import DistError

VARIABLE = "TORCHELASTIC_ERROR_FILE"


_rank = 0  # the process that formed the group; its children inherit the variable, but are not the rank


def describe(error: BaseException | None) -> dict:
    """Returns the file's contents for an exception, or for an exit without one (None)."""
    now = time.time()
    what = f"{type(error).__name__}: {error}" if error is not None else "the interpreter exited"
    stack = "".join(traceback.format_exception(error)) if error is not None else ""
    return {
        "message": {"message": what, "extraInfo": {"py_callstack": stack, "timestamp": str(int(now))}},
        "time": now,
        # Whether the failure may be the consequence of another rank's failure.
        "caused_by_peer": isinstance(error, DistError),
    }


def write(error: BaseException | None) -> None:
    """Writes this process's file unless it exists or the process has none. Never raises."""
    path = os.environ.get(VARIABLE)
    if not path or _rank not in (0, os.getpid()) or os.path.exists(path):
        return
    try:
        draft = f"{path}.{os.getpid()}"
        with open(draft, "w") as file:
            json.dump(describe(error), file)
        os.replace(draft, path)  # the launcher reads a whole file or none
    except OSError:
        pass  # without the file the launcher uses the time at which the process ended


def write_at_exit() -> None:
    """Makes this process write its file when its interpreter exits: sys.exit() reaches no exception hook."""
    global _rank
    if _rank != os.getpid() and os.environ.get(VARIABLE):
        _rank = os.getpid()
        atexit.register(write, None)  # registered after the connection's handler, so that it runs before it
