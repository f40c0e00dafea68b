"""The launcher that --hosts starts on each host: ``python -m teletensor.launch.remote``. See hosts.py."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

from .launcher import Launcher, Signals
from .logs import Output
from .options import Options


def _with_int_keys(keys_as_text: dict) -> dict:
    return {int(key): value for key, value in keys_as_text.items()}


def _options(values: dict) -> Options:
    """Restores options from JSON, which has no tuples, sets or numbers as keys."""
    values["command"], values["ssh"] = tuple(values["command"]), tuple(values["ssh"])
    values["endpoint"] = tuple(values["endpoint"])
    values["redirects"], values["tee"] = _with_int_keys(values["redirects"]), _with_int_keys(values["tee"])
    values["filters"] = {stream: tuple(texts) for stream, texts in _with_int_keys(values["filters"]).items()}
    values["signals"] = tuple(values["signals"])
    if values["ranks_shown"] is not None:
        values["ranks_shown"] = frozenset(values["ranks_shown"])
    return Options(**values)


def main() -> int:
    line = sys.stdin.buffer.raw.readline()  # unbuffered: the bytes that follow must stay in the pipe
    if not line:
        return 1
    call = json.loads(line)
    os.environ.update(call["environment"])
    output = Output.standard(_with_int_keys(call["colors"]))
    launcher = Launcher(_options(call["options"]), output, call["host"], summarize=False)

    def watch(signals: Signals) -> None:
        def read() -> None:
            if not os.read(0, 4096):
                asyncio.get_running_loop().remove_reader(0)
                signals.receive(signal.SIGTERM)

        asyncio.get_running_loop().add_reader(0, read)

    return asyncio.run(launcher.run(watch))


if __name__ == "__main__":
    sys.exit(main())
