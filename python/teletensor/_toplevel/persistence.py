"""Sessions that outlive their engine's process: persist().

An engine with ``--state-dir`` stores images of the sessions that ask for them. After it was killed, or its host was
rebooted, and it has started again, the client reconnects and repeats what the last image lacks.
"""

from __future__ import annotations

from .. import _connection


def persist(every: float = 60.0, *, wait: float = 600.0) -> None:
    """Stores images of the session on the engine's disk, from which it continues after the engine has started again.

    The first image is complete when this function returns. A later one is written when ``every`` seconds have passed
    and the session has changed, or has executed 100,000 instructions since the last one; the session pauses while its
    tensors are written. Until then the client keeps the calls and uploads since the last image, at most 256 MiB of each,
    and repeats them if the engine ends: the session has the same bits as without an interruption. What cannot be
    repeated, such as the reading of a file that may have changed, or calls that are not kept any more, ends the session
    with a ``ConnectionError`` that says so. The image is removed when the session ends.

    Args:
        every: seconds between two images. 0 ends the storing, and removes the image.
        wait: seconds for which the client waits for the engine, and the engine, after its start, for the client.

    Raises:
        RuntimeError: the engine has no ``--state-dir``, or the session cannot be stored now; the message has the reason.
        ValueError: an interval is negative or longer than 30 days.
    """
    _connection.connection().persist(every, wait)
