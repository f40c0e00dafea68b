"""A rank's process: executes calls that it reads as lines of JSON, and writes their results (ranks.py)."""

from __future__ import annotations

import importlib
import json
import os
import sys

from .ranks import describe_error


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # prints of the cases
    for line in sys.stdin:
        call = json.loads(line)
        try:
            function = getattr(importlib.import_module(call["module"]), call["name"])
            reply = {"result": function(*call["arguments"], **call["options"])}
        except Exception:  # noqa: BLE001 - reported to the test
            reply = {"error": describe_error()}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
