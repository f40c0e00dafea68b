"""The side of a worker process that answers requests: lines of JSON on standard input and output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any


def replies() -> Callable[[Any], None]:
    """Returns a function that writes a value as a line. What the process prints goes to standard error from then on."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(value: Any) -> None:
        lines.write(json.dumps(value, default=str) + "\n")
        lines.flush()

    return reply


def requests() -> Iterator[Any]:
    """The values of the lines of standard input, until it ends."""
    for line in sys.stdin:
        yield json.loads(line)


def text_of(error: Exception) -> str:
    """The type and the message of an exception."""
    return f"{type(error).__name__}: {error}"


def serve_rows(makers: dict[str, Callable[[int], dict]]) -> int:
    """Answers requests [name, number] by ``makers[name](number)``, a row; ["?", 0] by all names and PyTorch's version.

    An exception, which is a fault of the suite or of a type that PyTorch never raises, is the row's entry "broken".
    """
    import torch

    torch.set_num_threads(1)
    reply = replies()
    for name, number in requests():
        if name == "?":
            reply({"names": sorted(makers), "version": torch.__version__})
            continue
        try:
            row = makers[name](number)
        except Exception as e:  # noqa: BLE001 - reported
            row = {"name": name, "broken": text_of(e)}
        reply(row)
    return 0
